"""A noisy tool, a guard that reads what it returned, and the score of several tries at a question of data/hops.

Noise depends on nothing but the question, the try and the number of the lookup."""

import hashlib
import json
import re

RELATIONS = {
    "is made by": ["Orion Labs", "Tandem Works", "Ember Mills", "Cobalt Systems"],
    "has its seat in": ["Altau", "Goldmund", "Rehfeld", "Kaltstadt"],
    "was founded by": ["Ada Holm", "Milo Kerr", "Nora Dorn", "Otto Lund"],
    "lies on the river": ["Aller", "Hase", "Mulde", "Oker"],
    "was born in": ["Altau", "Goldmund", "Rehfeld", "Kaltstadt"],
}
# Of the noise, the shares that bring another page, a sentence that is cut off, and a false statement.
KINDS = [(0.5, "other"), (0.8, "cut"), (1.0, "false")]


def lot(*about):
    """A number in [0, 1) that depends on nothing but these."""
    return int(hashlib.sha256("|".join(map(str, about)).encode()).hexdigest()[:12], 16) / 16**12


def relation_of(sentence):
    return next(relation for relation in RELATIONS if f" {relation} " in sentence)


def chain(row):
    """The facts that lead to the answer: subject, relation, object."""
    facts = []
    plan = row["plan"]
    for step in json.loads(plan) if isinstance(plan, str) else plan:
        relation = relation_of(step["finds"])
        subject, true = step["finds"].split(f" {relation} ")
        facts.append((subject, relation, true))
    return facts


def lookup(row, tried, level, before):
    """Looks up the facts one after the other, each with noise of this level; what is looked up next depends on what the last page said."""
    number = 1 + int((re.search(r"Lookup (\d+)", before) or [0, 0])[1])
    lines, about = [f"Lookup {number}."], chain(row)[0][0]
    for hop, (subject, relation, true) in enumerate(chain(row)):
        if about != subject:
            true = RELATIONS[relation][int(lot(row["id"], about, relation) * 4)]
        subject = about
        luck = lot(row["id"], tried, number, hop)
        noise = next((kind for share, kind in KINDS if luck < share * float(level)), None)
        if noise in ("other", "cut"):
            lines.append(f"This page is about the library of {subject}." if noise == "other" else f"{subject} {relation} ...")
            break
        wrong = [name for name in RELATIONS[relation] if name != true]
        about = wrong[int(lot(row["id"], tried, number, hop, "name") * len(wrong))] if noise == "false" else true
        lines.append(f"{subject} {relation} {about}.")
    return "\n".join(lines)


def guard(row, found):
    """Whether the results hold a whole chain of statements from the question to an answer. It does not know whether they are true."""
    subject = chain(row)[0][0]
    for _, relation, _ in chain(row):
        says = re.search(rf"{re.escape(subject)} {relation} ([A-Z]\w+(?: [A-Z]\w+)?)\.", found)
        if not says:
            return (False, f"The results do not say what {subject} {relation}. Look it up again.")
        subject = says[1]
    return (True, "The results hold all that is needed.")


def check(row, answer):
    """The share of right answers over the tries, and their variance."""
    given = [part.strip().split("\n", 1) for part in answer.split("### ") if part.strip()]
    right = [said[-1].strip().lower() == row["answer"].lower() for said in given]
    share = sum(right) / len(right) if right else 0.0
    variance = share * (1 - share) * len(right) / (len(right) - 1) if len(right) > 1 else 0.0
    return {"passed": share == 1.0, "score": share, "text": f"{sum(right)} of {len(right)} tries are right.", "measures": {"value": variance}}
