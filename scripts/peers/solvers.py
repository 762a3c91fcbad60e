"""Writes random games in Gambit's format, and compares their solutions (see ../solvers.sh) with other solvers'."""

import itertools
import json
import random
import sys
import warnings
from pathlib import Path

import nashpy
import numpy as np
from scipy.optimize import linprog

TOLERANCE = 1e-7


def write(folder):
    draw = random.Random(27)
    kinds = [(2, 2), (2, 3), (3, 3), (3, 4), (4, 4)]
    for number in range(200):
        save(folder / f"random-{number:03}.nfg", kinds[number % 5], lambda n: [draw.uniform(-1, 1) for _ in range(n)])
    for number in range(50):

        def zero_sum(n):
            half = [draw.uniform(-1, 1) for _ in range(n // 2)]
            return [x for payoff in half for x in (payoff, -payoff)]

        save(folder / f"zero-{number:03}.nfg", kinds[number % 5], zero_sum)
    for number in range(50):
        sizes = [(2, 2, 2), (3, 2, 2), (2, 2, 2, 2)][number % 3]
        save(folder / f"several-{number:03}.nfg", sizes, lambda n: [draw.uniform(-1, 1) for _ in range(n)])


def save(file, sizes, payoffs):
    quoted = lambda names: "{ " + " ".join(f'"{name}"' for name in names) + " }"
    strategies = " ".join(quoted(range(1, size + 1)) for size in sizes)
    numbers = payoffs(int(np.prod(sizes)) * len(sizes))
    players = quoted(f"P{player + 1}" for player in range(len(sizes)))
    file.write_text(f'NFG 1 R "random" {players} {{ {strategies} }}\n\n{" ".join(map(repr, numbers))}\n')


def read(file):
    """The payoffs as an array: players, then one dimension for each player's strategies."""
    head, numbers = Path(file).read_text().split("\n\n")
    lists = head.split("{ {")[1].split("}")
    sizes = [len(part.replace("{", "").split()) for part in lists if part.strip()]
    flat = np.array([float(number) for number in numbers.split()]).reshape(-1, len(sizes))
    return np.array([flat[:, player].reshape(sizes, order="F") for player in range(len(sizes))])


def profile(found):
    return np.concatenate([np.array(own) for own in found["strategies"]])


def same(ours, theirs):
    close = lambda a, many: any(np.abs(a - b).max() < TOLERANCE for b in many)
    return len(ours) == len(theirs) and all(close(a, theirs) for a in ours) and all(close(b, ours) for b in theirs)


def correlated_welfare(payoffs, coarse):
    """The greatest sum of payoffs in a correlated equilibrium, by HiGHS."""
    sizes = payoffs.shape[1:]
    cells = list(itertools.product(*map(range, sizes)))
    rows = []
    for player, size in enumerate(sizes):
        moved = lambda cell, instead: cell[:player] + (instead,) + cell[player + 1 :]
        gain = lambda cell, instead: payoffs[player][moved(cell, instead)] - payoffs[player][cell]
        for told, instead in itertools.product(range(size), repeat=2):
            if not coarse:
                rows.append([gain(cell, instead) if cell[player] == told else 0 for cell in cells])
            elif told == 0:
                rows.append([gain(cell, instead) for cell in cells])
    welfare = [payoffs[(slice(None), *cell)].sum() for cell in cells]
    best = linprog(-np.array(welfare), rows, np.zeros(len(rows)), [np.ones(len(cells))], [1])
    return -best.fun


def commitment(payoffs):
    """The first player's payoff in the strong Stackelberg equilibrium, by HiGHS."""
    leader, follower = payoffs
    values = []
    for reply in range(leader.shape[1]):
        rows = follower.T - follower[:, reply]
        best = linprog(-leader[:, reply], rows, np.zeros(len(rows)), [np.ones(len(leader))], [1])
        if best.status == 0:
            values.append(-best.fun)
    return max(values)


def value(payoffs):
    """The value of a zero-sum game, by HiGHS."""
    m, n = payoffs[0].shape
    rows = np.hstack([-payoffs[0].T, np.ones((n, 1))])
    best = linprog([0] * m + [-1], rows, np.zeros(n), [[1] * m + [0]], [1], bounds=[(0, None)] * m + [(None, None)])
    return -best.fun


def pure(payoffs):
    """The pure Nash equilibria: each player's strategy has the highest payoff along its own dimension."""
    best = [payoffs[player] == payoffs[player].max(axis=player, keepdims=True) for player in range(len(payoffs))]
    return np.argwhere(np.all(best, axis=0)).tolist()


def expected(payoffs, strategies, player):
    """The payoffs of a player's strategies."""
    rest = payoffs[player]
    for other in reversed(range(len(strategies))):
        if other != player:
            rest = np.tensordot(rest, strategies[other], axes=([other], [0]))
    return rest


def logit(payoffs, rate):
    """The fixed point of logit responses, damped, from equal probabilities."""
    strategies = [np.full(size, 1 / size) for size in payoffs.shape[1:]]
    for _ in range(20_000):
        before = strategies
        responses = []
        for player in range(len(strategies)):
            weights = np.exp(rate * expected(payoffs, strategies, player))
            responses.append(weights / weights.sum())
        strategies = [0.9 * own + 0.1 * new for own, new in zip(before, responses)]
        if max(np.abs(own - new).max() for own, new in zip(before, responses)) < 1e-13:
            break
    return strategies


def compare(file):
    agreed, missed = {}, 0

    def note(what, peer, agrees):
        right, all_ = agreed.get((what, peer), (0, 0))
        agreed[what, peer] = (right + bool(agrees), all_ + 1)

    for line in Path(file).read_text().splitlines():
        ours = json.loads(line)
        payoffs = read(ours["file"])
        found = [profile(one) for one in ours["nash"]["equilibria"]]
        near = lambda name, value: abs(sum(ours[name]["payoffs"]) - value) < TOLERANCE
        if len(payoffs) == 2:
            game = nashpy.Game(*payoffs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # nashpy compares payoffs without a tolerance here, so it misses some mixed equilibria, sometimes all of a game's.
                theirs = [np.concatenate(pair) for pair in game.support_enumeration()]
                missed += len(theirs) < len(found)
                known = [one for one in found if any(np.abs(one - other).max() < TOLERANCE for other in theirs)]
                note("Nash equilibria that nashpy's supports give", "nashpy, supports", same(known, theirs))
                theirs = [np.concatenate(pair) for pair in game.vertex_enumeration()]
                note("all Nash equilibria", "nashpy, vertices", same(found, theirs))
                for label, one in enumerate(ours["lemke_howson"]):
                    theirs = np.concatenate(game.lemke_howson(initial_dropped_label=label))
                    note("Lemke-Howson, each label", "nashpy", len(theirs) == len(found[0]) and same([profile(one)], [theirs]))
            note("Stackelberg", "HiGHS", abs(ours["stackelberg"]["payoffs"][0] - commitment(payoffs)) < TOLERANCE)
            if ours["zero_sum"]:
                note("value of zero-sum games", "HiGHS", abs(ours["zero_sum"]["payoffs"][0] - value(payoffs)) < TOLERANCE)
        else:
            note("limit of quantal responses", "one of all found", any(np.abs(profile(ours["traced"]) - one).max() < TOLERANCE for one in found))
        note("pure Nash equilibria", "NumPy", sorted(ours["pure"]) == pure(payoffs))
        note("correlated, welfare", "HiGHS", near("correlated", correlated_welfare(payoffs, False)))
        note("coarse-correlated, welfare", "HiGHS", near("coarse", correlated_welfare(payoffs, True)))
        # Where the map contracts, so that the fixed point is unique.
        quantal = ours["quantal"]
        theirs = np.concatenate(logit(payoffs, quantal["lambda"]))
        note("quantal responses, lambda 0.5", "fixed point", np.abs(profile(quantal) - theirs).max() < TOLERANCE)
    print("| what | beside | agree | of |\n|---|---|---|---|")
    for (what, peer), (right, all_) in agreed.items():
        print(f"| {what} | {peer} | {right} | {all_} |")
    print(f"\nIn {missed} games nashpy's support enumeration gives fewer equilibria than its vertex enumeration and this crate.")
    sys.exit(not agreed or any(right < all_ for right, all_ in agreed.values()))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        compare(sys.argv[2])
