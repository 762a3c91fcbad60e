"""Values of cells."""


def value(text):
    """A number if the text is one, None if it is blank, else the text."""
    text = text.strip()
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
