#!/usr/bin/env python3
"""Makes data/hops: a corpus about invented people, firms, towns and products, and questions of one to three hops.

Every fact is drawn once, with a fixed seed, and written into one document, so the answer to each question and the passages that
support it are known by construction. Some firms have an older document with a seat that is no longer true.
"""

import csv
import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "hops"
FIRST = "Ada Bela Cato Dora Egon Fina Gero Hela Ivo Jana Kuno Lida Milo Nora Otto Pia Quin Rosa Sven Tilda".split()
LAST = "Abram Brandt Corvin Dorn Ekdal Falk Grote Holm Ister Jarl Kerr Lund Mora Noll Orla".split()
TOWN_HEAD = "Alt Birk Dorn Eich Fels Gold Hoch Iven Kalt Lind Mar Nied Ost Reh Stein".split()
TOWN_TAIL = "au bruck feld hafen mund stadt".split()
FIRM_HEAD = "Tandem Orion Lumen Vector Basalt Cobalt Delta Ember Falcon Garnet".split()
FIRM_TAIL = "Works Labs Foundry Systems Mills".split()
PRODUCT_HEAD = "Vel Zan Kor Mir Tal Nov Pel Ras Sol Ter".split()
PRODUCT_TAIL = "ora ix una ent".split()
RIVER = "Aller Brede Cinder Drave Elmo Fulda Gersau Hase Ilm Jagst Kocher Lahn Mulde Nagold Oker".split()


def pairs(rng, heads, tails, join, n):
    every = [f"{head}{join}{tail}" for head in heads for tail in tails]
    rng.shuffle(every)
    return every[:n]


