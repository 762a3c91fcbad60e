"""From the log of a scripted run to the facts of a case, and the facts of a method to its `official.json`."""

import json
import pathlib
import sys

METHODS = pathlib.Path(__file__).resolve().parents[2] / "crates/polity-catalog/methods"


class Queue:
    """The scripted replies of a case: for each kind a list, of which each is used once, in order."""

    def __init__(self, replies):
        self.replies, self.used = replies, {}

    def next(self, kind):
        """The next reply of a kind."""
        n = self.used.get(kind, 0)
        self.used[kind] = n + 1
        return self.replies[kind][n]


def calls(log):
    """Who was asked in which round, with which temperature, and whose earlier replies the prompt showed, in its order."""
    said = {call.marker: [call.reply.round, call.reply.member] for call in log if call.marker}
    return [
        {
            "round": call.reply.round,
            "member": call.reply.member,
            "kind": call.reply.kind,
            "temperature": call.temperature,
            "shown": [said[marker] for marker in call.shown],
        }
        for call in log
    ]


def case(name, settings, replies, log, answer, **more):
    """The facts of a case. `stopped_after_round` counts rounds in which a member answered."""
    made = calls(log)
    answering = [call["round"] for call in made if call["kind"] == "answer"]
    return {
        "name": name,
        "settings": settings,
        "replies": replies,
        "calls": made,
        "number_of_calls": len(made),
        "stopped_after_round": max(answering, default=-1) + 1,
        "answer": answer,
        **more,
    }


def write(method, facts):
    """Writes `official.json` of a method: one line for each call."""
    path = METHODS / method / "official.json"
    path.write_text(laid_out(facts) + "\n")
    print(f"{path}: {len(facts['cases'])} cases", file=sys.stderr)


def laid_out(value, depth=0):
    """JSON in which lists and objects that fit a line are on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (list, dict)) or len(flat) + 2 * depth <= 132 or not value:
        return flat
    pad, end = "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, list):
        return "[\n" + ",\n".join(pad + laid_out(item, depth + 1) for item in value) + end + "]"
    fields = [f"{pad}{json.dumps(key)}: {laid_out(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(fields) + end + "}"
