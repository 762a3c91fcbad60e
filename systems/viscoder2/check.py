"""Renders plots in three languages far enough to say whether they can be drawn, and what they show.

`render` is the tool of self-debug: it reads the program as the language's own renderer would, and reports the first error with its line. It does
not know the task. `check` also asks whether the picture shows the data of the task.
"""

import json
import re
from xml.parsers import expat


class Broken(Exception):
    def __init__(self, line, what):
        super().__init__(f"line {line}: {what}")


def program(text):
    """The text without a code fence."""
    match = re.search(r"```[a-z-]*\n(.*?)```", text, re.S)
    return (match.group(1) if match else text).strip("\n")


# SVG

NEEDED = {"svg": ["width", "height"], "rect": ["x", "y", "width", "height"], "circle": ["cx", "cy", "r"], "line": ["x1", "y1", "x2", "y2"],
          "text": ["x", "y"], "polyline": ["points"], "g": [], "title": [], "desc": []}
NUMBERS = {"x", "y", "width", "height", "cx", "cy", "r", "x1", "y1", "x2", "y2"}


def number(line, name, text):
    try:
        value = float(text[:-2] if text.endswith("px") else text)
    except ValueError:
        raise Broken(line, f'attribute {name}="{text}" is no number') from None
    if name in ("width", "height", "r") and value < 0:
        raise Broken(line, f'attribute {name}="{text}" is negative')
    return value


def svg(text):
    """The elements in order: (name, attributes, words)."""
    found, stack = [], []
    parser = expat.ParserCreate()

    def start(name, attributes):
        line = parser.CurrentLineNumber
        if not stack and name != "svg":
            raise Broken(line, f"the root is <{name}>, not <svg>")
        if not stack and attributes.get("xmlns") != "http://www.w3.org/2000/svg":
            raise Broken(line, "the root lacks the namespace of SVG")
        if name not in NEEDED:
            raise Broken(line, f"there is no element <{name}>")
        for key in NEEDED[name]:
            if key not in attributes:
                raise Broken(line, f"<{name}> lacks the attribute {key}")
        read = {key: number(line, key, value) if key in NUMBERS else value for key, value in attributes.items()}
        if name == "polyline":
            points = attributes["points"].replace(",", " ").split()
            if len(points) % 2 or len(points) < 4:
                raise Broken(line, "<polyline> has an odd number of coordinates")
            read["points"] = [number(line, "points", one) for one in points]
        found.append([name, read, ""])
        stack.append(found[-1])

    def words(data):
        if stack:
            stack[-1][2] += data

    parser.StartElementHandler, parser.CharacterDataHandler = start, words
    parser.EndElementHandler = lambda _: stack.pop()
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise Broken(error.lineno, expat.errors.messages[error.code]) from None
    return [(name, read, said.strip()) for name, read, said in found]


def near(a, b, slack):
    return abs(a - b) <= slack


def linear(pairs, slack=1.5):
    """Whether the second numbers are a straight function of the first, not a flat one."""
    pairs = sorted(pairs)
    (low, at_low), (high, at_high) = pairs[0], pairs[-1]
    if low == high or near(at_low, at_high, slack):
        return False
    return all(near(at, at_low + (at_high - at_low) * (value - low) / (high - low), slack) for value, at in pairs)


def svg_shows(task, elements):
    data = task["data"]
    if task["chart"] == "bars":
        bars = [read for name, read, _ in elements if name == "rect" and "class" in read and read["class"] == "bar"]
        labels = [(read["x"], said) for name, read, said in elements if name == "text"]
        assert len(bars) == len(data), f"{len(bars)} bars of class `bar`, {len(data)} asked for"
        scale = bars[0]["height"] / data[0][1]
        for name, value in data:
            at = next((x for x, said in labels if said == name), None)
            assert at is not None, f"no label {name}"
            bar = min(bars, key=lambda one: abs(one["x"] + one["width"] / 2 - at))
            assert near(bar["height"], value * scale, 1.0), f"the bar of {name} is not in proportion"
            assert near(bar["y"] + bar["height"], bars[0]["y"] + bars[0]["height"], 1.0), f"the bar of {name} does not stand on the base"
        return
    if task["chart"] == "points":
        places = [(read["cx"], read["cy"]) for name, read, _ in elements if name == "circle"]
    else:
        lines = [read["points"] for name, read, _ in elements if name == "polyline"]
        assert len(lines) == 1, f"{len(lines)} lines, 1 asked for"
        places = list(zip(lines[0][::2], lines[0][1::2]))
    assert len(places) == len(data), f"{len(places)} points, {len(data)} asked for"
    assert linear([(x, at[0]) for (x, _), at in zip(data, places)]), "the points do not lie where x says"
    assert linear([(y, -at[1]) for (_, y), at in zip(data, places)]), "the points do not lie where y says"


