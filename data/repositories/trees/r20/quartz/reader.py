"""Bookings from text."""

from .book import Book
from .money import to_cents


def read(text):
    """A book from lines `source,target,amount`."""
    book = Book()
    for line in text.splitlines():
        if line:
            source, target, amount = (field.strip() for field in line.split(","))
            book.move(source, target, to_cents(amount))
    return book
