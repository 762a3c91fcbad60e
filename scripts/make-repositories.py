#!/usr/bin/env python3
"""Makes data/repositories: issues over small Python repositories, with patches, tests and planted wrong patches.

Six small projects are written here in their right form. An issue undoes a part of one of them, so the right patch is known by
construction. Names of packages and the order are drawn with a fixed seed. Every issue is run before it is written: its visible tests
pass before and after the right patch, its hidden tests fail before it and pass after it, and every wrong patch fails a test.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "repositories"
NAMES = "amber birch cedar delta ember fjord gable haven iris juniper kelp larch maple north onyx pebble quartz ridge spruce tarn".split()

PROJECTS = {}


def project(name, files):
    PROJECTS[name] = {"files": {path: text.strip("\n") + "\n" for path, text in files.items()}, "issues": []}


def issue(of, **columns):
    PROJECTS[of]["issues"].append(columns)


# ---------------------------------------------------------------------------------------------------------------------------------
project("units", {
    "PKG/tables.py": '''
"""Units of length and their size in metres."""

FACTORS = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0}
ALIASES = {"metre": "m", "metres": "m", "kilometre": "km"}


def canonical(name):
    """The short name of a unit."""
    return ALIASES.get(name, name)
''',
    "PKG/convert.py": '''
"""Conversion between units."""

from .tables import FACTORS, canonical


def convert(value, source, target, digits=None):
    """The value in another unit, rounded if digits are given."""
    result = value * FACTORS[canonical(source)] / FACTORS[canonical(target)]
    return result if digits is None else round(result, digits)
''',
    "PKG/parse.py": '''
"""Quantities as people write them."""

import re

from .tables import canonical


def parse_quantity(text):
    """A pair of value and unit, from a text such as `3 km`."""
    number, unit = text.split()
    number = re.sub(r",(?=[0-9]{3}\\b)", "", number).replace(",", ".")
    return float(number), canonical(unit)
''',
    "PKG/report.py": '''
"""Reports over lists of quantities."""

from .convert import convert
from .parse import parse_quantity


def total(lines, unit):
    """The sum of all lines in one unit."""
    return sum(convert(value, source, unit) for value, source in map(parse_quantity, lines))


def longest(lines, unit):
    """The greatest of all lines in one unit; None if there is no line."""
    values = [convert(value, source, unit) for value, source in map(parse_quantity, lines)]
    return max(values, default=None)
''',
    "tests/test_PKG.py": '''
from PKG.convert import convert
from PKG.parse import parse_quantity
from PKG.report import total


def test_small_units():
    assert convert(5, "cm", "mm") == 50, "5 cm are 50 mm"


def test_thousands():
    assert parse_quantity("1,500 m") == (1500.0, "m"), "a comma before three digits separates thousands"


def test_alias():
    assert parse_quantity("2 metres") == (2.0, "m"), "metres is an alias of m"


def test_alias_in_conversion():
    assert convert(3, "metre", "cm") == 300, "metre is an alias of m"


def test_total():
    assert total(["1 m", "50 cm"], "cm") == 150, "1 m and 50 cm are 150 cm"


def test_total_of_nothing():
    assert total([], "m") == 0, "the total of no lines is 0"
''',
})
issue("units", kind="bug", path="PKG/tables.py", symbol="FACTORS", entry="PKG/report.py", example=True,
      text="`total` is far too small for long distances. `total([\"2 km\"], \"m\")` gives 200.0, and 2000.0 is right. Short distances are fine.",
      undo=[("PKG/tables.py", '"km": 1000.0', '"km": 100.0')], line='"km": 100.0',
      chain=[("PKG/report.py", "from .convert import convert"), ("PKG/convert.py", "from .tables import FACTORS")],
      wrong=[[("PKG/report.py", "return sum(", "return 10 * sum(")],
             [("PKG/convert.py", "    return result if", "    result = result * 10 if value > 1 else result\n    return result if")],
             [("PKG/tables.py", '"km": 100.0', '"km": 10000.0')]],
      hidden='''
def test_issue():
    from PKG.report import total
    assert total(["2 km"], "m") == 2000, "2 km are 2000 m"


def test_back():
    from PKG.convert import convert
    assert convert(500, "m", "km") == 0.5, "500 m are half a km"
''')
issue("units", kind="bug", path="PKG/parse.py", symbol="parse_quantity", entry="PKG/parse.py", example=True,
      text="A decimal comma is lost: `parse_quantity(\"1,5 km\")` gives 15 km. It should give 1.5 km.",
      undo=[("PKG/parse.py", 'number = re.sub(r",(?=[0-9]{3}\\b)", "", number).replace(",", ".")', 'number = number.replace(",", "")')],
      line='number = number.replace(",", "")', chain=[], edge="a comma before three digits separates thousands",
      wrong=[[("PKG/parse.py", 'number = number.replace(",", "")', 'number = number.replace(",", ".")')],
             [("PKG/report.py", "for value, source in map(parse_quantity, lines))", "for value, source in map(parse_quantity, [line.replace(',', '.') for line in lines]))")]],
      hidden='''
def test_issue():
    from PKG.parse import parse_quantity
    assert parse_quantity("1,5 km") == (1.5, "km"), "1,5 km are 1.5 km"


def test_both():
    from PKG.report import total
    assert total(["1,500 m", "0,5 m"], "m") == 1500.5, "1,500 m and 0,5 m are 1500.5 m"
''')
issue("units", kind="feature", path="PKG/convert.py", symbol="convert", entry="PKG/convert.py", example=True,
      text="Let `convert` round: a new argument `digits`, without a value by default, gives the number of decimals. `convert(1234, \"m\", \"km\", digits=1)` is 1.2.",
      undo=[("PKG/convert.py", "source, target, digits=None):", "source, target):"), ("PKG/convert.py", "unit, rounded if digits are given.", "unit."),
            ("PKG/convert.py", "    return result if digits is None else round(result, digits)", "    return result")],
      line="def convert(value, source, target):", chain=[],
      wrong=[[("PKG/convert.py", "source, target):", "source, target, digits=None):"), ("PKG/convert.py", "    return result", "    return round(result, digits) if digits else result")],
             [("PKG/convert.py", "source, target):", "source, target, digits=0):"), ("PKG/convert.py", "    return result", "    return round(result, digits)")],
             [("PKG/report.py", '"""The sum of all lines in one unit."""', '"""The sum of all lines in one unit, rounded."""')]],
      hidden='''
def test_issue():
    from PKG.convert import convert
    assert convert(1234, "m", "km", digits=1) == 1.2, "1234 m are 1.2 km with one decimal"


def test_no_decimals():
    from PKG.convert import convert
    assert convert(1234, "m", "km", digits=0) == 1, "1234 m are 1 km without decimals"


def test_default():
    from PKG.convert import convert
    assert convert(1234, "m", "km", digits=None) == 1.234, "without digits nothing is rounded"
''')
issue("units", kind="refactoring", path="PKG/tables.py", symbol="ALIASES", entry="PKG/parse.py", example=False,
      text="The lookup of aliases is written twice, in two modules. Move it into one function `canonical` beside the table of aliases, and use it in both. Nothing else may change.",
      undo=[("PKG/tables.py", '\n\ndef canonical(name):\n    """The short name of a unit."""\n    return ALIASES.get(name, name)\n', ""),
            ("PKG/parse.py", "import canonical", "import ALIASES"), ("PKG/parse.py", "canonical(unit)", "ALIASES.get(unit, unit)"),
            ("PKG/convert.py", "import FACTORS, canonical", "import ALIASES, FACTORS"),
            ("PKG/convert.py", "FACTORS[canonical(source)] / FACTORS[canonical(target)]", "FACTORS[ALIASES.get(source, source)] / FACTORS[ALIASES.get(target, target)]")],
      line='ALIASES = {', chain=[("PKG/parse.py", "ALIASES.get(unit, unit)"), ("PKG/convert.py", "ALIASES.get(source, source)")],
      wrong=[[("PKG/tables.py", 'ALIASES = {', 'def canonical(name):\n    """The short name of a unit."""\n    return ALIASES[name]\n\n\nALIASES = {'),
              ("PKG/parse.py", "import ALIASES", "import canonical"), ("PKG/parse.py", "ALIASES.get(unit, unit)", "canonical(unit)")],
             [("PKG/parse.py", "def parse_quantity", "def canonical(name):\n    return ALIASES.get(name, name)\n\n\ndef parse_quantity")],
             [("PKG/tables.py", 'ALIASES = {', 'def canonical(name):\n    """The short name of a unit."""\n    return ALIASES.get(name, name)\n\n\nALIASES = {'),
              ("PKG/convert.py", "import ALIASES, FACTORS", "import FACTORS"), ("PKG/convert.py", "FACTORS[ALIASES.get(source, source)] / FACTORS[ALIASES.get(target, target)]", "FACTORS[source] / FACTORS[target]")]],
      hidden='''
def test_issue():
    from PKG.tables import canonical
    assert canonical("metres") == "m", "metres is m"
    assert canonical("cm") == "cm", "cm stays"


def test_one_place():
    import PKG.convert
    import PKG.parse
    assert not hasattr(PKG.convert, "ALIASES") and not hasattr(PKG.parse, "ALIASES"), "no other module looks aliases up"
''')
issue("units", kind="feature", path="PKG/report.py", symbol="total", entry="PKG/report.py", example=True,
      text="Add `longest(lines, unit)` beside `total`: the greatest of all lines in one unit. `longest([\"1 m\", \"2 cm\"], \"cm\")` is 100. Think of a list without lines.",
      undo=[("PKG/report.py", '\n\ndef longest(lines, unit):\n    """The greatest of all lines in one unit; None if there is no line."""\n    values = [convert(value, source, unit) for value, source in map(parse_quantity, lines)]\n    return max(values, default=None)\n', "")],
      line="def total(lines, unit):", chain=[],
      wrong=[[("PKG/report.py", "def total(", 'def longest(lines, unit):\n    """The greatest of all lines."""\n    return max(convert(value, source, unit) for value, source in map(parse_quantity, lines))\n\n\ndef total(')],
             [("PKG/report.py", "def total(", 'def longest(lines, unit):\n    """The greatest of all lines."""\n    return max((value for value, source in map(parse_quantity, lines)), default=None)\n\n\ndef total(')],
             [("PKG/convert.py", "def convert(", 'def longest(values):\n    return max(values, default=None)\n\n\ndef convert(')]],
      hidden='''
def test_issue():
    from PKG.report import longest
    assert longest(["1 m", "2 cm"], "cm") == 100, "1 m is longer than 2 cm"


def test_nothing():
    from PKG.report import longest
    assert longest([], "m") is None, "no line is None"
''')

# ---------------------------------------------------------------------------------------------------------------------------------
project("ledger", {
    "PKG/money.py": '''
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
''',
    "PKG/book.py": '''
"""Accounts and bookings."""


class Book:
    """Balances by account."""

    def __init__(self):
        self.balances = {}
        self.log = []

    def move(self, source, target, cents):
        """Moves an amount between two accounts."""
        if cents <= 0:
            raise ValueError("an amount must be positive")
        self.balances[source] = self.balances.get(source, 0) - cents
        self.balances[target] = self.balances.get(target, 0) + cents
        self.log.append((source, target, cents))

    def undo(self):
        """Takes the last booking back; nothing if there is none."""
        if self.log:
            source, target, cents = self.log.pop()
            self.balances[source] += cents
            self.balances[target] -= cents
''',
    "PKG/reader.py": '''
"""Bookings from text."""

from .book import Book
from .money import to_cents


def read(text):
    """A book from lines `source,target,amount`; lines that begin with # are skipped."""
    book = Book()
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            source, target, amount = (field.strip() for field in line.split(","))
            book.move(source, target, to_cents(amount))
    return book
