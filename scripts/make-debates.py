#!/usr/bin/env python3
"""Makes data/debates: thirty motions about invented towns, a corpus with the evidence on them, and sixty debates, one for each side of
each motion.

Each motion has three aspects. The evidence on an aspect is of one of five kinds, and belongs to one side:
  direct      one document about the motion states the finding
  linked      a document about the motion names a study; only the study's own document states the finding
  chained     the study names an annex; only the annex states the finding
  superseded  a document about the motion states a finding for one side; a later correction, which does not name the motion, states the opposite
  none        nothing is known
"""

import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "debates"
HEAD = "Alt Birk Dorn Eich Fels Gold Hoch Kalt Lind Nied Ost Reh Stein".split()
TAIL = "au bruck feld hafen mund stadt".split()
NAME_HEAD = "Ab Bel Cor Dra Es Fi Gor Hul Im Ja Kel Lo Mir Nes Or Pel Qua Ru Sol Tem Ul Ver Wen Yar Zol".split()
NAME_TAIL = "dan dell fort gar lin mar nev rik sen tal vik".split()
KINDS = ["direct", "linked", "chained", "superseded", "none"]
MOTIONS = [
    ("policy", "close its old harbour to cars"), ("policy", "build a second bridge"), ("policy", "sell its forest"),
    ("policy", "lengthen the opening hours of shops"), ("policy", "found a school of music"), ("value", "put quiet before trade"),
    ("value", "put new houses before gardens"), ("value", "put history before comfort"), ("fact", "expect to gain from the new railway"),
    ("fact", "expect to gain from the dam"),
]
# Each aspect, and what it does when the measure is good for it.
ASPECTS = [
    ("noise", "fall"), ("rents", "fall"), ("accidents", "fall"), ("visitors", "rise"), ("jobs", "rise"), ("floods", "fall"),
    ("harvests", "rise"), ("waiting times", "fall"), ("repairs", "fall"), ("club members", "rise"),
]


def draw(rng, heads, tails, n):
    every = [head + tail for head in heads for tail in tails]
    rng.shuffle(every)
    return every[:n]


def main():
    rng = random.Random(20261187)
    towns = draw(rng, HEAD, TAIL, 30)
    names = iter(draw(rng, NAME_HEAD, NAME_TAIL, 250))
    documents, rows = [], []

    def document(title, text, year):
        documents.append({"id": f"d{len(documents) + 1:03d}", "title": title, "text": text, "date": f"{year}-{rng.randint(1, 12):02d}-15"})
        return documents[-1]["id"]

    def search(query, finds):
        return {"tool": "search", "arguments": {"query": query, "k": 3}, "finds": finds}

    for number, town in enumerate(towns):
        sort, measure = MOTIONS[number % len(MOTIONS)]
        motion = f"{town} should {measure}."
        aspects = []
        for aspect, good in rng.sample(ASPECTS, 3):
            kind = rng.choices(KINDS, [30, 25, 15, 20, 10])[0]
            holder = rng.choice(["pro", "con"])
            bad = {"fall": "rise", "rise": "fall"}[good]
            moves = {"pro": good, "con": bad}
            percent = rng.randint(4, 38)
            name, second = next(names), next(names)
            topic = f"On whether {town} should {measure}: {aspect}"
            fact, old, leads, source = None, None, [f"{town} {aspect}"] * 2, None
            if kind == "direct":
                fact = f"The {name} report says that {aspect} would {moves[holder]} by {percent} percent"
                source = document(topic, f"{fact}.", rng.randint(2015, 2024))
                plan = [search(motion, fact)]
            elif kind == "linked":
                fact = f"The {name} study says that {aspect} would {moves[holder]} by {percent} percent"
                document(topic, f"The effect on {aspect} was examined in the {name} study.", rng.randint(2015, 2018))
                source = document(f"{name} study", f"{fact}.", rng.randint(2019, 2024))
                leads = [f"{name} study"] * 2
                plan = [search(motion, f"examined in the {name} study"), search(f"{name} study", fact)]
            elif kind == "chained":
                fact = f"The {second} annex says that {aspect} would {moves[holder]} by {percent} percent"
                document(topic, f"The effect on {aspect} was examined in the {name} study.", rng.randint(2015, 2016))
                document(f"{name} study", f"The figures of the {name} study are in the {second} annex.", rng.randint(2017, 2018))
                source = document(f"{second} annex", f"{fact}.", rng.randint(2019, 2024))
                leads = [f"{name} study", f"{second} annex"]
                plan = [
                    search(motion, f"examined in the {name} study"),
                    search(f"{name} study", f"are in the {second} annex"),
                    search(f"{second} annex", fact),
                ]
            elif kind == "superseded":
                loser = {"pro": "con", "con": "pro"}[holder]
                claim = f"The {name} report says that {aspect} would {moves[loser]} by {percent} percent"
                old = [document(topic, f"{claim}.", rng.randint(2010, 2016)), claim]
                fact = f"The correction of the {name} report says that {aspect} would {moves[holder]} by {rng.randint(4, 38)} percent"
                source = document(f"Correction of the {name} report", f"{fact}.", rng.randint(2017, 2024))
                leads = [f"correction of the {name} report"] * 2
                plan = [search(motion, claim), search(f"correction of the {name} report", fact)]
            else:
                document(topic, f"The effect on {aspect} has not been examined.", rng.randint(2015, 2024))
                plan = []
            aspects.append({"aspect": aspect, "kind": kind, "holder": holder, "name": name, "fact": fact, "source": source, "old": old,
                            "leads": leads, "plan": plan})
        for side in ["pro", "con"]:
            rows.append(debate(rng, number, motion, sort, side, aspects))
    rng.shuffle(documents)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, table in [("documents.jsonl", documents), ("debates.jsonl", rows)]:
        (OUT / name).write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in table))


