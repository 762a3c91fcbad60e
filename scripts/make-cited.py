#!/usr/bin/env python3
"""Makes data/cited from data/hops: local news that mention its names and state no fact, and questions to be answered with citations.

Each fact is a sentence of one document, so a citation supports a sentence exactly if the cited passage holds it. The questions are
crossed in two ways: half are short and half stand in a letter; half write the name as the documents do and half with a slip or an
ending. Relations are never in the words of the documents. Reads data/hops; same bytes at every run.
"""

import csv
import json
import random
from pathlib import Path

HOPS = Path(__file__).resolve().parent.parent / "data" / "hops"
OUT = Path(__file__).resolve().parent.parent / "data" / "cited"
NEWS = [
    "{a} was shown at the spring fair beside {b}.", "A letter about {a} and {b} was read aloud in the town hall.",
    "The paper printed a picture of {a} on its third page.", "Readers wrote that {a} deserves a better road.",
    "A school class made a drawing of {a} and sent it to {b}.", "The choir sang for {a} until late in the evening.",
    "There was a talk on {a}, which few people heard because of the rain.",
    "A prize for the best story about {a} went to a baker.", "{a} and {b} came up in a quiz on local history.",
    "A postcard with a view of {a} was sold for charity.",
]
LETTERS = [
    "My aunt left me an old leaflet and I have been curious about it ever since, so could you please tell me: {q}",
    "While we were on our way home my brother and I could not agree, and we would be glad if you settled it for us: {q}",
    "I am putting together a small guide for guests of our family and one line of it is still empty: {q}",
    "Nobody at the inn could say for certain, though all had an opinion, so I am asking here: {q}",
]
# By relation: kind of document, sentence, question about a name, question about the answer of the question before.
RELATIONS = {
    "is made by": ("product", "{s} is made by {o}", "Which company manufactures {n}?", None),
    "has seat in": ("firm", "{s} has its seat in {o}", "In which place is {n} based?", "In which place is that company based?"),
    "was founded by": ("firm", "{s} was founded by {o}", "Who started {n}?", "Who started that company?"),
    "lies on": ("town", "{s} lies on the river {o}", "Which water flows through {n}?", "Which water flows through that place?"),
    "has mayor": ("town", "The mayor of {s} is {o}", "Who governs {n}?", "Who governs that place?"),
    "was born in": ("person", "{s} was born in {o}", "What is the birthplace of {n}?", "What is the birthplace of that person?"),
}
CHAINS = [("is made by", "has seat in"), ("is made by", "was founded by"), ("has seat in", "lies on"), ("has seat in", "has mayor"),
          ("was founded by", "was born in")]


def otherwise(name, rng):
    """The name with a slip (a letter twice, or left out) or an ending."""
    words = name.split()
    at = rng.randrange(len(words))
    word = words[at]
    place = rng.randrange(1, len(word) - 1)
    words[at] = rng.choice([word[:place] + word[place] + word[place:], word[:place] + word[place + 1:], word + "s"])
    return " ".join(words)


class Facts:
    def __init__(self):
        with open(HOPS / "facts.csv") as file:
            self.rows = [(row["subject"], row["relation"], row["object"]) for row in csv.DictReader(file)]
        self.of = {(s, r): o for s, r, o in self.rows}
        self.objects = {}
        for _, r, o in self.rows:
            self.objects.setdefault(r, [])
            if o not in self.objects[r]:
                self.objects[r].append(o)
        documents = [json.loads(line) for line in open(HOPS / "documents.jsonl")]
        self.place = {}
        for s, r, o in self.rows:
            sentence = self.sentence(s, r, o)
            [self.place[s, r]] = [d["id"] + "#1" for d in documents if sentence in d["text"]]
        self.names = sorted({d["title"] for d in documents})
        self.passages = {d["id"] + "#1": d["text"] for d in documents}

    def sentence(self, s, r, o):
        return RELATIONS[r][1].format(s=s, o=o)