''',
    "PKG/statement.py": '''
"""Statements for people."""

from .money import to_text
from .reader import read


def statement(text):
    """One line an account, in the order of names."""
    book = read(text)
    return [f"{name}: {to_text(book.balances[name])}" for name in sorted(book.balances)]
''',
    "tests/test_PKG.py": '''
from PKG.book import Book
from PKG.money import to_cents, to_text
from PKG.reader import read


def test_cents():
    assert to_cents("12.50") == 1250, "12.50 are 1250 cents"
    assert to_cents("3") == 300, "3 are 300 cents"


def test_text():
    assert to_text(1250) == "12.50", "1250 cents are 12.50"
    assert to_text(7) == "0.07", "7 cents are 0.07"


def test_negative_cents():
    assert to_cents("-1.25") == -125, "-1.25 are -125 cents"


def test_move():
    book = Book()
    book.move("a", "b", 5)
    assert book.balances == {"a": -5, "b": 5}, "a booking has two sides"


def test_nothing_moves():
    try:
        Book().move("a", "b", 0)
    except ValueError:
        return
    assert False, "an amount of 0 is refused"


def test_read():
    assert read("a,b,1.00").balances["b"] == 100, "b has 100 cents"
''',
})
issue("ledger", kind="bug", path="PKG/money.py", symbol="to_cents", entry="PKG/statement.py", example=True,
      text="`statement(\"a,b,0.5\")` shows `b: 0.05`. Half a unit is `0.50`.",
      undo=[("PKG/money.py", 'int(part.ljust(2, "0") or 0)', "int(part or 0)")], line="int(part or 0)",
      chain=[("PKG/statement.py", "from .reader import read"), ("PKG/reader.py", "from .money import to_cents")],
      wrong=[[("PKG/statement.py", "to_text(book.balances[name])", "to_text(10 * book.balances[name])")],
             [("PKG/money.py", "int(part or 0)", "int(part or 0) * 10")],
             [("PKG/money.py", "int(part or 0)", 'int(part.rjust(2, "0") or 0)')]],
      hidden='''
def test_issue():
    from PKG.statement import statement
    assert statement("a,b,0.5") == ["a: -0.50", "b: 0.50"], "half a unit is 0.50"


def test_one_decimal():
    from PKG.money import to_cents
    assert to_cents("-2.5") == -250, "-2.5 are -250 cents"
''')
issue("ledger", kind="bug", path="PKG/money.py", symbol="to_text", entry="PKG/statement.py", example=True,
      text="Debts are shown wrongly: for `a,b,1.25` the statement says `a: -2.75` where `a: -1.25` is right.",
      undo=[("PKG/money.py", '    sign = "-" if cents < 0 else ""\n    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"', '    return f"{cents // 100}.{cents % 100:02d}"')],
      line='return f"{cents // 100}.{cents % 100:02d}"', chain=[("PKG/statement.py", "from .money import to_text")],
      wrong=[[("PKG/money.py", 'f"{cents // 100}.{cents % 100:02d}"', 'f"{int(cents / 100)}.{abs(cents) % 100:02d}"')],
             [("PKG/money.py", 'f"{cents // 100}.{cents % 100:02d}"', 'str(cents / 100)')],
             [("PKG/book.py", "self.balances.get(source, 0) - cents", "self.balances.get(source, 0) - abs(cents)")]],
      hidden='''
def test_issue():
    from PKG.statement import statement
    assert statement("a,b,1.25")[0] == "a: -1.25", "a owes 1.25"


def test_less_than_one():
    from PKG.money import to_text
    assert to_text(-25) == "-0.25", "25 cents of debt are -0.25"
''')
issue("ledger", kind="feature", path="PKG/reader.py", symbol="read", entry="PKG/reader.py", example=True,
      text="Bookings should allow comments: `read` skips lines that begin with `#`, and blank lines as before. `read(\"# may\\na,b,1.00\")` has one booking.",
      undo=[("PKG/reader.py", "if line and not line.startswith(\"#\"):", "if line:"), ("PKG/reader.py", "; lines that begin with # are skipped", ""),
            ("PKG/reader.py", "        line = line.strip()\n", "")],
      line="if line:", chain=[],
      wrong=[[("PKG/reader.py", "if line:", 'if not line.startswith("#"):')],
             [("PKG/reader.py", "if line:", 'if line and "#" not in line:')],
             [("PKG/book.py", "        if cents <= 0:", '        if source.startswith("#"):\n            return\n        if cents <= 0:')]],
      hidden='''
def test_issue():
    from PKG.reader import read
    assert len(read("# may\\na,b,1.00").log) == 1, "a comment is no booking"


def test_indented():
    from PKG.reader import read
    assert len(read("  # may\\n\\na,b,1.00").log) == 1, "a comment may be indented"


def test_number_sign_in_name():
    from PKG.reader import read
    assert read("# x\\na#1,b,1.00").balances["b"] == 100, "a name may hold #"
''')
issue("ledger", kind="feature", path="PKG/book.py", symbol="move", entry="PKG/book.py", example=False,
      text="A booking that was entered by mistake should be taken back. Give `Book` a method `undo` that takes the last booking back, in the balances and in the log.",
      undo=[("PKG/book.py", '\n    def undo(self):\n        """Takes the last booking back; nothing if there is none."""\n        if self.log:\n            source, target, cents = self.log.pop()\n            self.balances[source] += cents\n            self.balances[target] -= cents\n', "")],
      line="self.log.append((source, target, cents))", chain=[],
      wrong=[[("PKG/book.py", "        self.log.append((source, target, cents))\n", "        self.log.append((source, target, cents))\n\n    def undo(self):\n        source, target, cents = self.log.pop()\n        self.move(target, source, cents)\n")],
             [("PKG/book.py", "        self.log.append((source, target, cents))\n", "        self.log.append((source, target, cents))\n\n    def undo(self):\n        source, target, cents = self.log.pop()\n        self.balances[source] += cents\n        self.balances[target] -= cents\n")],
             [("PKG/reader.py", "    return book", "    book.undo = lambda: book.log and book.log.pop()\n    return book")]],
      hidden='''
def test_issue():
    from PKG.book import Book
    book = Book()
    book.move("a", "b", 5)
    book.undo()
    assert book.balances == {"a": 0, "b": 0} and book.log == [], "the booking is gone"


def test_nothing_to_undo():
    from PKG.book import Book
    book = Book()
    book.undo()
    assert book.balances == {}, "nothing is undone in an empty book"
''')
issue("ledger", kind="bug", path="PKG/money.py", symbol="to_cents", entry="PKG/money.py", example=True,
      text="`to_cents(\"-0.50\")` gives 50. It must give -50, as `to_cents(\"-1.25\")` gives -125.",
      undo=[("PKG/money.py", '    sign = -1 if text.startswith("-") else 1\n    whole, _, part = text.lstrip("-").partition(".")\n    return sign * (int(whole) * 100 + int(part.ljust(2, "0") or 0))',
             '    whole, _, part = text.partition(".")\n    part = int(part.ljust(2, "0") or 0)\n    return int(whole) * 100 + (part if int(whole) >= 0 else -part)')],
      line="(part if int(whole) >= 0 else -part)", chain=[], edge="-1.25 are -125 cents",
      wrong=[[("PKG/money.py", "return int(whole) * 100 + (part if int(whole) >= 0 else -part)", 'return (int(whole) * 100 + part) * (-1 if text.startswith("-") else 1)')],
             [("PKG/statement.py", "to_text(book.balances[name])", "to_text(-book.balances[name])")]],
      hidden='''
def test_issue():
    from PKG.money import to_cents
    assert to_cents("-0.50") == -50, "-0.50 are -50 cents"


