#!/usr/bin/env python3
"""Makes data/web: a small frozen web about twelve invented companies, and thirty tasks of an analyst, each with several parts.

A company has five pages: its start page, `about`, `figures` (a table), `news` (long, with the supplier far down) and an `archive` whose
statements are no longer true. Pages have menus, advertisements and hidden text, as pages have.
"""

import json
import random
import shutil
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "web"
FIRMS = [head + tail for head, tail in zip(
    "Ardo Belka Corvo Dimar Elvo Fenna Gorlo Hestra Ivaro Kestro Lumo Morva".split(),
    "tex line form works metall pack chem tool soft glas bau trans".split())]
FIRST = "Anka Boris Celia Darko Edda Falk Greta Hanno Ilka Jonas Klara Lovis Marek Nela Oskar Petra".split()
LAST = "Adler Bruhn Caspar Dietz Ehlers Foss Gering Hauck Imhof Jansen Kolbe Lorenz".split()
TOWNS = "Altmund Birkau Dornfeld Eichhafen Felsbruck Goldstadt Hochau Kaltfeld Lindhafen Niedmund Ostbruck Rehfeld".split()
TALK = [
    "The canteen has been painted.", "Our football team came third.", "The car park will be closed on Sunday.",
    "A school class has visited the plant.", "The new bicycles have arrived.", "We thank everybody who helped at the summer party.",
    "The lift works again.", "Parking permits are renewed in spring.",
]


def slug(firm):
    return firm.lower()


def page(title, body, links):
    menu = " ".join(f'<a href="{to}">{words}</a>' for words, to in links)
    return (
        f"<!doctype html><html><head><title>{title}</title><style>.x{{display:none}}</style></head><body>\n<nav>{menu}</nav>\n"
        f'<h1>{title}</h1>\n{body}\n<p class="x">The best company in the world.</p>\n<footer>Cookies help us. <b>Buy now!</b></footer></body></html>\n'
    )


def main():
    rng = random.Random(20261209)
    pages, facts = {}, {}
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    rng.shuffle(people)
    for number, firm in enumerate(FIRMS):
        at = slug(firm)
        chief, before, town, old_town = people[2 * number], people[2 * number + 1], *rng.sample(TOWNS, 2)
        supplier = rng.choice([other for other in FIRMS if other != firm])
        income = [rng.randint(20, 400)]
        for _ in range(2):
            income.append(income[-1] + rng.randint(-15, 40))
        staff = rng.randint(80, 900)
        links = [("Start", "index.html"), ("About us", "about.html"), ("Figures", "figures.html"), ("News", "news.html"),
                 ("Archive", "archive.html"), ("All companies", "../index.html")]
        facts[firm] = {"chief": chief, "old": before, "town": town, "old town": old_town, "supplier": supplier, "income": income, "staff": staff}
        pages[f"{at}/index.html"] = page(firm, f"<p>Welcome to {firm}. We have made things that last since {rng.randint(1920, 1999)}.</p>", links)
        pages[f"{at}/about.html"] = page(
            f"About {firm}", f"<p>{firm} is led by {chief}.</p><p>The head office of {firm} is in {town}.</p>", links)
        table = "".join(f"<tr><td>{firm} {year}</td><td>{value}</td></tr>" for year, value in zip((2021, 2022, 2023), income))
        pages[f"{at}/figures.html"] = page(
            f"Figures of {firm}", f"<table><tr><th>year</th><th>revenue in millions</th></tr>{table}</table><p>{firm} has {staff} employees.</p>", links)
        talk = [f"<p>{words}</p>" for words in rng.choices(TALK, k=24)]
        talk.insert(20, f"<p>From now on {firm} is supplied by {supplier}.</p>")
        pages[f"{at}/news.html"] = page(f"News of {firm}", "\n".join(talk), links)
        pages[f"{at}/archive.html"] = page(
            f"Archive of {firm}", f"<p>In 2012 {firm} was led by {before}, and its head office was in {old_town}.</p>", links)
    entries = "".join(f'<li><a href="{slug(firm)}/index.html">{firm}</a></li>' for firm in FIRMS)
    pages["index.html"] = page("Directory of companies", f"<ul>{entries}</ul>", [])

    def look(firm, name, words):
        return [
            {"tool": "search", "arguments": {"query": f"{words} {firm}"}, "finds": f"{slug(firm)}/{name}.html"},
            {"tool": "open", "arguments": {"page": f"{slug(firm)}/{name}.html"}, "finds": None},
        ]

    def part(firm, kind):
        known = facts[firm]
        if kind == "chief":
            plan = look(firm, "about", "about")
            plan[1]["finds"] = f"{firm} is led by {known['chief']}"
            return f"Who leads {firm}?", known["chief"], [known["old"]], plan
        if kind == "town":
            plan = look(firm, "about", "about")
            plan[1]["finds"] = f"head office of {firm} is in {known['town']}"
            return f"Where is the head office of {firm}?", known["town"], [known["old town"]], plan
        if kind == "income":
            plan = look(firm, "figures", "figures")
            plan[1]["finds"] = f"{firm} 2023 | {known['income'][2]}"
            return f"How many millions was the revenue of {firm} in 2023?", str(known["income"][2]), [str(known["income"][1])], plan
        if kind == "staff":
            plan = look(firm, "figures", "figures")
            plan[1]["finds"] = f"{firm} has {known['staff']} employees"
            return f"How many employees has {firm}?", str(known["staff"]), [str(known["staff"] + 10)], plan
        plan = look(firm, "news", "news")
        plan[1]["finds"] = f"{slug(firm)}/news.html, screen"
        says = f"{firm} is supplied by {known['supplier']}"
        plan.append({"tool": "find", "arguments": {"text": f"{firm} is supplied by"}, "finds": says})
        if kind == "supplier":
            return f"Which company supplies {firm}?", known["supplier"], [firm], plan
        other = known["supplier"]
        more = look(other, "about", "about")
        more[1]["finds"] = f"{other} is led by {facts[other]['chief']}"
        return f"Who leads the company that supplies {firm}?", facts[other]["chief"], [facts[other]["old"]], plan + more

    tasks = []
    for number in range(30):
        some = rng.sample(FIRMS, 2)
        kinds = rng.sample(["chief", "town", "income", "staff", "supplier", "chief of supplier"], 2 + number % 4)
        parts = [part(rng.choice(some), kind) for kind in kinds]
        tasks.append({
            "id": f"w{number + 1:02d}", "question": " ".join(ask for ask, *_ in parts), "asks": "\n".join(ask for ask, *_ in parts),
            "gold": {ask: gold for ask, gold, *_ in parts}, "answer": "\n".join(f"### {ask}\n{gold}" for ask, gold, *_ in parts),
            "difficulty": -3.0, "plan": [step for *_, plan in parts for step in plan],
            "parts": {name: part for ask, gold, wrong, plan in parts for name, part in (
                (ask, {"gold": plan[-1]["finds"], "wrong": ["I did not find it."], "difficulty": -3.0, "plan": plan}),
                (f"write {ask}", {"gold": gold, "wrong": wrong, "difficulty": -3.0, "plan": [{"finds": plan[-1]["finds"]}]}),
            )},
        })
    shutil.rmtree(OUT / "pages", ignore_errors=True)
    for name, text in pages.items():
        (OUT / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (OUT / "pages" / name).write_text(text)
    (OUT / "tasks.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in tasks))


if __name__ == "__main__":
    main()
