#!/usr/bin/env python3
"""Makes data/databases: the five databases of check.py in one file, the texts in them to search, and 100 questions with the right query and wrong ones.

A question may hang on a fact that the schema does not tell: how a value is written, the form of dates, a code, what a join doubles or loses, what an
inner query returns, a habit of SQLite. Its `plan` names the text that shows this fact. Which generator is shown it is not declared: it follows from
running the sub-queries, steps and examples of the question on SQLite, and is printed at the end.
"""

import json
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "databases"
sys.path.insert(0, str(OUT))
sys.dont_write_bytecode = True
import check as db  # noqa: E402


def walk(sql):
    """The steps in which the engine runs a query, each as a query: rows and different keys table by table, and a row of the first table."""
    head = re.search(r"\bFROM\s+(\w+)(?:\s+(\w+))?(?=\s+(?:LEFT|JOIN|WHERE|GROUP|ORDER|LIMIT)|$)", sql)
    if not head:
        return [sql]
    table, alias = head.group(1), head.group(2) or head.group(1)
    rest = sql[head.end():]
    end = re.search(r"\b(GROUP BY|ORDER BY|HAVING|LIMIT)\b", rest)
    rest = rest[:end.start()] if end else rest
    cuts = [0] + [found.start() for found in re.finditer(r"\b(LEFT\s+)?JOIN\b|\bWHERE\b", rest)][1:] + [len(rest)]
    steps = [f"SELECT COUNT(*), COUNT(DISTINCT {alias}.id) FROM {table} {alias} {rest[:cut]}".strip() for cut in dict.fromkeys(cuts)]
    return [f"SELECT * FROM {table} LIMIT 1", *steps] + ([sql] if end else [])


def answers(base, statements):
    """What the tool shows for statements."""
    lines = []
    for sql in statements:
        lines.append(sql)
        try:
            cursor = base.execute(sql)
            lines.append(" | ".join(column[0] for column in cursor.description))
            lines += [" | ".join("NULL" if value is None else str(value) for value in row) for row in cursor.fetchmany(5)]
        except sqlite3.Error as error:
            lines.append(str(error))
    return "\n".join(lines)


