"""Small repositories with a learner to improve: a proposal is really trained, and scored on data that it has not seen.

A proposal is a file `model.py` with `fit`, which takes examples (pairs of numbers and a label) and returns a function from numbers
to a label. It may use the learners of the repository.
"""

import re

TRAIN = '''
import json, sys, model
parts = json.load(open("data.json"))
predict = model.fit(parts["train"])

def score(examples):
    """The mean over labels of the share that is right."""
    shares = []
    for label in sorted({label for _, label in examples}):
        those = [numbers for numbers, of in examples if of == label]
        shares.append(sum(predict(numbers) == label for numbers in those) / len(those))
    return sum(shares) / len(shares)

print(json.dumps(score(parts[sys.argv[1]])))
'''


def trained(row, proposal, part):
    """The score of a proposal on a part of the data, and why there is none."""
    import json
    files = files_of(proposal)
    if "model.py" not in files:
        return None, "there is no model.py"
    files = {**row["files"], "model.py": files["model.py"], "main.py": TRAIN, "data.json": json.dumps(row["data"])}
    status, output = execute(files, "main.py", (part,), seconds=4)
    try:
        return float(json.loads(output.strip().splitlines()[-1])), ""
    except (IndexError, ValueError, TypeError):
        return None, (output.strip().splitlines() or ["no output"])[-1][:80]


def check(row, answer):
    """What is gained over the repository's own learner, of what could be gained, on test data."""
    score, why = trained(row, answer, "test")
    base, _ = trained(row, "### model.py\n" + row["files"]["model.py"], "test")
    return {"score": 0.0 if score is None else max(0.0, (score - base) / (1 - base)), "text": why}


def family(line):
    found = re.search(r"fit = (\w+)\(", line)
    return found[1] if found else "none"


def code(proposal):
    return files_of(proposal).get("model.py", "").strip().replace("\n", "; ")


def step(row, history, proposal):
    """Trains a proposal and writes its score on development data below the others."""
    score, why = trained(row, proposal, "development")
    line = f"{'failed' if score is None else format(score, '.4f')} | {code(proposal)}"
    return f"{history}\n{line}" if history.startswith(("0.", "1.", "failed")) else line


def as_answer(line):
    return "### model.py\n" + line.split(" | ", 1)[1].replace("; ", "\n") + "\n"


def measures(history):
    """Diversity, rate of contributions and of steps that succeed, of what was proposed."""
    lines = history.splitlines()
    families = [family(line) for line in lines]
    return {"coverage": len(set(families)) / 6, "precision": sum(one not in families[:n] for n, one in enumerate(families)) / len(lines),
            "recall": sum(not line.startswith("failed") for line in lines) / len(lines), "size": len(lines)}


def best(row, history):
    """The proposal with the best score on development data."""
    lines = history.splitlines()
    line = max(lines, key=lambda line: -1.0 if line.startswith("failed") else float(line.split(" | ")[0]))
    return {"passed": True, "text": as_answer(line), "measures": measures(history)}


def best_by_lot(row, history):
    """One of the proposals, whatever its score."""
    import hashlib
    lines = history.splitlines()
    line = lines[hashlib.sha256((row["id"] + history).encode()).digest()[0] % len(lines)]
    return {"passed": True, "text": as_answer(line), "measures": measures(history)}