# Mermaid

NODE = r'([A-Za-z][A-Za-z0-9_]*)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\)|\{([^{}]*)\})?'
EDGE = re.compile(rf'^{NODE}\s*-->\s*(?:\|([^|]*)\|\s*)?{NODE}$')
ALONE = re.compile(rf"^{NODE}$")
SLICE = re.compile(r'^"([^"]+)"\s*:\s*(\d+(?:\.\d+)?)$')
SAID = re.compile(r"^([A-Za-z][A-Za-z0-9_]*)\s*->>\s*([A-Za-z][A-Za-z0-9_]*)\s*:\s*(.+)$")


def mermaid(text):
    """The kind of the diagram and its parts."""
    lines = [(at, line.strip()) for at, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("%%")]
    if not lines:
        raise Broken(1, "there is no diagram")
    at, first = lines[0]
    parts, names, declared = [], {}, None
    if re.fullmatch(r"(flowchart|graph) (TD|TB|LR|RL|BT)", first):
        kind = "flowchart"
    elif re.fullmatch(r"pie( showData)?( title .+)?", first):
        kind = "pie"
    elif first == "sequenceDiagram":
        kind, declared = "sequence", []
    else:
        raise Broken(at, f"there is no diagram `{first}`")
    for at, line in lines[1:]:
        if kind == "flowchart":
            edge, alone = EDGE.match(line), ALONE.match(line)
            if not edge and not alone:
                raise Broken(at, f"cannot parse `{line}`")
            groups = edge.groups() if edge else (*alone.groups(), None)
            ends = [groups[0:4], groups[5:9]] if edge else [groups[0:4]]
            for name, *texts in ends:
                if name == "end":
                    raise Broken(at, "`end` is a reserved word")
                said = next((one for one in texts if one is not None), None)
                if said is not None:
                    names[name] = said.strip().strip('"')
                names.setdefault(name, name)
            if edge:
                parts.append((ends[0][0], (groups[4] or "").strip(), ends[1][0]))
        elif kind == "pie":
            match = SLICE.match(line)
            if line.startswith("title "):
                continue
            if not match:
                raise Broken(at, f"cannot parse `{line}`")
            if float(match.group(2)) <= 0:
                raise Broken(at, "a slice must be above 0")
            parts.append((match.group(1), float(match.group(2))))
        else:
            if re.fullmatch(r"participant [A-Za-z][A-Za-z0-9_]*", line):
                declared.append(line.split()[1])
                continue
            match = SAID.match(line)
            if not match:
                raise Broken(at, f"cannot parse `{line}`")
            parts.append(match.groups())
    if not parts:
        raise Broken(lines[-1][0], "the diagram is empty")
    if kind == "flowchart":
        parts = [(names[a], said, names[b]) for a, said, b in parts]
    return kind, parts


def mermaid_shows(task, drawn):
    kind, parts = drawn
    assert kind == task["chart"], f"a {kind}, not a {task['chart']}"
    want = [tuple(one) for one in task["data"]]
    for one in want:
        assert one in parts, f"not shown: {one}"
    assert len(parts) == len(want), "shows more than was asked for"
    assert kind != "sequence" or parts == want, "in another order"


# Vega-Lite

