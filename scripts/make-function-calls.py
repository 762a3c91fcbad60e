#!/usr/bin/env python3
"""Makes data/function-calls: a hundred cases of calling functions, with the calls that are right, known by construction.

Kinds, as in the Berkeley Function-Calling Leaderboard: `simple` (one function offered, one call), `multiple` (several offered, one call), `parallel`
(several calls, in a given order where the request says so), `irrelevant` (no function fits, and none is to be called). Each case has spoilt answers.

    python3 scripts/make-function-calls.py          writes the file
    python3 scripts/make-function-calls.py --test   tests the checker: right calls in five forms are accepted, spoilt ones refused
"""

import copy
import importlib.util
import json
import random
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "function-calls"
spec = importlib.util.spec_from_file_location("check", OUT / "check.py")
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)

TOWNS = "Altau Birkfeld Dornhafen Eichbruck Felsmund Goldau Hochfeld Ivenstadt Kaltmund Lindau Marbruck Niedfeld Ostmund Rehau Steinfeld".split()
PEOPLE = "Ada Abram,Bela Corvin,Cato Dorn,Dora Falk,Egon Grote,Fina Holm,Ivo Kerr,Jana Lund,Milo Noll,Pia Orla".split(",")
PLANTS = "alder beech cedar elm fir larch maple oak pine rowan".split()


def day(rng):
    return f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


# Functions by domain: name, what it does, arguments (name, type, what it is, values or None, needed), the request in words, how values are drawn.
def f(name, what, arguments, say, draw):
    properties = {}
    for key, kind, about, *choices in arguments:
        properties[key.strip("?")] = {"type": kind, "description": about}
        if kind == "array":
            properties[key.strip("?")]["items"] = {"type": "string"}
        if choices:
            properties[key.strip("?")]["enum"] = choices[0]
    needed = [key for key, *_ in arguments if not key.endswith("?")]
    schema = {"name": name, "description": what, "parameters": {"type": "object", "properties": properties, "required": needed}}
    return {"schema": schema, "say": say, "draw": draw}


def two(rng, names):
    a, b = rng.sample(names, 2)
    return a, b


