#!/usr/bin/env python3
"""Makes data/insights/tables.jsonl: 20 tables of business data with planted insights, and questions that lead to them.

A plant changes rows of a drawn table; its `undo` (row, column, value before) takes the change back. In 14 tables some insights lie behind others: they show in a part of the table
only, and which part is known when the first has been found. In 6 tables one breakdown shows all.
"""

import json
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "insights"
sys.path.insert(0, str(OUT))
sys.dont_write_bytecode = True
import check as insights  # noqa: E402

THEMES = [  # rows, group, its values, person, level, its values, value
    ("incidents", "category", "printer network database mail access laptop".split(), "assignee", "priority", "low normal urgent".split(), "hours"),
    ("expenses", "department", "legal research sales support finance transport".split(), "employee", "kind", "travel goods training".split(), "amount"),
    ("orders", "region", "coast hills lakes valley harbour plains".split(), "seller", "channel", "shop phone web".split(), "value"),
    ("repairs", "line", "press oven mixer cutter packer drill".split(), "technician", "shift", "early late night".split(), "minutes"),
]
PEOPLE = "Ada Bela Cato Dora Egon Fina Gero".split()
MONTHS = [f"2024-{m:02}" for m in range(1, 9)]


class Dice:
    """Random numbers that do not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def of(self, options):
        return options[self.below(len(options))]


def one(n, theme, chain):
    rows_word, group, groups, person, level, levels, value = theme
    dice = Dice(900 + n)
    columns = ["id", "month", group, person, level, value]
    rows = [[i + 1, dice.of(MONTHS), dice.of(groups), dice.of(PEOPLE), dice.of(levels), 20 + dice.below(21)] for i in range(96)]
    order = list(groups)
    for i in range(5, 0, -1):
        j = dice.below(i + 1)
        order[i], order[j] = order[j], order[i]
    leader, riser, odd = order[:3]
    start, boss, top_level, peak = dice.of(MONTHS[3:6]), dice.of(PEOPLE), dice.of(levels), dice.of(MONTHS)
    undo = {}

    def plant(name, change):
        """Changes rows, and keeps how to take that back."""
        undo[name] = []
        for row in rows:
            column, new = change(row) or (None, None)
            if column is not None and row[column] != new:
                old = row[column]
                undo[name].append([row[0], columns[column], old])
                row[column] = new

    plant("leader", lambda r: (2, leader) if r[0] % 6 == 1 else None)
    if chain:  # what is planted in a part of the table is not to show in the whole
        others_of = {name: [v for v in values if v != name] for values in (PEOPLE, MONTHS) for name in values}
        for r in rows:
            if r[1] == peak and r[2] != leader and r[0] % 4:
                r[1] = dice.of(others_of[peak])
            if r[3] == boss and r[0] % 4:
                r[3] = dice.of(others_of[boss])
            if r[2] == odd:
                r[5] += 25
        plant("peak", lambda r: (1, peak) if r[2] == leader and r[0] % 12 == 1 else None)
        plant("start", lambda r: (2, riser) if r[1] >= start and r[0] % 7 == 3 else None)
        plant("rise", lambda r: (5, r[5] * 3 if r[1] >= start else r[5] // 3) if r[2] == riser else None)
        plant("boss", lambda r: (3, boss) if r[2] == riser and r[1] >= start and r[0] % 3 else None)
        plant("outlier", lambda r: (5, 990 + n) if r[0] == 41 and r[2] != riser else None)
    else:
        plant("dear", lambda r: (5, r[5] + 30) if r[2] == odd else None)
    if n % 2:
        plant("level", lambda r: (5, r[5] + 25) if r[4] == top_level and r[5] < 500 else None)

    late, early = f"CASE WHEN month >= '{start}' THEN min({value}, 200) END", f"CASE WHEN month < '{start}' THEN min({value}, 200) END"
    said = {  # sentence with {}, query; the value completes the sentence
        "most": (f"Most {rows_word} are of the {group} {{}}.", f"SELECT {group} FROM t GROUP BY {group} ORDER BY COUNT(*) DESC LIMIT 1"),
        "rise": (f"From {start} on the mean {value} {{}}.", f"SELECT CASE WHEN AVG({late}) > 1.25 * AVG({early}) THEN 'rises' ELSE 'stays' END FROM t"),
        "driver": (f"The rise of {value} comes from the {group} {{}}.", f"SELECT {group} FROM t GROUP BY {group} ORDER BY AVG({late}) - AVG({early}) DESC LIMIT 1"),
        "boss": (f"Behind the rise of {value} in {riser} is the {person} {{}}.", f"SELECT {person} FROM t WHERE {group} = '{riser}' AND month >= '{start}' GROUP BY {person} ORDER BY COUNT(*) DESC LIMIT 1"),
        "peak": (f"Most {rows_word} of {leader} are of {{}}.", f"SELECT month FROM t WHERE {group} = '{leader}' GROUP BY month ORDER BY COUNT(*) DESC LIMIT 1"),
        "outlier": (f"The largest {value} by far is that of the row {{}}.", f"SELECT id FROM t ORDER BY {value} DESC LIMIT 1"),
        "level": (f"The {level} with the highest mean {value} is {{}}.", f"SELECT {level} FROM t GROUP BY {level} ORDER BY AVG(min({value}, 200)) DESC LIMIT 1"),
        "dear": (f"The {group} with the highest mean {value} is {{}}.", f"SELECT {group} FROM t GROUP BY {group} ORDER BY AVG({value}) DESC LIMIT 1"),
        "rows": (f"There are {{}} {rows_word}.", "SELECT COUNT(*) FROM t"),
        "busy": (f"The {person} with most {rows_word} is {{}}.", f"SELECT {person} FROM t GROUP BY {person} ORDER BY COUNT(*) DESC LIMIT 1"),
        "month": (f"The month with most {rows_word} is {{}}.", "SELECT month FROM t GROUP BY month ORDER BY COUNT(*) DESC LIMIT 1"),
        "mean": (f"The mean {value} is {{}}.", f"SELECT ROUND(AVG({value}), 1) FROM t"),
    }
    asked = {
        "most": (f"Which {group} has most {rows_word}?", f"SELECT {group}, COUNT(*) n FROM t GROUP BY {group} ORDER BY n DESC"),
        "rise": (f"How does the mean {value} develop over the months?", f"SELECT month, ROUND(AVG({value}), 1) FROM t GROUP BY month"),
        "driver": (f"Which {group} is behind the rise of {value} from {start} on?", f"SELECT {group}, ROUND(AVG({late}) - AVG({early}), 1) d FROM t GROUP BY {group} ORDER BY d DESC"),
        "boss": (f"Which {person} is behind the rise in {riser}?", f"SELECT {person}, COUNT(*) n FROM t WHERE {group} = '{riser}' AND month >= '{start}' GROUP BY {person} ORDER BY n DESC"),
        "peak": (f"In which month are most {rows_word} of {leader}?", f"SELECT month, COUNT(*) n FROM t WHERE {group} = '{leader}' GROUP BY month ORDER BY n DESC"),
        "outlier": (f"Which {rows_word} have the largest {value}?", f"SELECT id, {value} FROM t ORDER BY {value} DESC LIMIT 3"),
        "level": (f"Does the {level} matter for the {value}?", f"SELECT {level}, ROUND(AVG(min({value}, 200)), 1) m FROM t GROUP BY {level} ORDER BY m DESC"),
        "dear": (f"Which {group} has the highest mean {value}?", f"SELECT {group}, ROUND(AVG({value}), 1) m FROM t GROUP BY {group} ORDER BY m DESC"),
        "rows": (f"How many {rows_word} are there?", "SELECT COUNT(*) FROM t"),
        "busy": (f"Which {person} has most {rows_word}?", f"SELECT {person}, COUNT(*) n FROM t GROUP BY {person} ORDER BY n DESC"),
        "month": (f"Which month has most {rows_word}?", "SELECT month, COUNT(*) n FROM t GROUP BY month ORDER BY n DESC"),
        "mean": (f"What is the mean {value}?", f"SELECT ROUND(AVG({value}), 1) FROM t"),
    }
    follows = {"rise": "driver", "driver": "boss", "most": "peak"} if chain else {}
    others = {group: groups, person: PEOPLE, level: levels, "month": MONTHS}
    item = {"columns": columns, "rows": rows}
    whole = insights.table(item)
    lines, parts, plants = {}, {}, []
    for key, (sentence, sql) in said.items():
        truth = insights.first(whole, sql)
        lines[key] = f"{sentence.format(truth)} [{sql} => {truth}]"
        if not chain and key in ("driver", "boss", "peak"):
            continue
        column = sql.split()[1]
        false = [v for v in others.get(column, []) if v != truth] or {"id": ["7", "12"], "CASE": ["stays" if truth == "rises" else "rises"], "COUNT(*)": ["90"]}.get(column, ["30.5", "51.5"])
        shown = insights.run_query(item, asked[key][1])[1].splitlines()[:8 if key == "rise" else 2]
        text = asked[key][0]
        parts[text] = {"gold": asked[key][1]}
        parts[f"insight: {text}"] = {"gold": lines[key], "wrong": [f"{sentence.format(v)} [{sql} => {v}]" for v in false[:1]], "plan": [{"finds": line} for line in shown]}
        other = [asked["rows"][0], asked["mean"][0]]
        if key in follows and truth == {"rise": "rises", "driver": riser, "most": leader}[key]:
            parts[f"next: {text}"] = {"gold": asked[follows[key]][0], "wrong": other, "plan": [{"finds": sentence.format(truth)}]}
        else:
            parts[f"next: {text}"] = {"gold": asked["busy" if key != "busy" else "month"][0]}
    for key, of in [("most", "leader"), ("rise", "rise"), ("driver", "rise"), ("boss", "boss"), ("peak", "peak"), ("outlier", "outlier"), ("level", "level"), ("dear", "dear")]:
        truth = insights.first(whole, said[key][1])
        planted = {"most": leader, "rise": "rises", "driver": riser, "boss": boss, "peak": peak, "outlier": "41", "level": top_level, "dear": odd}[key]
        if undo.get(of) and truth == planted and insights.first(insights.table(item, undo[of]), said[key][1]) != truth:
            plants.append({"key": key, "name": planted, "text": said[key][0].format(planted), "undo": undo[of]})
    breakdown = f"SELECT {group}, COUNT(*) n, ROUND(AVG({value}), 1) m FROM t GROUP BY {group} ORDER BY n DESC"
    parts["single"] = {"gold": breakdown}
    parts["insight: single"] = {"gold": f"{lines['most']}\n{lines['dear']}", "wrong": [parts[f"insight: {asked['most'][0]}"]["wrong"][0]], "plan": [{"finds": line} for line in insights.run_query(item, breakdown)[1].splitlines()]}
    parts["roots"] = {"gold": "\n".join(asked[key][0] for key in (("rise", "most", "level") if chain else ("most", "dear", "level")))}
    parts["broad"] = {"gold": "\n".join(asked[key][0] for key in ("rise", "most", "level", "dear", "rows", "busy", "month", "mean", "outlier"))}
    return {
        "id": f"i{n:02}", "theme": rows_word, "kind": "chain" if chain else "flat",
        "question": f"A table t of {rows_word} has the columns {', '.join(columns)}. Goal: find what a manager should know about {value} and {group}.",
        "answer": "\n".join(lines[p["key"]] for p in plants), "columns": columns, "rows": rows, "plants": plants, "parts": parts,
    }


def main():
    items = [one(n, THEMES[n % 4], n % 3 != 2) for n in range(20)]
    with open(OUT / "tables.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for item in items:
            result = insights.check(item, item["answer"])
            assert result["passed"], (item["id"], result)
            for key, part in item["parts"].items():
                if key.startswith("insight"):
                    for text in part.get("wrong", []):
                        assert insights.check(item, text)["measures"]["grounded"] == 0.0, (item["id"], text)
            print(item["id"], item["kind"], [plant.get("key") for plant in item["plants"]])
            file.write(json.dumps(item, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
