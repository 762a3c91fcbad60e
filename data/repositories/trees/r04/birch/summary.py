"""Summaries of tables."""

from .groups import group, mean
from .rows import read


def summary(text, by, name, sign=","):
    """The mean of one column for each value of another."""
    return {key: mean(rows, name) for key, rows in group(read(text, sign), by).items()}