FUNCTIONS = [
    f("get_weather", "The weather of a town on a day", [("town", "string", "the town"), ("date", "string", "YYYY-MM-DD"), ("unit?", "string", "unit of temperatures, celsius if left out", ["celsius", "fahrenheit"])],
      "the weather in {town} on {date}", lambda rng: {"town": [rng.choice(TOWNS)], "date": [day(rng)], "unit": ["celsius", None]}),
    f("get_tide", "The hours of high water at a harbour", [("harbour", "string", "the harbour"), ("date", "string", "YYYY-MM-DD")],
      "the hours of high water at {harbour} on {date}", lambda rng: {"harbour": [rng.choice(TOWNS)], "date": [day(rng)]}),
    f("find_train", "Trains between two towns", [("start", "string", "town of departure"), ("goal", "string", "town of arrival"), ("date", "string", "YYYY-MM-DD"), ("bicycle?", "boolean", "whether a bicycle comes along, false if left out")],
      "trains from {start} to {goal} on {date}, with a bicycle", lambda rng: dict(zip(("start", "goal"), ([t] for t in two(rng, TOWNS)))) | {"date": [day(rng)], "bicycle": [True]}),
    f("find_ferry", "Ferries between two harbours", [("start", "string", "harbour of departure"), ("goal", "string", "harbour of arrival"), ("cars", "integer", "number of cars")],
      "ferries from {start} to {goal} that take {cars} cars", lambda rng: dict(zip(("start", "goal"), ([t] for t in two(rng, TOWNS)))) | {"cars": [rng.randint(1, 9)]}),
    f("distance", "The distance of two towns by road", [("start", "string", "first town"), ("goal", "string", "second town"), ("unit?", "string", "km if left out", ["km", "miles"])],
      "the distance by road from {start} to {goal} in miles", lambda rng: dict(zip(("start", "goal"), ([t] for t in two(rng, TOWNS)))) | {"unit": ["miles"]}),
    f("convert_currency", "Converts an amount of money", [("amount", "number", "the amount"), ("source", "string", "code of the currency"), ("target", "string", "code of the other currency")],
      "what {amount} {source} are in {target}", lambda rng: {"amount": [rng.randint(2, 900) + 0.5]} | dict(zip(("source", "target"), ([c] for c in two(rng, ["EUR", "USD", "CHF", "NOK", "PLN"]))))),
    f("loan_rate", "The monthly rate of a loan", [("sum", "number", "the sum borrowed"), ("years", "integer", "years"), ("interest", "number", "yearly interest in percent")],
      "the monthly rate of a loan of {sum} over {years} years at {interest} percent", lambda rng: {"sum": [1000 * rng.randint(5, 90)], "years": [rng.randint(3, 30)], "interest": [rng.randint(2, 9) + 0.25]}),
    f("share_price", "The price of a share on a day", [("firm", "string", "the firm"), ("date", "string", "YYYY-MM-DD")],
      "the price of a share of {firm} on {date}", lambda rng: {"firm": [rng.choice(["Tandem Works", "Orion Labs", "Basalt Mills", "Ember Foundry"])], "date": [day(rng)]}),
    f("send_mail", "Sends a message", [("to", "array", "names of those who get it"), ("subject", "string", "the subject"), ("urgent?", "boolean", "false if left out")],
      "a mail with the subject \"{subject}\" sent to {to}", lambda rng: {"to": [list(two(rng, PEOPLE))], "subject": [rng.choice(["Meeting moved", "Keys found", "Boat is late", "New price list"])], "urgent": [False, None]}),
    f("book_room", "Books a room", [("room", "string", "the room"), ("date", "string", "YYYY-MM-DD"), ("hour", "integer", "hour of the beginning, 0 to 23"), ("people", "integer", "number of people")],
      "the room {room} booked on {date} from {hour} o'clock for {people} people", lambda rng: {"room": [rng.choice(["Elm", "Larch", "Rowan"]) + " Room"], "date": [day(rng)], "hour": [rng.randint(8, 18)], "people": [rng.randint(2, 20)]}),
    f("set_reminder", "Reminds a person of something", [("person", "string", "who is reminded"), ("text", "string", "of what"), ("date", "string", "YYYY-MM-DD")],
      "a reminder for {person} on {date} to {text}", lambda rng: {"person": [rng.choice(PEOPLE)], "text": [rng.choice(["water the plants", "pay the rent", "call the dentist", "renew the pass"])], "date": [day(rng)]}),
    f("find_contact", "The address of a person", [("person", "string", "the person")],
      "the address of {person}", lambda rng: {"person": [rng.choice(PEOPLE)]}),
    f("set_light", "Sets a lamp", [("room", "string", "the room"), ("level", "integer", "0 to 100")],
      "the lamp in the {room} set to {level}", lambda rng: {"room": [rng.choice(["kitchen", "hall", "cellar", "bedroom"])], "level": [rng.randint(0, 100)]}),
    f("set_heating", "Sets the heating of a room", [("room", "string", "the room"), ("degrees", "number", "degrees Celsius")],
      "the heating in the {room} set to {degrees} degrees", lambda rng: {"room": [rng.choice(["kitchen", "hall", "cellar", "bedroom"])], "degrees": [rng.randint(15, 24) + 0.5]}),
    f("lock_door", "Locks or opens a door", [("door", "string", "the door"), ("locked", "boolean", "whether it shall be locked")],
      "the {door} locked", lambda rng: {"door": [rng.choice(["front door", "garden door", "cellar door", "garage"])], "locked": [True]}),
    f("play_music", "Plays a piece of music", [("title", "string", "the title"), ("room?", "string", "where, everywhere if left out")],
      "the song \"{title}\" played in the {room}", lambda rng: {"title": [rng.choice(["Blue Ferry", "Old Mill", "Seven Lamps", "Harbour Snow"])], "room": [rng.choice(["kitchen", "hall", "bedroom"])]}),
    f("plant_care", "How to care for a plant", [("plant", "string", "the plant"), ("season", "string", "the season", ["spring", "summer", "autumn", "winter"])],
      "how to care for {plant} in {season}", lambda rng: {"plant": [rng.choice(PLANTS)], "season": [rng.choice(["spring", "summer", "autumn", "winter"])]}),
    f("order_seeds", "Orders seeds", [("plant", "string", "the plant"), ("grams", "integer", "how much"), ("organic?", "boolean", "false if left out")],
      "{grams} grams of organic {plant} seeds ordered", lambda rng: {"plant": [rng.choice(PLANTS)], "grams": [5 * rng.randint(1, 40)], "organic": [True]}),
    f("translate", "Translates a text", [("text", "string", "the text"), ("language", "string", "the language")],
      "\"{text}\" translated to {language}", lambda rng: {"text": [rng.choice(["Good evening", "Where is the harbour?", "The mill is closed", "Two tickets, please"])], "language": [rng.choice(["Dutch", "Polish", "Greek", "Finnish"])]}),
    f("spell", "Checks how a word is spelt", [("word", "string", "the word"), ("language?", "string", "English if left out")],
      "the spelling of \"{word}\" checked", lambda rng: {"word": [rng.choice(["harbuor", "recieve", "lantren", "febuary"])], "language": ["English", None]}),
    f("count_words", "Counts the words of a document", [("document", "string", "name of the file")],
      "the words of {document} counted", lambda rng: {"document": [rng.choice(["report.txt", "letter.txt", "notes.txt", "minutes.txt"])]}),
    f("resize_picture", "Scales a picture", [("file", "string", "name of the file"), ("width", "integer", "pixels"), ("height", "integer", "pixels")],
      "{file} scaled to {width} by {height} pixels", lambda rng: {"file": [rng.choice(["mill.png", "boat.png", "plan.png"])], "width": [10 * rng.randint(10, 90)], "height": [10 * rng.randint(10, 90)]}),
]
CLOSINGS = ["who wrote the oldest letter in the town's museum", "a joke about a ferryman", "whether {town} is a nice place to grow old", "the meaning of the word patience", "advice on a quarrel with {person}",
            "the sum of the digits of {number}", "a rhyme on the word {plant}", "what {person} thinks of winter"]