def test_whole_debt():
    from PKG.money import to_cents
    assert to_cents("-0") == 0 and to_cents("-2.05") == -205 and to_cents("-0.05") == -5, "-2.05 are -205 cents"
''')

# ---------------------------------------------------------------------------------------------------------------------------------
project("planner", {
    "PKG/graph.py": '''
"""Tasks that wait for others."""


def order(needs):
    """Tasks in an order that respects what they need; of several possible ones the first by name."""
    done, left = [], {task: set(before) for task, before in needs.items()}
    while left:
        free = sorted(task for task, before in left.items() if before <= set(done))
        if not free:
            raise ValueError("tasks wait for each other: " + ", ".join(sorted(left)))
        done.append(free[0])
        del left[free[0]]
    return done
''',
    "PKG/times.py": '''
"""Days on which tasks end."""

from .graph import order


def finish(needs, days):
    """The day on which each task ends, if it begins when all that it needs has ended."""
    ends = {}
    for task in order(needs):
        start = max((ends[before] for before in needs[task]), default=0)
        ends[task] = start + days.get(task, 1)
    return ends


def critical(needs, days):
    """The last task to end, the first by name if there are several; None without tasks."""
    ends = finish(needs, days)
    return min(ends, key=lambda task: (-ends[task], task), default=None)
''',
    "PKG/textplan.py": '''
"""Plans from text."""


def parse(text):
    """Needs by task, from lines such as `paint: walls, floor`; tasks that are only needed are added."""
    needs = {}
    for line in filter(str.strip, text.splitlines()):
        task, _, before = line.partition(":")
        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]
    for before in list(needs.values()):
        for name in before:
            needs.setdefault(name, [])
    return needs
''',
    "PKG/plan.py": '''
"""The plan as a whole."""

from .graph import order
from .textplan import parse
from .times import finish


def schedule(text, days):
    """Lines `task ends on day n`, in the order of work."""
    needs = parse(text)
    ends = finish(needs, days)
    return [f"{task} ends on day {ends[task]}" for task in order(needs)]
''',
    "tests/test_PKG.py": '''
from PKG.graph import order
from PKG.plan import schedule
from PKG.textplan import parse
from PKG.times import finish


def test_order():
    assert order({"b": ["a"], "a": []}) == ["a", "b"], "a comes before b"


def test_order_by_name():
    assert order({"c": [], "a": [], "b": ["c"]}) == ["a", "c", "b"], "free tasks come by name"


def test_cycle():
    try:
        order({"a": ["b"], "b": ["a"]})
    except ValueError as why:
        assert "a, b" in str(why), "the error names the tasks"
        return
    assert False, "a circle is refused"


def test_parse():
    assert parse("a: b\\nb:") == {"a": ["b"], "b": []}, "a needs b"


def test_finish():
    assert finish({"a": [], "b": ["a"]}, {"a": 2, "b": 3}) == {"a": 2, "b": 5}, "b ends on day 5"


def test_default_day():
    assert finish({"a": []}, {}) == {"a": 1}, "a task takes a day unless said otherwise"
''',
})
issue("planner", kind="bug", path="PKG/times.py", symbol="finish", entry="PKG/plan.py", example=True,
      text="The plan is too short where a task needs two others. For `c: a, b` with a of 5 days, b of 1 and c of 1, `schedule` says that c ends on day 2. It ends on day 6.",
      undo=[("PKG/times.py", "start = max((ends[before] for before in needs[task]), default=0)", "start = ends[needs[task][-1]] if needs[task] else 0")],
      line="start = ends[needs[task][-1]] if needs[task] else 0", chain=[("PKG/plan.py", "from .times import finish")],
      wrong=[[("PKG/times.py", "ends[needs[task][-1]] if needs[task] else 0", "ends[needs[task][0]] if needs[task] else 0")],
             [("PKG/times.py", "ends[needs[task][-1]] if needs[task] else 0", "max(ends[before] for before in needs[task])")],
             [("PKG/times.py", "ends[needs[task][-1]] if needs[task] else 0", "sum(ends[before] for before in needs[task])")]],
      hidden='''
def test_issue():
    from PKG.plan import schedule
    assert schedule("c: a, b", {"a": 5, "b": 1, "c": 1})[-1] == "c ends on day 6", "c waits for a"


def test_either_order():
    from PKG.times import finish
    assert finish({"a": [], "b": [], "c": ["b", "a"], "d": ["a", "b"]}, {"a": 5, "b": 3}) == {"a": 5, "b": 3, "c": 6, "d": 6}, "the order of needs does not matter"
''')
issue("planner", kind="bug", path="PKG/textplan.py", symbol="parse", entry="PKG/plan.py", example=True,
      text="`schedule(\"paint: walls\", {})` fails with a KeyError or says that tasks wait for each other. A task that is only needed by others, such as walls, should be planned as well.",
      undo=[("PKG/textplan.py", "    for before in list(needs.values()):\n        for name in before:\n            needs.setdefault(name, [])\n", ""),
            ("PKG/textplan.py", "; tasks that are only needed are added", "")],
      line="needs[task.strip()] = [name.strip()", chain=[("PKG/plan.py", "from .textplan import parse")],
      wrong=[[("PKG/graph.py", "before in needs.items()}", "before in needs.items()}\n    left = {task: before & set(needs) for task, before in left.items()}")],
             [("PKG/textplan.py", "    return needs", "    for before in list(needs.values()):\n        for name in before:\n            needs[name] = []\n    return needs")],
             [("PKG/textplan.py", "    return needs", "    for before in list(needs.values()):\n        if before:\n            needs.setdefault(before[0], [])\n    return needs")]],
      hidden='''
def test_issue():
    from PKG.plan import schedule
    assert schedule("paint: walls", {}) == ["walls ends on day 1", "paint ends on day 2"], "walls are planned, too"


def test_chain():
    from PKG.textplan import parse
    assert parse("a: b, d\\nb: c") == {"a": ["b", "d"], "b": ["c"], "c": [], "d": []}, "what a task needs is kept"
''')
issue("planner", kind="feature", path="PKG/times.py", symbol="finish", entry="PKG/times.py", example=False,
      text="We want to know which task ends last. Add `critical(needs, days)` beside `finish`. If several end last, name the first by name. A plan without tasks has none.",
      undo=[("PKG/times.py", '\n\ndef critical(needs, days):\n    """The last task to end, the first by name if there are several; None without tasks."""\n    ends = finish(needs, days)\n    return min(ends, key=lambda task: (-ends[task], task), default=None)\n', "")],
      line="def finish(needs, days):", chain=[],
      wrong=[[("PKG/times.py", "def finish(", 'def critical(needs, days):\n    """The last task to end."""\n    ends = finish(needs, days)\n    return max(ends, key=ends.get)\n\n\ndef finish(')],
             [("PKG/times.py", "def finish(", 'def critical(needs, days):\n    """The last task to end."""\n    return max(sorted(needs), key=lambda task: days.get(task, 1), default=None)\n\n\ndef finish(')],
             [("PKG/plan.py", "def schedule(", 'def critical(text, days):\n    return order(parse(text))[-1]\n\n\ndef schedule(')]],
      hidden='''
def test_issue():
    from PKG.times import critical
    assert critical({"a": [], "b": ["a"], "c": []}, {"c": 2}) == "b", "b and c end last, b is first by name"


def test_by_end():
    from PKG.times import critical
    assert critical({"a": [], "b": ["a"], "c": []}, {"a": 5, "c": 4}) == "b", "b ends last although it is short"


def test_nothing():
    from PKG.times import critical
    assert critical({}, {}) is None, "no task ends last"
''')
issue("planner", kind="bug", path="PKG/graph.py", symbol="order", entry="PKG/plan.py", example=True,
      text="`schedule` is not stable: free tasks should come by name, but `schedule(\"b:\\na:\\nc: b\", {})` begins with b. It should list a, b, c.",
      undo=[("PKG/graph.py", "free = sorted(task for task, before in left.items() if before <= set(done))", "free = [task for task, before in left.items() if before <= set(done)]"),
            ("PKG/graph.py", "done.append(free[0])\n        del left[free[0]]", "done.extend(free)\n        for task in free:\n            del left[task]"),
            ("PKG/graph.py", "; of several possible ones the first by name", ""),
            ("tests/test_PKG.py", 'assert order({"c": [], "a": [], "b": ["c"]}) == ["a", "c", "b"], "free tasks come by name"', 'assert order({"a": ["d"], "c": [], "d": []}) == ["c", "d", "a"], "a waits for its turn"')],
      line="free = [task for task", chain=[("PKG/plan.py", "from .graph import order")],
      wrong=[[("PKG/graph.py", "free = [task for task, before in left.items() if before <= set(done)]", "free = sorted(task for task, before in left.items() if before <= set(done))")],
             [("PKG/plan.py", "for task in order(needs)]", "for task in sorted(order(needs))]")],
             [("PKG/textplan.py", "    return needs", "    return dict(sorted(needs.items()))")]],
      hidden='''
def test_issue():
    from PKG.plan import schedule
    assert [line.split()[0] for line in schedule("b:\\na:\\nc: b", {})] == ["a", "b", "c"], "tasks come by name"


def test_free_at_once():
    from PKG.graph import order
    assert order({"z": [], "a": [], "b": ["a"]}) == ["a", "b", "z"], "b is free once a is done, and comes before z"
