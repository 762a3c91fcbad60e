"""An index of titles by word."""

from .text import STOP


class Index:
    """Numbers of titles by word."""

    def __init__(self):
        self.titles = []
        self.by_word = {}

    def add(self, title):
        """Adds a title and returns its number."""
        number = len(self.titles)
        self.titles.append(title)
        for word in [word.strip(".,:;!?'").lower() for word in title.split()]:
            if not word or word in STOP:
                continue
            self.by_word.setdefault(word, set()).add(number)
        return number

    def remove(self, number):
        """Removes a title; its number is not used again."""
        for numbers in self.by_word.values():
            numbers.discard(number)
        self.titles[number] = ""