def debate(rng, number, motion, sort, side, aspects):
    """A debate in which `us` argues for a side of a motion, and `them` for the other."""
    sides = {"us": side, "them": {"pro": "con", "con": "pro"}[side]}
    parts, evidence = {}, {}
    for who, stands in sides.items():
        best = None
        for one in aspects:
            aspect, kind = one["aspect"], one["kind"]
            silent = f"We say nothing on {aspect}."
            if kind == "none":
                point = {"gold": silent}
            elif one["holder"] == stands:
                text = f"{one['fact']} [{one['source']}]."
                invented = f"{one['fact'].replace(one['name'], 'town')} [d{rng.randint(500, 999)}]."
                point = {"gold": text, "wrong": [silent, invented], "plan": plan(who, one["plan"])}
                best = best or one["fact"]
            elif kind == "superseded":
                point = {"gold": silent, "wrong": [f"{one['old'][1]} [{one['old'][0]}]."], "plan": plan(who, one["plan"])}
            else:
                point = {"gold": silent}
            parts[f"{who} point {aspect}"] = point
            # What to look for: known once the overview, and then the study, has been read.
            for place, lead in enumerate(one["leads"] if who == "us" else []):
                needs = [step["finds"] for step in one["plan"][: place + 1]] if kind not in ("direct", "none") else []
                parts[f"{who} lead {place + 1} {aspect}"] = {
                    "gold": lead, "wrong": [motion], "plan": [{"finds": need} for need in needs[:len(one["plan"]) - 1]],
                }
            # An answer to the other side, which may rely on a report that was corrected.
            nothing = f"We do not answer on {aspect}."
            if kind == "superseded" and one["holder"] == stands:
                claim = one["old"][1]
                if who == "us":
                    parts[f"us check {aspect}"] = {"gold": one["leads"][0], "wrong": [motion], "plan": [{"finds": claim}]}
                parts[f"{who} answer {aspect}"] = {
                    "gold": f"{one['fact']} [{one['source']}].", "wrong": [nothing, f"We doubt what is said on {aspect}."],
                    "plan": [{"finds": claim}] + plan(who, one["plan"][1:]),
                }
            else:
                if who == "us":
                    parts[f"us check {aspect}"] = {"gold": motion}
                parts[f"{who} answer {aspect}"] = {"gold": nothing}
        parts[f"{who} summary"] = (
            {"gold": f"Above all: {best}.", "wrong": ["Our case is the stronger one."], "plan": [{"finds": best}]}
            if best else {"gold": "We rest our case."}
        )
    for one in aspects:
        if one["fact"]:
            of = next(who for who, stands in sides.items() if stands == one["holder"])
            other = next(who for who in sides if who != of)
            evidence[one["source"]] = {"says": one["fact"], "for": of}
            if one["old"]:
                evidence[one["old"][0]] = {"says": one["old"][1], "for": other, "corrected_by": one["source"]}
    return {
        "id": f"m{number + 1:02d}-{side}", "question": f"The motion: {motion} Our side: {side}.", "motion": motion, "sort": sort,
        "side": side, "aspects": "\n".join(one["aspect"] for one in aspects), "answer": "won", "evidence": evidence, "parts": parts,
        "kinds": [f"{one['kind']} {one['holder']}" for one in aspects],
    }


def plan(who, steps):
    """What must have been shown; for the opponent also the calls, since in one arm it searches by itself."""
    return steps if who == "them" else [{"finds": step["finds"]} for step in steps]


if __name__ == "__main__":
    main()