''')
issue("planner", kind="refactoring", path="PKG/textplan.py", symbol="parse", entry="PKG/plan.py", example=False,
      text="The module of the plan reads its text itself. Move the reading into a module of its own, `textplan`, with a function `parse(text)`, and let `plan` import it. `schedule` must work as before.",
      undo=[("PKG/plan.py", "from .textplan import parse\n", ""),
            ("PKG/plan.py", "def schedule(", 'def read(text):\n    """Needs by task, from lines such as `paint: walls, floor`."""\n    needs = {}\n    for line in filter(str.strip, text.splitlines()):\n        task, _, before = line.partition(":")\n        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]\n    for before in list(needs.values()):\n        for name in before:\n            needs.setdefault(name, [])\n    return needs\n\n\ndef schedule('),
            ("PKG/plan.py", "needs = parse(text)", "needs = read(text)"), ("PKG/textplan.py", None, None),
            ("tests/test_PKG.py", "from PKG.textplan import parse\n", ""),
            ("tests/test_PKG.py", 'def test_parse():\n    assert parse("a: b\\nb:") == {"a": ["b"], "b": []}, "a needs b"', 'def test_schedule():\n    assert schedule("a: b", {})[0] == "b ends on day 1", "b is planned although it has no line"')],
      line="def read(text):", chain=[("PKG/plan.py", "def read(text):")], edge="tasks wait for each other: a",
      wrong=[[("PKG/textplan.py", None, '"""Plans from text."""\n\n\ndef parse(text):\n    """Needs by task."""\n    needs = {}\n    for line in filter(str.strip, text.splitlines()):\n        task, _, before = line.partition(":")\n        needs[task.strip()] = [name.strip() for name in before.split(",") if name.strip()]\n    return needs\n'),
              ("PKG/plan.py", "needs = read(text)", "needs = parse(text)"), ("PKG/plan.py", "from .times import finish", "from .textplan import parse\nfrom .times import finish")],
             [("PKG/plan.py", "def read(", "def parse("), ("PKG/plan.py", "needs = read(text)", "needs = parse(text)")]],
      hidden='''
def test_issue():
    from PKG.textplan import parse
    assert parse("a: b\\nb:") == {"a": ["b"], "b": []}, "a needs b"


def test_used():
    import PKG.plan
    import PKG.textplan
    assert PKG.plan.parse is PKG.textplan.parse, "the plan uses the module"
''')

# ---------------------------------------------------------------------------------------------------------------------------------
project("shelf", {
    "PKG/text.py": '''
"""Words of titles."""

STOP = {"a", "an", "the", "of"}


def words(title):
    """Lower-case words of a title that count, without signs around them."""
    every = [word.strip(".,:;!?'").lower() for word in title.split()]
    return [word for word in every if word and word not in STOP]
''',
    "PKG/index.py": '''
"""An index of titles by word."""

from .text import words


class Index:
    """Numbers of titles by word."""

    def __init__(self):
        self.titles = []
        self.by_word = {}

    def add(self, title):
        """Adds a title and returns its number."""
        number = len(self.titles)
        self.titles.append(title)
        for word in words(title):
            self.by_word.setdefault(word, set()).add(number)
        return number

    def remove(self, number):
        """Removes a title; its number is not used again."""
        for word in words(self.titles[number]):
            self.by_word[word].discard(number)
        self.titles[number] = ""
''',
    "PKG/query.py": '''
"""Questions to an index."""

from .text import words


def find(index, query):
    """Titles that have all words of the query, in the order in which they were added; none for a query without words."""
    asked = words(query)
    found = [index.by_word.get(word, set()) for word in asked]
    return [index.titles[number] for number in sorted(set.intersection(*found))] if found else []


def find_any(index, query):
    """Titles that have a word of the query, those with most words first."""
    asked = set(words(query))
    counts = {}
    for word in asked:
        for number in index.by_word.get(word, set()):
            counts[number] = counts.get(number, 0) + 1
    return [index.titles[number] for number in sorted(counts, key=lambda number: (-counts[number], number))]
''',
    "PKG/shelf.py": '''
"""A shelf of books."""

from .index import Index
from .query import find


class Shelf:
    """Books that can be found and lent."""

    def __init__(self, titles=()):
        self.index = Index()
        self.lent = set()
        for title in titles:
            self.index.add(title)

    def search(self, query):
        """Titles that match and are not lent."""
        return [title for title in find(self.index, query) if title not in self.lent]

    def lend(self, title):
        """Lends a title; an error if it is lent or not there."""
        if title in self.lent or title not in self.index.titles:
            raise LookupError(title)
        self.lent.add(title)
''',
    "tests/test_PKG.py": '''
from PKG.index import Index
from PKG.query import find
from PKG.shelf import Shelf
from PKG.text import words


def test_words():
    assert words("The Art of War") == ["art", "war"], "small words do not count"


def test_inner_sign():
    assert words("Don't Stop") == ["don't", "stop"], "a sign within a word stays"


def test_find():
    shelf = Shelf(["Art of War", "War"])
    assert shelf.search("war") == ["Art of War", "War"], "both have war"
    assert shelf.search("art war") == ["Art of War"], "one has both words"


def test_empty_query():
    assert Shelf(["War"]).search("the") == [], "a query without words finds nothing"


def test_lend():
    shelf = Shelf(["War"])
    shelf.lend("War")
    assert shelf.search("war") == [], "a lent book is not found"


def test_numbers():
    index = Index()
    assert [index.add("A b"), index.add("C")] == [0, 1], "numbers rise"
''',
})
issue("shelf", kind="bug", path="PKG/text.py", symbol="words", entry="PKG/shelf.py", example=True,
      text="Books with a colon or a comma are not found: `Shelf([\"War: A History\"]).search(\"war\")` is empty.",
      undo=[("PKG/text.py", "word.strip(\".,:;!?'\").lower()", "word.lower()"), ("PKG/text.py", "that count, without signs around them.", "that count.")],
      line="every = [word.lower() for word in title.split()]", chain=[("PKG/shelf.py", "from .query import find"), ("PKG/query.py", "from .text import words")],
      edge="a sign within a word stays",
      wrong=[[("PKG/text.py", "[word.lower() for word in title.split()]", '"".join(sign if sign.isalnum() else " " for sign in title.lower()).split()')],
             [("PKG/query.py", "    asked = words(query)\n    found", '    asked = words(query.replace(":", ""))\n    found')]],
      hidden='''
def test_issue():
    from PKG.shelf import Shelf
    assert Shelf(["War: A History"]).search("war") == ["War: A History"], "the colon does not count"


def test_both_ends():
    from PKG.text import words
    assert words("'Stop!' -- the end.") [0] == "stop" and "end" in words("the end."), "signs around words go"
''')
issue("shelf", kind="bug", path="PKG/query.py", symbol="find", entry="PKG/shelf.py", example=True,
      text="A search for two words finds books with only one of them. `Shelf([\"Art\", \"Art War\"]).search(\"art war\")` should give only `Art War`.",
      undo=[("PKG/query.py", "set.intersection(*found)", "set.union(*found)"), ("PKG/query.py", "that have all words of the query", "that have words of the query"),
            ("tests/test_PKG.py", '    assert shelf.search("art war") == ["Art of War"], "one has both words"\n', "")],
      line="set.union(*found)", chain=[("PKG/shelf.py", "from .query import find")],
      wrong=[[("PKG/query.py", "sorted(set.union(*found))]", "sorted(found[0] & found[-1])]")],
             [("PKG/query.py", "sorted(set.union(*found))] if found else []", "sorted(set.intersection(*found))]")],
             [("PKG/shelf.py", "if title not in self.lent]", "if title not in self.lent][-1:]")]],
      hidden='''
def test_issue():
    from PKG.shelf import Shelf
    assert Shelf(["Art", "Art War"]).search("art war") == ["Art War"], "all words must be there"


def test_three_words():
    from PKG.shelf import Shelf
    assert Shelf(["Art Peace", "Art War Peace"]).search("art war peace") == ["Art War Peace"], "all three words must be there"
''')
issue("shelf", kind="feature", path="PKG/index.py", symbol="add", entry="PKG/index.py", example=True,
      text="Give `Index` a method `remove(number)`. After `number = index.add(\"War\")` and `index.remove(number)`, `find(index, \"war\")` is empty. A number is not used again.",
      undo=[("PKG/index.py", '\n    def remove(self, number):\n        """Removes a title; its number is not used again."""\n        for word in words(self.titles[number]):\n            self.by_word[word].discard(number)\n        self.titles[number] = ""\n', "")],
      line="self.by_word.setdefault(word, set()).add(number)", chain=[],
      wrong=[[("PKG/index.py", "        return number\n", '        return number\n\n    def remove(self, number):\n        """Removes a title."""\n        for word in words(self.titles.pop(number)):\n            self.by_word[word].discard(number)\n')],
             [("PKG/index.py", "        return number\n", '        return number\n\n    def remove(self, number):\n        """Removes a title."""\n        self.titles[number] = ""\n')],
             [("PKG/index.py", "        return number\n", '        return number\n\n    def remove(self, number):\n        """Removes a title."""\n        for word in words(self.titles[number]):\n            del self.by_word[word]\n        self.titles[number] = ""\n')]],
      hidden='''
def test_issue():
    from PKG.index import Index
    from PKG.query import find
    index = Index()
    index.remove(index.add("War"))
    assert find(index, "war") == [], "a removed title is not found"


def test_others_stay():
    from PKG.index import Index
    from PKG.query import find
    index = Index()
    first = index.add("Art War")
    index.add("War")
    index.remove(first)
    assert find(index, "war") == ["War"], "other titles stay"
    assert index.add("Peace") == 2, "numbers are not used again"
