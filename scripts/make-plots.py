#!/usr/bin/env python3
"""Makes systems/viscoder2/{svg,mermaid,vega-lite}.jsonl: twelve plots in each language, each with a right program and with spoilt ones.

Spoilt programs are of two kinds: loud ones, at which the renderer stops in a known line, and silent ones, which are drawn and show something else.
The renderer and the checker of the entry sort them.
"""

import importlib.util
import json
import random
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "systems" / "viscoder2"
spec = importlib.util.spec_from_file_location("check", HERE / "check.py")
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)

TREES = "Alder Ash Beech Birch Cedar Elm Fir Larch Lime Maple Oak Pine Rowan Spruce Willow Yew".split()
TOWNS = "Altau Birkfeld Dornhafen Eichbruck Felsmund Goldau Hochfeld Ivenstadt Kaltmund Lindau Marbruck Niedfeld".split()
STEPS = "Order Pack Ship Pay Refund Review Print Sign File Scan Count Weigh Sort Store Clean Test".split()
WHAT = ["trees planted", "boats sold", "visitors a day", "letters sent", "lamps made", "tons of salt"]


def pick(rng, names, n):
    return rng.sample(names, n)


def svg_task(rng, turn):
    chart = ["bars", "points", "line"][turn % 3]
    if chart == "bars":
        names = pick(rng, TREES, rng.randint(3, 5))
        data = [[name, rng.randint(4, 19)] for name in names]
        listed = ", ".join(f"{name} {value}" for name, value in data)
        question = (f"Draw a bar chart in SVG of {rng.choice(WHAT)}: {listed}. Each bar is a <rect> of class \"bar\", with a <text> centred below it "
                    "that holds its name.")
        lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="320" height="240">']
        for i, (name, value) in enumerate(data):
            lines.append(f'  <rect class="bar" x="{20 + 60 * i}" y="{210 - 10 * value}" width="40" height="{10 * value}"/>')
            lines.append(f'  <text x="{40 + 60 * i}" y="226" text-anchor="middle">{name}</text>')
        lines.append('  <line x1="10" y1="210" x2="310" y2="210" stroke="black"/>')
    else:
        data = sorted([x, rng.randint(1, 20)] for x in rng.sample(range(1, 25), rng.randint(5, 7)))
        while len({y for _, y in data}) < 4:
            data = [[x, rng.randint(1, 20)] for x, _ in data]
        listed = ", ".join(f"({x}, {y})" for x, y in data)
        shape = "one <circle> a point, in this order" if chart == "points" else "one <polyline> through the points, in this order"
        question = f"Draw a {'scatter plot' if chart == 'points' else 'line chart'} in SVG of these points (x, y), with y upwards: {listed}. Use {shape}."
        lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="320" height="240">', '  <line x1="10" y1="220" x2="310" y2="220" stroke="black"/>']
        places = [(10 + 12 * x, 220 - 10 * y) for x, y in data]
        if chart == "points":
            lines += [f'  <circle cx="{x}" cy="{y}" r="3"/>' for x, y in places]
        else:
            lines.append('  <polyline fill="none" stroke="black" points="' + " ".join(f"{x},{y}" for x, y in places) + '"/>')
        lines.append('  <text x="160" y="236">x</text>')
    lines.append("</svg>")
    return question, {"chart": chart, "data": data}, lines


def mermaid_task(rng, turn):
    chart = ["flowchart", "pie", "sequence"][turn % 3]
    if chart == "flowchart":
        names = pick(rng, STEPS, rng.randint(4, 6))
        edges = [[names[i], "", names[i + 1]] for i in range(len(names) - 1)]
        a, b = rng.sample(range(len(names)), 2)
        edges.append([names[max(a, b)], rng.choice(["failed", "again", "missing"]), names[min(a, b)]])
        listed = "; ".join(f"{a} to {b}" + (f" (labelled {said})" if said else "") for a, said, b in edges)
        question = f"Draw a flowchart in Mermaid, from the top down, with these arrows and no others: {listed}."
        short = {name: f"n{i}" for i, name in enumerate(names, 1)}
        lines = ["flowchart TD"] + [f"  {short[name]}[{name}]" for name in names]
        lines += [f"  {short[a]} -->{f'|{said}|' if said else ''} {short[b]}" for a, said, b in edges]
        return question, {"chart": chart, "data": edges}, lines
    if chart == "pie":
        data = [[name, rng.randint(3, 60)] for name in pick(rng, TOWNS, rng.randint(4, 6))]
        listed = ", ".join(f"{name} {value}" for name, value in data)
        question = f"Draw a pie chart in Mermaid of {rng.choice(WHAT)}: {listed}."
        return question, {"chart": chart, "data": data}, ["pie showData"] + [f'  "{name}" : {value}' for name, value in data]
    names = pick(rng, TREES, 3)
    data = []
    for said in pick(rng, STEPS, rng.randint(4, 6)):
        a, b = rng.sample(names, 2)
        data.append([a, b, said.lower()])
    listed = "; ".join(f"{a} says {said} to {b}" for a, b, said in data)
    question = f"Draw a sequence diagram in Mermaid of these messages, in this order, with ->> as arrow: {listed}."
    return question, {"chart": chart, "data": data}, ["sequenceDiagram"] + [f"  participant {name}" for name in names] + [f"  {a}->>{b}: {said}" for a, b, said in data]


