"""Drives tree of thoughts with scripted replies.

Its program is fetched outside the repository (`git archive` of princeton-nlp/tree-of-thought-llm), and openai==0.28.1, backoff, numpy, pandas and sympy
are installed in an environment of their own:
    venv/bin/python scripts/official/tree-of-thoughts.py FOLDER COMMIT
The tasks are the repository's: the text (thoughts are sampled, and voted on) and the game of 24 (thoughts are proposed, and valued one by one).
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from endpoint2 import Endpoint, Queue, case, write

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
    ("a thought that comes twice", "game24", 3, 1, 1, [list("aab"), list("ccc"), list("dee"), list("ffg")], [[LIKELY, SURE], [LIKELY], [LIKELY, SURE], [LIKELY, SURE]]),
]


def rule(queue, n_thoughts):
    def reply(request, n):
        prompt = request["prompt"]
        if "Choice 1:" in prompt:
            best = queue.next("evaluate")
            return {"kind": "vote", "text": f"The best choice is {best}"}
        if "Evaluate if given numbers" in prompt or "give a judgement" in prompt:
            return {"kind": "value", "text": queue.next("evaluate")}
        if "Possible next steps" in prompt:
            lines = [queue.next("thought") for _ in range(n_thoughts)]
            form = "Answer: {}" if queue.last else "step (left: {})"
            return {"kind": "propose", "thoughts": lines, "text": "\n".join(form.format(f"<{line}> MARK") for line in lines)}
        thought = queue.next("thought")
        return {"kind": "thought", "thoughts": [thought], "text": f"<{thought}> MARK\n"}

    return reply


def run(name, task, thoughts, evaluations, keep, by_step, evaluated):
    queue = Queue({"thought": [each for step in by_step for each in step], "evaluate": [each for step in evaluated for each in step]})
    queue.last = False
    endpoint = Endpoint(rule(queue, thoughts))
    openai.api_base = endpoint.url
    problem = TextTask() if task == "text" else Game24Task()
    problem.data = [QUESTION if task == "text" else "4 5 6 10"]
    if task == "game24":
        # The last step is asked for like the others; its lines are answers.
        lines = [len(step) for step in by_step]
        wrap = problem.propose_prompt_wrap

        def propose_prompt_wrap(x, y=""):
            queue.last = queue.used.get("thought", 0) >= sum(lines[:-1])
            return wrap(x, y)

        problem.propose_prompt_wrap = propose_prompt_wrap
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
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        ys, log = solve(settings, problem, 0)
    endpoint.close()
    letters = lambda y: "".join(part[0] for part in y.split("<")[1:])
    ours = {"rounds": len(by_step), "thoughts": thoughts, "evaluations": evaluations, "keep": keep, "evaluate": settings.method_evaluate}
    return case(
        name,
        ours,
        {"thought": by_step, "evaluate": evaluated},
        endpoint,
        letters(ys[0]),
        kept=[[letters(y) for y in step["select_new_ys"]] for step in log["steps"]],
        stopped_after_round=len(log["steps"]),
    )


facts = {
    "repository": "princeton-nlp/tree-of-thought-llm",
    "commit": commit,
    "program": "src/tot/methods/bfs.py",
    "ran": True,
    "how": "solve() on the repository's tasks, with one problem of our own each, and a scripted endpoint.",
    "cases": [run(*each) for each in CASES],
    "differences": [
        {
            "what": "The repository takes several thoughts from one request (samples, or a list); here each is a request of its own.",
            "why": "A request gives one typed reply, which can be repeated, priced and replayed on its own.",
        },
        {
            "what": "A thought in the repository is a piece of text without an answer; here it is reasons with the answer that they lead to so far.",
            "why": "Every state can be judged and scored, and a search that is cut short has an answer.",
        },
        {
            "what": "The repository values a thought with the words sure, likely and impossible, which it counts as 20, 1 and 0.001; here it is given a mark from 0 to 10.",
            "why": "The words and their numbers belong to the game of 24.",
        },
        {
            "what": "A state that is shown to the evaluator is the whole path in the text and the last step in the game of 24; here it is the whole path.",
            "why": "What a step is worth depends on the way to it, unless a task says otherwise.",
        },
    ],
}
(Path(__file__).resolve().parents[2] / "crates/polity-catalog/methods/tree-of-thoughts").mkdir(exist_ok=True)
write("tree-of-thoughts", facts)
