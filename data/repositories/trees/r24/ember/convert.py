"""Conversion between units."""

from .tables import FACTORS, canonical


def convert(value, source, target, digits=None):
    """The value in another unit, rounded if digits are given."""
    result = value * FACTORS[canonical(source)] / FACTORS[canonical(target)]
    return result if digits is None else round(result, digits)
