"""Statements for people."""

from .money import to_text
from .reader import read


def statement(text):
    """One line an account, in the order of names."""
    book = read(text)
    return [f"{name}: {to_text(book.balances[name])}" for name in sorted(book.balances)]
