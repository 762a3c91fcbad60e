"""Quantities as people write them."""

import re

from .tables import canonical


def parse_quantity(text):
    """A pair of value and unit, from a text such as `3 km`."""
    number, unit = text.split()
    number = number.replace(",", "")
    return float(number), canonical(unit)
