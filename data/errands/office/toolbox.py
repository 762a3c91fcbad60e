"""Functions over the pages, the registers and the links of the harbour office, for programs of agents."""

import json
import math
import re
import sqlite3


def _pages():
    with open("documents.jsonl") as file:
        return {row["title"]: row["text"] for row in map(json.loads, file)}


def pages(words):
    """Returns the titles of the pages whose title holds the words."""
    return [title for title in _pages() if words.lower() in title.lower()]


def page(title):
    """Returns the text of the page with exactly this title."""
    found = _pages()
    if title not in found:
        raise KeyError(f"there is no page {title!r}")
    return found[title]


def sentence(title, word):
    """Returns the first sentence of a page that holds a word."""
    for one in page(title).split(". "):
        if word.lower() in one.lower():
            return one.rstrip(".") + "."
    raise LookupError(f"no sentence of {title!r} holds {word!r}")


def number(text):
    """Returns the first number of a text."""
    return float(re.search(r"\d+(\.\d+)?", text).group())


def numbers(text):
    """Returns all numbers of a text, in order."""
    return [float(one.group()) for one in re.finditer(r"\d+(\.\d+)?", text)]


def query(sql):
    """Runs one SELECT on the registers and returns its rows as tuples."""
    base = sqlite3.connect(":memory:")
    with open("registers.sql") as file:
        base.executescript(file.read())
    return base.execute(sql).fetchall()


def tables():
    """Returns the names of the registers with their columns."""
    return query("SELECT name, sql FROM sqlite_master WHERE type = 'table'")


def rows(table, **where):
    """Returns the rows of a register whose columns have the given values, as dictionaries."""
    names = [row[1] for row in query(f"PRAGMA table_info({table})")]
    found = [dict(zip(names, row)) for row in query(f"SELECT * FROM {table}")]
    return [row for row in found if all(row[name] == value for name, value in where.items())]


def total(table, column, **where):
    """Returns the sum of a column over the rows of a register that have the given values."""
    return sum(row[column] for row in rows(table, **where))


def count(table, **where):
    """Returns the number of rows of a register that have the given values."""
    return len(rows(table, **where))


def _links():
    with open("links.csv") as file:
        return [line.rstrip("\n").split(",") for line in file][1:]


def linked(node, relation):
    """Returns the nodes to which a link of this relation leads from a node."""
    return [end for start, name, end in _links() if start == node and name == relation]


def linking(node, relation):
    """Returns the nodes from which a link of this relation leads to a node."""
    return [start for start, name, end in _links() if end == node and name == relation]


def relations(node):
    """Returns the relations of the links of a node."""
    return sorted({name for start, name, end in _links() if node in (start, end)})


def largest(values):
    """Returns the key with the largest value of a dictionary."""
    return max(values, key=values.get)


def smallest(values):
    """Returns the key with the smallest value of a dictionary."""
    return min(values, key=values.get)


def mean(values):
    """Returns the mean of numbers."""
    values = list(values)
    return sum(values) / len(values)


def share(part, whole):
    """Returns a part of a whole in per cent, with one decimal."""
    return round(100 * part / whole, 1)


def whole(value):
    """Returns a number as a text, without decimals if it has none."""
    return str(int(value)) if float(value).is_integer() else f"{value:.10g}"


def upwards(value, step):
    """Rounds a number up to a multiple of a step."""
    return math.ceil(value / step) * step


def in_order(values, descending=False):
    """Returns the keys of a dictionary in order of their values."""
    return sorted(values, key=values.get, reverse=descending)


def listed(words):
    """Joins words with commas and a last `and`."""
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def letter(to, lines):
    """Returns a letter to somebody with these lines."""
    return "\n".join([f"To {to}:", *lines])
