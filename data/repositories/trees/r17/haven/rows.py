"""Rows of a table."""

from .cells import value


def split(line):
    """Fields of a line; a comma between double quotes does not separate."""
    fields, field, quoted = [], "", False
    for letter in line:
        if letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += letter
    return fields + [field]


def read(text):
    """Rows as dicts; the first line has the names."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [name.strip() for name in split(lines[0])] if lines else []
    return [dict(zip(names, map(value, split(line)))) for line in lines[1:]]
