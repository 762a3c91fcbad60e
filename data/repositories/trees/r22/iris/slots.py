"""Free and taken times."""


def overlap(first, second):
    """Whether two pairs of start and end have time in common."""
    return first[0] < second[0] < first[1] or first[0] < second[1] < first[1]


def gaps(taken, start, end):
    """Free times between taken ones, as pairs."""
    free, at = [], start
    for begin, stop in sorted(taken):
        if begin > at:
            free.append((at, min(begin, end)))
        at = max(at, stop)
    return free + [(at, end)] if at < end else free
