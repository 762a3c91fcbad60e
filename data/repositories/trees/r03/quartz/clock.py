"""Times as minutes of a day."""


def minutes(text):
    """Minutes since midnight of a time such as `09:30`."""
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest or 0)


def clock(total):
    """The time of so many minutes; after midnight it begins anew."""
    return f"{total // 60 % 24:02d}:{total % 60:02d}"
