"""Decides which planted insights a report recovers, by running its queries.

An insight is a line with a query in brackets and what it gives: `Most tickets are about printers. [SELECT ... => printers]`. It is true if the query
gives that value. It recovers a planted insight if it is true, names what was planted, and is not true of the same table without this plant.
"""

import re
import sqlite3


def table(row, undo=()):
    """The table of a data set, without some plants."""
    base = sqlite3.connect(":memory:")
    names = row["columns"]
    base.execute(f"CREATE TABLE t ({', '.join(names)})")
    base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", row["rows"])
    for key, column, before in undo:
        base.execute(f"UPDATE t SET {column} = ? WHERE id = ?", (before, key))
    return base


def first(base, sql):
    """The first value of a query as text, or None if it does not run."""
    base.execute("PRAGMA query_only = 1")
    left = [200]
    base.set_progress_handler(lambda: left.__setitem__(0, left[0] - 1) or left[0] < 0, 10_000)
    try:
        found = base.execute(sql).fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else str(found[0])


def statements(report):
    """The insights of a report: sentence, query, value."""
    return [(line.split("[")[0].strip(), *match.groups()) for line in report.splitlines() if (match := re.search(r"\[(SELECT .*) => (.*?)\]", line))]


def overlap(planted, said):
    """ROUGE-1 recall: the share of the planted insight's words that are in a sentence."""
    words = re.findall(r"[\w-]+", planted.lower())
    return sum(word in re.findall(r"[\w-]+", said.lower()) for word in words) / len(words)


def check(row, answer):
    """Recall of the planted insights; how many statements are true; how often a judge by words agrees about what was recovered."""
    said, whole = list(dict.fromkeys(statements(answer))), table(row)
    true = [one for one in said if first(whole, one[1]) == one[2]]
    found, agreed = [], 0
    for plant in row["plants"]:
        without = table(row, plant["undo"])
        hits = [one for one in true if plant["name"] in one[2] and first(without, one[1]) != one[2]]
        judged = any(overlap(plant["text"], one[0]) >= 0.8 for one in said)
        agreed += judged == bool(hits)
        found.append(bool(hits))
    recall = sum(found) / len(found)
    return {
        "score": recall, "passed": all(found), "text": f"{sum(found)} of {len(found)} planted insights",
        "measures": {"recall": recall, "grounded": len(true) / len(said) if said else 0.0, "size": len(said), "value": agreed / len(found)},
    }


def describe(row):
    """The columns of the table, with examples."""
    base = table(row)
    lines = [f"table t, {len(row['rows'])} rows"]
    for name in row["columns"]:
        values = [str(value) for (value,) in base.execute(f"SELECT DISTINCT {name} FROM t LIMIT 4")]
        lines.append(f"{name}: {', '.join(values)} ...")
    return "\n".join(lines)


def run_query(row, code):
    """Runs a query and shows its first rows."""
    sql = re.sub(r"^```\w*\n|```$", "", code.strip())
    base = table(row)
    base.execute("PRAGMA query_only = 1")
    try:
        rows = base.execute(sql).fetchmany(12)
    except sqlite3.Error as error:
        return False, f"error: {error}"
    return True, "\n".join(" | ".join(str(value) for value in one) for one in rows)
