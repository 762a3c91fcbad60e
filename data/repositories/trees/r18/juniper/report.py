"""Reports over lists of quantities."""

from .convert import convert
from .parse import parse_quantity


def total(lines, unit):
    """The sum of all lines in one unit."""
    return sum(convert(value, source, unit) for value, source in map(parse_quantity, lines))


def longest(lines, unit):
    """The greatest of all lines in one unit; None if there is no line."""
    values = [convert(value, source, unit) for value, source in map(parse_quantity, lines)]
    return max(values, default=None)
