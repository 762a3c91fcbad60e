"""Compares polity_stats::evaluation with the package rliable: figures to 1e-12, ends of intervals within the error of the resamples."""

import subprocess
import sys
import warnings

import numpy as np
from rliable import library, metrics

warnings.simplefilter("ignore", FutureWarning)

# Resamples of rliable, which takes some minutes for them.
REPS = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
THRESHOLDS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5])
AGGREGATES = {
    "iqm": metrics.aggregate_iqm,
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


def score_sets():
    """Pairs of learners, each a matrix of runs by tasks."""
    draws = np.random.default_rng(7)
    yield "near normal", draws.normal(0.7, 0.2, (10, 5)), draws.normal(0.6, 0.3, (10, 5))
    yield "one task", draws.normal(0.5, 0.2, (10, 1)), draws.normal(0.5, 0.2, (10, 1))
    yield "outliers", np.exp(draws.normal(-0.5, 1.0, (5, 26))), np.exp(draws.normal(-0.7, 1.2, (5, 26)))
    yield "ties", draws.integers(0, 4, (8, 3)) / 3, draws.integers(0, 4, (8, 3)) / 3
    yield "other numbers of runs", draws.normal(0.9, 0.3, (6, 4)), draws.normal(0.8, 0.3, (12, 4))
    yield "thirty seeds", draws.beta(2, 3, (30, 2)), draws.beta(3, 3, (30, 2))


def block(scores):
    return "\n".join(" ".join(repr(float(x)) for x in task) for task in scores.T)


def ours(program, x, y):
    text = "\n\n".join([block(x), block(y), " ".join(map(repr, THRESHOLDS.tolist()))])
    lines = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: list(map(float, figures)) for name, *figures in map(str.split, lines)}


def fixed():
    return np.random.RandomState(1)


def theirs(x, y):
    found = {}
    for name, scores in [("x", x), ("y", y)]:
        for metric, of in AGGREGATES.items():
            point, interval = library.get_interval_estimates({name: scores}, lambda s: np.array([of(s)]), reps=REPS, random_state=fixed())
            found[f"{name}.{metric}"] = [point[name][0], *interval[name][:, 0]]
        points, intervals = library.create_performance_profile({name: scores}, THRESHOLDS, reps=REPS)
        for at in range(len(THRESHOLDS)):
            found[f"{name}.profile.{at}"] = [points[name][at], *intervals[name][:, at]]
    pair = {"x,y": (x, y)}
    point, interval = library.get_interval_estimates(pair, metrics.probability_of_improvement, reps=REPS, random_state=fixed())
    found["improvement"] = [point["x,y"], *np.ravel(interval["x,y"])]
    return found


def main():
    program, failed, worst = sys.argv[1], 0, {"figure": 0.0, "end": 0.0}
    for name, x, y in score_sets():
        own, other = ours(program, x, y), theirs(x, y)
        assert own.keys() == other.keys(), (own.keys(), other.keys())
        for key, (figure, low, high) in own.items():
            point, *ends = map(float, other[key])
            width = ends[1] - ends[0]
            # Of quantiles at 2.5 % of 10,000 resamples and of rliable's; profiles and ties move in steps.
            part = 0.01 + 2.8 / REPS**0.5
            step = 1 / x.size if "profile" in key or name == "ties" else 0
            error = max(abs(low - ends[0]), abs(high - ends[1]))
            worst["figure"] = max(worst["figure"], abs(figure - point))
            worst["end"] = max(worst["end"], error / width if width > 0 and step == 0 else 0)
            if abs(figure - point) > 1e-12 or error > part * width + step + 1e-12:
                failed += 1
                print(f"{name}: {key} is {figure} [{low}, {high}], in rliable {point} {ends}")
        print(f"{name}: {len(own)} figures with intervals")
    print(f"largest difference of figures {worst['figure']:.1e}; of ends of intervals {worst['end']:.1%} of their width")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