''')
issue("shelf", kind="feature", path="PKG/query.py", symbol="find", entry="PKG/query.py", example=False,
      text="People often remember only some words. Add `find_any(index, query)`: titles that have any word of the query, those with most of its words first, and otherwise in the order in which they were added.",
      undo=[("PKG/query.py", '\n\ndef find_any(index, query):\n    """Titles that have a word of the query, those with most words first."""\n    asked = set(words(query))\n    counts = {}\n    for word in asked:\n        for number in index.by_word.get(word, set()):\n            counts[number] = counts.get(number, 0) + 1\n    return [index.titles[number] for number in sorted(counts, key=lambda number: (-counts[number], number))]\n', "")],
      line="found = [index.by_word.get(word, set()) for word in asked]", chain=[],
      wrong=[[("PKG/query.py", "def find(", 'def find_any(index, query):\n    """Titles that have a word of the query."""\n    found = [index.by_word.get(word, set()) for word in words(query)]\n    return [index.titles[number] for number in sorted(set().union(*found))]\n\n\ndef find(')],
             [("PKG/query.py", "def find(", 'def find_any(index, query):\n    """Titles that have a word of the query."""\n    counts = {}\n    for word in words(query):\n        for number in index.by_word.get(word, set()):\n            counts[number] = counts.get(number, 0) + 1\n    return [index.titles[number] for number in sorted(counts, key=counts.get, reverse=True)]\n\n\ndef find(')],
             [("PKG/query.py", "def find(", 'def find_any(index, query):\n    """Titles that have a word of the query."""\n    asked = words(query)\n    found = [title for title in index.titles if any(word in title.lower() for word in asked)]\n    return sorted(found, key=lambda title: -sum(word in title.lower() for word in asked))\n\n\ndef find(')]],
      hidden='''
def test_issue():
    from PKG.query import find_any
    from PKG.shelf import Shelf
    index = Shelf(["Art", "Peace", "War Art"]).index
    assert find_any(index, "war art") == ["War Art", "Art"], "most words come first"


def test_word_twice():
    from PKG.query import find_any
    from PKG.shelf import Shelf
    index = Shelf(["Art", "War", "Warp"]).index
    assert find_any(index, "war art war") == ["Art", "War"], "a word counts once, and whole words count"
''')
issue("shelf", kind="refactoring", path="PKG/text.py", symbol="STOP", entry="PKG/query.py", example=False,
      text="Index and query each split titles into words with code of their own. Let both use one function `words` in a module `text`, with the small words `STOP` in it. Searches must find what they found before.",
      undo=[("PKG/text.py", None, '"""Words that do not count."""\n\nSTOP = {"a", "an", "the", "of"}\n'),
            ("PKG/index.py", "from .text import words\n", "from .text import STOP\n"),
            ("PKG/index.py", '        for word in words(title):', '        for word in [word.strip(".,:;!?\'").lower() for word in title.split()]:\n            if not word or word in STOP:\n                continue'),
            ("PKG/index.py", 'for word in words(self.titles[number]):\n            self.by_word[word].discard(number)', "for numbers in self.by_word.values():\n            numbers.discard(number)"),
            ("PKG/query.py", "from .text import words\n", "from .text import STOP\n\n\ndef split(query):\n    \"\"\"Words of a query that count.\"\"\"\n    every = [word.strip(\".,:;!?'\").lower() for word in query.split()]\n    return [word for word in every if word and word not in STOP]\n"),
            ("PKG/query.py", "asked = words(query)", "asked = split(query)"), ("PKG/query.py", "set(words(query))", "set(split(query))"),
            ("tests/test_PKG.py", "from PKG.text import words\n", "from PKG.text import STOP\n"),
            ("tests/test_PKG.py", 'assert words("The Art of War") == ["art", "war"], "small words do not count"', 'assert "the" in STOP, "small words do not count"'),
            ("tests/test_PKG.py", 'assert words("Don\'t Stop") == ["don\'t", "stop"], "a sign within a word stays"', 'assert Shelf(["Don\'t"]).search("don\'t") == ["Don\'t"], "a sign within a word stays"')],
      line="STOP = {", chain=[("PKG/query.py", "def split(query):"), ("PKG/index.py", "for word in [word.strip(")],
      wrong=[[("PKG/text.py", None, '"""Words of titles."""\n\nSTOP = {"a", "an", "the", "of"}\n\n\ndef words(title):\n    """Words that count."""\n    return [word for word in title.lower().split() if word not in STOP]\n'),
              ("PKG/query.py", "asked = split(query)", "asked = words(query)"), ("PKG/query.py", "import STOP", "import STOP, words")],
             [("PKG/query.py", "def split(", "def words("), ("PKG/query.py", "asked = split(query)", "asked = words(query)"), ("PKG/query.py", "set(split(query))", "set(words(query))")],
             [("PKG/index.py", "from .text import STOP\n", "from .query import split\n"), ("PKG/index.py", 'for word in [word.strip(".,:;!?\'").lower() for word in title.split()]:\n            if not word or word in STOP:\n                continue', "for word in split(title):")]],
      hidden='''
def test_issue():
    from PKG.text import words
    assert words("The Art, of War!") == ["art", "war"], "words without signs"


def test_one_function():
    import PKG.index
    import PKG.query
    import PKG.text
    assert PKG.index.words is PKG.text.words and PKG.query.words is PKG.text.words, "both use it"
''')

# ---------------------------------------------------------------------------------------------------------------------------------
project("table", {
    "PKG/cells.py": '''
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
''',
    "PKG/rows.py": '''
"""Rows of a table."""

from .cells import value


def split(line, sign=","):
    """Fields of a line; a sign between double quotes does not separate."""
    fields, field, quoted = [], "", False
    for letter in line:
        if letter == '"':
            quoted = not quoted
        elif letter == sign and not quoted:
            fields.append(field)
            field = ""
        else:
            field += letter
    return fields + [field]


