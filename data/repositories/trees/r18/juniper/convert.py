"""Conversion between units."""

from .tables import FACTORS, canonical


def convert(value, source, target):
    """The value in another unit."""
    result = value * FACTORS[canonical(source)] / FACTORS[canonical(target)]
    return result
