#!/usr/bin/env python3
"""Makes systems/fml-bench/tasks.jsonl: eight small problems of learning, a repository with six learners in pure Python, and the proposals of scripted agents.

Data are drawn with a fixed seed. Which learner and setting is best for which problem is not declared: proposals are trained.
"""

import json
import math
import random
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "systems" / "fml-bench"

LEARNERS = '''
"""Learners. Each takes settings and returns a function from examples to a predictor."""

import math
import random


def majority():
    def fit(examples):
        labels = [label for _, label in examples]
        most = max(sorted(set(labels)), key=labels.count)
        return lambda numbers: most
    return fit


def neighbours(k):
    if k < 1:
        raise ValueError("k must be positive")

    def fit(examples):
        def predict(numbers):
            near = sorted(examples, key=lambda example: sum((a - b) ** 2 for a, b in zip(numbers, example[0])))[:k]
            labels = [label for _, label in near]
            return max(sorted(set(labels)), key=labels.count)
        return predict
    return fit


def logistic(rate, epochs, quadratic=False):
    def spread(numbers):
        squares = [a * b for i, a in enumerate(numbers) for b in numbers[i:]] if quadratic else []
        return [1.0, *numbers, *squares]

    def fit(examples):
        rows = [(spread(numbers), label) for numbers, label in examples]
        weights = [0.0] * len(rows[0][0])
        for _ in range(epochs):
            for row, label in rows:
                margin = sum(w * x for w, x in zip(weights, row))
                if abs(margin) > 1e6:
                    raise OverflowError("the weights diverge")
                error = label - 1 / (1 + math.exp(-max(-30.0, min(30.0, margin))))
                weights = [w + rate * error * x for w, x in zip(weights, row)]
        return lambda numbers: int(sum(w * x for w, x in zip(weights, spread(numbers))) > 0)
    return fit


def quadratic(rate, epochs):
    return logistic(rate, epochs, quadratic=True)


def bayes(floor):
    def fit(examples):
        parts = {}
        for label in sorted({label for _, label in examples}):
            columns = list(zip(*[numbers for numbers, of in examples if of == label]))
            means = [sum(column) / len(column) for column in columns]
            spreads = [sum((x - m) ** 2 for x in column) / len(column) + floor for column, m in zip(columns, means)]
            parts[label] = (math.log(len(columns[0]) / len(examples)), means, spreads)

        def score(numbers, label):
            prior, means, spreads = parts[label]
            return prior - sum((x - m) ** 2 / (2 * s) + math.log(s) / 2 for x, m, s in zip(numbers, means, spreads))
        return lambda numbers: max(parts, key=lambda label: score(numbers, label))
    return fit


def tree(depth, least):
    def grow(examples, left):
        labels = [label for _, label in examples]
        most = max(sorted(set(labels)), key=labels.count)
        if left == 0 or len(set(labels)) == 1:
            return lambda numbers: most
        best = None
        for i in range(len(examples[0][0])):
            for cut in sorted({numbers[i] for numbers, _ in examples})[1::2]:
                low = [example for example in examples if example[0][i] < cut]
                high = [example for example in examples if example[0][i] >= cut]
                if min(len(low), len(high)) < least:
                    continue
                impurity = sum(len(part) * (1 - sum((sum(of == label for _, of in part) / len(part)) ** 2 for label in (0, 1))) for part in (low, high))
                if best is None or impurity < best[0]:
                    best = (impurity, i, cut, low, high)
        if best is None:
            return lambda numbers: most
        _, i, cut, low, high = best
        below, above = grow(low, left - 1), grow(high, left - 1)
        return lambda numbers: below(numbers) if numbers[i] < cut else above(numbers)
    return lambda examples: grow(examples, depth)
'''