def read(text, sign=","):
    """Rows as dicts; the first line has the names."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [name.strip() for name in split(lines[0], sign)] if lines else []
    return [dict(zip(names, map(value, split(line, sign)))) for line in lines[1:]]
''',
    "PKG/groups.py": '''
"""Groups of rows."""


def group(rows, name):
    """Rows by the value of a column, in the order of first appearance."""
    groups = {}
    for row in rows:
        groups.setdefault(row.get(name), []).append(row)
    return groups


def mean(rows, name):
    """The mean of a column over the rows that have a number there; None if there is none."""
    numbers = [row[name] for row in rows if isinstance(row.get(name), (int, float))]
    return sum(numbers) / len(numbers) if numbers else None
''',
    "PKG/summary.py": '''
"""Summaries of tables."""

from .groups import group, mean
from .rows import read


def summary(text, by, name, sign=","):
    """The mean of one column for each value of another."""
    return {key: mean(rows, name) for key, rows in group(read(text, sign), by).items()}


def largest(text, by, name):
    """The value of a column whose mean of another is largest, the first if there are several; None without numbers."""
    means = {key: number for key, number in summary(text, by, name).items() if number is not None}
    return max(means, key=means.get, default=None)
''',
    "tests/test_PKG.py": '''
from PKG.cells import value
from PKG.groups import group, mean
from PKG.rows import read, split
from PKG.summary import summary


def test_value():
    assert [value("3"), value("2.5"), value("x")] == [3, 2.5, "x"], "numbers are numbers"


def test_zero():
    assert value("0") == 0, "a zero is a number"


def test_split():
    assert split("a,b,") == ["a", "b", ""], "a last field may be empty"


def test_read():
    assert read("n,m\\n1,x") == [{"n": 1, "m": "x"}], "one row"


def test_group():
    assert list(group([{"k": 2}, {"k": 1}, {"k": 2}], "k")) == [2, 1], "groups come as they appear"


def test_mean():
    assert mean([{"n": 1}, {"n": 4}], "n") == 2.5, "the mean of 1 and 4"


def test_mean_with_zero():
    assert mean([{"n": 0}, {"n": 4}], "n") == 2, "a zero counts"


def test_summary():
    assert summary("k,n\\na,1\\nb,2\\na,3", "k", "n") == {"a": 2, "b": 2}, "both have a mean of 2"
''',
})
issue("table", kind="bug", path="PKG/groups.py", symbol="mean", entry="PKG/summary.py", example=True,
      text="A blank cell makes `summary` fail: `summary(\"k,n\\na,1\\na,\", \"k\", \"n\")` raises a TypeError. Blank cells should be left out of the mean.",
      undo=[("PKG/groups.py", "    numbers = [row[name] for row in rows if isinstance(row.get(name), (int, float))]\n    return sum(numbers) / len(numbers) if numbers else None",
             "    return sum(row[name] for row in rows) / len(rows)"), ("PKG/groups.py", "over the rows that have a number there; None if there is none.", "over rows.")],
      line="return sum(row[name] for row in rows) / len(rows)", chain=[("PKG/summary.py", "from .groups import group, mean")],
      edge="a zero counts",
      wrong=[[("PKG/groups.py", "return sum(row[name] for row in rows) / len(rows)", "numbers = [row[name] for row in rows if row.get(name)]\n    return sum(numbers) / len(numbers) if numbers else None")],
             [("PKG/cells.py", "        return None", "        return 0")]],
      hidden='''
def test_issue():
    from PKG.summary import summary
    assert summary("k,n\\na,1\\na,", "k", "n") == {"a": 1}, "a blank cell does not count"


def test_only_blank():
    from PKG.summary import summary
    assert summary("k,n\\na,\\nb,0", "k", "n") == {"a": None, "b": 0}, "a group without numbers has no mean"
''')
issue("table", kind="bug", path="PKG/rows.py", symbol="split", entry="PKG/rows.py", example=True,
      text="Commas between quotes split a field: `split('\"a,b\",c')` should give `a,b` and `c`.",
      undo=[("PKG/rows.py", '    fields, field, quoted = [], "", False\n    for letter in line:\n        if letter == \'"\':\n            quoted = not quoted\n        elif letter == sign and not quoted:\n            fields.append(field)\n            field = ""\n        else:\n            field += letter\n    return fields + [field]', "    return line.split(sign)"),
            ("PKG/rows.py", "; a sign between double quotes does not separate", "")],
      line="return line.split(sign)", chain=[], edge="a last field may be empty",
      wrong=[[("PKG/rows.py", "return line.split(sign)", "import re\n    return [quoted or plain for quoted, plain in re.findall('\"([^\"]*)\"|([^\"%s]+)' % sign, line)]")],
             [("PKG/summary.py", "read(text, sign)", "read(text.replace('\"', ''), sign)")]],
      hidden='''
def test_issue():
    from PKG.rows import split
    assert split('"a,b",c') == ["a,b", "c"], "a comma between quotes does not separate"


def test_table():
    from PKG.rows import read
    assert read('k,n\\n"x,y",\\n,2') == [{"k": "x,y", "n": None}, {"k": None, "n": 2}], "blank fields stay in their place"
''')
issue("table", kind="feature", path="PKG/rows.py", symbol="read", entry="PKG/summary.py", example=True,
      text="Tables of other programs use a semicolon. Let `read`, `split` and `summary` take `sign`, a comma by default: `summary(\"k;n\\na;1\", \"k\", \"n\", sign=\";\")` is `{\"a\": 1}`.",
      undo=[("PKG/rows.py", 'def split(line, sign=","):', "def split(line):"), ("PKG/rows.py", "letter == sign and", 'letter == "," and'), ("PKG/rows.py", "a sign between", "a comma between"),
            ("PKG/rows.py", 'def read(text, sign=","):', "def read(text):"), ("PKG/rows.py", "split(lines[0], sign)", "split(lines[0])"), ("PKG/rows.py", "split(line, sign)", "split(line)"),
            ("PKG/summary.py", 'name, sign=","):', "name):"), ("PKG/summary.py", "read(text, sign)", "read(text)")],
      line="def split(line):", chain=[("PKG/summary.py", "from .rows import read")],
      wrong=[[("PKG/summary.py", "by, name):\n    \"\"\"The mean", 'by, name, sign=","):\n    """The mean'), ("PKG/summary.py", "read(text)", 'read(text.replace(sign, ","))')],
             [("PKG/rows.py", "def split(line):", 'def split(line, sign=","):'), ("PKG/rows.py", 'letter == "," and', "letter == sign and"), ("PKG/rows.py", "def read(text):", 'def read(text, sign=","):'),
              ("PKG/rows.py", "split(line))))", "split(line, sign))))"), ("PKG/summary.py", "by, name):\n    \"\"\"The mean", 'by, name, sign=","):\n    """The mean'), ("PKG/summary.py", "read(text)", "read(text, sign)")],
             [("PKG/rows.py", 'letter == "," and', 'letter in ",;" and'), ("PKG/rows.py", "def read(text):", 'def read(text, sign=","):'), ("PKG/rows.py", "def split(line):", 'def split(line, sign=","):'), ("PKG/summary.py", "by, name):\n    \"\"\"The mean", 'by, name, sign=","):\n    """The mean')]],
      hidden='''
def test_issue():
    from PKG.summary import summary
    assert summary("k;n\\na;1", "k", "n", sign=";") == {"a": 1}, "a semicolon separates"


def test_comma_in_text():
    from PKG.rows import read
    assert read("k;n\\nx,y;1", sign=";") == [{"k": "x,y", "n": 1}], "a comma does not separate then"


def test_default():
    from PKG.rows import read
    assert read("k,n\\nx;y,1") == [{"k": "x;y", "n": 1}], "a semicolon does not separate by default"
''')
issue("table", kind="feature", path="PKG/summary.py", symbol="summary", entry="PKG/summary.py", example=True,
      text="Add `largest(text, by, name)`: the group with the largest mean, the first of several. `largest(\"k,n\\na,1\\nb,2\", \"k\", \"n\")` is `b`.",
      undo=[("PKG/summary.py", '\n\ndef largest(text, by, name):\n    """The value of a column whose mean of another is largest, the first if there are several; None without numbers."""\n    means = {key: number for key, number in summary(text, by, name).items() if number is not None}\n    return max(means, key=means.get, default=None)\n', "")],
      line="def summary(text, by, name, sign=", chain=[],
      wrong=[[("PKG/summary.py", "def summary(", 'def largest(text, by, name):\n    """The group with the largest mean."""\n    means = summary(text, by, name)\n    return max(means, key=means.get)\n\n\ndef summary(')],
             [("PKG/summary.py", "def summary(", 'def largest(text, by, name):\n    """The group with the largest mean."""\n    rows = read(text)\n    return max(rows, key=lambda row: row[name] or 0)[by] if rows else None\n\n\ndef summary(')],
             [("PKG/groups.py", "def mean(", 'def largest(rows, name):\n    return max(rows, key=lambda row: row[name])\n\n\ndef mean(')]],
      hidden='''
def test_issue():
    from PKG.summary import largest
    assert largest("k,n\\na,1\\nb,2", "k", "n") == "b", "b has the largest mean"


def test_mean_not_cell():
    from PKG.summary import largest
    assert largest("k,n\\na,9\\na,1\\nb,6", "k", "n") == "b", "means are compared, not cells"


def test_blank_group():
    from PKG.summary import largest
    assert largest("k,n\\na,\\nb,-1", "k", "n") == "b", "a group without numbers is left out"
    assert largest("k,n", "k", "n") is None, "an empty table has no largest group"
''')
issue("table", kind="bug", path="PKG/cells.py", symbol="value", entry="PKG/summary.py", example=True,
      text="`summary(\"k,n\\n 7 ,1\\n7,3\", \"k\", \"n\")` has two groups. Spaces around a cell should not count, so that there is one group 7 with a mean of 2. The same holds for words.",
      undo=[("PKG/cells.py", "    text = text.strip()\n    if not text:", "    if not text:"),
            ("PKG/cells.py", "    for kind in (int, float):\n        try:\n            return kind(text)\n        except ValueError:\n            pass\n    return text",
             "    digits = text.lstrip(\"-\")\n    if digits.isdigit():\n        return int(text)\n    if digits.replace(\".\", \"\", 1).isdigit():\n        return float(text)\n    return text")],
      line='digits = text.lstrip("-")', chain=[("PKG/summary.py", "from .rows import read"), ("PKG/rows.py", "from .cells import value")],
      wrong=[[("PKG/cells.py", 'digits = text.lstrip("-")', 'digits = text.strip().lstrip("-")')],
             [("PKG/rows.py", "    return fields + [field]", "    return [field.strip() for field in fields]")],
             [("PKG/groups.py", "row.get(name), []", "str(row.get(name)).strip(), []")]],
      hidden='''
def test_issue():
    from PKG.summary import summary
    assert summary("k,n\\n 7 ,1\\n7,3", "k", "n") == {7: 2}, "spaces do not count"


def test_words():
    from PKG.summary import summary
    assert summary("k,n\\n x ,1\\nx, 3", "k", "n") == {"x": 2}, "nor do they around words"


def test_only_spaces():
    from PKG.cells import value
    assert value("  ") is None, "spaces alone are a blank cell"
''')

