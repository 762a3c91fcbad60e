"""A rubric for solutions of modelling problems: the program is run, and its numbers are compared with those by which the data were made."""

import re


def code_of(text):
    """The program of a text: a fenced part of it, or all."""
    fenced = re.search(r"```(?:python)?\n(.*?)```", text, re.S)
    return fenced.group(1) if fenced else text


def output_of(row, text):
    """Status and output of a program beside the data of the problem."""
    return execute({"main.py": code_of(text), "data.csv": row["data"]}, "main.py", seconds=5)


def numbers(output):
    """The named numbers that a program printed."""
    return {name: float(value) for name, value in re.findall(r"^(answer|changed) (-?[\d.]+)$", output, re.M)}


def look(row, text):
    """Runs a program that looks at the data."""
    status, output = output_of(row, text)
    return status == 0, output[-1500:]


def solve(row, text):
    """Runs the solving program: passed if it prints the answer and what it would be with the change."""
    status, output = output_of(row, text)
    return status == 0 and len(numbers(output)) == 2, output[-600:]


def check(row, answer):
    """Six points: the program runs; answer; answer after the change; possible; the report states what was computed; it states the assumption."""
    files = files_of(answer)
    report = files.get("report.md", "")
    status, output = output_of(row, files.get("main.py", ""))
    found = numbers(output) if status == 0 else {}

    def near(name):
        return name in found and abs(found[name] - row["truth"][name]) <= 0.05 * abs(row["truth"][name])

    low, high = row["possible"]
    stated = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", report)]
    points = {
        "runs": len(found) == 2,
        "answer": near("answer"),
        "change": near("changed"),
        "possible": "answer" in found and low <= found["answer"] <= high,
        "stated": "answer" in found and any(abs(n - found["answer"]) <= 0.01 * abs(found["answer"]) for n in stated),
        "assumption": row["assumption"].lower() in report.lower(),
    }
    score = sum(points.values()) / len(points)
    return {"passed": score == 1, "score": score, "measures": {"coverage": float(points["runs"])}, "text": ", ".join(f"{name} {'yes' if value else 'no'}" for name, value in points.items())}
