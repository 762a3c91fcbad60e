"""The plan as a whole."""

from .graph import order
from .textplan import parse
from .times import finish


def schedule(text, days):
    """Lines `task ends on day n`, in the order of work."""
    needs = parse(text)
    ends = finish(needs, days)
    return [f"{task} ends on day {ends[task]}" for task in order(needs)]
