"""Runs a program that fits lensing band powers, and decides whether its posterior holds the true values."""

import re

PARAMETERS = ("A", "s")


def program(text):
    """The files of a reply: one program, with or without a fence."""
    fenced = re.search(r"```(?:python)?\n(.*?)```", text, re.S)
    return fenced.group(1) if fenced else text


def output_of(row, text):
    """Status and output of the program beside the data of the draw."""
    return execute({"main.py": program(text), "bandpowers.txt": row["data"]}, "main.py", seconds=8)


def intervals(output):
    """The intervals that the program printed: {parameter: (low, high)}."""
    found = re.findall(r"^\s*(\w+)\s+(-?[\d.]+)\s+(-?[\d.]+)\s*$", output, re.M)
    return {name: (float(low), float(high)) for name, low, high in found if name in PARAMETERS}


def run_fit(row, text):
    """Runs the program: passed if it prints an interval of each parameter."""
    status, output = output_of(row, text)
    return status == 0 and set(intervals(output)) == set(PARAMETERS), output[-600:]


def check(row, answer):
    """Whether both credible intervals hold the true values, and are narrower than half of the prior."""
    status, output = output_of(row, answer)
    found = intervals(output)
    if status != 0 or set(found) != set(PARAMETERS):
        return False, "no posterior"
    holds = [found[name][0] <= row["truth"][name] <= found[name][1] for name in PARAMETERS]
    narrow = all(found[name][1] - found[name][0] < 0.5 * (row["prior"][name][1] - row["prior"][name][0]) for name in PARAMETERS)
    return {"passed": all(holds) and narrow, "score": sum(holds) / 2 if narrow else 0.0, "text": f"holds {holds}, narrow {narrow}"}
