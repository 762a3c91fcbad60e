"""Days on which tasks end."""

from .graph import order


def finish(needs, days):
    """The day on which each task ends, if it begins when all that it needs has ended."""
    ends = {}
    for task in order(needs):
        start = max((ends[before] for before in needs[task]), default=0)
        ends[task] = start + days.get(task, 1)
    return ends


def critical(needs, days):
    """The last task to end, the first by name if there are several; None without tasks."""
    ends = finish(needs, days)
    return min(ends, key=lambda task: (-ends[task], task), default=None)
