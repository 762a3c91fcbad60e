"""Decides answers with citations, and looks at what was retrieved for them.

A citation supports a sentence if it stands right after it in brackets and the cited passage holds the sentence. Only `check` and
measures use gold; no text that a workflow gets back holds it.
"""

import re


def passages_of(*texts):
    """The passages in results of a search: {citation: text}, in order."""
    found = {}
    for text in texts:
        for head, body in re.findall(r"^\d+\. \[([^\]\n]+)\][^\n]*\n(.*?)(?=^\d+\. \[|\Z)", text + "\n", re.S | re.M):
            found.setdefault(head, body.strip())
    return found


def told(passages):
    return "\n".join(f"{rank}. [{citation}]\n{text}" for rank, (citation, text) in enumerate(passages.items(), 1))


NOTHING = "nothing is known"


def sentences_of(answer):
    """The sentences of an answer with their citations (None if it has none). That nothing is known is no claim."""
    lines = [line.strip() for line in answer.splitlines() if line.strip() and not line.startswith("###")]
    found = []
    for line in lines:
        for sentence, citation in re.findall(r"([^\[\].]+)(?:\[([^\]]*)\])?\s*\.?", line):
            if sentence.strip() and sentence.strip().lower() != NOTHING:
                found.append((sentence.strip(), citation.strip() or None))
    return found


def holds(passage, sentence):
    return passage is not None and sentence.lower() in passage.lower()


def keep(row, named, *results):
    """Keeps the passages that a judge named; all, if it named none of them."""
    passages = passages_of(*results)
    return (True, told({citation: text for citation, text in passages.items() if citation in named.split()} or passages))


def cited(row, answer, *results):
    """Passed if every sentence has a citation, and the cited passage was found and holds the sentence."""
    passages = passages_of(*results)
    sentences = sentences_of(answer)
    bad = [sentence for sentence, citation in sentences if not holds(passages.get(citation), sentence)]
    text = "\n".join(f"No passage that was found supports: {sentence}" for sentence in bad)
    return (bool(sentences) and not bad, text or "All is supported.")


def spans(row, evidence, *results):
    """Drops evidence that does not stand in a passage as it was cited."""
    passages = passages_of(*results)
    kept = [(sentence, citation) for sentence, citation in sentences_of(evidence) if holds(passages.get(citation), sentence)]
    return (bool(kept), "\n".join(f"{sentence} [{citation}]." for sentence, citation in kept))


def said(answer):
    return answer.strip().rstrip(".").lower()


def agree(row, *answers):
    """The answer that most sources give, of those that found one; failed if two have as many votes. Then it is the first source's."""
    votes = [said(answer) for answer in answers if answer.strip() and said(answer) != "not found"]
    counts = sorted((-votes.count(vote), votes.index(vote)) for vote in set(votes))
    if not counts:
        return (False, "Not found.")
    chosen = votes[counts[0][1]]
    text = next(answer.strip() for answer in answers if said(answer) == chosen)
    return (len(counts) == 1 or counts[0][0] < counts[1][0], text)


def check(row, answer):
    """All facts are stated, and every sentence's citation supports it; a question without citations has a short answer."""
    if "passages" not in row:
        return said(answer) == said(row["answer"])
    sentences = sentences_of(answer)
    supported = [holds(row["passages"].get(citation), sentence) for sentence, citation in sentences]
    right = {sentence.lower() for (sentence, _), good in zip(sentences, supported) if good}
    stated = sum(fact["sentence"].lower() in right for fact in row["facts"]) / len(row["facts"])
    grounded = sum(supported) / len(sentences) if sentences else 0.0
    return {
        "passed": stated == 1 and all(supported), "score": stated if all(supported) else min(stated, 0.99),
        "measures": {"grounded": grounded, "coverage": stated, "value": float(len(sentences) - sum(supported))},
    }