# ---------------------------------------------------------------------------------------------------------------------------------
project("queue", {
    "PKG/clock.py": '''
"""Times as minutes of a day."""


def minutes(text):
    """Minutes since midnight of a time such as `09:30`."""
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest or 0)


def clock(total):
    """The time of so many minutes; after midnight it begins anew."""
    return f"{total // 60 % 24:02d}:{total % 60:02d}"
''',
    "PKG/slots.py": '''
"""Free and taken times."""


def overlap(first, second):
    """Whether two pairs of start and end have time in common."""
    return first[0] < second[1] and second[0] < first[1]


def gaps(taken, start, end):
    """Free times between taken ones, as pairs."""
    free, at = [], start
    for begin, stop in sorted(taken):
        if begin > at:
            free.append((at, min(begin, end)))
        at = max(at, stop)
    return free + [(at, end)] if at < end else free
''',
    "PKG/agenda.py": '''
"""Appointments of one day."""

from .slots import gaps, overlap


class Agenda:
    """Appointments with names."""

    def __init__(self, start=480, end=1080):
        self.start, self.end = start, end
        self.taken = {}

    def book(self, name, begin, length):
        """Books an appointment; False if the time is taken or outside of the day."""
        wanted = (begin, begin + length)
        inside = self.start <= begin and begin + length <= self.end
        if not inside or any(overlap(wanted, other) for other in self.taken.values()):
            return False
        self.taken[name] = wanted
        return True

    def next_free(self, length):
        """The first time that is long enough; None if there is none."""
        return next((begin for begin, stop in gaps(self.taken.values(), self.start, self.end) if stop - begin >= length), None)

    def cancel(self, name):
        """Cancels an appointment; False if there is none of that name."""
        return self.taken.pop(name, None) is not None
''',
    "PKG/desk.py": '''
"""The desk that books by text."""

from .agenda import Agenda
from .clock import clock, minutes


def handle(lines):
    """Answers to requests such as `book ada 09:30 20`."""
    agenda, answers = Agenda(), []
    for line in lines:
        _, name, at, length = line.split()
        done = agenda.book(name, minutes(at), int(length))
        free = agenda.next_free(int(length))
        answers.append(f"{name} booked" if done else "full" if free is None else f"next free {clock(free)}")
    return answers
''',
    "tests/test_PKG.py": '''
from PKG.agenda import Agenda
from PKG.clock import clock, minutes
from PKG.desk import handle
from PKG.slots import gaps, overlap


def test_minutes():
    assert minutes("09:30") == 570, "half past nine"
    assert minutes("9") == 540, "nine o'clock"


def test_clock():
    assert clock(570) == "09:30", "half past nine"


def test_overlap():
    assert overlap((1, 5), (4, 6)), "they share a minute"


def test_touching():
    assert not overlap((1, 5), (5, 6)), "one may begin when the other ends"


def test_gaps():
    assert gaps([(2, 3)], 0, 5) == [(0, 2), (3, 5)], "two gaps"


def test_book():
    agenda = Agenda()
    assert agenda.book("ada", 500, 30), "the day is free"
    assert not agenda.book("bo", 510, 5), "the time is taken"


def test_desk():
    assert handle(["book ada 09:30 20"]) == ["ada booked"], "the desk books"
''',
})
issue("queue", kind="bug", path="PKG/slots.py", symbol="overlap", entry="PKG/desk.py", example=True,
      text="Two people were booked at once: `handle([\"book ada 09:00 60\", \"book bo 09:10 10\"])` says that bo is booked. The second lies within the first.",
      undo=[("PKG/slots.py", "return first[0] < second[1] and second[0] < first[1]", "return first[0] < second[0] < first[1] or first[0] < second[1] < first[1]"),
            ("tests/test_PKG.py", '    assert not agenda.book("bo", 510, 5), "the time is taken"\n', '    assert not agenda.book("bo", 490, 30), "the time is taken"\n')],
      line="return first[0] < second[0] < first[1] or", chain=[("PKG/desk.py", "from .agenda import Agenda"), ("PKG/agenda.py", "from .slots import gaps, overlap")],
      edge="one may begin when the other ends",
      wrong=[[("PKG/slots.py", "return first[0] < second[0] < first[1] or first[0] < second[1] < first[1]", "return first[0] <= second[1] and second[0] <= first[1]")],
             [("PKG/agenda.py", "any(overlap(wanted, other)", "any(other[0] < begin < other[1]")]],
      hidden='''
def test_issue():
    from PKG.desk import handle
    assert handle(["book ada 09:00 60", "book bo 09:10 10"])[1] != "bo booked", "bo lies within ada"


def test_same_time():
    from PKG.slots import overlap
    assert overlap((1, 5), (1, 5)) and overlap((2, 3), (1, 5)) and overlap((1, 5), (2, 3)), "equal and inner times overlap"
''')
issue("queue", kind="bug", path="PKG/slots.py", symbol="gaps", entry="PKG/desk.py", example=False,
      text="The desk offers times that are taken. This happens when a long appointment has a short one booked within its time by an older version of the program.",
      undo=[("PKG/slots.py", "at = max(at, stop)", "at = stop")], line="        at = stop",
      chain=[("PKG/desk.py", "from .agenda import Agenda"), ("PKG/agenda.py", "from .slots import gaps, overlap")],
      wrong=[[("PKG/slots.py", "in sorted(taken):", "in sorted(taken, key=lambda pair: pair[1]):")],
             [("PKG/slots.py", "        at = stop", "        at = max(begin, stop)")],
             [("PKG/agenda.py", "if stop - begin >= length", "if stop - begin > length")]],
      hidden='''
def test_issue():
    from PKG.slots import gaps
    assert gaps([(0, 4), (1, 2)], 0, 5) == [(4, 5)], "what lies within a taken time is not free"


def test_agenda():
    from PKG.agenda import Agenda
    agenda = Agenda(0, 20)
    agenda.taken = {"old": (0, 10), "inner": (3, 5), "late": (12, 14)}
    assert agenda.next_free(2) == 10, "the first free time is at 10"
''')
issue("queue", kind="feature", path="PKG/agenda.py", symbol="book", entry="PKG/agenda.py", example=True,
      text="Give `Agenda` a method `cancel(name)` that frees the time and says whether there was an appointment of that name.",
      undo=[("PKG/agenda.py", '\n    def cancel(self, name):\n        """Cancels an appointment; False if there is none of that name."""\n        return self.taken.pop(name, None) is not None\n', "")],
      line="self.taken[name] = wanted", chain=[],
      wrong=[[("PKG/agenda.py", "    def next_free(", '    def cancel(self, name):\n        """Cancels an appointment."""\n        return self.taken.pop(name) is not None\n\n    def next_free(')],
             [("PKG/agenda.py", "    def next_free(", '    def cancel(self, name):\n        """Cancels an appointment."""\n        return name in self.taken\n\n    def next_free(')],
             [("PKG/desk.py", "def handle(", 'def cancel(agenda, name):\n    return agenda.taken.pop(name, None) is not None\n\n\ndef handle(')]],
      hidden='''
def test_issue():
    from PKG.agenda import Agenda
    agenda = Agenda()
    agenda.book("ada", 500, 30)
    assert agenda.cancel("ada") is True and agenda.book("bo", 500, 30), "the time is free again"


def test_nobody():
    from PKG.agenda import Agenda
    assert Agenda().cancel("ada") is False, "there was no appointment"
''')
issue("queue", kind="bug", path="PKG/clock.py", symbol="clock", entry="PKG/clock.py", example=True,
      text="`clock(1500)` gives `25:00`. After midnight the clock begins anew, so it should give `01:00`.",
      undo=[("PKG/clock.py", "total // 60 % 24", "total // 60"), ("PKG/clock.py", "The time of so many minutes; after midnight it begins anew.", "The time of so many minutes.")],
      line='return f"{total // 60:02d}:{total % 60:02d}"', chain=[],
      wrong=[[("PKG/clock.py", "{total // 60:02d}", "{total // 60 - 24 if total > 1440 else total // 60:02d}")],
             [("PKG/clock.py", "{total // 60:02d}", "{total % 24:02d}")],
             [("PKG/clock.py", "int(hours) * 60", "int(hours) % 24 * 60")]],
      hidden='''
def test_issue():
    from PKG.clock import clock
    assert clock(1500) == "01:00", "25 hours are one o'clock"


def test_midnight():
    from PKG.clock import clock
    assert clock(1440) == "00:00" and clock(2940) == "01:00", "midnight is 00:00"
''')
issue("queue", kind="refactoring", path="PKG/slots.py", symbol="overlap", entry="PKG/agenda.py", example=False,
      text="Whether two times overlap is worked out within `book`. Move it into a function `overlap(first, second)` beside `gaps`, and call it from `book`. Bookings must be as before.",
      undo=[("PKG/slots.py", 'def overlap(first, second):\n    """Whether two pairs of start and end have time in common."""\n    return first[0] < second[1] and second[0] < first[1]\n\n\n', ""),
            ("PKG/agenda.py", "import gaps, overlap", "import gaps"), ("PKG/agenda.py", "any(overlap(wanted, other) for other", "any(begin < other[1] and other[0] < begin + length for other"),
            ("tests/test_PKG.py", "import gaps, overlap", "import gaps"), ("tests/test_PKG.py", 'def test_overlap():\n    assert overlap((1, 5), (4, 6)), "they share a minute"\n\n\n', ""),
            ("tests/test_PKG.py", 'assert not overlap((1, 5), (5, 6)), "one may begin when the other ends"', 'agenda = Agenda(0, 9)\n    assert agenda.book("ada", 1, 4) and agenda.book("bo", 5, 1), "one may begin when the other ends"')],
      line="any(begin < other[1] and other[0] < begin + length", chain=[("PKG/agenda.py", "from .slots import gaps"), ("PKG/slots.py", "def gaps(")],
      edge="one may begin when the other ends",
      wrong=[[("PKG/slots.py", "def gaps(", 'def overlap(first, second):\n    """Whether two times overlap."""\n    return first[0] <= second[1] and second[0] <= first[1]\n\n\ndef gaps('), ("PKG/agenda.py", "import gaps", "import gaps, overlap"),
              ("PKG/agenda.py", "any(begin < other[1] and other[0] < begin + length for other", "any(overlap(wanted, other) for other")],
             [("PKG/agenda.py", "class Agenda", "def overlap(first, second):\n    return first[0] < second[1] and second[0] < first[1]\n\n\nclass Agenda")]],
      hidden='''
def test_issue():
    from PKG.slots import overlap
    assert overlap((1, 5), (4, 6)), "they share a minute"


def test_used():
    import PKG.agenda
    import PKG.slots
    assert PKG.agenda.overlap is PKG.slots.overlap, "book uses it"
''')


# ---------------------------------------------------------------------------------------------------------------------------------
# What is made of it.

def edited(files, edits):
    """Files after edits: (path, old, new); without old, new is the whole file; without both, the file goes."""
    files = dict(files)
    for path, old, new in edits:
        if old is None and new is None:
            del files[path]
        elif old is None:
            files[path] = new
        else:
            assert files[path].count(old) == 1, f"{path}: {files[path].count(old)} places for {old!r}\n{files[path]}"
            files[path] = files[path].replace(old, new)
    return files


def as_text(files):
    return "\n".join(f"### {path}\n{text}" for path, text in sorted(files.items()))


def changed(before, after):
    return {path: text for path, text in after.items() if before.get(path) != text}


def named(value, package):
    """The same with the package's name in place of PKG."""
    return json.loads(json.dumps(value).replace("PKG", package))


def checker():
    """The checker file, with stand-ins for what the platform gives it."""
    def execute(files, main, arguments=(), seconds=5):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            done = subprocess.run([sys.executable, "-S", main, *arguments], cwd=folder, capture_output=True, text=True, timeout=seconds)
            return done.returncode, done.stdout + done.stderr

    def files_of(text):
        files, path = {}, None
        for line in text.splitlines():
            if line.startswith("### "):
                path = line[4:].strip()
                files[path] = ""
            elif path and not line.startswith("```"):
                files[path] += line + "\n"
        return {path: text.rstrip("\n") + "\n" for path, text in files.items()}

    scope = {"execute": execute, "files_of": files_of}
    exec((OUT / "check.py").read_text(), scope)
    return scope


def first_test(hidden):
    return hidden.strip("\n").split("\n\n\n")[0] + "\n"


