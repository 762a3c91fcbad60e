"""Conversion between units."""

from .tables import ALIASES, FACTORS


def convert(value, source, target, digits=None):
    """The value in another unit, rounded if digits are given."""
    result = value * FACTORS[ALIASES.get(source, source)] / FACTORS[ALIASES.get(target, target)]
    return result if digits is None else round(result, digits)
