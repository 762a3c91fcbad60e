"""Bookings from text."""

from .book import Book
from .money import to_cents


def read(text):
    """A book from lines `source,target,amount`; lines that begin with # are skipped."""
    book = Book()
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            source, target, amount = (field.strip() for field in line.split(","))
            book.move(source, target, to_cents(amount))
    return book