def templates(name):
    """The questions of a database: (kind, question, hint, right query, [(kind of error, wrong query)], sub-queries, draft, examples, what must be shown).

    What must be shown is a function of the base, or None.
    """
    one = db.NAMES[name]
    (people, place), (events, day, state, codes), (lines, number), (things, kind, price, kinds) = (one[key] for key in ("people", "events", "lines", "things"))
    person, event, thing = one["words"]
    done, _, void = codes
    base = db.database(name)
    join_e = f"{people} p JOIN {events} e ON e.{person}_id = p.id"
    join_t = f"{events} e JOIN {lines} l ON l.{event}_id = e.id JOIN {things} t ON t.id = l.{thing}_id"
    by_state = f"SELECT {state}, COUNT(*) FROM {events} GROUP BY {state}"
    each_kind = f"SELECT {kind}, COUNT(*) FROM {things} GROUP BY {kind}"
    each_place = f"SELECT {place}, COUNT(*) FROM {people} GROUP BY {place} LIMIT 2"
    raw = f"SELECT * FROM {events}"
    first_day = db.query(base, f"SELECT {day} FROM {events} LIMIT 1")[0][0]
    per_person = f"SELECT {person}_id, COUNT(*) n FROM {events} GROUP BY {person}_id"

    def count(sql):
        rows = db.query(base, sql)
        return f"{len(rows)} | {len({row[0] for row in rows})}"

    def line(sql):
        rows = db.query(base, sql)
        return " | ".join(map(str, rows[0]))

    q = []

    def ask(kind_of, asks, gold, wrong, pieces=(), draft=None, shots=(), need=None, hint=""):
        plain = [f"SELECT COUNT(*) FROM {events}", f"SELECT COUNT(*) FROM {people}"]
        q.append({"kind": kind_of, "asks": asks, "hint": hint, "gold": gold, "wrong": wrong, "pieces": list(pieces) or plain,
                  "draft": draft or wrong[0][1], "shots": list(shots) or [f"SELECT name FROM {people}", f"SELECT MAX({price}) FROM {things}"], "need": need})

    # Nothing but the schema is needed.
    ask("plain", f"How many {people} have no {place}?", f"SELECT COUNT(*) FROM {people} WHERE {place} IS NULL",
        [("wrong comparison", f"SELECT COUNT(*) FROM {people} WHERE {place} = NULL"), ("missing filter", f"SELECT COUNT(*) FROM {people}")])
    ask("plain", f"What are the ids of the {people} with at least 4 {events}?", f"SELECT {person}_id FROM {events} GROUP BY {person}_id HAVING COUNT(*) >= 4",
        [("off by one", f"SELECT {person}_id FROM {events} GROUP BY {person}_id HAVING COUNT(*) > 4"), ("missing filter", f"SELECT DISTINCT {person}_id FROM {events}")])
    ask("plain", f"What is the mean {price} of the {things} that are expensive?", f"SELECT AVG({price}) FROM {things} WHERE {price} > 30",
        [("wrong aggregation", f"SELECT SUM({price}) FROM {things} WHERE {price} > 30"), ("missing filter", f"SELECT AVG({price}) FROM {things}")],
        hint=f"expensive means a {price} above 30")

    # A value that is written otherwise: the retrieval of values shows it.
    place_of = db.query(base, f"SELECT {place} FROM {people} WHERE {place} LIKE 'Birkfeld%' OR {place} LIKE 'Kaltau%' GROUP BY 1 ORDER BY COUNT(*) DESC, 1 LIMIT 1")[0][0]
    head = place_of.split(",")[0].split(" (")[0]
    says = {"Birkfeld, Nth.": "Birkfeld North", "Birkfeld, Sth.": "Birkfeld South", "Kaltau (Old Town)": "Kaltau Old Town", "Kaltau (Harbour)": "Kaltau Harbour"}[place_of]
    ask("value", f"What are the names of the {people} of {says}?", f"SELECT name FROM {people} WHERE {place} = '{place_of}'",
        [("wrong literal", f"SELECT name FROM {people} WHERE {place} = '{says}'"), ("wrong literal", f"SELECT name FROM {people} WHERE {place} LIKE '{head}%'")],
        need=f"'{place_of}'")
    kind_of = db.query(base, f"SELECT {kind} FROM {things} GROUP BY 1 ORDER BY COUNT(*) DESC, 1 LIMIT 1")[0][0]
    noun, which = kind_of.split(", ")
    ask("value", f"What is the total {price} of all {things} of the {kind} {which} {noun.lower()}?", f"SELECT SUM({price}) FROM {things} WHERE {kind} = '{kind_of}'",
        [("wrong literal", f"SELECT SUM({price}) FROM {things} WHERE {kind} = '{which} {noun.lower()}'"), ("missing filter", f"SELECT SUM({price}) FROM {things}")],
        need=f"'{kind_of}'")

    # The first query does not run; the error says why.
    ask("error", f"Which {person} has most {events}? Give the smallest id if there are several.", f"SELECT {person}_id FROM {events} GROUP BY {person}_id ORDER BY COUNT(*) DESC, {person}_id LIMIT 1",
        [("does not run", f"SELECT {person}_id FROM {events} WHERE COUNT(*) = MAX(COUNT(*)) GROUP BY {person}_id"), ("does not run", f"SELECT {person}_id FROM {events} GROUP BY {person}_id, MAX(COUNT(*)) HAVING COUNT(*) = MAX(COUNT(*))")],
        need="misuse of aggregate")
    ask("error", f"List each {thing} id with the number of {events} it is in, as one text like 3:7.", f"SELECT {thing}_id || ':' || COUNT(*) FROM {lines} GROUP BY {thing}_id",
        [("does not run", f"SELECT FORMAT_TEXT({thing}_id, ':', COUNT(*)) FROM {lines} GROUP BY {thing}_id"), ("does not run", f"SELECT STR({thing}_id) + ':' + STR(COUNT(*)) FROM {lines} GROUP BY {thing}_id")],
        need="no such function")

    # A code: one has to look at the values of the column. The word of the question is not near the code.
    ask("code", f"How many {events} were cancelled?", f"SELECT COUNT(*) FROM {events} WHERE {state} = '{void}'",
        [("wrong literal", f"SELECT COUNT(*) FROM {events} WHERE {state} = 'cancelled'"), ("wrong literal", f"SELECT COUNT(*) FROM {events} WHERE {state} <> '{done}'")],
        pieces=[by_state, f"SELECT COUNT(*) FROM {events}"], shots=[by_state, f"SELECT name FROM {people}"], need=lambda: line(by_state + f" HAVING {state} = '{void}'"))
    ask("code", f"What are the names of the {people} who never cancelled?", f"SELECT name FROM {people} WHERE id NOT IN (SELECT {person}_id FROM {events} WHERE {state} = '{void}')",
        [("wrong join", f"SELECT DISTINCT p.name FROM {join_e} WHERE e.{state} <> '{void}'"), ("wrong literal", f"SELECT name FROM {people} WHERE id NOT IN (SELECT {person}_id FROM {events} WHERE {state} = 'cancelled')")],
        pieces=[by_state, f"SELECT DISTINCT {person}_id FROM {events}"], draft=f"SELECT DISTINCT p.name FROM {join_e} WHERE e.{state} <> 'cancelled'",
        shots=[by_state], need=lambda: line(by_state + f" HAVING {state} = '{void}'"))

    # A join that repeats rows: the numbers of rows and of different rows show it.
    for other in kinds:
        double = f"SELECT e.id FROM {join_t} WHERE t.{kind} = '{other}'"
        rows = db.query(base, double)
        if len(rows) > len(set(rows)):
            break
    ask("repeated rows", f"How many {events} have a {thing} whose {kind} is '{other}'?", f"SELECT COUNT(DISTINCT e.id) FROM {join_t} WHERE t.{kind} = '{other}'",
        [("missing distinct", f"SELECT COUNT(*) FROM {join_t} WHERE t.{kind} = '{other}'"), ("wrong join", f"SELECT COUNT(DISTINCT t.id) FROM {join_t} WHERE t.{kind} = '{other}'")],
        pieces=[f"SELECT id FROM {things} WHERE {kind} = '{other}'", double.replace("e.id", "COUNT(*), COUNT(DISTINCT e.id)", 1)], need=lambda: count(double))
    owner = f"SELECT p.id FROM {people} p JOIN {events} e ON e.{person}_id = p.id JOIN {lines} l ON l.{event}_id = e.id WHERE l.{number} = 4"
    ask("repeated rows", f"How many {people} have ever had a {thing} with {number} 4?", f"SELECT COUNT(DISTINCT e.{person}_id) FROM {events} e JOIN {lines} l ON l.{event}_id = e.id WHERE l.{number} = 4",
        [("missing distinct", owner.replace("p.id FROM", "COUNT(p.id) FROM")), ("wrong join", f"SELECT COUNT(*) FROM {lines} WHERE {number} = 4 AND {event}_id IN (SELECT {person}_id FROM {events})")],
        pieces=[f"SELECT {event}_id FROM {lines} WHERE {number} = 4", owner.replace("p.id", "COUNT(*), COUNT(DISTINCT p.id)", 1)], need=lambda: count(owner))

    # A form of dates: any row shows it, and the walk of the engine and examples show rows.
    def like(y, m):
        text = db.date(name, y, m, 99)
        return f"LIKE '{text.replace('99', '%')}'"
    iso = f"SELECT COUNT(*) FROM {events} WHERE {day} LIKE '2024-03-%'"
    ask("form of dates", f"How many {events} are there from March 2024?", f"SELECT COUNT(*) FROM {events} WHERE {day} {like(2024, 3)}",
        [("wrong literal", iso), ("missing filter", f"SELECT COUNT(*) FROM {events} WHERE {day} LIKE '%03%' OR {day} LIKE '%Mar%'")], pieces=[iso, f"SELECT COUNT(*) FROM {events}"], draft=iso, shots=[raw], need=first_day)
    until = next(d for d in range(10, 28) if db.query(base, f"SELECT COUNT(*) FROM {events} WHERE {day} = '{db.date(name, 2023, 2, d)}'")[0][0])
    days = [f"'{db.date(name, 2023, 2, d)}'" for d in range(1, until + 1)]
    ask("form of dates", f"How many {events} are there from 1 to {until} February 2023, both days included?", f"SELECT COUNT(*) FROM {events} WHERE {day} IN ({', '.join(days)})",
        [("off by one", f"SELECT COUNT(*) FROM {events} WHERE {day} IN ({', '.join(days[:-1])})"), ("wrong literal", f"SELECT COUNT(*) FROM {events} WHERE {day} BETWEEN '2023-02-01' AND '2023-02-{until}'")],
        pieces=[f"SELECT COUNT(*) FROM {events} WHERE {day} LIKE '2023-02-%'"], draft=f"SELECT COUNT(*) FROM {events} WHERE {day} BETWEEN '2023-02-01' AND '2023-02-{until}'", shots=[raw], need=first_day)

    # An inner query whose result decides: only the parts of the question, run one by one, show it.
    ask("inner query", f"Which {people} (ids) have more {events} than an average {person} who has any?", f"SELECT {person}_id FROM {events} GROUP BY {person}_id HAVING COUNT(*) > (SELECT AVG(n) FROM ({per_person}))",
        [("wrong aggregation", f"SELECT {person}_id FROM {events} GROUP BY {person}_id HAVING COUNT(*) > (SELECT AVG({person}_id) FROM {events})"),
         ("wrong aggregation", f"SELECT {person}_id FROM {events} GROUP BY {person}_id HAVING COUNT(*) > (SELECT COUNT(*) FROM {events}) / (SELECT COUNT(*) FROM {people})")],
        pieces=[f"SELECT AVG(n) FROM ({per_person})", per_person], need=lambda: line(f"SELECT AVG(n) FROM ({per_person})"))
    ranks = {"events": (per_person + " ORDER BY n DESC", person, events), "lines": (f"SELECT {thing}_id, COUNT(*) n FROM {lines} GROUP BY {thing}_id ORDER BY n DESC", thing, lines),
             "kind": (f"SELECT {kind}, COUNT(*) n FROM {things} GROUP BY {kind} ORDER BY n DESC", kind, things)}
    for rank, subject, of in ranks.values():
        top = db.query(base, rank)
        second = sorted({n for _, n in top}, reverse=True)[1]
        if [n for _, n in top].count(second) > 1 or [n for _, n in top].count(top[0][1]) > 1:
            break
    inner, own = rank.split(" ORDER")[0], rank.split()[1].rstrip(",")
    ask("inner query", f"Which {subject} comes second by its number of rows in {of}? Give all that share the second place, whoever shares the first.", f"SELECT {own} FROM ({inner}) WHERE n = (SELECT MAX(n) FROM ({inner}) WHERE n < (SELECT MAX(n) FROM ({inner})))",
        [("wrong aggregation", f"SELECT {own} FROM ({rank} LIMIT 1 OFFSET 1)"), ("wrong aggregation", f"SELECT {own} FROM ({inner}) WHERE n = (SELECT MAX(n) FROM ({inner}))")],
        pieces=[inner, rank], draft=f"SELECT {own} FROM {of} GROUP BY {own} ORDER BY COUNT(*) DESC LIMIT 1 OFFSET 1", need=lambda: "\n".join(" | ".join(map(str, row)) for row in top[:3]))

    # A join that loses rows: the walk of the engine shows how many are left.
    lost = f"SELECT p.id, COUNT(*) FROM {join_e} GROUP BY p.id"
    left = f"{people} p LEFT JOIN {events} e ON e.{person}_id = p.id"
    walked = lambda: count(f"SELECT p.id FROM {join_e}")  # noqa: E731
    ask("lost rows", f"How many {events} does each {person} have? Give the id of every {person} and the number.", f"SELECT p.id, COUNT(e.id) FROM {left} GROUP BY p.id",
        [("wrong join", lost), ("wrong aggregation", f"SELECT p.id, COUNT(*) FROM {left} GROUP BY p.id")], pieces=[f"SELECT {person}_id, COUNT(*) FROM {events} GROUP BY {person}_id"], draft=lost, need=walked)
    ask("lost rows", f"How many {events} has a {person} on average?", f"SELECT 1.0 * (SELECT COUNT(*) FROM {events}) / COUNT(*) FROM {people}",
        [("wrong join", f"SELECT 1.0 * COUNT(*) / COUNT(DISTINCT p.id) FROM {join_e}"), ("wrong aggregation", f"SELECT AVG(n) FROM (SELECT COUNT(*) n FROM {left} GROUP BY p.id)")],
        pieces=[f"SELECT COUNT(*) FROM {events}"], need=walked)

    # A habit of SQLite: an example that is run shows it.
    whole = f"SELECT SUM({state} = '{done}') / COUNT(*) FROM {events}"
    ask("habit of SQLite", f"What share of the {events} has the {state} '{done}', as a number between 0 and 1?", f"SELECT 1.0 * SUM({state} = '{done}') / COUNT(*) FROM {events}",
        [("wrong aggregation", whole), ("wrong aggregation", f"SELECT 100 * SUM({state} = '{done}') / COUNT(*) FROM {events}")], pieces=[f"SELECT COUNT(*) FROM {events} WHERE {state} = '{done}'"], shots=["SELECT 3 / 8"], need="3 / 8\n0")
    ask("habit of SQLite", f"How many {people} do not come from '{place_of}'? Those whose {place} is not known count, too.", f"SELECT COUNT(*) FROM {people} WHERE {place} IS NOT '{place_of}'",
        [("missing filter", f"SELECT COUNT(*) FROM {people} WHERE {place} <> '{place_of}'"), ("missing filter", f"SELECT COUNT({place}) FROM {people}")],
        pieces=[f"SELECT COUNT(*) FROM {people} WHERE {place} = '{place_of}'"], shots=["SELECT NULL <> 'x'", each_place], need="NULL <> 'x'\nNULL")

    # Nothing shows what is meant.
    ask("not told", f"How many {people} are regulars?", f"SELECT COUNT(*) FROM ({per_person}) WHERE n >= 5",
        [("missing filter", f"SELECT COUNT(DISTINCT {person}_id) FROM {events}"), ("off by one", f"SELECT COUNT(*) FROM ({per_person}) WHERE n >= 4"), ("off by one", f"SELECT COUNT(*) FROM ({per_person}) WHERE n >= 2")],
        pieces=[per_person], draft=f"SELECT COUNT(*) FROM {events} GROUP BY {person}_id", shots=[each_kind], need="regular means")
    return q


