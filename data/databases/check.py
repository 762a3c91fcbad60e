"""Five small databases, and what a method may ask of them.

`database(name)` builds one in memory. Its rows are drawn with a seed of its own, so they are the same everywhere. Every database has four tables:
people, what they did on a day, what belongs to it, and a list of things. Names, forms of dates and codes differ, and the schema does not tell them.
"""

import re
import sqlite3
from collections import Counter

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
FIRST = "Ada Bela Cato Dora Egon Fina Gero Hela Ivo Jana Kuno Lida".split()
LAST = "Abram Brandt Corvin Dorn Ekdal Falk Grote Holm".split()
TOWNS = ["Kaltau (Old Town)", "Kaltau (Harbour)", "Birkfeld, Nth.", "Birkfeld, Sth.", "Ostmund/Lake", "Reh a. d. Ilm"]

# people: table, column of the place; events: table, column of the day, column of the state, codes for finished, open, cancelled;
# lines: table, column of the number; things: table, column of the kind, column of the price, kinds; day: its form.
NAMES = {
    "shop": {
        "people": ("customers", "town"), "events": ("orders", "day", "state", ("done", "due", "void")), "lines": ("order_items", "amount"),
        "things": ("products", "category", "price", ("Lamp, desk", "Shelf, oak", "Chair, garden", "Rug, wool")), "day": "{y}/{m:02}/{d:02}",
        "words": ("customer", "order", "product"),
    },
    "clinic": {
        "people": ("patients", "district"), "events": ("visits", "visited", "status", ("seen", "booked", "dropped")), "lines": ("given", "times"),
        "things": ("treatments", "field", "fee", ("Knee, physio", "Skin, laser", "Eye, exam", "Tooth, crown")), "day": "{d:02}.{m:02}.{y}",
        "words": ("patient", "visit", "treatment"),
    },
    "library": {
        "people": ("readers", "branch"), "events": ("loans", "lent", "phase", ("back", "out", "waived")), "lines": ("loan_books", "copies"),
        "things": ("books", "shelf", "value", ("Novel, crime", "Atlas, road", "Poems, new", "Law, tax")), "day": "{y}{m:02}{d:02}",
        "words": ("reader", "loan", "book"),
    },
    "garage": {
        "people": ("owners", "quarter"), "events": ("jobs", "opened", "mark", ("paid", "todo", "storno")), "lines": ("job_parts", "pieces"),
        "things": ("parts", "family", "cost", ("Tyre, winter", "Brake, front", "Lamp, rear", "Belt, drive")), "day": "{d:02}-{b}-{y}",
        "words": ("owner", "job", "part"),
    },
    "hotel": {
        "people": ("guests", "home"), "events": ("stays", "arrived", "code", ("closed", "held", "noshow")), "lines": ("extras", "units"),
        "things": ("services", "type", "rate", ("Spa, morning", "Meal, vegan", "Tour, boat", "Room, quiet")), "day": "{m:02}-{d:02}-{y}",
        "words": ("guest", "stay", "service"),
    },
}


class Dice:
    """Random numbers that do not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def of(self, options):
        return options[self.below(len(options))]


def schema(name):
    """The CREATE statements of a database."""
    one = NAMES[name]
    (people, place), (events, day, state, _), (lines, number), (things, kind, price, _) = (one[key] for key in ("people", "events", "lines", "things"))
    person, event, thing = one["words"]
    return (
        f"CREATE TABLE {people} (id INTEGER PRIMARY KEY, name TEXT, {place} TEXT);\n"
        f"CREATE TABLE {events} (id INTEGER PRIMARY KEY, {person}_id INTEGER REFERENCES {people}(id), {day} TEXT, {state} TEXT);\n"
        f"CREATE TABLE {things} (id INTEGER PRIMARY KEY, name TEXT, {kind} TEXT, {price} INTEGER);\n"
        f"CREATE TABLE {lines} ({event}_id INTEGER REFERENCES {events}(id), {thing}_id INTEGER REFERENCES {things}(id), {number} INTEGER);"
    )


def date(name, y, m, d):
    """A day in the form of a database."""
    return NAMES[name]["day"].format(y=y, m=m, d=d, b=MONTHS[m - 1])


def database(name):
    """A database in memory."""
    one, dice = NAMES[name], Dice(sorted(NAMES).index(name) + 11)
    (people, _), (events, _, _, codes), (lines, _), (things, _, _, kinds) = (one[key] for key in ("people", "events", "lines", "things"))
    base = sqlite3.connect(":memory:")
    base.executescript(schema(name))
    for i in range(1, 25):
        place = None if dice.below(8) == 0 else dice.of(TOWNS)
        base.execute(f"INSERT INTO {people} VALUES (?, ?, ?)", (i, f"{FIRST[(i * 7) % 12]} {LAST[(i * 5 + i // 12) % 8]}", place))
    for i in range(1, 17):
        base.execute(f"INSERT INTO {things} VALUES (?, ?, ?, ?)", (i, f"{one['words'][2]} {chr(64 + i)}{dice.below(90) + 10}", dice.of(kinds), 5 + dice.below(60)))
    for i in range(1, 61):
        day = date(name, 2023 + dice.below(2), 1 + dice.below(4), 1 + dice.below(28))
        base.execute(f"INSERT INTO {events} VALUES (?, ?, ?, ?)", (i, 1 + dice.below(19), day, dice.of((codes[0], codes[0], codes[1], codes[2]))))
        for _ in range(1 + dice.below(3)):
            base.execute(f"INSERT INTO {lines} VALUES (?, ?, ?)", (i, 1 + dice.below(16), 1 + dice.below(4)))
    return base


def only_sql(text):
    """The statement of a reply, without a fence around it."""
    fenced = re.search(r"```(?:sql)?\n(.*?)```", text, re.S | re.I)
    return (fenced.group(1) if fenced else text).strip().rstrip(";")


def query(base, sql):
    """The rows of a SELECT; an error of SQLite is raised."""
    base.execute("PRAGMA query_only = 1")
    left = [200]
    base.set_progress_handler(lambda: left.__setitem__(0, left[0] - 1) or left[0] < 0, 10_000)
    return base.execute(only_sql(sql)).fetchall()


def same(left, right):
    """Whether two results are equal as multisets; numbers to six places."""
    def plain(rows):
        return Counter(tuple(round(v, 6) if isinstance(v, (int, float)) else v for v in row) for row in rows)
    return plain(left) == plain(right)


def shown(rows, most=5):
    """Rows as text: how many, how many different ones, and the first."""
    head = f"{len(rows)} rows, {len(set(rows))} different"
    return "\n".join([head] + [" | ".join(str(value) for value in row) for row in rows[:most]])


def check(row, answer):
    """Whether the query gives the rows of the right one."""
    base = database(row["database"])
    gold = query(base, row["answer"])
    try:
        rows = query(base, answer)
    except sqlite3.Error as error:
        return False, f"error: {error}"
    return same(rows, gold), shown(rows)


def agree(row, *queries):
    """Self-consistency: the first query of the largest group with the same result; queries that fail or find nothing come last."""
    base, groups = database(row["database"]), []
    for sql in queries:
        try:
            rows = query(base, sql)
        except sqlite3.Error:
            rows = None
        for group in groups:
            if rows is not None and group[1] is not None and same(group[1], rows):
                group[0] += 1
                break
        else:
            groups.append([1, rows, sql])
    best = max(groups, key=lambda group: (bool(group[1]), group[0]))
    return best[2]
