"""Checks the answers of errands, and holds what programs of agents may use."""

import re

# The functions of toolbox.py; make-errands.py compares.
MANUAL = {
    "pages(words)": "Returns the titles of the pages whose title holds the words.",
    "page(title)": "Returns the text of the page with exactly this title.",
    "sentence(title, word)": "Returns the first sentence of a page that holds a word.",
    "number(text)": "Returns the first number of a text.",
    "numbers(text)": "Returns all numbers of a text, in order.",
    "query(sql)": "Runs one SELECT on the registers and returns its rows as tuples.",
    "tables()": "Returns the names of the registers with their columns.",
    "rows(table, **where)": "Returns the rows of a register whose columns have the given values, as dictionaries.",
    "total(table, column, **where)": "Returns the sum of a column over the rows of a register that have the given values.",
    "count(table, **where)": "Returns the number of rows of a register that have the given values.",
    "linked(node, relation)": "Returns the nodes to which a link of this relation leads from a node.",
    "linking(node, relation)": "Returns the nodes from which a link of this relation leads to a node.",
    "relations(node)": "Returns the relations of the links of a node.",
    "largest(values)": "Returns the key with the largest value of a dictionary.",
    "smallest(values)": "Returns the key with the smallest value of a dictionary.",
    "mean(values)": "Returns the mean of numbers.",
    "share(part, whole)": "Returns a part of a whole in per cent, with one decimal.",
    "whole(value)": "Returns a number as a text, without decimals if it has none.",
    "upwards(value, step)": "Rounds a number up to a multiple of a step.",
    "in_order(values, descending=False)": "Returns the keys of a dictionary in order of their values.",
    "listed(words)": "Joins words with commas and a last `and`.",
    "letter(to, lines)": "Returns a letter to somebody with these lines.",
}


def holds(text, fact):
    """Whether a text holds a fact as a whole word or number."""
    return re.search(rf"(?<![\w.]){re.escape(fact.lower())}(?!\w|\.\d)", text.lower()) is not None


def check(row, answer):
    """The share of the facts of the answer that are right."""
    text = answer.replace(",", "") if row["kind"] != "largest" else answer
    held = [fact for fact in row["facts"] if holds(text, fact)]
    missing = "" if len(held) == len(row["facts"]) else "a fact is missing or wrong"
    return {"score": len(held) / len(row["facts"]), "text": missing, "measures": {"recall": len(held) / len(row["facts"])}}


def names(row):
    """The names of all functions."""
    return ", ".join(name.split("(")[0] for name in MANUAL)


def every(row, names=""):
    """The description of all functions."""
    return "\n".join(f"{name}: {doc}" for name, doc in MANUAL.items())


def some(row, names):
    """The description of the functions that are named."""
    named = set(re.findall(r"\w+", names))
    return "\n".join(f"{name}: {doc}" for name, doc in MANUAL.items() if name.split("(")[0] in named) or "(none)"


def padded(row, names):
    """The description of all functions, those that are not named covered."""
    named = set(re.findall(r"\w+", names))
    lines = [f"{name}: {doc}" for name, doc in MANUAL.items()]
    return "\n".join(line if line.split("(")[0] in named else re.sub(r"\w", "x", line) for line in lines)


def as_many(row, names):
    """The description of as many functions, which a lot of the row's names picks."""
    found = [f"{name}: {doc}" for name, doc in MANUAL.items() if name.split("(")[0] in set(re.findall(r"\w+", names))]
    every = [f"{name}: {doc}" for name, doc in MANUAL.items()]
    lot = sorted(every, key=lambda line: hash_of(row["id"] + line))
    return "\n".join(lot[: max(1, len(found))])


def hash_of(text):
    """A number that depends on a text only."""
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number
