#!/usr/bin/env python3
"""Makes systems/ma-lot/theorems.jsonl: 40 theorems of propositional logic with proofs, and wrong proofs whose error the checker names.

Sequents are drawn, and kept if a truth table says that they are valid and need every premise, and the prover below finds a proof. The proof
checker of the entry accepts each right proof and refuses each wrong one at the line where the error was planted.

    python3 scripts/make-theorems.py            writes the file
    python3 scripts/make-theorems.py --attack   tries 20,000 spoilt proofs: none that is accepted may prove what a truth table refutes
"""

import importlib.util
import itertools
import json
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "systems" / "ma-lot"
spec = importlib.util.spec_from_file_location("check", HERE / "check.py")
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
shown = checker.shown


# Truth tables.

def atoms(tree):
    if isinstance(tree, str):
        return {tree} - {"#"}
    return set().union(*(atoms(part) for part in tree[1:]))


def true(tree, world):
    if isinstance(tree, str):
        return tree != "#" and world[tree]
    if tree[0] == "~":
        return not true(tree[1], world)
    left, right = (true(part, world) for part in tree[1:])
    return {"&": left and right, "v": left or right, "->": not left or right}[tree[0]]


def worlds(trees):
    names = sorted(set().union(*(atoms(tree) for tree in trees)))
    for values in itertools.product([False, True], repeat=len(names)):
        yield dict(zip(names, values))


def valid(premises, goal):
    return all(true(goal, world) for world in worlds([*premises, goal]) if all(true(one, world) for one in premises))


# The prover: it works back from the goal and forward from what is known, to a depth. A node is [formula, rule, used], where what is used is a
# node or a part (assumption, conclusion).

def prove(known, goal, depth, path=frozenset()):
    known = dict(known)
    changed = True
    while changed and goal not in known and "#" not in known:
        changed = False
        for tree, node in list(known.items()):
            new = []
            if tree[0] == "&":
                new = [(part, "&E", [node]) for part in tree[1:]]
            elif tree[0] == "->" and tree[1] in known:
                new = [(tree[2], "->E", [node, known[tree[1]]])]
            elif tree[0] == "~" and tree[1] in known:
                new = [("#", "~E", [known[tree[1]], node])]
            elif tree[0] == "~" and tree[1][0] == "~":
                new = [(tree[1][1], "DN", [node])]
            for formula, rule, used in new:
                if formula not in known:
                    known[formula] = [formula, rule, used]
                    changed = True
    if goal in known:
        return known[goal]
    if "#" in known:
        return [goal, "X", [known["#"]]]
    state = (frozenset(known), goal)
    if depth <= 0 or state in path:
        return None
    path = path | {state}

    def part(assumed, wanted, less=0):
        assumption = [assumed, "assume", []]
        conclusion = prove({**known, assumed: assumption}, wanted, depth - less, path)
        return conclusion and (assumption, conclusion)

    if goal[0] == "->":
        found = part(goal[1], goal[2])
        return found and [goal, "->I", [found]]
    if goal[0] == "~":
        found = part(goal[1], "#")
        return found and [goal, "~I", [found]]
    if goal[0] == "&":
        left = prove(known, goal[1], depth, path)
        right = left and prove(known, goal[2], depth, path)
        return right and [goal, "&I", [left, right]]
    for tree, node in known.items():
        if tree[0] == "v" and not set(tree[1:]) & set(known):
            left = part(tree[1], goal)
            right = left and part(tree[2], goal)
            return right and [goal, "vE", [node, left, right]]
    if goal[0] == "v":
        for side in goal[1:]:
            found = prove(known, side, depth - 1, path)
            if found:
                return [goal, "vI", [found]]
    for tree, node in known.items():
        if tree[0] == "->" and tree[2] not in known:
            left = prove(known, tree[1], depth - 1, path)
            if left:
                found = prove({**known, tree[2]: [tree[2], "->E", [node, left]]}, goal, depth, path)
                if found:
                    return found
    if goal == "#":
        for tree, node in known.items():
            if tree[0] == "~":
                found = prove(known, tree[1], depth - 1, path)
                if found:
                    return ["#", "~E", [found, node]]
        return None
    denied = ("~", goal)
    if denied in known:
        return None
    found = part(denied, "#", 1)
    return found and [goal, "DN", [[("~", denied), "~I", [found]]]]


def written(premises, proof):
    """The lines of a proof: (depth, formula, rule, references)."""
    lines = [(0, tree, "premise", []) for tree in premises]
    scopes = [{tree: number for number, tree in enumerate(premises, 1)}]

    def emit(node):
        formula, rule, used = node
        for scope in scopes:
            if formula in scope:
                return scope[formula]
        references = [sub(*one) if isinstance(one, tuple) else emit(one) for one in used]
        lines.append((len(scopes) - 1, formula, rule, references))
        scopes[-1][formula] = len(lines)
        return len(lines)

    def sub(assumption, conclusion):
        scopes.append({})
        lines.append((len(scopes) - 1, assumption[0], "assume", []))
        first = len(lines)
        scopes[-1][assumption[0]] = first
        number = emit(conclusion)
        if number != len(lines):
            lines.append((len(scopes) - 1, conclusion[0], "R", [number]))
        scopes.pop()
        return first, len(lines)

    emit(proof)
    return lines


