"""Amounts in cents."""


def to_cents(text):
    """Cents of a text such as `-12.50`."""
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("-").partition(".")
    return sign * (int(whole) * 100 + int(part.ljust(2, "0") or 0))


def to_text(cents):
    """The text of an amount."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"