# Settings by learner, from too small to too large.
SETTINGS = {
    "majority": [""],
    "neighbours": ["k=0", "k=1", "k=3", "k=7", "k=15", "k=31"],
    "logistic": ["rate=0.001, epochs=2", "rate=0.05, epochs=5", "rate=0.1, epochs=20", "rate=1.0, epochs=20", "rate=1e9, epochs=5"],
    "quadratic": ["rate=0.001, epochs=2", "rate=0.02, epochs=5", "rate=0.05, epochs=20", "rate=0.5, epochs=20", "rate=1e9, epochs=5"],
    "bayes": ["floor=1e-6", "floor=0.05", "floor=1.0", "floor=50.0"],
    "tree": ["depth=1, least=1", "depth=2, least=5", "depth=3, least=2", "depth=5, least=1", "depth=8, least=1"],
}

TASKS = {
    "linear": "two classes on either side of a line, with noise",
    "rings": "a class within a ring of the other",
    "checkers": "the fields of a two by two board",
    "few": "two clouds and very few examples",
    "labels": "clouds with a fifth of the labels wrong",
    "beside": "one number that matters and seven that do not",
    "rare": "a rare class beside a frequent one",
    "shift": "training data from another region than the test data",
}


def draw(name, rng, n, later):
    """Examples of a problem; `later` are those that are scored."""
    out = []
    for i in range(n):
        x, y, label = rng.gauss(0, 1), rng.gauss(0, 1), i % 2
        if name == "linear":
            label = int(x + 2 * y + rng.gauss(0, 0.6) > 0)
            numbers = [x, y]
        elif name == "rings":
            radius, angle = (0.7 if label else 1.6) + rng.gauss(0, 0.25), rng.uniform(0, 2 * math.pi)
            numbers = [radius * math.cos(angle), radius * math.sin(angle)]
        elif name == "checkers":
            x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
            numbers, label = [x, y], int((x > 0) != (y > 0))
        elif name == "few":
            numbers = [x + 1.6 * label, y - 1.2 * label, rng.gauss(0, 1)]
        elif name == "labels":
            numbers = [x + 2.4 * label, y]
            label = 1 - label if not later and rng.random() < 0.2 else label
        elif name == "beside":
            numbers = [rng.gauss(0, 1) for _ in range(8)]
            label = int(abs(numbers[3]) > 0.7)
        elif name == "rare":
            label = int(i % 6 == 0)
            numbers = [x + 1.5 * label, y * (0.5 if label else 1.0)]
        else:
            x += 1.0 if later else -0.5
            numbers, label = [x, y], int(y + 0.3 * x > 0.2)
        out.append([[round(number, 2) for number in numbers], label])
    return out


def proposal(learner, settings):
    return f"### model.py\nfrom learners import {learner}\nfit = {learner}({settings})\n"


def main():
    rng = random.Random(20261127)
    never = [{"finds": "a proposal that no one has shown"}]
    every = [proposal(learner, settings) for learner in SETTINGS for settings in SETTINGS[learner]]
    rows = []
    for name, text in TASKS.items():
        sizes = {"train": 14 if name == "few" else 60, "development": 40, "test": 120}
        row = {
            "id": name, "question": f"Improve the learner of this repository on {text}. The file `model.py` sets `fit`.", "answer": "No one knows the best learner.",
            "files": {"learners.py": LEARNERS.strip("\n") + "\n", "model.py": "from learners import majority\nfit = majority()\n"},
            "data": {part: draw(name, rng, n, part != "train") for part, n in sizes.items()},
            "parts": {"idea": {"gold": "none", "wrong": every, "plan": never}},
        }
        for learner in SETTINGS:
            row["parts"][f"refine-{learner}"] = {"gold": "none", "wrong": [proposal(learner, settings) for settings in SETTINGS[learner]], "plan": never}
        rows.append(row)
    (OUT / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if "-v" in sys.argv:
        import importlib.util
        spec = importlib.util.spec_from_file_location("repositories", Path(__file__).with_name("make-repositories.py"))
        repositories = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(repositories)
        scope = {key: value for key, value in repositories.checker().items() if key in ("execute", "files_of")}
        exec((OUT / "check.py").read_text(), scope)
        for row in rows:
            print(row["id"])
            for learner in SETTINGS:
                print("   ", learner, [scope["trained"](row, proposal(learner, settings), "test")[0] for settings in SETTINGS[learner]])


if __name__ == "__main__":
    main()
