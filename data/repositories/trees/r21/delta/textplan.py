"""Plans from text."""


def parse(text):
    """Needs by task, from lines such as `paint: walls, floor`; tasks that are only needed are added."""
    needs = {}
    for line in filter(str.strip, text.splitlines()):
        task, _, before = line.partition(":")
        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]
    for before in list(needs.values()):
        for name in before:
            needs.setdefault(name, [])
    return needs