def text(lines):
    def line(number, depth, formula, rule, references):
        uses = " ".join(f"{one[0]}-{one[1]}" if isinstance(one, tuple) else str(one) for one in references)
        return f"{number}. {'| ' * depth}{shown(formula)}   [{f'{rule} {uses}'.strip()}]"

    return "\n".join(line(number, *one) for number, one in enumerate(lines, 1))


WORDS = {
    "->I": "Assume {0} and show {1}.", "~I": "Assume {0} and find a contradiction.", "vE": "Go through the cases {0} and {1}.",
    "DN": "Argue by contradiction for {0}.", "&I": "Show {0} and {1} apart.", "->E": "Use {0} to get {1}."}


def reasoning(lines):
    """The idea of a proof in words."""
    said = []
    for _, formula, rule, references in lines:
        if rule in ("->I", "&I"):
            said.append(WORDS[rule].format(shown(formula[1]), shown(formula[2])))
        elif rule == "~I":
            said.append(WORDS[rule].format(shown(formula[1])))
        elif rule == "vE":
            said.append(WORDS[rule].format(*map(shown, lines[references[0] - 1][1][1:])))
        elif rule == "DN":
            said.append(WORDS[rule].format(shown(formula)))
        elif rule == "->E":
            said.append(WORDS[rule].format(shown(lines[references[0] - 1][1]), shown(formula)))
    return " ".join(dict.fromkeys(reversed(said))) or "It follows from the premises at once."


# Spoilt proofs.

def twisted(rng, tree):
    """Another formula of nearly the same form."""
    choices = [("~", tree)]
    if isinstance(tree, tuple) and tree[0] == "~":
        choices = [tree[1]]
    elif isinstance(tree, tuple):
        choices += [(tree[0], tree[2], tree[1]), ({"&": "v", "v": "&", "->": "&"}[tree[0]], *tree[1:]), (tree[0], tree[1], ("~", tree[2]))]
    return rng.choice([one for one in choices if one != tree])


def spoilt(rng, lines, at):
    """The lines with an error planted in line `at`."""
    depth, formula, rule, references = lines[at - 1]
    kind = rng.choice(["formula", "line", "rule"])
    references = list(references)
    singles = [place for place, one in enumerate(references) if not isinstance(one, tuple)]
    if kind == "line" and singles and at > 2:
        place = rng.choice(singles)
        references[place] = rng.choice([number for number in range(1, at) if number != references[place]])
    elif kind == "rule":
        rule = rng.choice([one for one in checker.ARITY if checker.ARITY[one] == checker.ARITY.get(rule, "?") and one != rule] or ["R"])
    else:
        formula = twisted(rng, formula)
    return [*lines[:at - 1], (depth, formula, rule, references), *lines[at:]]


def planted(rng, row, lines, places, wanted=3):
    """Wrong proofs: the checker refuses each at one of the places, and each place is named by some."""
    found = []
    for turn in range(400):
        first = places[turn % len(places)]
        bad = lines
        for place in places:
            if place >= first:
                bad = spoilt(rng, bad, place)
        proof = text(bad)
        passed, said = checker.verify(row, proof)
        if not passed and said.startswith(f"line {first}:") and proof not in found:
            found.append(proof)
        if len(found) >= wanted and all(any(checker.verify(row, one)[1].startswith(f"line {place}:") for one in found) for place in places):
            return found
    return None


def short_of_goal(row, lines):
    """Proofs that stop before the goal, or end with another formula: no line of them is wrong."""
    found = []
    for end in range(len(lines) - 1, 0, -1):
        proof = text(lines[:end])
        passed, said = checker.verify(row, proof)
        if not passed and said.startswith("the proof ends with") and lines[end - 1][2] != "premise":
            found.append(proof)
    formula = ("v", lines[-1][1], "Z")
    found.append(text([*lines, (0, formula, "vI", [len(lines)])]))
    return found[:3]


def drawn(rng):
    """A sequent."""
    names = "PQRSTU"[:rng.choice([2, 3, 3, 4, 4, 5])]

    def tree(size):
        if size <= 0:
            return rng.choice(names)
        if rng.random() < 0.22:
            return ("~", tree(size - 1))
        left = rng.randint(0, size - 1)
        return (rng.choice(["&", "v", "->", "->"]), tree(left), tree(size - 1 - left))

    premises = [tree(rng.randint(1, 4)) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3]))]
    return premises, tree(rng.randint(1, 4))


