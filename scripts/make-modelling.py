#!/usr/bin/env python3
"""Makes data/modelling: ten problems of mathematical modelling with data, a library of methods, and the programs that solve them.

The data come from a law with known numbers, so the right answer does not come from a program. In seven problems the statement does not tell which law
holds: only the data do, and in one of them the planted look at the data does not show it. Each problem has a program that looks at the data, what an analyst says about the result, a formulation, a program that solves
it, a report, and what comes of the usual assumption in place of the right one.
"""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "modelling"
FORGETS = ("fishery", "dosing", "store")  # problems whose first program lacks an import
READ = 'rows = [[float(cell) for cell in line.split(",")] for line in open("data.csv").read().split()]\n'
LINE = """
def line(points):
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    return slope, my - slope * mx

"""
SHOW = 'print("answer", round({}, 4))\nprint("changed", round({}, 4))\n'


class Dice:
    """Random numbers that do not depend on the version of Python."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return ((self.state >> 11) + 0.5) / 2**53


def problems():
    dice = Dice(20261127)

    def noise(size):
        return 1 + size * (2 * dice.unit() - 1)

    def csv(rows):
        return "\n".join(",".join(f"{cell:.5g}" for cell in row) for row in rows) + "\n"

    every = []

    def problem(**keys):
        every.append(keys)

    problem(
        id="cooling", question="data.csv has the temperature of a tank (minutes, degrees). The tank was filled with water of 80 degrees and stands in a cellar. When does it reach 25 degrees, in minutes? When would it, had it been filled with 90 degrees?",
        data=csv([t, (18 + 62 * math.exp(-0.035 * t)) * noise(0.002)] for t in range(0, 101, 5)),
        truth={"answer": math.log(62 / 7) / 0.035, "changed": math.log(72 / 7) / 0.035}, possible=[1, 600], assumption="levels off",
        look=READ + 'print("lowest", round(min(r[1] for r in rows), 1), "fall in the last ten minutes", round(rows[-3][1] - rows[-1][1], 1))\n',
        analysis="The temperature levels off well above zero: it decays towards the level of the surroundings, which is not given.", slip="The temperature decays exponentially to zero.",
        model="T = Ta + (T0 - Ta) exp(-k t), where Ta and k are fitted by least squares.", method="decay towards a level",
        solve=READ + LINE + "best = min((sum((y - a * x - b) ** 2 for x, y in points), -a, Ta) for Ta in [i / 10 for i in range(0, 195)] for points in [[(t, math.log(T - Ta)) for t, T in rows[:14]]] for a, b in [line(points)])\n_, k, Ta = best\n" + SHOW.format("math.log((80 - Ta) / (25 - Ta)) / k", "math.log((90 - Ta) / (25 - Ta)) / k"),
        usual=READ + LINE + "a, b = line([(t, math.log(T)) for t, T in rows[:10]])\n" + SHOW.format("math.log(80 / 25) / -a", "math.log(90 / 25) / -a"), unit="minutes")
    problem(
        id="fishery", question="data.csv has the number of fish in a lake without fishing (year, thousands). How many thousand fish can be taken a year for ever, at most? How many, if the rate of growth falls by a fifth?",
        data=csv([t, 1200 / (1 + 11 * math.exp(-0.45 * t)) * noise(0.003)] for t in range(0, 16)),
        truth={"answer": 0.45 * 1200 / 4, "changed": 0.36 * 1200 / 4}, possible=[1, 1200], assumption="saturates",
        look=READ + 'print("growth at first", round(rows[1][1] / rows[0][1], 2), "growth at last", round(rows[-1][1] / rows[-2][1], 2))\n',
        analysis="The growth slows down: the population saturates at a capacity of the lake.", slip="The population grows by a constant rate.",
        model="dN/dt = r N (1 - N / K); the sustainable yield is r K / 4.", method="growth that saturates",
        solve=READ + LINE + "a, b = line([(1 / p[1], 1 / q[1]) for p, q in zip(rows, rows[1:])])\nr, K = -math.log(a), (1 - a) / b\n" + SHOW.format("r * K / 4", "0.8 * r * K / 4"),
        usual=READ + LINE + "a, b = line([(t, math.log(n)) for t, n in rows])\n" + SHOW.format("(math.exp(a) - 1) * rows[-1][1]", "(math.exp(0.8 * a) - 1) * rows[-1][1]"), unit="thousand fish a year")
    erlang = "def wait(n, calls, rate):\n    a = calls / rate\n    if n <= a:\n        return 99.0\n    last = a ** n / math.factorial(n) * n / (n - a)\n    return last / (sum(a ** i / math.factorial(i) for i in range(n)) + last) / (n * rate - calls) * 60\n\n\ndef least(calls):\n    return next(n for n in range(1, 60) if wait(n, calls, 15) < 3)\n\n\n"
    calls = [4, 3, 3, 2, 3, 5, 9, 18, 31, 44, 56, 74, 62, 41, 33, 30, 28, 26, 20, 15, 11, 8, 6, 5]
    scope = {"math": math}
    exec(erlang, scope)
    problem(
        id="call-centre", question="data.csv has the calls at a hotline (hour, calls). An agent takes 15 calls an hour. How many agents must be there so that nobody waits for more than 3 minutes on average at any time? How many, with a fifth more calls?",
        data=csv([h, c] for h, c in enumerate(calls)), truth={"answer": scope["least"](74), "changed": scope["least"](74 * 1.2)}, possible=[1, 60], assumption="peak",
        look=READ + 'print("mean", round(sum(r[1] for r in rows) / 24, 1), "most", max(r[1] for r in rows))\n',
        analysis="The arrivals are not even: the peak hour has more than three times the mean, so the queue of the peak decides.", slip="The arrivals are even over the day.",
        model="M/M/n queue by Erlang C at the arrivals of the peak hour.", method="waiting in a queue with several servers",
        solve=READ + erlang + SHOW.format("least(max(r[1] for r in rows))", "least(1.2 * max(r[1] for r in rows))"),
        usual=READ + erlang + SHOW.format("least(sum(r[1] for r in rows) / 24)", "least(1.2 * sum(r[1] for r in rows) / 24)"), unit="agents")
    demand = [round((42 if dice.unit() < 0.7 else 118) * noise(0.1)) for _ in range(90)]
    ranked = sorted(demand)
    problem(
        id="bakery", question="data.csv has the loaves that customers wanted (day, loaves). A loaf costs 2 and sells at 5; what is left is thrown away. How many loaves should be baked? How many, if a loaf costs 1?",
        data=csv([d, n] for d, n in enumerate(demand)), truth={"answer": ranked[math.ceil(0.6 * 90) - 1], "changed": ranked[math.ceil(0.8 * 90) - 1]}, possible=[1, 200], assumption="two kinds of days",
        look=READ + 'n = sorted(r[1] for r in rows)\nprint("mean", round(sum(n) / len(n)), "deciles", [round(n[9 * i]) for i in range(10)])\n',
        analysis="There are two kinds of days, so the mean demand is the demand of no day, and a quantile of the data must be used.", slip="The demand is spread evenly around its mean.",
        model="Order the quantile (price - cost) / price of the observed demand.", method="order for one period with uncertain demand",
        solve=READ + "n = sorted(r[1] for r in rows)\ndef quantile(q):\n    return n[math.ceil(q * len(n)) - 1]\n" + SHOW.format("quantile(3 / 5)", "quantile(4 / 5)"),
        usual=READ + "mean = sum(r[1] for r in rows) / len(rows)\n" + SHOW.format("mean", "mean"), unit="loaves")
    villages = [[2, 3, 120], [3, 5, 180], [4, 4, 150], [3, 2, 90], [5, 3, 140], [4, 6, 110], [2, 4, 130], [40, 30, 160]]

    def median(points):
        x, y = 4.0, 4.0
        for _ in range(3000):
            w = [p / max(math.hypot(a - x, b - y), 1e-9) for a, b, p in points]
            x, y = sum(v * a for v, (a, _, _) in zip(w, points)) / sum(w), sum(v * b for v, (_, b, _) in zip(w, points)) / sum(w)
        return math.hypot(x, y)

    problem(
        id="depot", question="data.csv has villages (x, y, inhabitants; kilometres). A depot is to be built where the sum over all inhabitants of the way to it is least. How far is it from the point (0, 0)? How far, if the last village has half its inhabitants?",
        data=csv(villages), truth={"answer": median(villages), "changed": median(villages[:-1] + [[40, 30, 80]])}, possible=[0, 60], assumption="far away",
        look=READ + 'print("largest distance from the first village", round(max(math.hypot(r[0] - rows[0][0], r[1] - rows[0][1]) for r in rows), 1), "smallest but one", round(sorted(math.hypot(r[0] - rows[0][0], r[1] - rows[0][1]) for r in rows)[1], 1))\n',
        analysis="One village is far away from all others, so the centre of gravity is not the place with the least sum of distances.", slip="The centre of gravity is the best place.",
        model="Minimise the weighted sum of distances by Weiszfeld's iteration.", method="place with the least sum of distances",
        solve=READ + "def place(rows):\n    x, y = 4.0, 4.0\n    for _ in range(2000):\n        w = [p / max(math.hypot(a - x, b - y), 1e-9) for a, b, p in rows]\n        x = sum(v * r[0] for v, r in zip(w, rows)) / sum(w)\n        y = sum(v * r[1] for v, r in zip(w, rows)) / sum(w)\n    return math.hypot(x, y)\n\n\n" + SHOW.format("place(rows)", "place(rows[:-1] + [[rows[-1][0], rows[-1][1], rows[-1][2] / 2]])"),
        usual=READ + "def place(rows):\n    n = sum(r[2] for r in rows)\n    return math.hypot(sum(r[0] * r[2] for r in rows) / n, sum(r[1] * r[2] for r in rows) / n)\n\n\n" + SHOW.format("place(rows)", "place(rows[:-1] + [[rows[-1][0], rows[-1][1], rows[-1][2] / 2]])"), unit="kilometres")
    problem(
        id="dosing", question="data.csv has the concentration of a drug after a dose (hours, mg/l). When must the next dose be given, in hours after the first, so that the concentration does not fall below 4 mg/l? When, if 2 mg/l are enough?",
        data=csv([t / 2, 20 * math.exp(-0.115 * t / 2) * noise(0.004)] for t in range(0, 17)), truth={"answer": math.log(5) / 0.115, "changed": math.log(10) / 0.115}, possible=[8, 48], assumption="in proportion",
        look=READ + 'print("fall in the first hour", round(rows[0][1] - rows[2][1], 2), "fall in the last hour", round(rows[-3][1] - rows[-1][1], 2))\n',
        analysis="The fall slows down with the concentration: elimination is in proportion to what is left.", slip="The concentration falls by the same amount every hour.",
        model="c = c0 exp(-k t), fitted to the logarithms.", method="elimination in proportion to what is left",
        solve=READ + LINE + "a, b = line([(t, math.log(c)) for t, c in rows])\n" + SHOW.format("(b - math.log(4)) / -a", "(b - math.log(2)) / -a"),
        usual=READ + LINE + "a, b = line([(t, c) for t, c in rows])\n" + SHOW.format("(4 - b) / a", "(2 - b) / a"), unit="hours")
    problem(
        id="drainage", question="data.csv has the height of the water in a draining basin (seconds, metres). When is it empty, in seconds? When would it be, had the water stood at 1 metre at first?",
        data=csv([t, (math.sqrt(2) - 0.01 * t) ** 2 * noise(0.002)] for t in range(0, 61, 4)), truth={"answer": math.sqrt(2) / 0.01, "changed": 100}, possible=[60, 1000], assumption="square root",
        look=READ + 'print("steps of the height", round(rows[0][1] - rows[1][1], 3), round(rows[-2][1] - rows[-1][1], 3))\n',
        hidden="the root of the height falls by the same amount",
        analysis="The square root of the height falls evenly: the outflow depends on the height.", slip="The height falls evenly.",
        model="dh/dt = -2 c sqrt(h), so sqrt(h) is linear in time.", method="outflow of a vessel under its own head",
        solve=READ + LINE + "a, b = line([(t, math.sqrt(h)) for t, h in rows])\n" + SHOW.format("-b / a", "-1 / a"),
        usual=READ + LINE + "a, b = line(rows)\n" + SHOW.format("-b / a", "-1 / a"), unit="seconds")
    costs, gains = [12, 7, 11, 8, 9, 6, 7, 3], [24, 13, 23, 15, 16, 11, 14, 7]

    def best(budget):
        table = [0] * (budget + 1)
        for c, g in zip(costs, gains):
            for b in range(budget, c - 1, -1):
                table[b] = max(table[b], table[b - c] + g)
        return table[budget]

    problem(
        id="projects", question=f"Eight projects cost {costs} and bring {gains}. Each can be done once. What is the most that a budget of 25 brings? What, with a budget of 30? (data.csv has the two lists as columns.)",
        data=csv(zip(costs, gains)), truth={"answer": best(25), "changed": best(30)}, possible=[1, sum(gains)], assumption="once", look=READ + 'print("projects", len(rows))\n',
        analysis="Each project is done once or not at all.", slip=None, model="0-1 knapsack by dynamic programming.", method="choice under a budget",
        solve=READ + "def most(budget):\n    table = [0] * (budget + 1)\n    for cost, gain in rows:\n        for b in range(budget, int(cost) - 1, -1):\n            table[b] = max(table[b], table[b - int(cost)] + gain)\n    return table[budget]\n\n\n" + SHOW.format("most(25)", "most(30)"),
        usual=READ + "def most(budget):\n    total = 0\n    for cost, gain in sorted(rows, key=lambda r: -r[1] / r[0]):\n        if cost <= budget:\n            budget, total = budget - cost, total + gain\n    return total\n\n\n" + SHOW.format("most(25)", "most(30)"), unit="units")
    problem(
        id="bridge", question="A bridge has 9,000 cars a day, 4 % more every year, and room for 14,000. In how many years is it full? In how many, with 3 % a year? (data.csv has the four numbers.)",
        data="9000,14000,4,3\n", truth={"answer": math.log(14 / 9) / math.log(1.04), "changed": math.log(14 / 9) / math.log(1.03)}, possible=[1, 100], assumption="constant rate", look=READ + 'print("rows", len(rows))\n',
        analysis="The traffic grows by a constant rate.", slip=None, model="v0 g^t = capacity.", method="growth by a constant rate",
        solve=READ + "v, c, p, q = rows[0]\n" + SHOW.format("math.log(c / v) / math.log(1 + p / 100)", "math.log(c / v) / math.log(1 + q / 100)"),
        usual=READ + "v, c, p, q = rows[0]\n" + SHOW.format("(c - v) / (v * p / 100)", "(c - v) / (v * q / 100)"), unit="years")
    problem(
        id="store", question="A shop sells 2,400 screws a year, evenly. An order costs 30, and a screw in store 0.4 a year. How many should be ordered at a time? How many, if an order costs 15? (data.csv has the four numbers.)",
        data="2400,30,0.4,15\n", truth={"answer": 600, "changed": math.sqrt(2 * 2400 * 15 / 0.4)}, possible=[1, 2400], assumption="evenly", look=READ + 'print("rows", len(rows))\n',
        analysis="Sales go on evenly, so costs of orders and of storage are to be balanced.", slip=None, model="Q = sqrt(2 D K / h).", method="order size for even sales",
        solve=READ + "D, K, h, other = rows[0]\n" + SHOW.format("math.sqrt(2 * D * K / h)", "math.sqrt(2 * D * other / h)"),
        usual=READ + "D, K, h, other = rows[0]\n" + SHOW.format("D / 12", "D / 12"), unit="screws")
    return every


METHODS = [  # domain, subdomain, method, what it is for
    ("Differential equations", "first order", "decay towards a level", "The temperature or charge decays towards the level of the surroundings. The rate is in proportion to the distance from the level, which is fitted too."),
    ("Differential equations", "first order", "growth by a constant rate", "Traffic, money or cells grow by a constant rate. The logarithm is linear in time."),
    ("Differential equations", "first order", "growth that saturates", "A population saturates at a capacity. The logistic law has the rate and the capacity; the largest sustainable yield is at half of it."),
    ("Differential equations", "first order", "elimination in proportion to what is left", "A drug is eliminated in proportion to what is left. The logarithms of the concentration are on a line."),
    ("Differential equations", "first order", "outflow of a vessel under its own head", "The outflow depends on the height of the water. The square root of the height falls evenly."),
    ("Differential equations", "systems", "predators and prey", "Two populations drive each other through cycles."),
    ("Differential equations", "systems", "spread of an infection", "Susceptible, infected and recovered people in three compartments."),
    ("Differential equations", "partial", "conduction of heat", "The temperature in a wall depends on place and time."),
    ("Operations research", "queues", "waiting in a queue with several servers", "Arrivals at a queue with several servers: Erlang's formula gives the mean wait in the peak hour."),
    ("Operations research", "queues", "waiting in a queue with one server", "The mean wait at one server grows without bound as its load nears one."),
    ("Operations research", "inventory", "order for one period with uncertain demand", "The demand of a day is uncertain, and what is left is lost. The order is a quantile of the demand."),
    ("Operations research", "inventory", "order size for even sales", "Sales go on evenly. The costs of orders and of storage are balanced by a square root."),
    ("Operations research", "location", "place with the least sum of distances", "The place with the least weighted sum of distances to villages or customers is not the centre of gravity; it is found by iteration."),
    ("Operations research", "location", "cover of all demand", "As few places as possible reach all villages within a distance."),
    ("Operations research", "discrete optimisation", "choice under a budget", "Each project is done once or not at all under a budget: dynamic programming."),
    ("Operations research", "discrete optimisation", "shortest tour", "A tour visits each place once."),
    ("Operations research", "networks", "largest flow", "The largest flow through a network is its smallest cut."),
    ("Statistics", "regression", "straight line by least squares", "A quantity grows or falls evenly with another."),
    ("Statistics", "regression", "several predictors", "Several predictors explain a quantity; their effects add up."),
    ("Statistics", "time series", "seasons and trend", "A series is a trend, a season of the year and a rest."),
    ("Statistics", "decision", "test of two means", "Two groups are compared by their means."),
    ("Evaluation", "weights", "pairwise comparison of criteria", "Weights of criteria come from their comparison in pairs."),
]


def run(code, data):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.py").write_text(code)
        Path(folder, "data.csv").write_text(data)
        done = subprocess.run([sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "methods.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for n, (domain, subdomain, method, text) in enumerate(METHODS):
            file.write(json.dumps({"id": f"m{n + 1:02}", "title": f"{domain}: {subdomain}", "text": f"Method: {method}. {text}"}) + "\n")
    with open(OUT / "problems.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for p in problems():
            look, solve, usual = (f"import math\n\n{p[key]}" for key in ("look", "solve", "usual"))
            seen, right, other = (run(code, p["data"]) for code in (look, solve, usual))
            value, false = right.split()[1], other.split()[1]

            def report(number, said):
                return f"Assumption: {said}\nResult: {number} {p['unit']}. The program gives the value after the change, too."

            def whole(code, text):
                return f"### main.py\n```python\n{code}```\n### report.md\n{text}\n"

            slip, needs = p["slip"], bool(p["slip"])
            program_needs = ([p["model"]] if needs else []) + (["name 'math' is not defined"] if p["id"] in FORGETS else [])
            said = slip or "The usual formula holds."
            parts = {
                "look": {"gold": look},
                "analysis": {"gold": p["analysis"], "wrong": [said], "plan": [{"finds": p.get("hidden", seen.strip())}] if needs else []},
                "model": {"gold": p["model"], "wrong": ["The usual formula holds."], "plan": [{"finds": p["analysis"]}, {"finds": p["method"]}] if needs else []},
                "program": {"gold": solve, "wrong": [p["solve"] if p["id"] in FORGETS else usual], "plan": [{"finds": text} for text in program_needs]},
                "report": {"gold": report(value, p["analysis"]), "wrong": [report(false, said)], "plan": [{"finds": f"answer {value}"}]},
            }
            file.write(json.dumps({
                "id": p["id"], "question": p["question"] + " Programs read data.csv and print two lines, `answer NUMBER` and `changed NUMBER`.", "kind": "from the data" if needs else "from the statement",
                "answer": whole(solve, report(value, p["analysis"])), "wrong": [whole(usual, report(false, said))], "plan": [{"finds": p["analysis"]}] if needs else [],
                "data": p["data"], "truth": {k: round(v, 4) for k, v in p["truth"].items()}, "possible": p["possible"], "assumption": p["assumption"], "parts": parts,
            }) + "\n")


if __name__ == "__main__":
    main()
