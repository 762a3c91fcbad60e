#!/usr/bin/env python3
"""Makes systems/co-bench/problems.jsonl: ten combinatorial problems with small instances, their best values, and programs of several qualities.

Instances are drawn with a fixed seed and are small enough to be solved exactly here (or, for packing, colouring and set cover, by
trying every order of a few). All programs have one form: an order of things, and a rule that makes a solution of it. They differ
in how they look for an order. How good each is, is measured and not declared.
"""

import itertools
import json
import random
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "systems" / "co-bench"

# Of each problem: what is asked, how a solution comes of an order, what it costs, and by what a greedy order sorts.
PROBLEMS = {
    "knapsack": ("Choose items so that their weights do not exceed the capacity and their values add up to most. Return the list of chosen items.", '''
def decode(case, order):
    chosen, weight = [], 0
    for i in order:
        if weight + case["weights"][i] <= case["capacity"]:
            chosen.append(i)
            weight += case["weights"][i]
    return chosen


def cost(case, chosen):
    return -sum(case["values"][i] for i in chosen)
''', 'len(case["weights"])', '-case["values"][i] / case["weights"][i]', 'return list(range(len(case["weights"])))'),
    "packing": ("Pack items into as few bins of the given capacity as possible. Return a list of bins, each a list of items.", '''
def decode(case, order):
    bins = [[]]
    for i in order:
        if sum(case["sizes"][j] for j in bins[-1]) + case["sizes"][i] > case["capacity"]:
            bins.append([])
        bins[-1].append(i)
    return bins


def cost(case, bins):
    return len(bins) - sum(sum(case["sizes"][i] for i in items) ** 2 for items in bins) / 1e6
''', 'len(case["sizes"])', '-case["sizes"][i]', 'return [list(range(len(case["sizes"])))]'),
    "tour": ("Find a short round trip through all places. Return the places in order.", '''
def decode(case, order):
    return list(order)


def cost(case, order):
    return sum(case["distances"][a][b] for a, b in zip(order, order[1:] + order[:1]))
''', 'len(case["distances"])', 'case["distances"][0][i]', 'return [0] * len(case["distances"])'),
    "cover": ("Choose sets that together have all elements, as cheaply as possible. Return the list of chosen sets.", '''
def decode(case, order):
    chosen, seen = [], set()
    for i in order:
        if set(case["sets"][i]) - seen:
            chosen.append(i)
            seen |= set(case["sets"][i])
    return chosen


def cost(case, chosen):
    return sum(case["costs"][i] for i in chosen)
''', 'len(case["sets"])', 'case["costs"][i] / len(case["sets"][i])', 'return [0]'),
    "colouring": ("Colour the nodes of a graph with few colours so that neighbours differ. Return the colour of each node.", '''
def decode(case, order):
    near = {i: set() for i in order}
    for a, b in case["edges"]:
        near[a].add(b)
        near[b].add(a)
    colours = {}
    for i in order:
        taken = {colours.get(j) for j in near[i]}
        colours[i] = next(c for c in range(len(order)) if c not in taken)
    return [colours[i] for i in range(len(order))]


def cost(case, colours):
    return len(set(colours)) - sum(colours.count(c) ** 2 for c in set(colours)) / 1e4
''', 'case["nodes"]', '-sum(i in edge for edge in case["edges"])', 'return [i % 2 for i in range(case["nodes"])]'),
    "machines": ("Assign jobs to machines so that the last machine ends early. Return the machine of each job.", '''
def decode(case, order):
    loads, at = [0] * case["machines"], {}
    for i in order:
        at[i] = loads.index(min(loads))
        loads[at[i]] += case["jobs"][i]
    return [at[i] for i in range(len(order))]


def cost(case, at):
    loads = [0] * case["machines"]
    for i, machine in enumerate(at):
        loads[machine] += case["jobs"][i]
    return max(loads)
''', 'len(case["jobs"])', '-case["jobs"][i]', 'return [case["machines"]] * len(case["jobs"])'),
    "independent": ("Choose as many nodes of a graph as possible so that no two are neighbours. Return the list of chosen nodes.", '''
def decode(case, order):
    near = {i: set() for i in order}
    for a, b in case["edges"]:
        near[a].add(b)
        near[b].add(a)
    chosen = []
    for i in order:
        if not near[i] & set(chosen):
            chosen.append(i)
    return chosen


def cost(case, chosen):
    return -len(chosen)
''', 'case["nodes"]', 'sum(i in edge for edge in case["edges"])', 'return list(range(case["nodes"]))'),
    "facilities": ("Open places so that opening them and going from every customer to the nearest costs least. Return the list of open places.", '''
def decode(case, order):
    opened = [order[0]]
    for i in order[1:]:
        if cost(case, opened + [i]) < cost(case, opened):
            opened.append(i)
    return opened


def cost(case, opened):
    return sum(case["opening"][i] for i in opened) + sum(min(row[i] for i in opened) for row in case["distances"])
''', 'len(case["opening"])', 'case["opening"][i]', 'return []'),
    "assignment": ("Give every worker a task of their own so that the costs add up to least. Return the task of each worker.", '''
def decode(case, order):
    return list(order)


def cost(case, places):
    return sum(row[place] for row, place in zip(case["costs"], places))
''', 'len(case["costs"])', 'min(row[i] for row in case["costs"])', 'return [row.index(min(row)) for row in case["costs"]]'),
    "flow": ("Order jobs that go through all machines one after the other so that the last job ends early. Return the order of jobs.", '''
def decode(case, order):
    return list(order)


def cost(case, order):
    ends = [0] * len(case["times"][0])
    for job in order:
        for machine, time in enumerate(case["times"][job]):
            ends[machine] = max(ends[machine], ends[machine - 1] if machine else 0) + time
    return ends[-1]
''', 'len(case["times"])', 'case["times"][i][0] - case["times"][i][-1]', 'return list(range(len(case["times"])))[1:]'),
}

