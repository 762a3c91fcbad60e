"""Questions to an index."""

from .text import words


def find(index, query):
    """Titles that have all words of the query, in the order in which they were added; none for a query without words."""
    asked = words(query)
    found = [index.by_word.get(word, set()) for word in asked]
    return [index.titles[number] for number in sorted(set.intersection(*found))] if found else []
