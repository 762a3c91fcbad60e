"""Measures what two rankings found. The answer has the first ranking, a line `=====`, the second, and perhaps another line and the words of a
judge, who names the passages to keep. Passages are taken from the rankings in turn, as many as the longer one has."""

import re


def passages_of(ranking):
    found = re.findall(r"^\d+\. \[([^\]\n]+)\][^\n]*\n(.*?)(?=^\d+\. \[|\Z)", ranking + "\n", re.S | re.M)
    return [(citation, text.strip()) for citation, text in found]


def check(row, answer):
    first, second, *judge = answer.split("\n=====\n")
    rankings = [passages_of(first), passages_of(second)]
    most, taken = max(map(len, rankings)), {}
    for rank in range(most):
        for ranking in rankings:
            if rank < len(ranking) and len(taken) < most:
                taken.setdefault(*ranking[rank])
    if judge:
        taken = {citation: text for citation, text in taken.items() if citation in judge[0].split()} or taken
    needed = {fact["citation"]: fact["sentence"] for fact in row["facts"]}
    hit = sum(needed[citation].lower() in text.lower() for citation, text in taken.items() if citation in needed)
    recall = hit / len(needed)
    return {"passed": recall == 1, "score": recall, "measures": {"recall": recall, "precision": hit / max(1, len(taken)), "size": len(taken)}}