def call(name, arguments):
    """The call with the first value of each argument that must be there."""
    return {"name": name, "arguments": {key: values[0] for key, values in arguments.items() if None not in values}}


def request(function, arguments):
    said = {key: " and ".join(values[0]) if isinstance(values[0], list) else values[0] for key, values in arguments.items()}
    return function["say"].format(**said)


def offered(rng, chosen, more):
    """Functions that are offered: those needed, and others of other names."""
    others = rng.sample([one for one in FUNCTIONS if one not in chosen], more)
    tools = [*chosen, *others]
    rng.shuffle(tools)
    return [one["schema"] for one in tools]


def spoilt(rng, tools, calls, ordered):
    """Wrong answers: texts of calls that differ from the right ones."""
    schemas = {tool["name"]: tool for tool in tools}
    bad = []

    def change(what):
        wrong = copy.deepcopy(calls)
        what(wrong)
        bad.append(wrong)

    if not calls:
        for tool in rng.sample(tools, min(2, len(tools))):
            key = tool["parameters"]["required"][0]
            kind = tool["parameters"]["properties"][key]["type"]
            bad.append([{"name": tool["name"], "arguments": {key: {"string": "unknown", "array": ["unknown"]}.get(kind, 1)}}])
        return [json.dumps(wrong) for wrong in bad]

    at = rng.randrange(len(calls))
    arguments = schemas[calls[at]["name"]]["parameters"]
    key = rng.choice(sorted(calls[at]["arguments"]))
    kind = arguments["properties"][key]["type"]

    def another(wrong):
        value = wrong[at]["arguments"][key]
        wrong[at]["arguments"][key] = {"string": f"{value} 2", "boolean": not value, "array": value[:1] if kind == "array" else value}.get(kind, value + 7 if kind in ("integer", "number") else value)

    def other_type(wrong):
        value = wrong[at]["arguments"][key]
        wrong[at]["arguments"][key] = str(value) if kind in ("integer", "number", "boolean") else [value] if kind == "string" else ", ".join(value)

    change(another)
    change(other_type)
    change(lambda wrong: wrong[at]["arguments"].pop(rng.choice(arguments["required"])))
    change(lambda wrong: wrong[at]["arguments"].update(note="please"))
    change(lambda wrong: wrong.append(copy.deepcopy(wrong[at])))
    if len(calls) > 1:
        change(lambda wrong: wrong.pop(at))
        if ordered:
            change(lambda wrong: wrong.reverse())
    else:
        bad.append([])
    others = [tool["name"] for tool in tools if tool["name"] != calls[at]["name"]]
    if others:
        change(lambda wrong: wrong[at].update(name=rng.choice(others)))
    return [json.dumps(wrong) for wrong in rng.sample(bad, min(3, len(bad)))]