def news(rng, names):
    made = []
    for number in range(1, 241):
        sentences = []
        for form in rng.sample(NEWS, 5):
            a, b = rng.sample(names, 2)
            sentences.append(form.format(a=a, b=b))
        made.append({"id": f"news-{number:03d}", "title": f"Local news {number}", "text": " ".join(sentences),
                     "date": f"{rng.randint(2018, 2024)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"})
    return made


def component(facts, rng, s, r, asked, direct, before):
    """A part of a question: who answers it has seen its sentence and those of the parts before."""
    o, cited = facts.of[s, r], facts.place[s, r]
    sentence = facts.sentence(s, r, o)
    needs = [{"finds": finds} for _, finds, place in before for finds in (finds, f"[{place}]")]
    call = {"tool": "search", "arguments": {"query": direct}, "finds": sentence}
    another = facts.sentence(s, r, rng.choice([x for x in facts.objects[r] if x != o]))
    elsewhere = facts.place[rng.choice([row[:2] for row in facts.rows if facts.place[row[:2]] != cited])]
    part = {
        "gold": f"{sentence} [{cited}].",
        "wrong": [f"{another} [{cited}].", f"{another} [{elsewhere}].", f"{another}."],
        "plan": needs + [call, {"finds": f"[{cited}]"}],
    }
    follow = {"gold": direct, "wrong": [asked], "plan": needs}
    said = {"gold": part["gold"], "wrong": part["wrong"], "plan": [{"finds": sentence}, {"finds": f"[{cited}]"}]}
    return {asked: part, f"{asked} (follow-up)": follow, part["gold"]: said}, (asked, sentence, cited)


def question(facts, rng, number, kind, letter, other):
    write = (lambda name: otherwise(name, rng)) if other else (lambda name: name)
    relation = rng.choice(list(RELATIONS))
    if kind == "chain":
        first, second = rng.choice(CHAINS)
        s = rng.choice([row[0] for row in facts.rows if row[1] == first])
        middle = facts.of[s, first]
        asked = [RELATIONS[first][2].format(n=write(s)), RELATIONS[second][3]]
        steps = [(s, first, asked[0], asked[0]), (middle, second, asked[1], RELATIONS[second][2].format(n=middle))]
    else:
        rows = rng.sample(facts.rows, 2 if kind == "two" else 1)
        while len({row[:2] for row in rows}) < len(rows) or len({row[1] for row in rows}) < len(rows):
            rows = rng.sample(facts.rows, 2)
        asked = [RELATIONS[r][2].format(n=write(s)) for s, r, _ in rows]
        steps = [(s, r, a, a) for (s, r, _), a in zip(rows, asked)]
    parts, before = {}, []
    for s, r, a, direct in steps:
        made, told = component(facts, rng, s, r, a, direct, before if kind == "chain" else [])
        parts.update(made)
        before.append(told)
    parts["components"] = {"gold": "\n".join(asked)}
    ids = sorted({cited for _, _, cited in before})
    parts["judge"] = {"gold": "\n".join(ids), "wrong": ["\n".join(ids[1:]) or "none", "\n".join(ids + ["news-001#1", "news-002#1"])]}
    text = " ".join(asked)
    golds = [parts[a]["gold"] for a in asked]
    return {
        "id": f"c{number:03d}", "question": rng.choice(LETTERS).format(q=text) if letter else text,
        "kind": kind, "letter": letter, "otherwise": other, "hops": len(steps), "difficulty": float(len(steps)) - 1.0,
        "answer": " ".join(golds),
        "facts": [{"sentence": sentence, "citation": cited} for _, sentence, cited in before],
        "passages": {cited: facts.passages[cited] for _, _, cited in before},
        "parts": parts,
    }


def page_of(s, r):
    """The web page that has the facts about a name: one for each kind and first letter."""
    return f"{RELATIONS[r][0]}s-{s[0].lower()}.html"