def row_of(project, one, package, number):
    """An issue as a row."""
    right = {**project["files"], "PKG/__init__.py": ""}
    before = edited(right, one["undo"])
    patch = changed(before, {path: text for path, text in right.items() if not path.startswith("tests/")})
    wrong = [as_text(changed(before, edited(before, edits))) for edits in one["wrong"]]
    chain = one["chain"]
    for path, text in [(one["path"], one["line"])] + chain:
        assert text in before.get(path, "") or one["kind"] == "refactoring" and any(text in other for other in before.values()), (path, text)
    sources = sorted(path for path in before if path.endswith(".py") and "/__" not in path and not path.startswith("tests/"))
    several = len(patch) > 1
    needs = [one["line"]] + ([text for _, text in chain] if several else [])
    needs = [{"finds": text} for text in dict.fromkeys(needs)] + ([{"finds": one["edge"]}] if "edge" in one else [])
    folder = f"r{number:02d}"
    reads = [{"tool": "list_files", "arguments": {"path": folder}, "finds": one["entry"]}]
    reads += [{"tool": "read_file", "arguments": {"path": f"{folder}/{path}"}, "finds": text} for path, text in chain]
    if not several or not any(path == one["path"] for path, _ in chain):
        if one["path"] in before:
            reads.append({"tool": "read_file", "arguments": {"path": f"{folder}/{one['path']}"}, "finds": one["line"]})
    places = sorted(path for path in patch if path in before) if several else [one["path"]]
    if not places:
        places = [one["entry"]]
    forms = [f"def {one['symbol']}(", f"{one['symbol']} = "]
    definition = next((form for form in forms if any(form in text for text in before.values())), one["line"])
    test = first_test(one["hidden"])
    # Who lacks what a repair needs guesses; one of the guesses at an edge is right.
    guesses = wrong + ([as_text({path: text + "\n# as the issue asks\n" for path, text in patch.items()})] if "edge" in one else [])
    shown = as_text({path: before[path] for path in dict.fromkeys([one["path"], *(path for path, _ in chain)]) if path in before and (several or path == one["path"] or one["path"] not in before)})
    row = {
        "id": f"issue-{number:02d}", "kind": one["kind"], "question": one["text"], "files": before, "hidden": {"tests/test_hidden.py": one["hidden"].strip("\n") + "\n"},
        "tree": "\n".join(sorted(before)), "patch": as_text(patch), "wrong": wrong, "edge": "edge" in one, "hops": len(chain),
        "difficulty": 0.5 * len(chain) + (0.5 if several else 0), "folder": folder,
        "parts": {
            "files": {"gold": "\n".join(places), "wrong": [path for path in sources if path not in places],
                      "plan": [{"finds": place} for place in places] + ([] if several else [{"finds": text} for _, text in chain])},
            "elements": {"gold": "\n".join(f"{path}: {one['symbol']}" if path == one["path"] else path for path in places),
                         "wrong": [path for path in sources if path not in places], "plan": [{"finds": f"### {place}"} for place in places]},
            "explore": {"gold": shown, "wrong": [as_text({path: before[path]}) for path in sources if path not in places][:1], "plan": reads},
            "repair": {"gold": as_text(patch), "wrong": guesses, "plan": needs},
            "reproduce": {"gold": test, "wrong": ["def test_issue():\n    import PKG\n    assert PKG\n", f"def test_issue():\n    from PKG import {one['symbol']}\n    assert {one['symbol']}() is not None\n"],
                          "plan": [] if one["example"] else [{"finds": definition}]},
        },
    }
    row["failing"] = [line[4:line.index("(")] for line in one["hidden"].splitlines() if line.startswith("def test_")]
    row["passing"] = [line[4:line.index("(")] for path, text in before.items() if path.startswith("tests/") for line in text.splitlines() if line.startswith("def test_")]
    return named(row, package)


def verify(check, row):
    """Runs everything once; returns what kind each wrong patch is."""
    before, hidden, after = check["outcomes"]([check["copy_of"](row), check["copy_of"](row, "", row["hidden"]), check["copy_of"](row, row["patch"], row["hidden"])])
    where = (row["id"], row["question"])
    assert not check["failures"](before), (where, check["failures"](before))
    assert any("test_hidden.test_issue" == name for name in check["failures"](hidden)), (where, hidden)
    assert not check["failures"](after), (where, check["failures"](after))
    kinds = []
    for patch in row["wrong"]:
        visible, both = check["outcomes"]([check["copy_of"](row, patch), check["copy_of"](row, patch, row["hidden"])])
        assert check["failures"](both), (where, "a wrong patch is right", patch)
        broken, solved = check["failures"](visible), "test_hidden.test_issue" not in check["failures"](both)
        kinds.append("breaks" if broken else "edge" if solved else "fails")
    if row["edge"]:
        message = row["parts"]["repair"]["plan"][-1]["finds"]
        assert message in check["run_tests"](row, row["wrong"][0])[1], (where, check["run_tests"](row, row["wrong"][0]))
    assert check["tests_well"](row, row["parts"]["reproduce"]["gold"])[0], (where, check["tests_well"](row, row["parts"]["reproduce"]["gold"]))
    for test in row["parts"]["reproduce"]["wrong"]:
        assert not check["tests_well"](row, test)[0], (where, test)
    return kinds


ACTIONS = ["retrieve", "test", "edit", "run", "review", "finish"]


def choices(task):
    """What the meta agent should do next, by what was done last."""
    write, after_test = ("test", "review") if task == "test" else ("edit", "edit")
    right = {"begin": "retrieve", "retrieved": "test", "test": after_test, "edit": "run", "run-passed": "review", "run-failed": "retrieve",
             "again": write, "review-passed": "finish", "review-failed": "retrieve"}
    parts = {f"next-{state}": {"gold": action, "wrong": [other for other in ACTIONS if other != action], "plan": []} for state, action in right.items()}
    return parts | {"next-by-lot": {"gold": "none", "wrong": ACTIONS, "plan": [{"finds": "what no one shows"}]}}


def added(before, after):
    """The last line that a patch brings into the repository, with more than a bracket in it."""
    lines = [line.strip() for path, text in changed(before, after).items() for line in text.splitlines() if line not in before.get(path, "").splitlines()]
    return max(lines, key=len)


def task_of(check, row, task):
    """A task of USEagent from an issue: to repair it, to write a test that shows it, or to complete a patch that was left half-way."""
    parts = row["parts"]
    out = {key: row[key] for key in ["id", "kind", "question", "files", "hidden", "patch", "wrong", "difficulty", "hops", "edge"]}
    out |= {"id": row["id"].replace("issue", task), "task": task, "part": "reproduce" if task == "test" else "repair", "answer": row["patch"], "parts": {}}
    repair, reproduce = parts["repair"]["plan"], {key: parts["reproduce"][key] for key in ["gold", "wrong", "plan"]}
    if task == "test":
        out |= {"question": "Write a test that fails because of this issue: " + row["question"], "answer": reproduce["gold"], "wrong": reproduce["wrong"]}
    if task == "partial":
        begun = row["wrong"][row["mistakes"].index("edge")]
        before = {**row["files"], **check["files_of"](begun)}
        right = {**row["files"], **check["files_of"](row["patch"])}
        line = added(row["files"], before)
        result, = check["outcomes"]([check["copy_of"]({"files": before}, "", row["hidden"])])
        failed, why = next((name, why) for name, why in result.items() if why)
        why = why.removeprefix("AssertionError: ").rsplit(" (", 1)[0]
        name = failed.split(".")[1]
        test = next(test for test in row["hidden"]["tests/test_hidden.py"].strip("\n").split("\n\n\n") if f"def {name}(" in test) + "\n"
        wrong = [as_text(changed(before, {**before, **check["files_of"](patch)})) for patch in row["wrong"] if patch != begun]
        out |= {"question": "This was begun, and the work that is in the repository is not complete. Complete it: " + row["question"],
                "files": before, "patch": as_text(changed(before, right)), "answer": as_text(changed(before, right)), "wrong": wrong}
        repair = [{"finds": line}, {"finds": why}]
        reproduce = {"gold": test, "wrong": reproduce["wrong"], "plan": [{"finds": line}]}
    if task != "test":
        out["parts"]["repair"] = {"gold": out["answer"], "wrong": out["wrong"], "plan": repair}
    out["parts"]["reproduce"] = reproduce
    out["parts"] |= choices(task)
    assert check["check"](out, out["answer"])[0], (out["id"], check["check"](out, out["answer"]))
    for wrong in out["wrong"]:
        assert not check["check"](out, wrong)[0], (out["id"], wrong)
    assert not check["failures"](check["outcomes"]([check["copy_of"](out)])[0]), out["id"]
    del out["wrong"]
    return out


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    rng = random.Random(20261127)
    every = [(PROJECTS[name], one) for name in PROJECTS for one in PROJECTS[name]["issues"]]
    rng.shuffle(every)
    check = checker()
    rows = []
    for number, (of, one) in enumerate(every, 1):
        row = row_of(of, one, rng.choice(NAMES), number)
        row["mistakes"] = verify(check, row)
        rows.append(row)
        for path, text in row["files"].items():
            write(OUT / "trees" / row["folder"] / path, text)
    tasks = [task_of(check, row, "partial") for row in rows if row["kind"] == "feature"]
    bugs = [row for row in rows if row["kind"] == "bug"]
    tasks += [task_of(check, row, "repair") for row in bugs[:10]]
    tasks += [task_of(check, row, "test") for row in rows if row["kind"] == "refactoring" or row in bugs[10:]]
    rng.shuffle(tasks)
    for row in rows:
        del row["wrong"]
    write(OUT / "issues.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(OUT / "tasks.jsonl", "".join(json.dumps(task) + "\n" for task in tasks))
    if "-v" in sys.argv:
        for task in tasks:
            print(task["id"], task["hops"], task["parts"][task["part"]]["plan"])
        for row in rows:
            print(row["id"], row["kind"], "hops", row["hops"], "edge" if row["edge"] else "", row["mistakes"], len(json.dumps(row)))


if __name__ == "__main__":
    main()
