#!/usr/bin/env python3
"""Makes data/errands: the pages, registers and links of an invented harbour office, and 40 errands that need several of its tools.

tasks.jsonl has, for every errand, the calls that a flat agent makes (`plan`; `short` if it has
programs, too), and parts: the plan of each turn (`action1`, ...), the work of
each turn (`stage1`, ...) and the answer. programs.jsonl has the same errands for an agent that acts by code: the functions it chooses
(`space1`), its program (`program1`), whether it goes on (`policy2`), and the answer. Some errands hold a surprise, which only a first
result tells: a register that was continued in another one, a firm that has another name, a contract in another unit.

Everything is drawn with a fixed seed, so the answers are known by construction. The programs are run once to note what they print.
"""

import ast
import contextlib
import csv
import io
import json
import os
import random
import sqlite3
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "errands"
OFFICE = OUT / "office"
HEAD = "Karst Orlan Bremer Tolva Quist Harm Velde Sorin Nyman Falster Ostrow Pellin Rask Wendt Lindor Marek".split()
TAIL = ["Freight", "Shipping", "Haulage"]
GROUPS = ["Aurel Holding", "Bastion Holding", "Corvus Holding", "Dunmore Holding", "Elster Holding", "Fjord Holding"]
SIZES = [4, 6, 7, 9, 10, 12]
INSURERS = ["Anker Mutual", "Kompass Mutual", "Lotse Mutual"]
PORTS = ["Grauhafen", "Nordkai", "Seltz", "Tiefmund", "Ulmersiel", "Westpier"]
MONTHS = ["January", "February", "March", "April", "May", "June"]
FINISH = "now finish: answer the question"


