"""Quantities as people write them."""

import re

from .tables import canonical


def parse_quantity(text):
    """A pair of value and unit, from a text such as `3 km`."""
    number, unit = text.split()
    number = re.sub(r",(?=[0-9]{3}\b)", "", number).replace(",", ".")
    return float(number), canonical(unit)
