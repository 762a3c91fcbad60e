"""Words of titles."""

STOP = {"a", "an", "the", "of"}


def words(title):
    """Lower-case words of a title that count."""
    every = [word.lower() for word in title.split()]
    return [word for word in every if word and word not in STOP]
