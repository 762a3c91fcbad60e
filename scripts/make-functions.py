#!/usr/bin/env python3
"""Makes data/functions: tasks that no tool of a usual set does, but a function of a few lines.

sessions.jsonl: rows of eight tasks of three functions, of which one is composed of the others, and of a sum. boxes.jsonl: a student's task,
and three tasks of a teacher in the same field, for which it makes tools. Every function has drafts with a planted error: one that the
example shows, or one that only other arguments show. The results are computed here by running the functions.
"""

import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "functions"
NAMES = "karst orlan bremer tolva quist harm velde sorin nyman falster ostrow pellin rask wendt lindor marek".split()

# name: (parameters, description, question, body, shown error, hidden error). An error is a replacement in the body.
FUNCTIONS = {
    "check_digit": (
        "code", "The check digit of a crate: letters count from one, each times its place, modulo eleven.", "What is the check digit of the crate {0}?",
        "return sum(place * (ord(sign) - 96) for place, sign in enumerate(code, 1)) % 11",
        ("% 11", "% 10"), ("(ord(sign) - 96)", "min(ord(sign) - 96, 18)")),
    "quay_sign": (
        "name", "The quay sign of a ship: its consonants in capitals, then the length of its name.", "What is the quay sign of the ship {0}?",
        "return ''.join(sign for sign in name if sign not in 'aeiou').upper() + str(len(name))",
        ("str(len(name))", "str(len(name) + 1)"), ("'aeiou'", "'aei'")),
    "squeezed": (
        "text", "The squeezed form of a signal: every run of one letter as the letter and its length.", "What is the squeezed form of the signal {0}?",
        "from itertools import groupby\n    return ''.join(sign + str(len(list(run))) for sign, run in groupby(text))",
        ("sign + str(len(list(run)))", "str(len(list(run))) + sign"), ("str(len(list(run)))", "str(min(len(list(run)), 3))")),
    "shifted": (
        "text", "The shifted form of a signal: every letter moved on by five places in the alphabet, round its end.", "What is the shifted form of the signal {0}?",
        "return ''.join(chr((ord(sign) - 97 + 5) % 26 + 97) if sign.isalpha() else sign for sign in text)",
        ("+ 5", "+ 6"), ("(ord(sign) - 97 + 5) % 26", "min(ord(sign) - 97 + 5, 25)")),
    "watch": (
        "hour", "The watch of an hour: six watches a day of four hours, each with its bell.", "Which watch and bell is hour {0} of the year?",
        "return f'{hour % 24 // 4 + 1}/{hour % 4 + 1}'",
        ("hour % 4 + 1", "hour % 4"), ("hour % 24 // 4 + 1", "hour // 4 % 7 + 1")),
    "numeral": (
        "number", "The numeral of a buoy: its number written with I, V, X and L.", "What is the numeral of buoy {0}?",
        "signs = [(50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]\n    text = ''\n    for value, sign in signs:\n"
        "        while number >= value:\n            text, number = text + sign, number - value\n    return text",
        ("(4, 'IV')", "(4, 'IIII')"), ("(40, 'XL'), ", "")),
    "woven": (
        "text", "The woven form of a name: its letters taken in turn from the front and from the back.", "What is the woven form of the name {0}?",
        "text, out = list(text), ''\n    while text:\n        out += text.pop(0) + (text.pop() if text else '')\n    return out",
        ("text.pop(0) + (text.pop() if text else '')", "text.pop() + (text.pop(0) if text else '')"), ("if text else ''", "if len(text) > 1 else ''")),
    "drift": (
        "route", "The drift of a route such as n3e4: how many fields lie between its start and its end.", "What is the drift of the route {0}?",
        "import re\n    east = north = 0\n    for way, steps in re.findall(r'([nesw])(\\d+)', route):\n        east += int(steps) * {'e': 1, 'w': -1}.get(way, 0)\n"
        "        north += int(steps) * {'n': 1, 's': -1}.get(way, 0)\n    return abs(east) + abs(north)",
        ("abs(east) + abs(north)", "max(abs(east), abs(north))"), ("{'e': 1, 'w': -1}", "{'e': 1, 'w': 1}")),
}
# name: (description, question, body, the two functions it calls)
COMPOSED = {
    "crate_label": ("The crate label of a crate: its quay sign, a dash and its check digit.", "What is the crate label of the crate {0}?",
                    "return quay_sign(text) + '-' + str(check_digit(text))", ["quay_sign", "check_digit"]),
    "sealed": ("The sealed form of a signal: the shifted form of its squeezed form.", "What is the sealed form of the signal {0}?",
               "return shifted(squeezed(text))", ["squeezed", "shifted"]),
    "buoy_mark": ("The mark of a route: the numeral of its drift, as on a buoy.", "What is the mark of the route {0}, as on a buoy?",
                  "return numeral(drift(text))", ["drift", "numeral"]),
    "ship_song": ("The song of a ship: the quay sign of the woven form of its name.", "What is the song of the ship {0}, by its woven name?",
                  "return quay_sign(woven(text))", ["woven", "quay_sign"]),
}


