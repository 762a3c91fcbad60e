"""Summaries of tables."""

from .groups import group, mean
from .rows import read


def summary(text, by, name):
    """The mean of one column for each value of another."""
    return {key: mean(rows, name) for key, rows in group(read(text), by).items()}


def largest(text, by, name):
    """The value of a column whose mean of another is largest, the first if there are several; None without numbers."""
    means = {key: number for key, number in summary(text, by, name).items() if number is not None}
    return max(means, key=means.get, default=None)
