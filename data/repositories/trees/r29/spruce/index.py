"""An index of titles by word."""

from .text import words


class Index:
    """Numbers of titles by word."""

    def __init__(self):
        self.titles = []
        self.by_word = {}

    def add(self, title):
        """Adds a title and returns its number."""
        number = len(self.titles)
        self.titles.append(title)
        for word in words(title):
            self.by_word.setdefault(word, set()).add(number)
        return number

    def remove(self, number):
        """Removes a title; its number is not used again."""
        for word in words(self.titles[number]):
            self.by_word[word].discard(number)
        self.titles[number] = ""
