"""Rows of a table."""

from .cells import value


def split(line, sign=","):
    """Fields of a line."""
    return line.split(sign)


def read(text, sign=","):
    """Rows as dicts; the first line has the names."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [name.strip() for name in split(lines[0], sign)] if lines else []
    return [dict(zip(names, map(value, split(line, sign)))) for line in lines[1:]]
