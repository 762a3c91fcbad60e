"""Drives tree of thoughts with scripted replies.

Its program is fetched outside the repository (`git archive` of princeton-nlp/tree-of-thought-llm), and openai==0.28.1, backoff, numpy, pandas and sympy
are installed in an environment of their own:
    venv/bin/python scripts/official/tree-of-thoughts.py FOLDER COMMIT
The tasks are the repository's: the text (thoughts are sampled, and voted on) and the game of 24 (thoughts are proposed, and valued one by one).
"""

import argparse
import contextlib
import os
import re
import sys
import types
from pathlib import Path

from endpoint import Endpoint, Reply
from facts import Queue, case, write

program, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
sys.path.insert(0, str(program / "src"))
os.environ["OPENAI_API_KEY"] = "none"

import openai  # noqa: E402
from tot.methods.bfs import solve  # noqa: E402
from tot.tasks.game24 import Game24Task  # noqa: E402
from tot.tasks.text import TextTask  # noqa: E402

QUESTION = "What is the capital of Australia?"
SURE, LIKELY, NEVER = "sure", "likely", "impossible"
CASES = [
    # name, task, thoughts a state, evaluations, states kept, thoughts by step, votes or values by step
    ("votes", "text", 5, 5, 1, [list("abcde"), list("fghij")], [[2, 2, 1, 3, 2], [5, 1, 5, 2, 5]]),
    ("a tie goes to the first", "text", 3, 4, 1, [list("abc"), list("def")], [[3, 2, 2, 3], [1, 2, 3, 2]]),
    ("two states are kept", "text", 2, 3, 2, [list("ab"), list("cdef")], [[2, 2, 1], [4, 4, 1]]),
    (
        "values",
        "game24",
        3,
        3,
        2,
        [list("abc"), list("defghi"), list("jklmno"), list("pqrstu")],
        [
            [LIKELY] * 3 + [SURE] * 3 + [NEVER] * 3,
            [LIKELY] * 9 + [SURE, LIKELY, NEVER] + [SURE] * 3 + [NEVER] * 3,
            [NEVER] * 9 + [LIKELY] * 6 + [SURE, NEVER, NEVER],
            [LIKELY] * 12 + [SURE] * 3 + [LIKELY] * 3,
        ],
    ),
]
# No counterpart: replies on which marks stand are never the same.
OFFICIAL_ONLY = [
    ("a thought that comes twice", "game24", 3, 1, 1, [list("aab"), list("ccc"), list("dee"), list("ffg")], [[LIKELY, SURE], [LIKELY], [LIKELY, SURE], [LIKELY, SURE]]),
]


def script(queue, by_step):
    ends = [sum(len(step) for step in by_step[: n + 1]) for n in range(len(by_step))]

    def thoughts(n, form):
        """The next thoughts, all of one step."""
        first = queue.used.get("thought", 0)
        step = next(step for step, end in enumerate(ends) if first < end)
        place = first - (ends[step - 1] if step else 0)
        lines = [form[step == len(ends) - 1].format(f"<{queue.next('thought')}>") for _ in range(n)]
        return "\n".join(lines) + "\n" * (n == 1), step, place

    def reply(call):
        done = queue.used.get("thought", 0)
        step = next((step for step, end in enumerate(ends) if done <= end), 0)
        if "Choice 1:" in call.prompt:
            return Reply(f"The best choice is {queue.next('evaluate')}", step, f"vote {queue.used['evaluate']}", "vote", bare=True)
        if "Evaluate if given numbers" in call.prompt or "give a judgement" in call.prompt:
            return Reply(queue.next("evaluate"), step, f"value {queue.used['evaluate']}", "value", bare=True)
        if "Possible next steps" in call.prompt:
            text, step, place = thoughts(queue.proposals, ["step (left: {})", "Answer: {}"])
            return Reply(text, step, place, "answer", bare=True)
        text, step, place = thoughts(1, ["{}", "{}"])
        return Reply(text, step, place, bare=True)

    return reply


def one_by_one(log):
    """The log with an entry for each thought. Thoughts are known by their letters, since several come in one reply."""
    entries, by_letter = [], {}
    for call in log:
        shown = list(dict.fromkeys(by_letter[letter] for letter in re.findall("<([a-z])>", call.prompt) if letter in by_letter))
        letters = re.findall("<([a-z])>", call.reply.text) or [""]
        for n, letter in enumerate(letters):
            said = call.reply if not letter else Reply(letter, call.reply.round, call.reply.member + n)
            marker = f"{said.round}, {said.member}"
            entries.append(types.SimpleNamespace(reply=said, marker=marker, shown=shown, temperature=call.temperature))
            if letter:
                by_letter.setdefault(letter, marker)
    return entries


def run(name, task, thoughts, evaluations, keep, by_step, evaluated):
    replies = {"thought": [each for step in by_step for each in step], "evaluate": [each for step in evaluated for each in step]}
    queue = Queue(replies)
    queue.proposals = thoughts
    problem = TextTask() if task == "text" else Game24Task()
    problem.data = [QUESTION if task == "text" else "4 5 6 10"]
    settings = argparse.Namespace(
        backend="gpt-4",
        temperature=0.7,
        prompt_sample="cot",
        method_generate="sample" if task == "text" else "propose",
        method_evaluate="vote" if task == "text" else "value",
        method_select="greedy",
        n_generate_sample=thoughts,
        n_evaluate_sample=evaluations,
        n_select_sample=keep,
    )
    with Endpoint(script(queue, by_step)) as endpoint, contextlib.redirect_stdout(open(os.devnull, "w")):
        openai.api_base = endpoint.url
        ys, log = solve(settings, problem, 0)
    letters = lambda y: "".join(part[0] for part in y.split("<")[1:])
    method = {"kind": "tree-of-thoughts", "thoughts": thoughts, "evaluations": evaluations, "keep": keep, "evaluate": settings.method_evaluate}
    scenario = {"agents": 1, "rounds": len(by_step), "settings": {"temperature": 0.7}, "method": method}
    kept = [[letters(y) for y in step["select_new_ys"]] for step in log["steps"]]
    return case(name, scenario, replies, one_by_one(endpoint.log), letters(ys[0])[-1], requests=len(endpoint.log), kept=kept)


facts = {
    "repository": "https://github.com/princeton-nlp/tree-of-thought-llm",
    "commit": commit,
    "program": "src/tot/methods/bfs.py",
    "ran": True,
    "how": "solve() on the repository's tasks, with one problem of our own each. A reply with several thoughts counts as one call for each.",
    "cases": [run(*each) for each in CASES],
    "official_only": [run(*each) for each in OFFICIAL_ONLY],
    "differences": [
        {
            "what": "Officially several thoughts come from one request, as samples or as a list; ours are asked for one by one.",
            "why": "Each is a reply of its own that can be checked, priced and replayed.",
            "rule": None,
        },
        {
            "what": "An official thought is a piece of text, and the last one holds the answer; ours is reasons with the answer to which they lead so far.",
            "why": "Every state can be scored, and a search that is cut short has an answer.",
            "rule": None,
        },
        {
            "what": "In the official Game of 24 a prompt shows what the last step has left; ours shows all steps of the state, as the official text task does.",
            "why": "Only a task whose steps leave a new task behind can do without the earlier ones.",
            "rule": "whole-state",
        },
        {
            "what": "Official values are the words sure, likely and impossible, counted as 20, 1 and 0.001; ours are marks from 0 to 10.",
            "why": "The words and their weights belong to the Game of 24.",
            "rule": None,
        },
    ],
}
write("tree-of-thoughts", facts)
