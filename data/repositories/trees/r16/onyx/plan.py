"""The plan as a whole."""

from .graph import order
from .times import finish


def read(text):
    """Needs by task, from lines such as `paint: walls, floor`."""
    needs = {}
    for line in filter(str.strip, text.splitlines()):
        task, _, before = line.partition(":")
        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]
    for before in list(needs.values()):
        for name in before:
            needs.setdefault(name, [])
    return needs


def schedule(text, days):
    """Lines `task ends on day n`, in the order of work."""
    needs = read(text)
    ends = finish(needs, days)
    return [f"{task} ends on day {ends[task]}" for task in order(needs)]
