"""Units of length and their size in metres."""

FACTORS = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0}
ALIASES = {"metre": "m", "metres": "m", "kilometre": "km"}
