"""A shelf of books."""

from .index import Index
from .query import find


class Shelf:
    """Books that can be found and lent."""

    def __init__(self, titles=()):
        self.index = Index()
        self.lent = set()
        for title in titles:
            self.index.add(title)

    def search(self, query):
        """Titles that match and are not lent."""
        return [title for title in find(self.index, query) if title not in self.lent]

    def lend(self, title):
        """Lends a title; an error if it is lent or not there."""
        if title in self.lent or title not in self.index.titles:
            raise LookupError(title)
        self.lent.add(title)