def pages(facts, rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.html"):
        old.unlink()
    lines = {}
    for s, r, o in rows:
        lines.setdefault(page_of(s, r), []).append((s, facts.sentence(s, r, o)))
    for page, said in lines.items():
        kind, letter = page.removesuffix(".html").rsplit("-", 1)
        body = "".join(f"<p>{sentence}.</p>\n" for _, sentence in said)
        (folder / page).write_text(f"<title>Names of {kind} with {letter.upper()}</title>\n<h1>{kind.capitalize()}</h1>\n{body}")


KINDS = ["none", "simple", "complex"]


def edge(s, r, o):
    return f"{s} --{r}--> {o}"


THREE = [("is made by", "has seat in", "lies on"), ("is made by", "has seat in", "has mayor"), ("is made by", "was founded by", "was born in")]


def walk(facts, rng, relations):
    """A chain of facts, each about the object of the one before."""
    s = rng.choice([row[0] for row in facts.rows if row[1] == relations[0]])
    steps = []
    for r in relations:
        steps.append((s, r, facts.of[s, r]))
        s = facts.of[s, r]
    return steps


def asked_of(steps):
    first = RELATIONS[steps[0][1]][2].format(n=steps[0][0])
    return [first] + [RELATIONS[r][3] for _, r, _ in steps[1:]]


def other(facts, rng, r, o):
    return rng.choice([x for x in facts.objects[r] if x != o])


def route(facts, rng, number):
    """A question that needs no source, one fact, two or three; its parts are answered from documents or from the graph."""
    hops = [0, 1, 2, 1, 3][number % 5]
    row = {"id": f"r{number:03d}", "hops": hops, "difficulty": float(hops)}
    if hops == 0:
        a, b = rng.randint(11, 49), rng.randint(11, 49)
        asked = f"How much is {a} and {b}?"
        both = {"gold": str(a + b), "wrong": [str(a + b + 10)]}
        parts = {asked: both, f"{asked} (graph)": both, f"{asked} (rewritten)": {"gold": asked}, "components": {"gold": asked},
                 "kind": {"gold": "none"}, "kind (drawn)": {"gold": rng.choice(KINDS)}, "kind (complex)": {"gold": "complex"},
                 "source": {"gold": "none"}, "name": {"gold": "nothing"}}
        return {**row, "question": asked, "answer": str(a + b), "facts": [], "parts": parts}
    relations = rng.choice({1: [(r,) for r in RELATIONS], 2: CHAINS, 3: THREE}[hops])
    steps = walk(facts, rng, relations)
    asked, parts, shown, known = asked_of(steps), {}, [], []
    for (s, r, o), a in zip(steps, asked):
        direct = RELATIONS[r][2].format(n=s)
        needs = [{"finds": line} for line in known]
        call = {"tool": "search", "arguments": {"query": direct}, "finds": facts.sentence(s, r, o)}
        look = {"tool": "neighbours", "arguments": {"node": s, "relation": r}, "finds": edge(s, r, o)}
        wrong = sorted({other(facts, rng, r, o) for _ in range(3)})
        parts[a] = {"gold": o, "wrong": wrong, "plan": needs + [call]}
        parts[f"{a} (graph)"] = {"gold": o, "wrong": wrong, "plan": needs + [look]}
        parts[f"{a} (rewritten)"] = {"gold": direct, "wrong": [a], "plan": needs}
        shown.append((facts.sentence(s, r, o), edge(s, r, o)))
        known.append(f"{a} {o}")
    parts["components"] = {"gold": "\n".join(asked)}
    parts["kind"] = {"gold": "simple" if hops == 1 else "complex"}
    parts["kind (drawn)"], parts["kind (complex)"] = {"gold": rng.choice(KINDS)}, {"gold": "complex"}
    parts["source"], parts["name"] = {"gold": "graph" if number % 2 else "documents"}, {"gold": steps[0][0]}
    return {
        **row, "question": " ".join(asked), "answer": steps[-1][2], "parts": parts,
        "facts": [{"sentence": sentence, "citation": facts.place[s, r], "edge": line} for (s, r, _), (sentence, line) in zip(steps, shown)],
    }


def report(facts, rng, number):
    """A report of three sentences on facts that hang together, or not, from documents or from web pages."""
    if number % 2:
        steps = walk(facts, rng, rng.choice(THREE))
        asked = asked_of(steps)
    else:
        steps = rng.sample(facts.rows, 3)
        while len({row[1] for row in steps}) < 3:
            steps = rng.sample(facts.rows, 3)
        asked = [RELATIONS[r][2].format(n=s) for s, r, _ in steps]
    parts, before, passages, plan = {}, [], {}, []
    for (s, r, o), a in zip(steps, asked):
        direct, page, sentence = RELATIONS[r][2].format(n=s), page_of(s, r), facts.sentence(s, r, o)
        made, told = component(facts, rng, s, r, a, direct, [])
        del made[made[a]["gold"]]
        needs = [{"finds": x} for _, x, _ in before] if number % 2 else []
        made[a]["plan"] = needs + made[a]["plan"]
        made[f"{a} (follow-up)"]["plan"] = needs
        wrong = facts.sentence(s, r, other(facts, rng, r, o))
        look = {"tool": "web_search", "arguments": {"query": direct}, "finds": page}
        reads = {"tool": "web_open", "arguments": {"page": page}, "finds": sentence}
        made[f"{a} (web)"] = {"gold": f"{sentence} [{page}].", "wrong": [f"{wrong} [{page}].", f"{wrong}."], "plan": needs + [look, reads]}
        parts.update(made)
        passages[told[2]] = facts.passages[told[2]]
        passages[page] = passages.get(page, "") + sentence + ". "
        plan += made[a]["plan"]
        before.append(told)
    parts["components"] = {"gold": "\n".join(asked)}
    parts["report"] = {"gold": " ".join(parts[a]["gold"] for a in asked), "wrong": [" ".join(parts[a]["wrong"][i] for a in asked) for i in range(3)],
                       "plan": plan}
    parts["report (web)"] = {"gold": " ".join(parts[f"{a} (web)"]["gold"] for a in asked),
                             "wrong": [" ".join(parts[f"{a} (web)"]["wrong"][i] for a in asked) for i in range(2)],
                             "plan": [step for a in asked for step in parts[f"{a} (web)"]["plan"]]}
    return {
        "id": f"p{number:03d}", "question": " ".join(asked), "kind": "chain" if number % 2 else "apart", "difficulty": 2.0,
        "answer": parts["report"]["gold"], "passages": passages, "parts": parts,
        "facts": [{"sentence": sentence, "citation": cited, "page": page_of(s, r)} for (s, r, _), (_, sentence, cited) in zip(steps, before)],
    }


def sources(facts, rng, write):
    """Three sources of the same facts. Each lacks a quarter of them and has another quarter wrong or out of date, drawn by itself."""
    says = {}
    for row in facts.rows:
        for source in ["text", "graph", "web"]:
            state = rng.choices(["right", "lacks", "wrong"], [0.6, 0.25, 0.15])[0]
            says[source, row[:2]] = {"right": row[2], "lacks": None, "wrong": other(facts, rng, row[1], row[2])}[state]

    def rows_of(source):
        return [(s, r, says[source, (s, r)]) for s, r, _ in facts.rows if says[source, (s, r)]]

    for name, source in [("graph", "graph"), ("graph-copied", "text")]:
        with open(OUT / f"{name}.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["subject", "relation", "object"])
            out.writerows(rows_of(source))
    pages(facts, rows_of("web"), OUT / "sources-web")
    pages(facts, rows_of("text"), OUT / "sources-web-copied")
    texts = {}
    for s, r, o in rows_of("text"):
        texts.setdefault((RELATIONS[r][0], s), []).append(facts.sentence(s, r, o) + ".")
    write("sources-text.jsonl", [{"id": f"{kind}-{s.lower().replace(' ', '-')}", "title": s, "text": " ".join(said)} for (kind, s), said in texts.items()])

    rows = []
    for number in range(1, 61):
        steps = walk(facts, rng, rng.choice([(r,) for r in RELATIONS]) if number % 3 == 0 else rng.choice(CHAINS))
        asked, parts, needs = asked_of(steps), {}, []
        for (s, r, o), a in zip(steps, asked):
            direct = RELATIONS[r][2].format(n=s)
            calls = {
                "text": [{"tool": "search", "arguments": {"query": direct}, "finds": facts.sentence(s, r, o)}],
                "graph": [{"tool": "neighbours", "arguments": {"node": s, "relation": r}, "finds": edge(s, r, o)}],
                "web": [{"tool": "web_search", "arguments": {"query": direct}, "finds": page_of(s, r)},
                        {"tool": "web_open", "arguments": {"page": page_of(s, r)}, "finds": facts.sentence(s, r, o)}],
            }
            for source, plan in calls.items():
                said = says[source, (s, r)]
                parts[f"{a} ({source})"] = {"gold": o, "wrong": [said if said not in (None, o) else "Not found."], "plan": needs + plan}
            needs = needs + [{"finds": f"{a} {o}"}]
        parts["components"] = {"gold": "\n".join(asked)}
        # On the whole question an agent searches for it as it stands, or looks up the name that it holds.
        whole = " ".join(asked)
        first = steps[0][:2]
        looks = {
            "text": [{"tool": "search", "arguments": {"query": whole}, "finds": facts.sentence(*step)} for step in steps],
            "graph": [{"tool": "neighbours", "arguments": {"node": first[0]}, "finds": edge(*step)} for step in steps],
            "web": [{"tool": "web_search", "arguments": {"query": whole}, "finds": page_of(*first)},
                    {"tool": "web_open", "arguments": {"page": page_of(*first)}, "finds": facts.sentence(*steps[0])},
                    {"finds": facts.sentence(*steps[-1])}],
        }
        for source, plan in looks.items():
            said = says[source, steps[-1][:2]]
            parts[f"whole ({source})"] = {"gold": steps[-1][2], "wrong": [said if said not in (None, steps[-1][2]) else "Not found."], "plan": plan}
        rows.append({
            "id": f"m{number:03d}", "question": " ".join(asked), "hops": len(steps), "difficulty": float(len(steps)), "answer": steps[-1][2],
            "parts": parts,
        })
    write("sources.jsonl", rows)


def main():
    facts = Facts()
    rng = random.Random(2026112701)
    OUT.mkdir(parents=True, exist_ok=True)

    def write(name, rows):
        (OUT / name).write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))

    write("news.jsonl", news(rng, facts.names))
    questions = []
    for number in range(1, 49):
        i = number - 1
        questions.append(question(facts, rng, number, ["one", "two", "chain"][i % 3], i // 3 % 2 == 1, i // 6 % 2 == 1))
    write("questions.jsonl", questions)
    queries = []
    for number in range(49, 169):
        row = question(facts, rng, number, "one", number % 2 == 1, number // 2 % 2 == 1)
        [fact] = row["facts"]
        part = {"gold": row["answer"], "wrong": row["parts"][row["answer"]]["wrong"],
                "plan": [{"finds": fact["sentence"]}, {"finds": f"[{fact['citation']}]"}]}
        queries.append({key: row[key] for key in ["id", "question", "letter", "otherwise", "answer"]} | {"parts": {"fact": part}})
    write("queries.jsonl", queries)
    rng = random.Random(2026112702)
    write("routes.jsonl", [route(facts, rng, number) for number in range(1, 81)])
    rng = random.Random(2026112703)
    pages(facts, facts.rows, OUT / "pages")
    write("reports.jsonl", [report(facts, rng, number) for number in range(1, 37)])
    rng = random.Random(2026112704)
    sources(facts, rng, write)


if __name__ == "__main__":
    main()
