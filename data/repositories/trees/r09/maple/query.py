"""Questions to an index."""

from .text import STOP


def split(query):
    """Words of a query that count."""
    every = [word.strip(".,:;!?'").lower() for word in query.split()]
    return [word for word in every if word and word not in STOP]


def find(index, query):
    """Titles that have all words of the query, in the order in which they were added; none for a query without words."""
    asked = split(query)
    found = [index.by_word.get(word, set()) for word in asked]
    return [index.titles[number] for number in sorted(set.intersection(*found))] if found else []


def find_any(index, query):
    """Titles that have a word of the query, those with most words first."""
    asked = set(split(query))
    counts = {}
    for word in asked:
        for number in index.by_word.get(word, set()):
            counts[number] = counts.get(number, 0) + 1
    return [index.titles[number] for number in sorted(counts, key=lambda number: (-counts[number], number))]
