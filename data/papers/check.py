"""Scores answers as of a day, and looks at the dates of what a search returned."""

import re

CITED = re.compile(r"\s*\[(p\d+)\]")
DATED = re.compile(r"^\d+\. \[\S+\].*\((\d{4}-\d\d-\d\d)\)\s*$", re.MULTILINE)


def check(row, answer):
    """The answer, and the citation where the question wants one: of a paper that existed on that day."""
    cited = CITED.findall(answer)
    said = CITED.sub("", answer).strip().lower()
    right = said == CITED.sub("", row["answer"]).strip().lower()
    wanted = CITED.findall(row["answer"])
    early = all(row["known"].get(name, "9999") < row["date"] for name in cited)
    return {"passed": right and early and cited == wanted, "measures": {"grounded": float(early and cited == wanted)}}


def dates(row, results):
    """The share of passages that are dated before the day of the question."""
    days = DATED.findall(results)
    early = sum(day < row["date"] for day in days)
    return {
        "passed": early == len(days),
        "text": f"{early} of {len(days)} passages are dated before {row['date']}.",
        "measures": {"precision": early / len(days) if days else 1.0, "size": len(days)},
    }