def source(name, change=None):
    if name in COMPOSED:
        about, _, body, _ = COMPOSED[name]
        taken = "text"
    else:
        taken, about, _, body, _, _ = FUNCTIONS[name]
    if change is not None:
        assert change[0] in body, (name, change)
        body = body.replace(*change)
    return f'def {name}({taken}):\n    """{about}"""\n    {body}'


def argument(rng, name):
    if name in ("watch",):
        return rng.randint(30, 400)
    if name in ("numeral",):
        return rng.randint(11, 39)
    if name in ("drift", "buoy_mark"):
        return "".join(f"{way}{rng.randint(1, 9)}" for way in rng.sample("nesw", 3))
    if name in ("squeezed", "shifted", "sealed"):
        return "".join(rng.choice("abctuvz") * rng.randint(1, 5) for _ in range(3))
    return rng.choice(NAMES) + rng.choice(NAMES)[:3]


def result(name, value, *changed):
    scope = {}
    for one in [*COMPOSED.get(name, ("", "", "", [name]))[3], name]:
        exec(source(one), scope)
    for text in changed:
        exec(text, scope)
    try:
        return str(scope[name](value))
    except Exception as error:
        return type(error).__name__


def draw(rng, name, apart=(), unlike=None, like=None):
    """An argument that is none of others, whose result a change alters (`unlike`) or leaves (`like`)."""
    for _ in range(10_000):
        value = argument(rng, name)
        right = result(name, value)
        if value in apart or (unlike and result(name, value, unlike) == right) or (like and result(name, value, like) != right):
            continue
        return value, right
    raise AssertionError((name, unlike, like))


def question(name, value):
    return (COMPOSED[name][1] if name in COMPOSED else FUNCTIONS[name][2]).format(value)