def case(rng, kind):
    ordered = False
    if kind == "irrelevant":
        said = rng.choice(CLOSINGS).format(town=rng.choice(TOWNS), person=rng.choice(PEOPLE), number=rng.randint(1000, 99999), plant=rng.choice(PLANTS))
        return f"I want {said}.", offered(rng, [], rng.randint(1, 3)), [], ordered
    chosen = [rng.choice(FUNCTIONS)]
    if kind == "parallel":
        chosen = [chosen[0]] * rng.randint(2, 3) if rng.random() < 0.5 else rng.sample(FUNCTIONS, rng.randint(2, 3))
        ordered = rng.random() < 0.4
    gold = []
    for function in chosen:
        arguments = function["draw"](rng)
        while any(one["arguments"] == arguments for one in gold):
            arguments = function["draw"](rng)
        gold.append({"name": function["schema"]["name"], "arguments": arguments})
    requests = [request(function, one["arguments"]) for function, one in zip(chosen, gold)]
    if len(requests) == 1:
        said = f"I want {requests[0]}."
    elif ordered:
        said = f"I want, in this order: {'; then '.join(requests)}."
    else:
        said = f"I want {'; and '.join(requests)}."
    needed = [one for place, one in enumerate(chosen) if one not in chosen[:place]]
    return said, offered(rng, needed, {"simple": 0, "multiple": rng.randint(2, 3), "parallel": rng.randint(0, 1)}[kind]), gold, ordered


FORM = ('Functions that you may call:\n{tools}\n\n{said}')
KINDS = ["simple", "multiple", "parallel", "irrelevant", "simple", "multiple", "parallel", "simple", "multiple", "irrelevant"]


def main():
    rng = random.Random(20261127)
    rows, seen = [], set()
    while len(rows) < 100:
        kind = KINDS[len(rows) % len(KINDS)]
        said, tools, gold, ordered = case(rng, kind)
        if said in seen:
            continue
        seen.add(said)
        right = [call(one["name"], one["arguments"]) for one in gold]
        row = {"id": f"f{len(rows) + 1:03d}", "kind": kind, "question": FORM.format(tools="\n".join(json.dumps(tool) for tool in tools), said=said),
               "tools": tools, "calls": gold, "ordered": ordered, "answer": json.dumps(right)}
        difficulty = round(-0.5 + 0.5 * len(gold) + 0.15 * len(tools), 2)
        # The calls are a part of their own, so that a model is asked for its text as it is. `checked` is the same for an ideal reader: of seven
        # cases in ten its first reply is a spoilt one, and it needs a finding that names what does not fit. Not every spoilt one has any.
        bad = spoilt(rng, tools, right, ordered)
        needs = [{"finds": "a call does not fit"}] if rng.random() < 0.7 else []
        row["parts"] = {"calls": {"gold": row["answer"], "wrong": bad, "difficulty": difficulty}}
        row["checked"] = {"calls": {"gold": row["answer"], "wrong": bad, "plan": needs}}
        rows.append(row)
    for row in rows:
        assert checker.check(row, row["answer"])["passed"], row
        for bad in row["parts"]["calls"]["wrong"]:
            assert not checker.check(row, bad)["passed"], (row, bad)
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "cases.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def forms(calls):
    """The same calls as five kinds of models write them."""
    listed = json.dumps(calls)
    yield listed
    yield f"Here they are.\n```json\n{listed}\n```"
    if calls:
        yield json.dumps({"tool_calls": [{"type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["arguments"])}} for one in calls]})
        yield "".join(f"<tool_call>\n{json.dumps(one)}\n</tool_call>" for one in calls)
        pairs = ["".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value if isinstance(value, str) else json.dumps(value)}</arg_value>\n" for key, value in one["arguments"].items()) for one in calls]
        yield "<think>Which function fits?</think>" + "".join(f"<tool_call>{one['name']}\n{said}</tool_call>" for one, said in zip(calls, pairs))
    else:
        yield "None of these functions fits."


def typed(bad, text):
    """Whether the form can say what is wrong: pairs of keys and values do not tell the text "5" from the number 5."""
    values = [value for one in json.loads(bad) for value in one["arguments"].values() if isinstance(value, str)]
    return "<arg_key>" not in text or not any(value in ("True", "False") or value.replace(".", "").isdigit() for value in values)


def test():
    rows = [json.loads(line) for line in open(OUT / "cases.jsonl", encoding="utf-8")]
    accepted = written = refused = spoils = 0
    for row in rows:
        right = json.loads(row["answer"])
        # Calls without a fixed order may come in any.
        for text in [*forms(right), *([] if row["ordered"] else forms(right[::-1]))]:
            written += 1
            accepted += checker.check(row, text)["passed"]
        wrong = [text for bad in row["parts"]["calls"]["wrong"] for text in forms(json.loads(bad)) if typed(bad, text)]
        spoils += len(wrong)
        refused += sum(not checker.check(row, text)["passed"] for text in wrong)
    print(f"{accepted} of {written} texts of right calls accepted, {refused} of {spoils} texts of wrong ones refused, {len(rows)} cases")
    return 0 if (accepted, refused) == (written, spoils) else 1


if __name__ == "__main__":
    sys.exit(test()) if "--test" in sys.argv else main()
