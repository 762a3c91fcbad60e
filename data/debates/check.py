"""Judges a debate by its evidence. A point counts if it cites a document of the motion that says it, and nobody has shown a correction."""

import re

CITED = re.compile(r"\[(d\d+)\]")


def sections(transcript):
    """The lines of each side in each stage."""
    found, at = {}, None
    for line in transcript.splitlines():
        head = re.fullmatch(r"== (us|them) (opening|rebuttal|summary) ==", line.strip())
        if head:
            at = head.groups()
        elif at:
            found.setdefault(at, []).append(line)
    return found


def cited(row, lines, who):
    """The documents that support a side's statements, and the number of statements with a citation."""
    ids, statements = [], 0
    for line in lines:
        for name in CITED.findall(line):
            statements += 1
            document = row["evidence"].get(name)
            if document and document["for"] == who and document["says"].lower() in line.lower() and name not in ids:
                ids.append(name)
    return ids, statements


def check(row, answer):
    said = sections(answer)
    openings = {who: cited(row, said.get((who, "opening"), []), who) for who in ("us", "them")}
    rebuttals = {who: cited(row, said.get((who, "rebuttal"), []), who)[0] for who in ("us", "them")}
    points = {}
    for who, other in (("us", "them"), ("them", "us")):
        standing = [name for name in openings[who][0] if row["evidence"][name].get("corrected_by") not in rebuttals[other]]
        fallen = [name for name in openings[other][0] if row["evidence"][name].get("corrected_by") in rebuttals[who]]
        last = "\n".join(said.get((who, "summary"), [])).lower()
        repeated = any(row["evidence"][name]["says"].lower() in last for name in standing)
        points[who] = len(standing) + len(fallen) + int(repeated)
    statements = openings["us"][1]
    score = 1.0 if points["us"] > points["them"] else 0.5 if points["us"] == points["them"] else 0.0
    return {
        "passed": score == 1.0,
        "score": score,
        "text": f"{points['us']} to {points['them']}",
        "measures": {"value": points["us"] - points["them"], "grounded": len(openings["us"][0]) / statements if statements else 1.0},
    }
