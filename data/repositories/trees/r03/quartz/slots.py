"""Free and taken times."""


def gaps(taken, start, end):
    """Free times between taken ones, as pairs."""
    free, at = [], start
    for begin, stop in sorted(taken):
        if begin > at:
            free.append((at, min(begin, end)))
        at = max(at, stop)
    return free + [(at, end)] if at < end else free
