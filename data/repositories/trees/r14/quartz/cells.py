"""Values of cells."""


def value(text):
    """A number if the text is one, None if it is blank, else the text."""
    if not text:
        return None
    digits = text.lstrip("-")
    if digits.isdigit():
        return int(text)
    if digits.replace(".", "", 1).isdigit():
        return float(text)
    return text