def sessions(rng):
    rows = []
    for i in range(12):
        composed = list(COMPOSED)[i % 4]
        first, second = COMPOSED[composed][3]
        # A third of the sessions have an error that the example does not show.
        hidden = i % 3 == 2
        tasks, parts, given = [], {}, set()
        for n, name in enumerate([first, second, None, composed, first, composed, second, composed], 1):
            if name is None:
                a, b = rng.randint(120, 980), rng.randint(12, 98)
                tasks.append({"text": f"What is {a} times {b}?", "function": "", "example": {"call": "0", "result": "0"}, "result": str(a * b)})
                parts[f"choice{n}"] = {"gold": "calculate", "wrong": ["new"], "plan": []}
                parts[f"work{n}"] = {"gold": str(a * b), "wrong": [str(a * b + 10)],
                                     "plan": [{"tool": "calculate", "arguments": {"expression": f"{a} * {b}"}, "finds": str(a * b)}]}
                continue
            again = any(task["function"] == name for task in tasks)
            slips = name not in COMPOSED
            shown = source(name, FUNCTIONS[name][4]) if slips else None
            silent = source(name, FUNCTIONS[name][5]) if slips and hidden and name == second else None
            example = draw(rng, name, given, unlike=None if silent else shown, like=silent)
            given.add(example[0])
            value, right = draw(rng, name, given)
            given.add(value)
            tasks.append({"text": question(name, value), "function": name,
                          "example": {"call": f"{name}({example[0]!r})", "result": example[1]}, "result": right})
            parts[f"choice{n}"] = {"gold": "reuse" if again else "new", "wrong": ["new"], "plan": [{"finds": f"def {name}("}] if again else []}
            needs = [{"finds": f"def {base}("} for base in COMPOSED[name][3]] if not slips else [{"finds": f"expected {example[1]}"}]
            parts[f"make{n}"] = {"gold": source(name), "wrong": [silent or shown or source(name, ("return ", "return missing_of_"))], "plan": needs}
            parts[f"call{n}"] = {"gold": f"{name}({value!r})", "wrong": [f"{name}_of({value!r})"], "plan": [{"finds": f"def {name}("}]}
            # What a calculator and a search cannot show.
            parts[f"work{n}"] = {"gold": right, "wrong": [right[::-1] + "0", right + "1"], "plan": [{"finds": f"{name}({value!r}) = {right}"}]}
        texts = "\n".join(f"{n}. {task['text']}" for n, task in enumerate(tasks, 1))
        rows.append({"id": f"s{i + 1:02d}", "question": f"Answer these questions of the harbour.\n{texts}",
                     "answer": "\n".join(f"{n}: {task['result']}" for n, task in enumerate(tasks, 1)), "wrong": ["1: 0"],
                     "tasks": tasks, "parts": parts, "plan": []})
    return rows


def boxes(rng):
    rows, names = [], list(FUNCTIONS)
    for i in range(40):
        if i % 10 < 3:
            # The student can do this without any tool.
            a, b = rng.randint(12, 98), rng.randint(12, 98)
            name, ask, right, call = "", f"What is {a} times {b}?", str(a * b), f"{a} * {b}"
            chosen = rng.sample(names, 3)
            needs, wrong = [], [f"{a} + {b}"]
        else:
            name = names[i % len(names)]
            chosen = [name, *rng.sample([other for other in names if other != name], 2)]
            value, right = draw(rng, name)
            ask, call = question(name, value), f"{name}({value!r})"
            needs, wrong = [{"finds": f"def {name}("}], [f"len({str(value)!r})", f"{str(value)[::-1]!r}"]
            rng.shuffle(chosen)
        teacher, parts = [], {}
        for n, one in enumerate(chosen, 1):
            # In one of five the teacher's tool has an error that its own task does not show.
            silent = source(one, FUNCTIONS[one][5]) if rng.random() < 0.2 else None
            value_of, right_of = draw(rng, one, like=silent, unlike=source(one, FUNCTIONS[one][4]))
            taken = FUNCTIONS[one][0]
            body = source(one).replace(f"def {one}({taken}):", f"def {one}_of_this():").split("\n")
            fixed = "\n".join([body[0], body[1], f"    {taken} = {value_of!r}", *body[2:]])
            teacher.append({"text": question(one, value_of), "function": one, "call": f"{one}_of_this()", "result": right_of})
            parts[f"tool{n}"] = {"gold": fixed, "wrong": [fixed], "plan": []}
            parts[f"general{n}"] = {"gold": silent or source(one), "wrong": [fixed], "plan": [{"finds": f"def {one}_of_this("}]}
        parts["call"] = {"gold": call, "wrong": wrong, "plan": needs}
        rows.append({"id": f"b{i + 1:02d}", "question": ask, "answer": right, "wrong": [right + "0"], "plan": [],
                     "function": name, "lessons": "\n".join(f"{n}. {task['text']}" for n, task in enumerate(teacher, 1)), "teacher": teacher, "parts": parts})
    return rows


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for file, rows in [("sessions.jsonl", sessions(random.Random(20261129))), ("boxes.jsonl", boxes(random.Random(20261130)))]:
        (OUT / file).write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
