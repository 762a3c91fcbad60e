"""Runs the experiments of laboratories. What a combination of techniques reaches is computed from the row; a laboratory knows it only from
the reports that it reads."""

import hashlib
import itertools
import re

REPORT = re.compile(r"(Laboratory \w+), experiment (\d+): (\w+(?:\+\w+)*) reaches ([\d.]+) percent")
BUDGET = 8


def lot(*about):
    """A number in [0, 1) that depends on nothing but these."""
    return int(hashlib.sha256("|".join(map(str, about)).encode()).hexdigest()[:12], 16) / 16**12


def accuracy(row, combination):
    pairs = itertools.combinations(sorted(combination), 2)
    return row["base"] + sum(row["single"][one] for one in combination) + sum(row["pair"].get("+".join(pair), 0.0) for pair in pairs)


def measured(row, combination, who, number):
    """An experiment has an error of up to 0.75 points."""
    return accuracy(row, combination) + 1.5 * (lot(row["id"], combination, who, number) - 0.5)


def proposed(row, who, proposals, known):
    """The combination that a laboratory's proposal names, if it is a new one."""
    own = proposals.split(f"### {who}", 1)[-1].split("###", 1)[0].lower()
    named = tuple(one for one in row["techniques"] if re.search(rf"\b{one}\b", own))
    return named if 1 <= len(named) <= 3 and named not in known else None


def next_one(row, who, number, known):
    """A laboratory's rule: every other experiment tries a technique of which no report tells, the others build on the best report. Its
    taste, worth up to 1.5 points, decides between what looks alike."""
    single = {c[0]: value - row["base"] for c, value in known.items() if len(c) == 1}
    untried = [one for one in row["techniques"] if one not in single]
    untried.sort(key=lambda one: lot(row["id"], who, one))
    if untried and (number % 2 == 1 or not known):
        # Without reports it does not know either what it has tried itself.
        return (untried[0],) if known else (untried[int(lot(row["id"], who, number) * len(untried))],)
    best = max(known, key=lambda c: (known[c], c))
    near = set()
    for one in row["techniques"]:
        if one in best:
            near.add(tuple(other for other in best if other != one))
            continue
        near.update(tuple(sorted({*best, one} - {drop})) for drop in best)
        if len(best) < 3:
            near.add(tuple(sorted({*best, one})))
    new = sorted(c for c in near if c and c not in known)
    return max(new, key=lambda c: sum(single.get(one, 0.0) for one in c) + 1.5 * lot(row["id"], who, c))


def experiments(row, names, proposals, reads, order, reports, log):
    """The next experiment of each laboratory, and its report. A laboratory knows what it reads: all reports, or its own. With the order
    `in turn` a report is read by the next laboratory, else only in the next round. The log tells how many experiments there were."""
    lines = []
    for who in names.splitlines():
        known = {}
        shown = "\n".join([reports, *lines]) if order == "in turn" else reports
        for name, _, techniques, value in REPORT.findall(shown):
            combination = tuple(sorted(techniques.split("+")))
            if (reads == "all" or name == who) and all(one in row["techniques"] for one in combination):
                known.setdefault(combination, []).append(float(value))
        known = {combination: sum(values) / len(values) for combination, values in known.items()}
        number = 1 + sum(name == who for name, *_ in REPORT.findall(log))
        combination = proposed(row, who, proposals, known) or next_one(row, who, number, known)
        value = measured(row, combination, who, number)
        lines.append(f"{who}, experiment {number}: {'+'.join(combination)} reaches {value:.1f} percent.")
    text = "\n".join(lines)
    return (reached(row, text) > 0, text)


def reached(row, log):
    """In how many experiments of a laboratory the target was reached first; 0 if it was not."""
    numbers = [int(number) for _, number, names, _ in REPORT.findall(log) if accuracy(row, names.split("+")) >= row["target"]]
    return min(numbers, default=0)


def check(row, answer):
    best = max((accuracy(row, names.split("+")) for _, _, names, _ in REPORT.findall(answer)), default=row["base"])
    first = reached(row, answer)
    return {
        "passed": first > 0,
        "score": max(0.0, min(1.0, (best - row["base"]) / (row["top"] - row["base"]))),
        "measures": {"size": first or BUDGET + 1, "value": best},
    }
