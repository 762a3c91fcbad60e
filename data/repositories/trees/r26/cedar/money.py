"""Amounts in cents."""


def to_cents(text):
    """Cents of a text such as `-12.50`."""
    whole, _, part = text.partition(".")
    part = int(part.ljust(2, "0") or 0)
    return int(whole) * 100 + (part if int(whole) >= 0 else -part)


def to_text(cents):
    """The text of an amount."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"