MARKS = {"arc", "area", "bar", "circle", "line", "point", "rect", "rule", "square", "text", "tick", "trail"}
CHANNELS = {"x", "y", "color", "size", "shape", "opacity", "theta", "tooltip", "text", "order", "detail", "column", "row", "xOffset", "y2", "x2"}
TYPES = {"quantitative", "nominal", "ordinal", "temporal"}
AGGREGATES = {"sum", "mean", "average", "median", "min", "max", "count"}
KEYS = {"$schema", "data", "mark", "encoding", "title", "width", "height", "description", "transform", "config", "background"}


def vega_lite(text):
    try:
        spec = json.loads(text)
    except json.JSONDecodeError as error:
        raise Broken(error.lineno, error.msg) from None

    def line(word):
        wanted = json.dumps(word, ensure_ascii=False)
        return next((at for at, one in enumerate(text.splitlines(), 1) if wanted in one), 1)

    if not isinstance(spec, dict):
        raise Broken(1, "the specification is no object")
    for key in spec:
        if key not in KEYS:
            raise Broken(line(key), f"there is no property `{key}`")
    for key in ("data", "mark", "encoding"):
        if key not in spec:
            raise Broken(1, f"the property `{key}` is missing")
    values = spec["data"].get("values") if isinstance(spec["data"], dict) else None
    if not isinstance(values, list) or not values or not all(isinstance(one, dict) for one in values):
        raise Broken(line("data"), "`data.values` is no list of records")
    mark = spec["mark"].get("type") if isinstance(spec["mark"], dict) else spec["mark"]
    if mark not in MARKS:
        raise Broken(line("mark"), f"there is no mark `{mark}`")
    if not isinstance(spec["encoding"], dict):
        raise Broken(line("encoding"), "`encoding` is no object")
    for channel, definition in spec["encoding"].items():
        if channel not in CHANNELS:
            raise Broken(line(channel), f"there is no channel `{channel}`")
        if not isinstance(definition, dict):
            raise Broken(line(channel), f"the channel `{channel}` is no object")
        if "value" in definition:
            continue
        if definition.get("aggregate", "sum") not in AGGREGATES:
            raise Broken(line(channel), f"there is no aggregate `{definition['aggregate']}`")
        if "field" not in definition and definition.get("aggregate") != "count":
            raise Broken(line(channel), f"the channel `{channel}` names no field")
        if definition.get("type") not in TYPES:
            raise Broken(line(channel), f"the channel `{channel}` has no type `{definition.get('type')}`")
    return spec, mark


def vega_lite_shows(task, drawn):
    spec, mark = drawn
    assert mark in task["marks"], f"the mark is {mark}"
    encoding = spec["encoding"]
    rows = []
    for value in spec["data"]["values"]:
        row = []
        for channel in task["channels"]:
            assert channel in encoding and "field" in encoding[channel], f"nothing on {channel}"
            field = encoding[channel]["field"]
            assert field in value, f"the data have no field `{field}`"
            row.append(value[field])
        rows.append(row)
    want = task["data"]
    assert sorted(rows, key=str) == sorted(want, key=str), "not the data that were asked for"
    for channel, kinds in zip(task["channels"], task["types"]):
        assert encoding[channel]["type"] in kinds, f"{channel} is {encoding[channel]['type']}"
        assert "aggregate" not in encoding[channel] or len({row[0] for row in want}) == len(want), "aggregated"


LANGUAGES = {"svg": (svg, svg_shows), "mermaid": (mermaid, mermaid_shows), "vega-lite": (vega_lite, vega_lite_shows)}


def render(row, answer):
    """The renderer: passed, or the first error. `coverage` is the execution pass rate."""
    read, _ = LANGUAGES[row["language"]]
    try:
        read(program(answer))
    except Broken as broken:
        return {"passed": False, "text": f"The renderer stopped. {broken}", "measures": {"coverage": 0}}
    return {"passed": True, "text": "rendered", "measures": {"coverage": 1}}


def check(row, answer):
    """The picture is drawn and shows the data of the task."""
    read, shows = LANGUAGES[row["language"]]
    try:
        shows(row["task"], read(program(answer)))
    except (Broken, AssertionError) as wrong:
        return False, str(wrong)
    return True, "shows the data"
