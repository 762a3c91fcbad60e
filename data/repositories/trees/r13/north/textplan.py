"""Plans from text."""


def parse(text):
    """Needs by task, from lines such as `paint: walls, floor`."""
    needs = {}
    for line in filter(str.strip, text.splitlines()):
        task, _, before = line.partition(":")
        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]
    return needs
