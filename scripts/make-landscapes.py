#!/usr/bin/env python3
"""Makes data/landscapes: twenty research problems. A problem has twelve techniques, of which up to three can be combined; the accuracy of
a combination is a sum of single effects and of effects of pairs. In a third of the problems the best pair is of techniques that do harm
alone, so that building on what looks best leads away from it."""

import itertools
import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "landscapes"
TECHNIQUES = "anchoring branching critique drafting echoing framing grounding hinting iterating joining keying listing".split()


def accuracy(problem, combination):
    pairs = itertools.combinations(sorted(combination), 2)
    gain = sum(problem["single"][one] for one in combination) + sum(problem["pair"].get("+".join(pair), 0.0) for pair in pairs)
    return problem["base"] + gain


def main():
    rng = random.Random(20261130)
    rows = []
    for number in range(20):
        single = {one: round(rng.gauss(1.0, 2.0), 1) for one in TECHNIQUES}
        pair = {}
        for two in itertools.combinations(TECHNIQUES, 2):
            if rng.random() < 0.3:
                pair["+".join(two)] = round(rng.gauss(0.0, 2.5), 1)
        if number % 3 == 0:
            worst = sorted(sorted(TECHNIQUES, key=single.get)[:2])
            pair["+".join(worst)] = round(12.0 - single[worst[0]] - single[worst[1]], 1)
        problem = {"base": round(rng.uniform(50, 70), 1), "single": single, "pair": pair}
        every = [c for n in (1, 2, 3) for c in itertools.combinations(TECHNIQUES, n)]
        top = max(accuracy(problem, c) for c in every)
        problem["target"] = round(problem["base"] + 0.75 * (top - problem["base"]), 1)
        rows.append({
            "id": f"l{number + 1:02d}",
            "question": f"Research problem {number + 1}: which combination of at most three techniques is best? The techniques are "
                        f"{', '.join(TECHNIQUES)}. Without any the accuracy is {problem['base']} percent.",
            "answer": "reached", "techniques": TECHNIQUES, **problem, "top": round(top, 1),
            "parts": {"proposal": {"gold": "What the reports suggest."}},
        })
    # What a server holds of another problem, for a test in which retrieval brings the wrong reports.
    for number, row in enumerate(rows):
        other = rows[(number + 1) % len(rows)]
        tried = rng.sample([c for n in (1, 2) for c in itertools.combinations(TECHNIQUES, n)], 12)
        row["elsewhere"] = "\n".join(
            f"Laboratory {'ABC'[place % 3]}, experiment {1 + place // 3}: {'+'.join(c)} reaches {accuracy(other, c):.1f} percent."
            for place, c in enumerate(tried))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "problems.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


if __name__ == "__main__":
    main()