def vega_task(rng, turn):
    chart = ["bars", "points", "line"][turn % 3]
    what = rng.choice(["count", "height", "price"])
    if chart == "bars":
        rows = [{"name": name, what: rng.randint(4, 90)} for name in pick(rng, TREES, rng.randint(3, 6))]
        fields, marks, types = ["name", what], ["bar"], [["nominal", "ordinal"], ["quantitative"]]
    else:
        rows = [{"day": day, what: rng.randint(1, 60)} for day in sorted(rng.sample(range(1, 29), rng.randint(4, 7)))]
        fields, marks = ["day", what], ["point", "circle", "square"] if chart == "points" else ["line"]
        types = [["quantitative", "ordinal"], ["quantitative"]]
    listed = ", ".join(f"{row[fields[0]]} {row[fields[1]]}" for row in rows)
    named = {"bars": "bar chart", "points": "scatter plot", "line": "line chart"}[chart]
    question = f"Draw a {named} in Vega-Lite of {what} (on y) by {fields[0]} (on x): {listed}. Give the data inline, in `data.values`."
    lines = ["{", '  "$schema": "https://vega.github.io/schema/vega-lite/v5.json",', '  "data": {', '    "values": [']
    lines += [f"      {json.dumps(row)}{',' if row is not rows[-1] else ''}" for row in rows]
    lines += ["    ]", "  },", f'  "mark": "{marks[0]}",', '  "encoding": {',
              f'    "x": {{"field": "{fields[0]}", "type": "{types[0][0]}"}},', f'    "y": {{"field": "{what}", "type": "quantitative"}}', "  }", "}"]
    data = [[row[fields[0]], row[what]] for row in rows]
    return question, {"chart": chart, "data": data, "marks": marks, "channels": ["x", "y"], "types": types}, lines


# What goes wrong in a line: a pattern, and what it is replaced by.
ERRORS = {
    "svg": [
        (r'"/>$', '">'), (r"/>$", ">"), (r"</text>$", "<text>"), (r"</text>$", "</txt>"), (r"<rect", "<bar"), (r"<circle", "<point"),
        (r"<polyline", "<polygonal"), (r' y="(\d+)"', r' y="\1'), (r' x="(\d+)"', r" x=\1"), (r' cx="(\d+)"', r" cx=\1"), (r' cy="(\d+)"', ""),
        (r' r="3"', ' r="small"'), (r' height="(\d+)"/', r' height="-\1"/'), (r' width="40"', ' width="auto"'), (r" (\d+),(\d+)\"", r' \1"'), (r" xmlns=\S+", ""),
        (r",(\d+) ", r" "), (r"stroke=", "stroke"), (r' height="(\d)(\d+)"/', r' height="\g<2>\1"/'), (r' cy="(\d+)"', r' cy="9\1"'), (r">([A-Z][a-z]+)<", r">\1s<"),
        (r' cx="(\d+)"', r' cx="1\1"'), (r"(\d+),(\d+) (\d+),(\d+)", r"\1,\4 \3,\2"), (r' class="bar"', ' class="bars"'),
    ],
    "mermaid": [
        (r"-->", "--"), (r"-->", "->"), (r"-->", "=>"), (r"->>", "=>"), (r"->>", "->"), (r"\[([A-Za-z]+)\]", r"[\1"), (r"\|(\w+)\|", r"|\1"), (r'"(\w+)"', r'"\1'),
        (r'"(\w+)"', r"\1"), (r" : (\d+)", r" \1"), (r" : (\d+)", r" : \1%"), (r" : (\d+)", r" : -\1"), (r": (\w+)$", r"\1"), (r"^pie", "piechart"),
        (r"^flowchart TD", "flowchart down"), (r"^sequenceDiagram", "sequence"), (r"participant", "actor:"), (r" : (\d+)", r" : 1\1"), (r"(n\d) (-->\S*) (n\d)", r"\3 \2 \1"),
        (r"(\w+)->>(\w+)", r"\2->>\1"), (r"\[([A-Z])", r"[Re\1"), (r": (\w+)$", r": not \1"), (r'"([A-Z])', r'"New \1'),
    ],
    "vega-lite": [
        (r"\},$", "}"), (r"\}$", "},"), (r'"(\w+)":', r"\1:"), (r'"(\w+)":', r"'\1':"), (r'": (\d+)\}', r'": \1'), (r'"mark": "\w+"', '"mark": "chart"'), (r'"mark": "\w+"', '"mark": "columns"'),
        (r'"quantitative"', '"numeric"'), (r'"nominal"', '"category"'), (r'"type": "quantitative"', '"type": quantitative'), (r'^    "x"', '    "xAxis"'), (r'^    "y"', '    "vertical"'),
        (r'"encoding"', '"encodings"'), (r'"values"', '"rows"'), (r'"data": \{', '"data": {{'), (r'"field": "(\w+)"', r'"column": "\1"'), (r": (\d+)\}", r": 1\1}"), (r'"field": "(\w+)"', r'"field": "\1s"'),
        (r'"mark": "\w+"', '"mark": "area"'), (r'"type": "quantitative"\}$', '"type": "nominal"}'), (r'": "([A-Z])', r'": "New \1'),
    ],
}


