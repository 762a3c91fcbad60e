"""Compares NashConv by polity-games and OpenSpiel after the same iterations. usage: openspiel.py EXAMPLE

EXAMPLE is the built example `cfr` of polity-games. Prints a table; the exit status is 1 if a value differs by more than 1e-9, or on Leduc
by more than 15 % after more than 100 iterations. There, rounding decides ties between regrets of 0, and all later strategies depend on
them: CFR+ with all payoffs multiplied by 3, which is the same game, differs by 7 % after 1,000 iterations (a test of cfr shows it).
"""
import json
import subprocess
import sys
import time

import pyspiel

GAMES = [("kuhn", "kuhn_poker"), ("kuhn-3", "kuhn_poker(players=3)"), ("leduc", "leduc_poker")]
SOLVERS = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}
STOPS = [1, 10, 100, 1000]


def tolerance(game, iterations, value):
    return 0.15 * value if game == "leduc" and iterations > 100 else 1e-9


def theirs(game, solver):
    """NashConv after each stop, and iterations a second."""
    solver, done, seconds, found = solver(game), 0, 0.0, {}
    for stop in STOPS:
        start = time.perf_counter()
        for _ in range(stop - done):
            solver.evaluate_and_update_policy()
        seconds += time.perf_counter() - start
        done = stop
        found[stop] = pyspiel.nash_conv(game, solver.average_policy(), True)
    return found, done / seconds


def main(example):
    equal = True
    print("| game | variant | iterations | NashConv, ours | OpenSpiel | difference | agrees |")
    print("|---|---|---|---|---|---|---|")
    rates = []
    for name, peer_name in GAMES:
        game = pyspiel.load_game(peer_name)
        command = [example, "json", name, *map(str, STOPS)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        ours = {(row["variant"], row["iterations"]): row["nash_conv"] for row in map(json.loads, lines)}
        for variant, solver in SOLVERS.items():
            found, rate = theirs(game, solver)
            rates.append((name, variant, rate))
            for stop, value in found.items():
                mine = ours[variant, stop]
                difference = abs(mine - value)
                agrees = difference <= tolerance(name, stop, value)
                equal &= agrees
                print(f"| {name} | {variant} | {stop} | {mine:.9f} | {value:.9f} | {difference:.1e} | {'yes' if agrees else 'NO'} |")
    print("\nOpenSpiel's iterations a second (ours: cargo run --release -p polity-games --example cfr):")
    for name, variant, rate in rates:
        print(f"  {name} {variant}: {rate:.0f}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