def main():
    rows, table = [], Counter()
    for name in db.NAMES:
        base = db.database(name)
        for one in templates(name):
            need = one["need"]() if callable(one["need"]) else one["need"]
            gold = db.query(base, one["gold"])
            for error, sql in one["wrong"]:
                try:
                    wrong = db.query(base, sql)
                    assert error != "does not run" and not db.same(gold, wrong), (name, one["asks"], sql, gold)
                except sqlite3.Error:
                    assert error == "does not run", (name, sql)
            row = {
                "id": f"d{len(rows) + 1:03d}", "database": name, "kind": one["kind"], "asks": one["asks"], "hint": one["hint"],
                "question": f"{db.schema(name)}\n{'Hint: ' + one['hint'] + chr(10) if one['hint'] else ''}Write one query for SQLite. {one['asks']}",
                "answer": one["gold"], "wrong": [sql for _, sql in one["wrong"]], "errors": [error for error, _ in one["wrong"]],
                "plan": [{"finds": need}] if need else [],
                "parts": {"pieces": {"gold": "\n".join(one["pieces"])}, "steps": {"gold": "\n".join(walk(one["draft"]))}, "examples": {"gold": "\n".join(one["shots"])}},
            }
            rows.append(row)
            for who in row["parts"]:
                text = answers(base, row["parts"][who]["gold"].splitlines())
                table[one["kind"], who] += one["kind"] in ("value", "error") or not need or need.lower() in text.lower()
            assert not need or need.lower() not in row["question"].lower(), (name, one["asks"], need)
    with open(OUT / "questions.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        print(f"{kind:16}", {who: table[kind, who] for who in ("pieces", "steps", "examples")}, "of", sum(row["kind"] == kind for row in rows))
    print(Counter(error for row in rows for error in row["errors"]))


def files():
    """The databases in one file, and their texts as documents."""
    path = OUT / "databases.sqlite"
    path.unlink(missing_ok=True)
    whole, texts = sqlite3.connect(path), []
    whole.execute("PRAGMA page_size = 1024")
    for name in db.NAMES:
        base = db.database(name)
        whole.executescript("\n".join(line for line in base.iterdump() if not line.startswith(("BEGIN", "COMMIT"))))
        one = db.NAMES[name]
        for table, column in ((one["people"][0], one["people"][1]), (one["things"][0], one["things"][1]), (one["things"][0], "name")):
            for (value,) in base.execute(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1"):
                texts.append({"id": f"{table}.{column}-{len(texts)}", "text": f"{table}.{column} has the value '{value}'"})
    whole.commit()
    whole.close()
    content = bytearray(path.read_bytes())
    content[24:28] = content[92:96] = bytes(4)  # counters of changes
    content[96:100] = bytes(4)  # version of SQLite
    path.write_bytes(content)
    with open(OUT / "values.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for text in texts:
            file.write(json.dumps(text) + "\n")


if __name__ == "__main__":
    files()
    main()