def rendered(row, program):
    verdict = checker.render(row, program)
    return verdict["passed"], verdict["text"]


def spoilt(language, task, lines):
    """All programs with one error: loud ones by the line at which the renderer stops, and silent ones."""
    loud, silent = {}, []
    row = {"language": language, "task": task}
    for at, line in enumerate(lines):
        for pattern, other in ERRORS[language]:
            bad = re.sub(pattern, other, line, count=1)
            if bad == line:
                continue
            program = "\n".join([*lines[:at], bad, *lines[at + 1:]])
            passed, said = rendered(row, program)
            if passed and not checker.check(row, program)[0]:
                silent.append(program)
            elif not passed:
                loud.setdefault(int(re.search(r"line (\d+):", said).group(1)), []).append((at, bad, program))
    return loud, silent


# What is planted in the twelve tasks of a language.
KINDS = ["none", "one", "two", "mixed", "one", "none", "two", "silent", "one", "mixed", "none", "one"]


def rows(language, make, rng):
    found, seen = [], set()
    while len(found) < len(KINDS):
        kind = KINDS[len(found)]
        question, task, lines = make(rng, len(found) + len(found) // 3)
        row = {"language": language, "task": task}
        right = "\n".join(lines)
        passed, said = checker.check(row, right)
        assert passed, (question, right, said)
        loud, silent = spoilt(language, task, lines)
        many = sorted(line for line, programs in loud.items() if len(programs) >= 2)
        if question in seen or not many or not silent:
            continue
        places = []
        if kind == "silent":
            wrong = rng.sample(silent, min(2, len(silent)))
        elif kind == "two":
            # Both errors, the first alone, and the second alone: the renderer stops at the first that it comes to.
            pairs = [(a, b) for a in many for b in many if a < b and {at for at, _, _ in loud[a]}.isdisjoint({at for at, _, _ in loud[b]})]
            if not pairs:
                continue
            places = list(rng.choice(pairs))
            (first, bad, alone), (second, worse, other) = (rng.choice(loud[place]) for place in places)
            both = "\n".join(worse if i == second else bad if i == first else line for i, line in enumerate(lines))
            stops = re.search(r"line (\d+):", rendered(row, both)[1]).group(1)
            if int(stops) not in places:
                continue
            wrong = [both, alone, other]
        else:
            places = [rng.choice(many)]
            wrong = [program for _, _, program in rng.sample(loud[places[0]], 2)]
            if kind == "mixed":
                wrong.append(rng.choice(silent))
        needs = {"none": [], "silent": ["what the picture should show"]}.get(kind, [f"line {place}:" for place in places])
        seen.add(question)
        for program in wrong:
            assert not checker.check(row, program)[0]
        found.append({
            "id": f"{language}-{len(found) + 1:02d}", "question": question, "language": language, "task": task, "planted": kind,
            "difficulty": round(rng.uniform(-1, 1), 1), "answer": right, "wrong": wrong, "needs": [{"finds": one} for one in needs]})
    return found


def main():
    for language, make in [("svg", svg_task), ("mermaid", mermaid_task), ("vega-lite", vega_task)]:
        with open(HERE / f"{language}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows(language, make, random.Random(f"plots {language}")))


if __name__ == "__main__":
    main()
