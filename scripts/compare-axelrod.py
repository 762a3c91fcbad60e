"""Plays all deterministic strategies of polity against each other with the library Axelrod, and compares every move.

    python compare-axelrod.py MOVES.json    # as `cargo run --release -p polity-games --example tournament -- --json` prints it

Prints a table of agreement: per strategy the pairs that are equal. Exits with 1 if any pair differs.
"""

import json
import re
import sys

import axelrod

# Names that differ from the library's.
NAMES = {
    "davis": "First by Davis",
    "downing": "First by Downing",
    "nydegger": "First by Nydegger",
    "shubik": "First by Shubik",
    "gladstein": "Second by Gladstein",
    "tester": "Second by Tester",
    "go-by-majority": "Soft Go By Majority",
}


def plain(name):
    return re.sub("[^a-z0-9]", "", name.lower())


KINDS = {}
for kind in axelrod.all_strategies:
    for known in (kind.name, kind().name):
        KINDS.setdefault(plain(known), kind)


# Those that the library does not list.
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
        differ.append(f"{' against '.join(pair['names'])}: first at turn {turn and turn + 1}")

print(f"axelrod {axelrod.__version__}: {len(names)} deterministic strategies, {len(pairs)} pairs, {turns} turns")
for name, (same, all_) in equal.items():
    print(f"{name:<28} {same:>3} of {all_} pairs equal")
print(f"pairs equal, move by move and in score: {len(pairs) - len(differ)} of {len(pairs)}")
if differ:
    sys.exit("\n".join(differ))