def main():
    rng = random.Random(20261127)
    people = pairs(rng, FIRST, LAST, " ", 80)
    towns = pairs(rng, TOWN_HEAD, TOWN_TAIL, "", 40)
    firms = pairs(rng, FIRM_HEAD, FIRM_TAIL, " ", 40)
    products = pairs(rng, PRODUCT_HEAD, PRODUCT_TAIL, "", 40)
    documents, triples = [], []

    def day(first, last):
        return f"{rng.randint(first, last)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"

    def document(kind, name, sentences, first=2021, last=2024):
        words = [
            f"This page is kept by volunteers of the {name} society.",
            f"Visitors often ask about {name} and its history.",
            f"There are {rng.randint(2, 9)} books on {name} in the library.",
        ]
        text = sentences + rng.sample(words, 2)
        rng.shuffle(text)
        slug = name.lower().replace(" ", "-")
        same = sum(other["id"].startswith(f"{kind}-{slug}") for other in documents)
        name_of = f"{kind}-{slug}" if same == 0 else f"{kind}-{slug}-{same + 1}"
        documents.append({"id": name_of, "title": name, "text": " ".join(text), "date": day(first, last)})
        return name_of

    def fact(subject, relation, obj):
        triples.append((subject, relation, obj))

    river_of, mayor_of, seat_of, founder_of, maker_of, born_in, where = {}, {}, {}, {}, {}, {}, {}
    for town in towns:
        river_of[town], mayor_of[town] = rng.choice(RIVER), rng.choice(people)
        where[town] = document("town", town, [
            f"{town} lies on the river {river_of[town]}.", f"The mayor of {town} is {mayor_of[town]}."])
        fact(town, "lies on", river_of[town])
        fact(town, "has mayor", mayor_of[town])
    for firm in firms:
        seat_of[firm], founder_of[firm] = rng.choice(towns), rng.choice(people)
        year = rng.randint(1950, 2015)
        where[firm] = document("firm", firm, [
            f"{firm} has its seat in {seat_of[firm]}.", f"{firm} was founded by {founder_of[firm]} in {year}."])
        fact(firm, "has seat in", seat_of[firm])
        fact(firm, "was founded by", founder_of[firm])
        if rng.random() < 0.25:
            old = rng.choice([town for town in towns if town != seat_of[firm]])
            document("firm", firm, [f"At that time {firm} was still located in {old}."], 2008, 2014)
    for product in products:
        maker_of[product] = rng.choice(firms)
        where[product] = document("product", product, [
            f"{product} is made by {maker_of[product]}.", f"{product} was first sold in {rng.randint(1990, 2020)}."])
        fact(product, "is made by", maker_of[product])
    for person in people:
        born_in[person] = rng.choice(towns)
        where[person] = document("person", person, [f"{person} was born in {born_in[person]}."])
        fact(person, "was born in", born_in[person])

    def step(query, finds, subject, relation, obj):
        search = {"tool": "search", "arguments": {"query": query}, "finds": finds}
        edge = {"node": subject, "relation": relation}
        return search, {"tool": "neighbours", "arguments": edge, "finds": f"{subject} --{relation}--> {obj}"}

    def makes(product):
        firm = maker_of[product]
        return step(f"Who makes {product}?", f"{product} is made by {firm}", product, "is made by", firm)

    def sits(firm):
        town = seat_of[firm]
        return step(f"Where does {firm} have its seat?", f"{firm} has its seat in {town}", firm, "has seat in", town)

    def founds(firm):
        person = founder_of[firm]
        return step(f"Who founded {firm}?", f"{firm} was founded by {person}", firm, "was founded by", person)

    def lies(town):
        river = river_of[town]
        return step(f"On which river does {town} lie?", f"{town} lies on the river {river}", town, "lies on", river)

    def born(person):
        town = born_in[person]
        return step(f"Where was {person} born?", f"{person} was born in {town}", person, "was born in", town)

    questions = []

    def ask(question, answer, wrong, plan, sources):
        questions.append({
            "id": f"q{len(questions) + 1:03d}", "question": question, "answer": answer, "distractor": wrong,
            "hops": len(plan), "difficulty": [1.5, 2.5, 3.5][len(plan) - 1], "plan": json.dumps([search for search, _ in plan]), "graph_plan": json.dumps([edge for _, edge in plan]),
            "sources": json.dumps(sources),
        })

    def another(all_of, but):
        return rng.choice([one for one in all_of if one != but])

    for i in range(60):
        product, firm = products[i % 40], firms[i % 40]
        made = maker_of[product]
        seat, founder = seat_of[made], founder_of[made]
        kind = i % 6
        if kind == 0:
            ask(f"Which firm makes {product}?", made, another(firms, made), [makes(product)], [where[product]])
        elif kind == 1:
            ask(f"In which town does {firm} have its seat?", seat_of[firm], another(towns, seat_of[firm]),
                [sits(firm)], [where[firm]])
        elif kind == 2:
            ask(f"In which town does the firm that makes {product} have its seat?", seat, another(towns, seat),
                [makes(product), sits(made)], [where[product], where[made]])
        elif kind == 3:
            ask(f"Who founded the firm that makes {product}?", founder, another(people, founder),
                [makes(product), founds(made)], [where[product], where[made]])
        elif kind == 4:
            river = river_of[seat]
            ask(f"On which river lies the town in which the firm that makes {product} has its seat?", river,
                another(RIVER, river), [makes(product), sits(made), lies(seat)],
                [where[product], where[made], where[seat]])
        else:
            town = born_in[founder]
            ask(f"In which town was the founder of the firm that makes {product} born?", town, another(towns, town),
                [makes(product), founds(made), born(founder)], [where[product], where[made], where[founder]])
    # For a tree of agents: two look for each hop, one by the question and one by its words.
    trees = {1: [], 2: [], 3: []}
    for row in questions:
        plan, parts = json.loads(row["plan"]), {}
        # A tree that is not done after its last hop looks for it once more.
        for n in (1, 2, 3):
            hop = min(n, len(plan))
            step, before = plan[hop - 1], [{"finds": plan[hop - 2]["finds"]}] if hop > 1 else []
            words = " ".join(word for word in step["arguments"]["query"].rstrip("?").split() if word[0].isupper()).split(" ", 1)[1]
            other = {"tool": "search", "arguments": {"query": words}, "finds": step["finds"]}
            for name, call in (("a", step), ("b", other)):
                parts[f"hop{n}{name}"] = {"gold": step["finds"], "wrong": [f"{words} is not known"], "plan": before + [call]}
            last = n >= len(plan)
            parts[f"end{n}"] = {"gold": "done" if last else "more", "wrong": ["more"], "plan": [{"finds": step["finds"]}] if last else []}
        parts["answer"] = {"gold": row["answer"], "wrong": [row["distractor"]], "plan": [{"finds": plan[-1]["finds"]}]}
        trees[row["hops"]].append({key: row[key] for key in ("id", "question", "answer", "hops")} | {
            "wrong": [row["distractor"]], "plan": plan, "parts": parts})
    rng.shuffle(documents)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, rows in [("documents.jsonl", documents), ("questions.jsonl", questions), *((f"tree-{n}.jsonl", rows) for n, rows in trees.items())]:
        (OUT / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open(OUT / "facts.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["subject", "relation", "object"])
        rows.writerows(triples)


if __name__ == "__main__":
    main()
