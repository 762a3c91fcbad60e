"""Ten combinatorial problems: programs run within limits, and their solutions are checked and scored against the best known values.

A program is a file `solve.py` with a function `solve(instance)`. A score is 0 for a solution that breaks a rule, comes too late or
is none, and else the best known value over the value (where less is better) or the value over the best known value.
"""

import json
import re

# Solves each instance in a process of its own, with a fifth of a second of processor time, and prints the solutions.
RUNNER = '''
import json, os, signal, resource, sys
instances = json.load(open("instances.json"))
pipes = []
for instance in instances:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CPU, (4, 4))
        signal.setitimer(signal.ITIMER_PROF, 0.2)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            import solve
            out = {"solution": solve.solve(instance)}
        except BaseException as why:
            out = {"error": type(why).__name__}
        os.write(write, json.dumps(out).encode())
        os._exit(0)
    os.close(write)
    pipes.append((child, read))
out = []
for child, read in pipes:
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    out.append(json.loads(text) if text else {"error": "no solution in time"})
print(json.dumps(out))
'''


def need(true, why):
    if not true:
        raise ValueError(why)


def permutation(order, n):
    need(sorted(order) == list(range(n)), "not every one exactly once")


def knapsack(case, chosen):
    need(len(set(chosen)) == len(chosen), "an item is taken twice")
    need(sum(case["weights"][i] for i in chosen) <= case["capacity"], "too heavy")
    return sum(case["values"][i] for i in chosen)


def packing(case, bins):
    permutation([i for items in bins for i in items], len(case["sizes"]))
    need(all(sum(case["sizes"][i] for i in items) <= case["capacity"] for items in bins), "a bin is too full")
    return len([items for items in bins if items])


def tour(case, order):
    permutation(order, len(case["distances"]))
    return sum(case["distances"][a][b] for a, b in zip(order, order[1:] + order[:1]))


def cover(case, chosen):
    need(set().union(*(case["sets"][i] for i in chosen)) >= set(range(case["elements"])), "an element is not covered")
    return sum(case["costs"][i] for i in set(chosen))


def colouring(case, colours):
    need(len(colours) == case["nodes"], "a node has no colour")
    need(all(colours[a] != colours[b] for a, b in case["edges"]), "two neighbours have one colour")
    return len(set(colours))


def machines(case, assigned):
    need(len(assigned) == len(case["jobs"]) and set(assigned) <= set(range(case["machines"])), "a job has no machine")
    return max(sum(job for job, at in zip(case["jobs"], assigned) if at == machine) for machine in range(case["machines"]))


def independent(case, chosen):
    need(len(set(chosen)) == len(chosen) and set(chosen) <= set(range(case["nodes"])), "not a set of nodes")
    need(not any(a in chosen and b in chosen for a, b in case["edges"]), "two chosen nodes are neighbours")
    return len(chosen)


def facilities(case, opened):
    need(opened and set(opened) <= set(range(len(case["opening"]))), "no place is open")
    return sum(case["opening"][i] for i in set(opened)) + sum(min(row[i] for i in opened) for row in case["distances"])


def assignment(case, places):
    permutation(places, len(case["costs"]))
    return sum(row[place] for row, place in zip(case["costs"], places))


def flow(case, order):
    permutation(order, len(case["times"]))
    ends = [0] * len(case["times"][0])
    for job in order:
        for machine, time in enumerate(case["times"][job]):
            ends[machine] = max(ends[machine], ends[machine - 1] if machine else 0) + time
    return ends[-1]


VALUES = {"knapsack": knapsack, "packing": packing, "tour": tour, "cover": cover, "colouring": colouring, "machines": machines,
          "independent": independent, "facilities": facilities, "assignment": assignment, "flow": flow}
MOST = {"knapsack", "independent"}


def scores(row, program, which):
    """The score of each instance, with a word on those that have none."""
    instances = row[which]
    files = files_of(program)
    if "solve.py" not in files:
        return [0.0] * len(instances), ["there is no solve.py"]
    files = {"solve.py": files["solve.py"], "main.py": RUNNER, "instances.json": json.dumps([one["case"] for one in instances])}
    status, output = execute(files, "main.py", seconds=8)
    try:
        found = json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return [0.0] * len(instances), ["the program did not end"]
    out, words = [], []
    for one, result in zip(instances, found):
        try:
            need("solution" in result, result.get("error", ""))
            value = VALUES[row["problem"]](one["case"], result["solution"])
            out.append(value / one["best"] if row["problem"] in MOST else one["best"] / value)
        except (ValueError, TypeError, IndexError, KeyError) as why:
            out.append(0.0)
            words.append(str(why))
    return out, words


def check(row, answer):
    """The mean score on instances that no agent has seen."""
    out, words = scores(row, answer, "test")
    return {"score": sum(out) / len(out), "text": "; ".join(words) or "all solutions are valid", "measures": {"coverage": sum(one > 0 for one in out) / len(out)}}


# What an agent that evolves programs may use. A program's mark is a comment in its first line.

def mark(program):
    found = re.search(r"# development score (\d\.\d+)", program)
    return float(found[1]) if found else -1.0


def marked(row, program):
    out, words = scores(row, program, "development")
    code = re.sub(r"# development score .*\n", "", files_of(program).get("solve.py", ""))
    return f"### solve.py\n# development score {sum(out) / len(out):.4f} {'; '.join(sorted(set(words)))}\n{code}"


def keep(row, best, program):
    """The better of two programs by their scores on development instances."""
    program = marked(row, program)
    return program if mark(program) > mark(best) else best


def keep_by_lot(row, best, program):
    """One of the two, by lot: the scores are worked out as in `keep`, and not used."""
    import hashlib
    program = marked(row, program)
    if mark(best) < 0:
        return program
    return program if hashlib.sha256((row["id"] + best + program).encode()).digest()[0] % 2 else best
