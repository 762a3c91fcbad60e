#!/usr/bin/env python3
"""Makes data/papers: dated abstracts of invented papers, and questions that are asked as of a day.

Twelve benchmarks have seven papers each. A paper gives a method's accuracy on a benchmark; another document says on which corpus the
method was trained. Accuracies rise over the years, but not always, so the best method depends on the day of the question, and papers
that come later hold a wrong answer to it.
"""

import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "papers"
HEAD = "Ar Bri Cal Den Es Fir Gal Hel Is Jor Kar Lum Mar Nim Or Pal Qui Ras Sol Tor Ur Vel Wis Xen Yor Zim".split()
TAIL = "bit cast dex form graph lens mix net pass quer rank seq tron".split()
BENCH_HEAD = "Alpine Basalt Cedar Delta Ember Fjord Granite Harbour Island Juniper Kelp Lagoon".split()
CORPUS = "Amber Birch Coral Dune Elm Fern Gorse Hazel Ivy Jade Kite Larch Maple Nettle Opal".split()
FACTS = [
    ("Is an accuracy of 80 percent higher than one of 70 percent?", "yes", "no"),
    ("Which of the words precision and harbour names a measure of a classifier?", "precision", "harbour"),
    ("How many test sets are there if each of two benchmarks has one?", "2", "1"),
    ("Does a paper of 2019 come before one of 2021?", "yes", "no"),
]


def main():
    rng = random.Random(20261241)
    methods = [head + tail for head in HEAD for tail in TAIL]
    rng.shuffle(methods)
    methods = iter(methods)
    papers, results, trained = [], {}, {}

    def paper(title, text, date):
        papers.append({"id": f"p{len(papers) + 1:03d}", "title": title, "text": text, "date": date})
        return papers[-1]["id"]

    for bench in [f"{head}Bench" for head in BENCH_HEAD]:
        accuracy = rng.uniform(50, 60)
        for year in range(2017, 2024):
            method, corpus = next(methods), rng.choice(CORPUS)
            accuracy += rng.uniform(-3, 5)
            value = f"{accuracy:.1f}"
            date = f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
            fact = f"{method} reaches an accuracy of {value} percent on {bench}"
            text = f"{fact}. {rng.choice(['We describe its parts.', 'We discuss its cost.', 'We list its errors.'])}"
            source = paper(f"{method}, a method for {bench}", text, date)
            results.setdefault(bench, []).append((date, float(value), method, fact, source))
            says = f"{method} was trained on the {corpus} corpus"
            trained[method] = (corpus, says, paper(f"Data of {method}", f"{says}.", f"{year}-12-30"))

    def best(bench, day):
        return max((result for result in results[bench] if result[0] < day), key=lambda result: result[1])

    def look(bench, day, finds):
        return {"tool": "search", "arguments": {"query": f"accuracy on {bench}", "before": day, "k": 7}, "finds": finds}

    tasks = []

    def task(kind, question, answer, wrong, day, parts, last=()):
        plan = [step for part in parts for step in part["plan"]] + list(last)
        undated = json.loads(json.dumps(plan))
        for step in undated:
            step["arguments"].pop("before", None)
        tasks.append({
            "id": f"t{len(tasks) + 1:02d}", "kind": kind, "question": question, "answer": answer, "wrong": wrong, "date": day,
            "known": {one["id"]: one["date"] for one in papers if f"[{one['id']}]" in " ".join([answer, *wrong])},
            "subtasks": "\n".join(part["ask"] for part in parts), "plan": plan, "undated": undated,
            "parts": {part["ask"]: {"gold": part["plan"][-1]["finds"], "plan": part["plan"]} for part in parts},
        })

    benches = list(results)
    for number, bench in enumerate(benches):
        day = f"{rng.randint(2019, 2022)}-12-31"
        top, later = best(bench, day), max(results[bench], key=lambda result: result[1])
        ask = f"Which method is best on {bench} before {day}?"
        part = {"ask": ask, "plan": [look(bench, day, top[3])]}
        if number % 3 != 2:
            others = [result for result in results[bench] if result[0] < day and result is not top]
            wrong = [f"{result[2]} [{result[4]}]" for result in [later, *others[:1]] if result is not top]
            task("find", f"As of {day}: which method has the highest accuracy on {bench}? Cite the paper.",
                 f"{top[2]} [{top[4]}]", wrong, day, [part])
            continue
        corpus, says, source = trained[top[2]]
        again = {"tool": "search", "arguments": {"query": f"{top[2]} was trained on the corpus", "before": day, "k": 3}, "finds": says}
        more = {"ask": f"On which corpus was the method trained that is best on {bench} before {day}?",
                "plan": [*part["plan"], again]}
        wrong = [f"{trained[result[2]][0]} [{trained[result[2]][2]}]" for result in results[bench] if trained[result[2]][0] != corpus]
        task("hop", f"As of {day}: on which corpus was the method trained that has the highest accuracy on {bench}? Cite the document.",
             f"{corpus} [{source}]", wrong[-2:], day, [more])
    for number in range(8):
        bench = benches[rng.randrange(12)]
        first, last = f"{2019 + number % 2}-06-30", f"{2021 + number % 3}-06-30"
        low, high = best(bench, first), best(bench, last)
        sum_of = {"tool": "calculate", "arguments": {"expression": f"{high[1]} - {low[1]}"}, "finds": f"{high[1] - low[1]:.1f}".removesuffix(".0")}
        parts = [{"ask": f"What is the best accuracy on {bench} before {day}?", "plan": [look(bench, day, one[3])]}
                 for day, one in ((first, low), (last, high))]
        task("gain", f"By how many points did the highest accuracy on {bench} rise between {first} and {last}?",
             sum_of["finds"], [f"{high[1] - low[1] + 1.5:.1f}"], last, parts, [sum_of])
    for number in range(8):
        day = f"{2019 + number % 4}-12-31"
        some = rng.sample(benches, 3 + number % 4)
        tops = [best(bench, day) for bench in some]
        bound = round(sum(top[1] for top in tops) / len(tops))
        above = sum(top[1] > bound for top in tops)
        parts = [{"ask": f"What is the best accuracy on {bench} before {day}?", "plan": [look(bench, day, top[3])]}
                 for bench, top in zip(some, tops)]
        task("count", f"As of {day}: on how many of {', '.join(some)} is the highest accuracy above {bound} percent?", f"{above}",
             [f"{above + 1}", f"{above - 1}"], day, parts)
    for question, answer, wrong in FACTS:
        task("known", question, answer, [wrong], "2024-01-01", [])
    rng.shuffle(papers)
    rng.shuffle(tasks)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, rows in [("papers.jsonl", papers), ("tasks.jsonl", tasks)]:
        (OUT / name).write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


if __name__ == "__main__":
    main()
