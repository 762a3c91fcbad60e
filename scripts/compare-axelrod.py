"""Compares matches of Polity's strategies with the same matches in the library Axelrod: every move of the deterministic strategies, and
the mean scores of the random ones against a few opponents.

    python compare-axelrod.py MOVES.json SCORES.json    # by the example `tournament` of polity-games, with --json and --scores

Prints a table of agreement per strategy. Exits with 1 if any pair of moves differs, or a mean by more than 4.5 standard errors.
"""

import json
import re
import sys
from statistics import mean, variance

import axelrod

# Names that differ from the library's.
NAMES = {
    "davis": "First by Davis",
    "downing": "First by Downing",
    "nydegger": "First by Nydegger",
    "shubik": "First by Shubik",
    "gladstein": "Second by Gladstein",
    "tester": "Second by Tester",
    "joss": "First by Joss",
    "grofman": "First by Grofman",
    "tullock": "First by Tullock",
    "feld": "First by Feld",
    "champion": "Second by Champion",
    "eatherley": "Second by Eatherley",
    "tranquilizer": "Second by Tranquilizer",
    "go-by-majority": "Soft Go By Majority",
}


def plain(name):
    return re.sub("[^a-z0-9]", "", name.lower())


KINDS = {}
for kind in axelrod.all_strategies:
    for known in (kind.name, kind().name):
        KINDS.setdefault(plain(known), kind)


# Strategies that the library does not list.
UNLISTED = {
    "memory-one": lambda: axelrod.MemoryOnePlayer((1, 0, 0, 1)),
    "reactive": lambda: axelrod.ReactivePlayer((1, 0)),
}


def player(name):
    if name in UNLISTED:
        return UNLISTED[name]()
    wanted = plain(NAMES.get(name, name))
    if wanted not in KINDS:
        sys.exit(f"the library has no strategy {name}")
    return KINDS[wanted]()


results = json.load(open(sys.argv[1]))
pairs = results["pairs"]
names = list(dict.fromkeys(name for pair in pairs for name in pair["names"]))
equal = {name: [0, 0] for name in names}
differ = []
for pair in pairs:
    players = [player(name) for name in pair["names"]]
    turns = len(pair["moves"][0])
    match = axelrod.Match(players, turns=turns, noise=0)
    played = ["".join(str(turn[side]) for turn in match.play()) for side in (0, 1)]
    same = played == pair["moves"] and list(match.final_score()) == pair["scores"]
    for name in set(pair["names"]):
        equal[name][0] += same
        equal[name][1] += 1
    if not same:
        turn = next((i for i in range(turns) if [side[i] for side in played] != [side[i] for side in pair["moves"]]), None)
        where = "only in score" if turn is None else f"first at turn {turn + 1}"
        differ.append(f"{' against '.join(pair['names'])}: {where}")

print(f"axelrod {axelrod.__version__}: {len(names)} deterministic strategies, {len(pairs)} pairs, {turns} turns")
for name, (same, all_) in equal.items():
    print(f"{name:<28} {same:>3} of {all_} pairs equal")
print(f"pairs equal, move by move and in score: {len(pairs) - len(differ)} of {len(pairs)}")

# Random strategies: mean scores over repetitions, in standard errors of the difference.
OPPONENTS = ["tit-for-tat", "defector", "alternator", "win-stay-lose-shift", "random"]
REPETITIONS, LIMIT = 60, 4.5
scores = {}
own_repetitions = None
for pair in json.load(open(sys.argv[2]))["pairs"]:
    (one, two), (first, second) = pair["names"], pair["scores"]
    # Both files have matches of the same length.
    own_repetitions = pair["turns"] // turns
    means = first / own_repetitions, second / own_repetitions
    scores[one, two], scores[two, one] = means, means[::-1]
random = [name for name in dict.fromkeys(one for one, _ in scores) if name not in equal]
print(f"\n{len(random)} random strategies, {turns} turns, {REPETITIONS} repetitions by the library and {own_repetitions} by Polity")
for name in random:
    worst = 0
    for seed, opponent in enumerate(OPPONENTS):
        sample = []
        for repetition in range(REPETITIONS):
            players = [player(name), player(opponent)]
            match = axelrod.Match(players, turns=turns, seed=1000 * seed + repetition)
            match.play()
            sample.append([float(score) for score in match.final_score()])
        for side, own in enumerate(scores[name, opponent]):
            values = [score[side] for score in sample]
            error = (variance(values) * (1 / REPETITIONS + 1 / own_repetitions)) ** 0.5
            difference = abs(mean(values) - own)
            deviation = difference / error if error else (0 if difference < 1e-9 else float("inf"))
            worst = max(worst, deviation)
            if deviation > LIMIT:
                differ.append(f"{name} against {opponent}, player {side + 1}: {mean(values)} by the library, {own} by Polity")
    print(f"{name:<28} largest difference of means: {worst:.1f} standard errors")
if differ:
    sys.exit("\n".join(differ))
