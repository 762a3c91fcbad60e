"""Days on which tasks end."""

from .graph import order


def finish(needs, days):
    """The day on which each task ends, if it begins when all that it needs has ended."""
    ends = {}
    for task in order(needs):
        start = max((ends[before] for before in needs[task]), default=0)
        ends[task] = start + days.get(task, 1)
    return ends
