"""Runs the functions that agents write, and checks what they come to."""

import ast
import re


def parts_of(*texts):
    """The functions of texts, each name once and the last of a name; what is no Python is left out."""
    found = {}
    for text in texts:
        for block in re.split(r"\n(?=def )", "\n" + text):
            try:
                tree = ast.parse(block.strip())
            except SyntaxError:
                continue
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    found[node.name] = (ast.unparse(node), ast.get_docstring(node) or "")
    return found


def words(text):
    """The words of a text that have more than three letters."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


def worked(expression, *texts):
    """What an expression comes to with the functions of texts, or what went wrong."""
    code = "\n\n".join(source for source, _ in parts_of(*texts).values())
    try:
        ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        return False, "the call is no expression"
    status, output = execute({"main.py": f"{code}\n\nprint({expression.strip()})\n"}, "main.py")
    lines = output.strip().split("\n")
    return status == 0, lines[-1]


def lookup(row, library, n):
    """The three functions of a library whose descriptions share most words with a task."""
    task = words(row["tasks"][int(n) - 1]["text"])
    shared = [(len(task & words(doc)), source) for source, doc in parts_of(library).values()]
    best = sorted((pair for pair in shared if pair[0] > 0), key=lambda pair: -pair[0])[:3]
    return (bool(best), "\n\n".join(source for _, source in best) or "No function fits.")


def tried(row, library, function, n):
    """Whether a function gives the task's example."""
    example = row["tasks"][int(n) - 1]["example"]
    ran, result = worked(example["call"], library, function)
    right = ran and result == example["result"]
    return right, "" if right else f"{example['call']}: expected {example['result']}, got {result}"


def used(row, library, function, call):
    """What a call comes to."""
    return worked(call, library, function)[1]


def written(row, log):
    """How many functions were written in the second half of a session."""
    half = len(row["tasks"]) // 2
    late = sum(int(n) > half for n in re.findall(r"(\d+): new", log))
    return {"text": str(late), "measures": {"value": late}}


def answered(row, answer):
    """The share of a session's tasks with the right result; the sum, which a calculator does, does not count."""
    given = dict(re.findall(r"^(\d+): (.*)$", answer, re.M))
    asked = [(str(i + 1), task) for i, task in enumerate(row["tasks"]) if task["function"]]
    right = [n for n, task in asked if given.get(n, "").strip() == task["result"]]
    return {"score": len(right) / len(asked), "text": f"{len(right)} of {len(asked)} are right"}


def box(row, tools, general):
    """The general forms of the tools that do their own tasks, each name once."""
    ours = parts_of(tools)
    code = "\n\n".join(source for source, _ in ours.values())
    calls = [task["call"] for task in row["teacher"]]
    tries = "".join(f"\ntry:\n    print({call})\nexcept Exception as error:\n    print(type(error).__name__)" for call in calls)
    _, output = execute({"main.py": code + "\n" + tries + "\n"}, "main.py")
    lines = output.split("\n") + [""] * len(calls)
    working = {task["function"] for task, line in zip(row["teacher"], lines) if line == task["result"]}
    found = {name: source for name, (source, _) in parts_of(general).items() if name.removesuffix("_of_this") in working}
    return {"text": "\n\n".join(found.values()) or "(empty)", "measures": {"size": len(found)}}


def check(row, answer):
    """A session's answers, or a student's answer."""
    if "tasks" in row:
        return answered(row, answer)
    return answer.strip() == row["answer"]