def main():
    rng = random.Random(20261128)
    firms = [f"{head} {tail}" for head in HEAD for tail in TAIL]
    rng.shuffle(firms)
    documents, links = [], []

    def document(title, sentence):
        filler = [
            f"This page is kept by the harbour office for the readers of {title}.",
            "Copies may be had at the counter on weekdays.",
            "Remarks are welcome and are read once a month.",
            f"The page was last read through in {rng.choice(MONTHS)}.",
        ]
        text = [sentence] + rng.sample(filler, 2)
        rng.shuffle(text)
        documents.append({"id": title.lower().replace(",", "").replace(" ", "-"), "title": title, "text": " ".join(text)})

    rate = {(year, name): rng.randint(11, 39) for year in (2023, 2024) for name in "ABCDE"}
    for (year, name), crowns in rate.items():
        document(f"Tariff {year}, class {name}", f"In {year} class {name} pays {crowns} crowns a tonne.")
    last = {port: rng.choice([1.5, 1.6, 1.8, 2.2, 2.4, 2.5]) for port in PORTS}
    for port in PORTS:
        document(f"Measures of {port}", f"At {port} a last is {last[port]} tonnes.")
    tonnes = dict(zip(firms, rng.sample(range(110, 990), len(firms))))
    kind_of = {firm: rng.choice("ABCDE") for firm in firms}
    for firm in firms:
        document(f"Licence of {firm}", f"{firm} holds a licence of class {kind_of[firm]} for {tonnes[firm]} tonnes a month.")
    owner, left = {}, list(firms)
    for group, size in zip(GROUPS, SIZES):
        for firm in left[:size]:
            owner[firm] = group
            links.append((group, "owns", firm))
        left = left[size:]
    insurer = {group: INSURERS[i % 3] for i, group in enumerate(GROUPS)}
    links += [(group, "is insured by", insurer[group]) for group in GROUPS]
    shuffled = rng.sample(firms, len(firms))
    port_of = {firm: PORTS[place] for place, firm in zip([n for n, size in enumerate([5, 6, 7, 9, 10, 11]) for _ in range(size)], shuffled)}
    renamed = {}
    for firm in rng.sample(firms, 4):
        old = f"{rng.choice(['Alba', 'Boreas', 'Castor', 'Dione'])} {rng.choice(['Lines', 'Traders'])} {len(renamed) + 1}"
        renamed[old] = firm
        document(f"Firm {old}", f"{old} has been called {firm} since 2022.")
    contracts = {}
    for firm in rng.sample(firms, 8):
        contracts[firm] = (rng.choice(PORTS), rng.randint(21, 89) * 10)
        port, lasts = contracts[firm]
        document(f"Contract of {firm}", f"The contract of {firm} with {port} is for {lasts} lasts.")

    base = sqlite3.connect(":memory:")
    base.executescript(
        "CREATE TABLE firms(firm TEXT, port TEXT);"
        "CREATE TABLE shipments(firm TEXT, port TEXT, month TEXT, tonnes INTEGER);"
        "CREATE TABLE berths(firm TEXT, port TEXT, berths INTEGER, remark TEXT);"
        "CREATE TABLE moorings(firm TEXT, port TEXT, berths INTEGER);"
        "CREATE TABLE fines(party TEXT, year INTEGER, crowns INTEGER);")
    for firm in firms:
        base.execute("INSERT INTO firms VALUES (?, ?)", (firm, port_of[firm]))
        for month in MONTHS:
            base.execute("INSERT INTO shipments VALUES (?, ?, ?, ?)", (firm, rng.choice(PORTS), month, rng.randint(40, 480)))
        base.execute("INSERT INTO berths VALUES (?, ?, ?, ?)",
                     (firm, port_of[firm], rng.randint(2, 9), "closed in 2023 and continued in table moorings"))
        base.execute("INSERT INTO moorings VALUES (?, ?, ?)", (firm, port_of[firm], rng.randint(11, 39)))
    for party in firms + INSURERS:
        for year in (2023, 2024):
            base.execute("INSERT INTO fines VALUES (?, ?, ?)", (party, year, rng.randint(101, 989)))
    base.commit()
    OFFICE.mkdir(parents=True, exist_ok=True)
    (OFFICE / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    (OFFICE / "registers.sql").write_text("\n".join(base.iterdump()) + "\n")
    with open(OFFICE / "links.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("subject", "relation", "object"), *links])
    (OUT / "registers.db").unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(OUT / "registers.db")) as kept:
        kept.executescript((OFFICE / "registers.sql").read_text())
    described()
    # Programs read the pages, the registers and the links from where they run.
    os.chdir(OFFICE)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(OFFICE))

    def value(sql):
        return base.execute(sql).fetchone()[0]

    def search(query, finds):
        return {"tool": "search", "arguments": {"query": query}, "finds": finds}

    def sql(query, finds):
        return {"tool": "sql_query", "arguments": {"sql": query}, "finds": finds}

    def edges(node, relation, finds):
        return {"tool": "neighbours", "arguments": {"node": node, "relation": relation}, "finds": finds}

    def work(expression, finds):
        return {"tool": "calculate", "arguments": {"expression": expression}, "finds": str(finds)}

    def python(code):
        return {"tool": "python", "arguments": {"code": code}, "finds": printed(code).strip()}

    def printed(code):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "program", "exec"), {"__name__": "program"})
        return out.getvalue()

    def show(number):
        return str(int(number)) if float(number).is_integer() else f"{number:.10g}"

    tasks, programs = [], []

    def task(kind, question, answer, facts, wrong, plan, stages, codes, uses):
        """A stage is (skill, goal, fact, wrong facts, calls, stages before that it needs, whether it is a surprise); a code is (functions, program)."""
        name, turns = f"e{len(tasks) + 1:02d}", len(stages)
        parts = {}
        for i, (skill, goal, fact, mistaken, calls, before, surprise) in enumerate(stages):
            ahead = []
            for later in stages[i + 1:]:
                if later[6]:
                    break
                ahead.append(f"then {later[0]}: {later[1]}")
            lines = "\n".join([f"now {skill}: {goal}", *ahead, "then finish"])
            parts[f"action{i + 1}"] = {
                "gold": lines, "wrong": [FINISH], "plan": [{"finds": stages[i - 1][2]}] if surprise else []}
            needs = [{"finds": goal}] + [{"finds": stages[n][2]} for n in before]
            parts[f"stage{i + 1}"] = {"gold": fact, "wrong": mistaken, "plan": needs + calls}
        parts[f"action{turns + 1}"] = {"gold": FINISH, "wrong": [FINISH], "plan": []}
        parts["answer"] = {"gold": answer, "wrong": wrong, "plan": [{"finds": stages[n][2]} for n in uses]}
        row = {"id": name, "kind": kind, "question": question, "answer": answer, "facts": facts, "wrong": wrong,
               "calls": len(plan), "turns": turns, "surprises": sum(stage[6] for stage in stages),
               "difficulty": round((len(plan) - 3) / 2, 1), "plan": plan,
               "short": [call for stage in stages for call in stage[4]], "parts": parts}
        tasks.append(row)
        coded, seen = {}, None
        for i, (names, code) in enumerate(codes):
            n, code = i + 1, f"from toolbox import *\n{code}"
            needs = [] if seen is None else [{"finds": seen}]
            coded[f"policy{n}"] = {"gold": "code", "wrong": ["answer"], "plan": needs}
            coded[f"space{n}"] = {"gold": ", ".join(names), "wrong": ["upwards, share"], "plan": needs}
            coded[f"program{n}"] = {"gold": code, "wrong": [f"from toolbox import *\nprint(tables()[{n}])"],
                                    "plan": [{"finds": f"{name}("} for name in names] + needs}
            seen = printed(code).strip()
        coded[f"policy{len(codes) + 1}"] = {"gold": "answer", "wrong": ["answer"], "plan": []}
        coded["answer"] = {"gold": answer, "wrong": wrong, "plan": [{"finds": seen}]}
        assert all(fact in seen for fact in facts), (seen, facts)
        programs.append({**{key: row[key] for key in row if key not in ("parts", "plan", "short")}, "plan": plan, "parts": coded})

    def near(number):
        return [show(number + step) for step in (10, -10, 3)]

    def look(firm):
        fact = f"{firm} holds a licence of class {kind_of[firm]}"
        return search(f"Licence of {firm}", fact), fact

    def tariff(name):
        fact = f"In 2024 class {name} pays {rate[2024, name]} crowns a tonne"
        return search(f"Tariff 2024, class {name}", fact), fact

    def classed(firm):
        call, fact = look(firm)
        others = [f"{firm} holds a licence of class {other}" for other in "ABCDE" if other != kind_of[firm]]
        return ("search pages", f"find the class of {firm}", fact, others[:2], [call], [], False)

    def rated(firm, before):
        call, fact = tariff(kind_of[firm])
        others = [f"In 2024 class {other} pays {rate[2023, other]} crowns a tonne" for other in "ABCDE" if other != kind_of[firm]]
        return ("search pages", "find the tariff of 2024 for that class", fact, others[:2], [call], [before], False)

    some = iter(rng.sample(firms, 40))
    old_names, contract_firms = iter(renamed), iter([firm for firm in contracts])

    classes = "name = page('Licence of {0}').split('class ')[1][0]\n"
    rates = "crowns = number(page(f'Tariff 2024, class {name}').split('pays ')[1])\n"

    for _ in range(4):
        firm = next(some)
        crowns = rate[2024, kind_of[firm]]
        task("rate", f"How many crowns a tonne did {firm} pay in 2024?", str(crowns), [str(crowns)], near(crowns),
             [look(firm)[0], tariff(kind_of[firm])[0]], [classed(firm), rated(firm, 0)],
             [(["page", "number", "whole"], classes.format(firm) + rates + f"print('{firm}: class', name, 'pays', whole(crowns), 'crowns a tonne')")],
             [1])

    for i in range(4):
        firm, month = next(some), MONTHS[i]
        crowns = rate[2024, kind_of[firm]]
        carried = value(f"SELECT SUM(tonnes) FROM shipments WHERE firm = '{firm}' AND month = '{month}'")
        owed = crowns * carried
        statement = f"SELECT 'shipped by {firm} in {month}', SUM(tonnes) FROM shipments WHERE firm = '{firm}' AND month = '{month}'"
        found = f"shipped by {firm} in {month} | {carried}"
        code = f"print('{firm} owes', {crowns} * {carried}, 'crowns')"
        task("charge", f"How many crowns did {firm} owe for its shipments of {month}, at the tariff of 2024?", str(owed), [str(owed)], near(owed),
             [look(firm)[0], tariff(kind_of[firm])[0], sql(statement, found), work(f"{crowns} * {carried}", owed)],
             [classed(firm), rated(firm, 0),
              ("search database", f"add up what {firm} shipped in {month}", found, [f"shipped by {firm} in {month} | {carried + 20}"],
               [sql(statement, found)], [], False),
              ("code", "multiply the tonnes by the rate", f"{firm} owes {owed} crowns", [f"{firm} owes {owed + 50} crowns"], [python(code)], [1, 2], False)],
             [(["page", "number", "total", "whole"],
               classes.format(firm) + rates + f"print('{firm} owes', whole(crowns * total('shipments', 'tonnes', firm='{firm}', month='{month}')), 'crowns')")],
             [3])

    for group in GROUPS:
        owned = [firm for firm in firms if owner[firm] == group]
        sum_of = sum(tonnes[firm] for firm in owned)
        call = edges(group, "owns", f"{group} --owns--> {owned[-1]}")
        listed = f"{group} owns " + ", ".join(owned)
        code = ("from toolbox import *\n" f"firms = {owned!r}\n"
                "print('licensed together:', whole(sum(number(page(f'Licence of {firm}').split('class ')[1]) for firm in firms)), 'tonnes')")
        fact = f"licensed together: {sum_of} tonnes"
        task("group", f"For how many tonnes a month do the firms of {group} hold licences together?", str(sum_of), [str(sum_of)], near(sum_of),
             [call] + [search(f"Licence of {firm}", f"{firm} holds a licence of class {kind_of[firm]} for {tonnes[firm]} tonnes") for firm in owned]
             + [work(" + ".join(str(tonnes[firm]) for firm in owned), sum_of)],
             [("search links", f"list what {group} owns", listed, [f"{group} owns " + ", ".join(owned[:-1])], [call], [], False),
              ("code", "add up the tonnes of their licences", fact, [f"licensed together: {sum_of - tonnes[owned[-1]]} tonnes"], [python(code)], [0], False)],
             [(["linked", "page", "number", "whole"],
               f"firms = linked('{group}', 'owns')\n" + code.split("\n", 2)[2])],
             [1])

    for port in PORTS:
        there = [firm for firm in firms if port_of[firm] == port]
        best = max(there, key=tonnes.get)
        others = [firm for firm in sorted(there, key=tonnes.get) if firm != best]
        statement = f"SELECT 'registered at {port}', group_concat(firm, ', ') FROM firms WHERE port = '{port}'"
        found = f"registered at {port} | " + ", ".join(there)
        code = ("from toolbox import *\n" f"firms = {there!r}\n"
                "most = {firm: number(page(f'Licence of {firm}').split('class ')[1]) for firm in firms}\n"
                "print('the largest licence is that of', largest(most))")
        fact = f"the largest licence is that of {best}"
        task("largest", f"Which of the firms registered at {port} holds the licence for the most tonnes?", best, [best], others[-3:],
             [sql(statement, found)]
             + [search(f"Licence of {firm}", f"{firm} holds a licence of class {kind_of[firm]} for {tonnes[firm]} tonnes") for firm in there],
             [("search database", f"list the firms registered at {port}", found, [f"registered at {port} | " + ", ".join(others)],
               [sql(statement, found)], [], False),
              ("code", "find the largest of their licences", fact, [f"the largest licence is that of {others[-1]}"], [python(code)], [0], False)],
             [(["rows", "page", "number", "largest"],
               f"firms = [row['firm'] for row in rows('firms', port='{port}')]\n" + code.split("\n", 2)[2])],
             [1])

    for _ in range(4):
        firm = next(some)
        port = port_of[firm]
        now = value(f"SELECT berths FROM moorings WHERE firm = '{firm}'")
        before = value(f"SELECT berths FROM berths WHERE firm = '{firm}'")
        first = f"SELECT * FROM berths WHERE firm = '{firm}' AND port = '{port}'"
        remark = f"{firm} | {port} | {before} | closed in 2023 and continued in table moorings"
        second = f"SELECT 'moored now by {firm}', berths FROM moorings WHERE firm = '{firm}' AND port = '{port}'"
        found = f"moored now by {firm} | {now}"
        task("moved", f"How many berths does {firm} hold at {port}?", str(now), [str(now)], [str(before)] + near(now)[2:],
             [sql(first, remark), sql(second, found)],
             [("search database", f"read the berths of {firm}", remark, [f"{firm} | {port} | {before + 1} |"], [sql(first, remark)], [], False),
              ("search database", f"read the moorings of {firm}", found, [f"moored now by {firm} | {before}"], [sql(second, found)], [], True)],
             [(["rows"], f"print(rows('berths', firm='{firm}', port='{port}'))"),
              (["total"], f"print('moored now by {firm}:', total('moorings', 'berths', firm='{firm}', port='{port}'))")],
             [1])

    for i in range(4):
        old = next(old_names)
        firm, year = renamed[old], 2024
        carried = value(f"SELECT SUM(tonnes) FROM shipments WHERE firm = '{firm}'")
        first = f"SELECT 'shipments of {old}', count(*) FROM shipments WHERE firm = '{old}'"
        none = f"shipments of {old} | 0"
        fact = f"{old} has been called {firm} since 2022"
        second = f"SELECT 'all shipped by {firm}', SUM(tonnes) FROM shipments WHERE firm = '{firm}'"
        found = f"all shipped by {firm} | {carried}"
        name = search(f"Firm {old}", fact)
        task("renamed", f"How many tonnes did {old} ship from January to June?", str(carried), [str(carried)], ["0"] + near(carried)[1:],
             [sql(first, none), name, sql(second, found)],
             [("search database", f"count the shipments of {old}", none, [f"shipments of {old} | 6"], [sql(first, none)], [], False),
              ("search pages", f"see what became of {old}", fact, [f"{old} has been closed since 2022"], [name], [], True),
              ("search database", f"add up the shipments under the new name", found, [f"all shipped by {firm} | {carried + 40}"], [sql(second, found)], [1], False)],
             [(["count"], f"print('shipments of {old}:', count('shipments', firm='{old}'))"),
              (["sentence", "total"],
               f"name = sentence('Firm {old}', 'called').split('called ')[1].split(' since')[0]\n"
               "print('all shipped by', name, total('shipments', 'tonnes', firm=name))")],
             [2])

    for _ in range(4):
        firm = next(contract_firms)
        port, lasts = contracts[firm]
        amount = show(lasts * last[port])
        fact = f"The contract of {firm} with {port} is for {lasts} lasts"
        unit = f"At {port} a last is {last[port]} tonnes"
        first, second = search(f"Contract of {firm}", fact), search(f"Measures of {port}", unit)
        code = f"print('the contract is for', {lasts} * {last[port]:g}, 'tonnes')"
        task("unit", f"How many tonnes is the contract of {firm} with {port} for?", amount, [amount], [str(lasts), show(lasts * 2)],
             [first, second, work(f"{lasts} * {last[port]}", amount)],
             [("search pages", f"find the contract of {firm}", fact, [f"The contract of {firm} with {port} is for {lasts + 10} lasts"], [first], [], False),
              ("search pages", f"find how much a last is at {port}", unit, [f"At {port} a last is 2 tonnes"], [second], [], True),
              ("code", "turn the lasts into tonnes", f"the contract is for {amount} tonnes", [f"the contract is for {lasts * 2} tonnes"], [python(code)], [0, 1], False)],
             [(["sentence"], f"print(sentence('Contract of {firm}', 'lasts'))"),
              (["sentence", "numbers", "whole"], f"print('the contract is for', whole({lasts} * numbers(sentence('Measures of {port}', 'last is'))[0]), 'tonnes')")],
             [2])

    for _ in range(4):
        firm = next(some)
        group = owner[firm]
        by = insurer[group]
        fined = value(f"SELECT crowns FROM fines WHERE party = '{by}' AND year = 2024")
        first, second = edges(firm, "owns", f"{group} --owns--> {firm}"), edges(group, "is insured by", f"{group} --is insured by--> {by}")
        statement = f"SELECT 'fine of {by} in 2024', crowns FROM fines WHERE party = '{by}' AND year = 2024"
        found = f"fine of {by} in 2024 | {fined}"
        task("chain", f"How many crowns was the insurer of the owner of {firm} fined in 2024?", str(fined), [str(fined)], near(fined),
             [first, second, sql(statement, found)],
             [("search links", f"find the owner of {firm}", f"{group} --owns--> {firm}", [f"{other} --owns--> {firm}" for other in GROUPS if other != group][:2], [first], [], False),
              ("search links", "find the insurer of that owner", f"{group} --is insured by--> {by}",
               [f"{group} --is insured by--> {other}" for other in INSURERS if other != by], [second], [0], False),
              ("search database", "read the fine of that insurer", found, [f"fine of {by} in 2024 | {fined + 11}"], [sql(statement, found)], [1], False)],
             [(["linking", "linked", "total"],
               f"group = linking('{firm}', 'owns')[0]\nby = linked(group, 'is insured by')[0]\n"
               "print('fine of', by, 'in 2024:', total('fines', 'crowns', party=by, year=2024))")],
             [2])

    for _ in range(4):
        firm = next(some)
        crowns = rate[2024, kind_of[firm]]
        fined = value(f"SELECT crowns FROM fines WHERE party = '{firm}' AND year = 2024")
        statement = f"SELECT 'fine of {firm} in 2024', crowns FROM fines WHERE party = '{firm}' AND year = 2024"
        found = f"fine of {firm} in 2024 | {fined}"
        body = f"To {firm}: your licence is of class {kind_of[firm]}, your rate is {crowns} crowns a tonne, and your fine is {fined} crowns."
        task("letter", f"Write to {firm}: the class of its licence, its rate in 2024 and its fine of 2024.", body,
             [f"class {kind_of[firm]}", f"{crowns} crowns", f"{fined} crowns"],
             [body.replace(f"{fined} crowns", f"{fined + 7} crowns"), body.replace(f"rate is {crowns}", f"rate is {crowns + 2}")],
             [look(firm)[0], tariff(kind_of[firm])[0], sql(statement, found)],
             [classed(firm), rated(firm, 0),
              ("search database", f"read the fine of {firm}", found, [f"fine of {firm} in 2024 | {fined + 7}"], [sql(statement, found)], [], False),
              ("write", "write the letter", body, [body.replace(f"{fined} crowns", f"{fined + 7} crowns")], [], [0, 1, 2], False)],
             [(["page", "number", "total", "whole", "letter"],
               classes.format(firm) + rates + f"fine = total('fines', 'crowns', party='{firm}', year=2024)\n"
               f"print(letter('{firm}', [f'class {{name}},', whole(crowns) + ' crowns a tonne,', f'{{fine}} crowns of fine']))")],
             [3])

    assert len(tasks) == 40
    order = list(range(40))
    rng.shuffle(order)
    surprises = [persistent(task) if task["surprises"] else None for task in tasks]
    for file, rows in [("tasks.jsonl", tasks), ("programs.jsonl", programs), ("surprises.jsonl", surprises)]:
        (OUT / file).write_text("".join(json.dumps(rows[i]) + "\n" for i in order if rows[i]))


def persistent(task):
    """The task for orchestrators that go on with their plan: one that does not see a surprise does its last step again, and finishes as late."""
    task = json.loads(json.dumps(task))
    for n in range(2, task["turns"] + 1):
        if task["parts"][f"action{n}"]["plan"]:
            task["parts"][f"action{n}"]["wrong"] = [task["parts"][f"action{n - 1}"]["gold"]]
    return task


def described():
    """The manual of check.py says what toolbox.py says."""
    said = {}
    for node in ast.parse((OFFICE / "toolbox.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            said[f"{node.name}({ast.unparse(node.args)})"] = ast.get_docstring(node)
    names = [node for node in ast.parse((OUT / "check.py").read_text()).body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(names[0].value) == said


if __name__ == "__main__":
    main()
