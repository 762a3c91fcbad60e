#!/usr/bin/env python3
"""How far ten judges agree with people on 95 tasks: the labels of `judges.csv`, from the authors' repository at a928e57 (Apache 2.0).

A judge's label is the last status that its text names.
"""

import csv
from pathlib import Path

rows = list(csv.DictReader(open(Path(__file__).resolve().parent / "judges.csv", encoding="utf-8")))
human = [row["human"] == "success" for row in rows]


def share(labels):
    return sum(labels) / len(labels)


for judge in list(rows[0])[2:]:
    says = [row[judge] == "success" for row in rows]
    same = share([a == b for a, b in zip(says, human)])
    chance = share(says) * share(human) + (1 - share(says)) * (1 - share(human))
    print(f"{judge:16} agrees {same:6.1%}  kappa {(same - chance) / (1 - chance):.2f}  finds success in {share(says):.1%} (people: {share(human):.1%})")
