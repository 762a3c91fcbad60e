"""Compares calls of functions by their structure: names, arguments and types, and the order where it matters.

Calls are read in the forms that models write: a JSON list, one object, `{"tool_calls": [...]}`, `<tool_call>` tags with JSON or with pairs of
`<arg_key>` and `<arg_value>`. A reply without calls makes none.
"""

import json
import re

NAMES = ("name", "tool", "function")
ARGUMENTS = ("arguments", "parameters", "args")
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def one(value):
    """A call, of one of the forms."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in ARGUMENTS if key in value), {} if name and len(value) == 1 else None)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except json.JSONDecodeError:
            return None
    return (name, arguments) if name and isinstance(arguments, dict) else None


def many(value):
    """Calls of a JSON value; None if it holds none of the forms."""
    if isinstance(value, dict):
        inner = next((value[key] for key in ("tool_calls", "calls") if isinstance(value.get(key), list)), None)
        value = [value] if inner is None else inner
    if not isinstance(value, list):
        return None
    calls = [one(call) for call in value]
    return None if None in calls else calls


class Untyped(str):
    """A value in a form that does not tell texts from numbers; the schema tells."""

    def under(self, schema):
        try:
            return str(self) if schema.get("type") == "string" else json.loads(self)
        except json.JSONDecodeError:
            return str(self)


def keyed(inside):
    """A call in GLM's form."""
    name, _, rest = inside.partition("<arg_key>")
    pairs = re.findall(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", "<arg_key>" + rest, re.S)
    return name.strip(), {key.strip(): Untyped(text.strip()) for key, text in pairs}


def read(text):
    """The calls of a reply."""
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.S).strip()
    tagged = re.findall(r"<tool_call>(.*?)(?:</tool_call>|$)", text, re.S)
    if tagged:
        calls = []
        for inside in tagged:
            try:
                call = one(json.loads(inside.strip()))
            except json.JSONDecodeError:
                call = keyed(inside)
            assert call is not None and re.fullmatch(r"[\w.-]+", call[0]), f"a call cannot be read: {inside.strip()[:60]}"
            calls.append(call)
        return calls
    fenced = re.search(r"```(?:json)?\s*(.*?)```", text, re.S)
    for written in [fenced.group(1) if fenced else text, text[text.find("["):text.rfind("]") + 1], text[text.find("{"):text.rfind("}") + 1]]:
        try:
            calls = many(json.loads(written))
        except json.JSONDecodeError:
            continue
        if calls is not None:
            return calls
    return []


def typed(value, schema):
    wanted = schema.get("type")
    if isinstance(value, bool) and wanted != "boolean":
        return False
    if not isinstance(value, TYPES[wanted]):
        return False
    return wanted != "array" or all(typed(item, schema["items"]) for item in value)


def plain(value):
    """A value in which case and spaces of texts do not count."""
    if isinstance(value, str):
        return " ".join(value.lower().split())
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def differs(tools, call, gold):
    """What is wrong with a call, or None. `gold` has for each argument the values that are right; None among them means that it may be left out."""
    name, arguments = call
    if name != gold["name"]:
        return f"calls {name}, not {gold['name']}"
    properties = tools[name]["parameters"]["properties"]
    for key, value in arguments.items():
        if key not in properties:
            return f"{name} has no argument {key}"
        value = value.under(properties[key]) if isinstance(value, Untyped) else value
        if not typed(value, properties[key]):
            return f"{name}: {key} is no {properties[key]['type']}"
        if key not in gold["arguments"] or plain(value) not in [plain(right) for right in gold["arguments"][key]]:
            return f"{name}: {key} is {json.dumps(value)}"
    missing = [key for key, right in gold["arguments"].items() if key not in arguments and None not in right]
    return f"{name} lacks {missing[0]}" if missing else None


def misfit(tools, call):
    """How a call does not fit the schema of its function, or None."""
    name, arguments = call
    if name not in tools:
        return f"there is no function {name}"
    parameters = tools[name]["parameters"]
    for key, value in arguments.items():
        if key not in parameters["properties"]:
            return f"{name} has no argument {key}"
        schema = parameters["properties"][key]
        value = value.under(schema) if isinstance(value, Untyped) else value
        if not typed(value, schema):
            return f"{name}: {key} is no {schema['type']}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{name}: {key} must be one of {', '.join(schema['enum'])}"
    missing = [key for key in parameters["required"] if key not in arguments]
    return f"{name} lacks {missing[0]}" if missing else None


def fits(row, answer):
    """Whether calls fit the schemas of the functions that are offered. It knows nothing of which calls are right."""
    tools = {tool["name"]: tool for tool in row["tools"]}
    try:
        said = [misfit(tools, call) for call in read(answer)]
    except AssertionError as error:
        said = [str(error)]
    wrong = [one for one in said if one]
    return not wrong, "\n".join(f"A call does not fit: {one}." for one in wrong) or "The calls fit."


def check(row, answer):
    """Right if the calls are those of the case, no more and no fewer. `recall` and `precision` are over calls."""
    tools = {tool["name"]: tool for tool in row["tools"]}
    gold = list(row["calls"])
    try:
        calls = read(answer)
    except AssertionError as error:
        return {"passed": False, "score": 0, "text": str(error), "measures": {"recall": 0, "precision": 0}}
    right, left, wrong = 0, list(gold), None
    for place, call in enumerate(calls):
        if call[0] not in tools:
            wrong = wrong or f"there is no function {call[0]}"
            continue
        chosen = gold[place:place + 1] if row["ordered"] else left
        said = [differs(tools, call, one) for one in chosen]
        if None in said:
            right += 1
            left.remove(chosen[said.index(None)])
        else:
            near = [what for what in said if not what.startswith("calls ")]
            wrong = wrong or (near or said or [f"{call[0]} is called once too often"])[0]
    if wrong is None and left:
        wrong = f"{left[0]['name']} is not called"
    measures = {"recall": right / len(gold) if gold else float(not calls), "precision": right / len(calls) if calls else float(not gold)}
    passed = wrong is None and not left and right == len(calls)
    return {"passed": passed, "score": int(passed), "text": "the calls are right" if passed else wrong, "measures": measures}