IMPROVE = '''

def improve(case, order, sweeps):
    """Exchanges two of the order as long as the solution gets better."""
    for _ in range(sweeps):
        before = cost(case, decode(case, order))
        for i in range(len(order)):
            for j in range(i):
                other = list(order)
                other[i], other[j] = other[j], other[i]
                if cost(case, decode(case, other)) < cost(case, decode(case, order)):
                    order = other
        if cost(case, decode(case, order)) >= before:
            break
    return order
'''
RESTARTS = '''

def restarts(case, first, times):
    """The best of several improved orders, the first of them given."""
    import random
    rng, best = random.Random(1), improve(case, first, 9)
    for _ in range(times):
        order = list(first)
        rng.shuffle(order)
        order = improve(case, order, 9)
        if cost(case, decode(case, order)) < cost(case, decode(case, best)):
            best = order
    return best
'''


def programs(name):
    """Programs by what they do."""
    _, rules, size, key, invalid = PROBLEMS[name]
    rules, n = rules.strip("\n") + "\n", f"list(range({size}))"

    def whole(extra, body):
        return "### solve.py\n" + rules + extra + "\n\ndef solve(case):\n" + "".join(f"    {line}\n" for line in body)

    return {
        "plain": whole("", [f"return decode(case, {n})"]),
        "reversed": whole("", [f"return decode(case, {n}[::-1])"]),
        "greedy": whole("", [f"return decode(case, sorted({n}, key=lambda i: {key}))"]),
        "anti-greedy": whole("", [f"return decode(case, sorted({n}, key=lambda i: {key}, reverse=True))"]),
        "local": whole(IMPROVE, [f"return decode(case, improve(case, {n}, 1))"]),
        "local-greedy": whole(IMPROVE, [f"return decode(case, improve(case, sorted({n}, key=lambda i: {key}), 9))"]),
        "restarts": whole(IMPROVE + RESTARTS, [f"return decode(case, restarts(case, sorted({n}, key=lambda i: {key}), 4))"]),
        "invalid": whole("", [invalid]),
        "crash": whole("", [f"return decode(case, {n})[len({n})]['']"]),
        "endless": whole("", [f"order = {n}", "while True:", "    order = order[1:] + order[:1]"]),
    }


