"""Units of length and their size in metres."""

FACTORS = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 100.0}
ALIASES = {"metre": "m", "metres": "m", "kilometre": "km"}


def canonical(name):
    """The short name of a unit."""
    return ALIASES.get(name, name)