def good(premises, goal):
    if goal in premises or len(set(premises)) < len(premises) or not valid(premises, goal):
        return False
    needed = all(not valid([*premises[:i], *premises[i + 1:]], goal) for i in range(len(premises)))
    return needed and not valid(premises, "#")


SIZES = [(5, 7), (8, 11), (12, 16), (17, 26)]
EACH = 10
# What is planted, over the ten theorems of a size: nothing; an error in one line; errors in two lines; no line, but the proof misses the goal.
KINDS = ["none", "one", "one", "two", "one", "none", "one", "two", "goal", "one"]


def theorems(rng):
    found = {size: [] for size in SIZES}
    seen = set()
    while any(len(rows) < EACH for rows in found.values()):
        premises, goal = drawn(rng)
        key = (frozenset(premises), goal)
        if key in seen or not good(premises, goal):
            continue
        seen.add(key)
        proof = next((proof for depth in (1, 2, 3, 4) if (proof := prove({tree: [tree, "premise", []] for tree in premises}, goal, depth))), None)
        if proof is None:
            continue
        lines = written(premises, proof)
        size = next((size for size in SIZES if size[0] <= len(lines) <= size[1] and len(found[size]) < EACH), None)
        if size is None:
            continue
        row = {"premises": [shown(tree) for tree in premises], "goal": shown(goal)}
        passed, said = checker.verify(row, text(lines))
        assert passed, (row, text(lines), said)
        kind = KINDS[len(found[size])]
        places = [number for number, one in enumerate(lines, 1) if one[2] not in ("premise", "assume")]
        if kind in ("none", "one"):
            chosen = [rng.choice(places)]
            wrong = planted(rng, row, lines, chosen)
        elif kind == "two":
            chosen = sorted(rng.sample(places, 2)) if len(places) > 1 else None
            wrong = chosen and planted(rng, row, lines, chosen, 4)
        else:
            chosen, wrong = [], short_of_goal(row, lines)
        if not wrong:
            continue
        needs = {"none": [], "goal": ["an idea that no message holds"]}.get(kind, [f"line {place}:" for place in chosen])
        found[size].append({**row, "lines": len(lines), "planted": kind, "proof": text(lines), "wrong": wrong, "needs": needs, "reasoning": reasoning(lines)})
    return [row for size in SIZES for row in found[size]]


def main():
    rows = theorems(random.Random(20261127))
    # Sizes take turns, so that the first few theorems of the file are of all sizes.
    order = sorted(range(len(rows)), key=lambda i: (i % EACH, i))
    with open(HERE / "theorems.jsonl", "w", encoding="utf-8") as out:
        for number, i in enumerate(order, 1):
            row = rows[i]
            sequent = f"{', '.join(row['premises'])} |- {row['goal']}".strip()
            out.write(json.dumps({
                "id": f"t{number:02d}", "question": f"Prove {sequent}", "premises": row["premises"], "goal": row["goal"], "lines": row["lines"],
                "difficulty": round((row["lines"] - 11) / 5, 1), "planted": row["planted"], "answer": row["proof"], "wrong": row["wrong"],
                "needs": [{"finds": one} for one in row["needs"]],
                "parts": {"reasoning": {"gold": row["reasoning"], "wrong": ["It follows from the premises at once."], "plan": []}},
            }) + "\n")


def attack():
    """Spoils right proofs and asks truth tables about those that the checker accepts."""
    rng = random.Random(1)
    rows = [json.loads(line) for line in open(HERE / "theorems.jsonl", encoding="utf-8")]
    tried = accepted = unsound = 0
    while tried < 20000:
        row = rng.choice(rows)
        premises = [checker.formula(one) for one in row["premises"]]
        proof = next(proof for depth in (1, 2, 3, 4) if (proof := prove({tree: [tree, "premise", []] for tree in premises}, checker.formula(row["goal"]), depth)))
        lines = written(premises, proof)
        for _ in range(rng.choice([1, 1, 2, 3])):
            lines = spoilt(rng, lines, rng.randint(1, len(lines)))
        tried += 1
        # The goal is whatever the last line says, so that only the steps are examined.
        goal = lines[-1][1]
        try:
            checker.examine(premises, goal, text(lines))
        except checker.Wrong:
            continue
        accepted += 1
        unsound += not valid(premises, goal)
    refused = sum(not checker.verify(row, wrong)[0] for row in rows for wrong in row["wrong"])
    proved = sum(checker.verify(row, row["answer"])[0] for row in rows)
    of = sum(len(row["wrong"]) for row in rows)
    print(f"{proved} of {len(rows)} right proofs accepted, {refused} of {of} planted ones refused; "
          f"{tried} spoilt proofs, {accepted} accepted, {unsound} of them prove what a truth table refutes")
    return 0 if (proved, refused, unsound) == (len(rows), of, 0) else 1


if __name__ == "__main__":
    sys.exit(attack()) if "--attack" in sys.argv else main()