def draw(name, rng):
    """An instance."""
    if name == "knapsack":
        weights = [rng.randint(5, 40) for _ in range(12)]
        return {"weights": weights, "values": [weight + rng.randint(-4, 12) for weight in weights], "capacity": sum(weights) // 2}
    if name == "packing":
        return {"sizes": [rng.choice([12, 17, 23, 26, 31, 35, 44, 49, 52]) for _ in range(11)], "capacity": 100}
    if name == "tour":
        places = [(rng.randint(0, 100), rng.randint(0, 100)) for _ in range(9)]
        return {"distances": [[abs(a - c) + abs(b - d) for c, d in places] for a, b in places]}
    if name == "cover":
        sets = [sorted(rng.sample(range(14), rng.randint(2, 6))) for _ in range(12)]
        sets[-1] = sorted(set(sets[-1]) | set(range(14)) - set().union(*map(set, sets)))
        return {"sets": sets, "costs": [rng.randint(2, 3) * len(one) + rng.randint(0, 6) for one in sets], "elements": 14}
    if name in ("colouring", "independent"):
        n = 12
        return {"nodes": n, "edges": [[a, b] for a in range(n) for b in range(a) if rng.random() < 0.4]}
    if name == "machines":
        return {"jobs": [rng.randint(10, 60) for _ in range(10)], "machines": 3}
    if name == "facilities":
        return {"opening": [rng.randint(20, 70) for _ in range(9)], "distances": [[rng.randint(1, 40) for _ in range(9)] for _ in range(12)]}
    if name == "assignment":
        return {"costs": [[rng.randint(1, 60) for _ in range(8)] for _ in range(8)]}
    return {"times": [[rng.randint(2, 30) for _ in range(4)] for _ in range(7)]}


def best(name, case, value):
    """The best value there is, by trying everything."""
    def subsets(n):
        return (list(chosen) for size in range(n + 1) for chosen in itertools.combinations(range(n), size))

    def valid(solutions):
        for solution in solutions:
            try:
                yield value(case, solution)
            except ValueError:
                pass

    if name == "knapsack":
        return max(valid(subsets(12)))
    if name == "independent":
        return max(valid(subsets(12)))
    if name == "cover":
        return min(valid(subsets(12)))
    if name == "facilities":
        return min(valid(subsets(9)))
    if name == "tour":
        return min(value(case, [0, *rest]) for rest in itertools.permutations(range(1, 9)))
    if name in ("assignment", "flow"):
        return min(value(case, list(order)) for order in itertools.permutations(range(len(case.get("costs") or case["times"]))))
    if name == "machines":
        return min(value(case, [0, *rest]) for rest in itertools.product(range(3), repeat=9))
    return fewest(name, case)


def fewest(name, case):
    """The least number of bins or colours, by trying numbers in turn."""
    things = case["nodes"] if name == "colouring" else len(case["sizes"])
    near = [{b for a, b in case["edges"] if a == i} | {a for a, b in case["edges"] if b == i} for i in range(things)] if name == "colouring" else None

    def place(i, groups, most):
        if i == things:
            return True
        for group in groups:
            if (not near[i] & set(group)) if near else sum(case["sizes"][j] for j in group) + case["sizes"][i] <= case["capacity"]:
                group.append(i)
                if place(i + 1, groups, most):
                    return True
                group.pop()
        if len(groups) < most:
            groups.append([i])
            if place(i + 1, groups, most):
                return True
            groups.pop()
        return False

    return next(most for most in range(1, things + 1) if place(0, [], most))


def main():
    import importlib.util
    rng = random.Random(20261127)
    scope = {}
    exec((OUT / "check.py").read_text(), scope)
    spec = importlib.util.spec_from_file_location("repositories", Path(__file__).with_name("make-repositories.py"))
    repositories = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(repositories)
    stand_ins = repositories.checker()
    scope |= {key: stand_ins[key] for key in ["execute", "files_of"]}
    rows = []
    for name, (text, *_) in PROBLEMS.items():
        row = {"id": name, "problem": name, "question": text + " Write a file `solve.py` with a function `solve(case)`."}
        row["question"] += " A case has the keys " + ", ".join(f"`{key}`" for key in draw(name, random.Random(0))) + "."
        for which in ["development", "test"]:
            row[which] = [{"case": case, "best": best(name, case, scope["VALUES"][name])} for case in [draw(name, rng) for _ in range(3)]]
        made = programs(name)
        row["answer"] = made["restarts"]
        never = [{"finds": "a program that no one has shown"}]

        def proposals(*names):
            return {"gold": "No one knows the best program.", "wrong": [made[one] for one in names], "plan": never}

        row["parts"] = {
            "program-begin": proposals("plain", "reversed", "greedy", "anti-greedy", "invalid", "crash", "endless"),
            "program-plain": proposals("reversed", "greedy", "anti-greedy", "local", "invalid", "endless"),
            "program-greedy": proposals("plain", "anti-greedy", "local", "local-greedy", "invalid", "crash"),
            "program-local": proposals("greedy", "local", "local-greedy", "restarts", "invalid", "endless"),
            "program-restarts": proposals("restarts", "local-greedy", "local", "invalid", "crash", "endless"),
        }
        rows.append(row)
        if "-v" in sys.argv:
            print(name, {one: [round(score, 3) for score in scope["scores"](row, program, "test")[0]] for one, program in made.items()})
    (OUT / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
