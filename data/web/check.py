"""Scores a report of several parts: the share of its parts that are answered right."""


def sections(text):
    found, at = {}, None
    for line in text.splitlines():
        if line.startswith("### "):
            at = line[4:].strip()
            found[at] = []
        elif at is not None:
            found[at].append(line.strip())
    return {head: " ".join(lines).strip().lower().rstrip(".") for head, lines in found.items()}


def check(row, answer):
    said = sections(answer)
    right = sum(said.get(ask) == gold.lower() for ask, gold in row["gold"].items())
    share = right / len(row["gold"])
    return {"passed": share == 1.0, "score": share, "text": f"{right} of {len(row['gold'])} parts are right."}
