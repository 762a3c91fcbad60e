"""Questions to an index."""

from .text import words


def find(index, query):
    """Titles that have all words of the query, in the order in which they were added; none for a query without words."""
    asked = words(query)
    found = [index.by_word.get(word, set()) for word in asked]
    return [index.titles[number] for number in sorted(set.intersection(*found))] if found else []


def find_any(index, query):
    """Titles that have a word of the query, those with most words first."""
    asked = set(words(query))
    counts = {}
    for word in asked:
        for number in index.by_word.get(word, set()):
            counts[number] = counts.get(number, 0) + 1
    return [index.titles[number] for number in sorted(counts, key=lambda number: (-counts[number], number))]
