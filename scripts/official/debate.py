"""Runs the programs of composable-models/llm_multiagent_debate: `gsm/gen_gsm.py` with the vote of `gsm/eval_gsm.py`, and
`math/gen_math.py`, which votes itself.

The programs keep their settings as constants and stop in a debugger. The constants are set in memory; the data file is one made-up
question; the debugger does nothing.
"""

import ast
import importlib.util
import io
import json
import os
import pdb
import pathlib
import sys
import tempfile

import openai

import facts
from endpoint import Endpoint, Reply

COMMIT = "9846749350eb917ae5bfaaff4c645fc705b8d3af"

#: By name: agents, rounds, and the answers by round and member (`None`: a reply that gives none).
GSM = {
    "all agree at once": (3, 2, [["7", "7", "7"], ["7", "7", "7"]]),
    "disagreement till the end": (3, 2, [["1", "2", "3"], ["1", "2", "3"]]),
    "a minority convinces the others": (3, 2, [["5", "7", "5"], ["7", "7", "7"]]),
    "a minority stays one": (3, 2, [["5", "7", "5"], ["5", "7", "5"]]),
    "a tie of two and two": (4, 2, [["1", "2", "3", "4"], ["2", "1", "1", "2"]]),
    "agreement does not end it": (3, 3, [["7", "7", "7"], ["7", "7", "8"], ["8", "8", "7"]]),
    "one agent alone": (1, 2, [["7"], ["8"]]),
    "a last reply without an answer": (3, 2, [["8", "7", "9"], ["8", None, "7"]]),
    "a first reply without an answer": (3, 2, [["5", None, "7"], ["7", "7", "5"]]),
    "last replies without an answer": (3, 2, [["9", "7", "7"], ["9", None, None]]),
}
MATH = {
    "math: two agents, three rounds": (2, 3, [["1", "2"], ["2", "1"], ["3", "4"]]),
    "math: a majority of three": (3, 2, [["1", "2", "2"], ["1", "2", "2"]]),
    "math: a last reply without an answer": (2, 3, [["1", "2"], ["2", "1"], [None, "4"]]),
}


def run(path, constants, files):
    """Runs a program with these constants; `files` are the texts of files that it reads. Returns its variables."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in constants:
                    node.value = ast.Constant(constants[target.id])

    def opened(name, *mode):
        text = next((text for part, text in files.items() if part in str(name)), None)
        return io.StringIO(text) if text is not None else open(name, *mode)

    variables = {"__name__": "__main__", "__file__": str(path), "open": opened}
    code = compile(ast.fix_missing_locations(tree), str(path), "exec")
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        exec(code, variables)
    finally:
        sys.stdout = out
    return variables


def debate(agents, answers, said):
    """The script: members answer in turn."""

    def script(call):
        place, member = divmod(call.order, agents)
        answer = answers[place][member]
        return Reply("I cannot tell." if answer is None else said(answer), place, member)

    return script


def main():
    root = pathlib.Path(sys.argv[1])
    pdb.set_trace = lambda: None
    openai.api_key = "none"
    spec = importlib.util.spec_from_file_location("eval_gsm", root / "gsm/eval_gsm.py")
    vote = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(vote)
    question = json.dumps({"question": "How many?", "answer": "#### 7"}) + "\n"
    cases = []
    os.chdir(tempfile.mkdtemp())
    for name, (agents, rounds, answers) in GSM.items():
        with Endpoint(debate(agents, answers, lambda answer: f"The answer is \\boxed{{{answer}}}.")) as endpoint:
            openai.api_base = endpoint.url
            run(root / "gsm/gen_gsm.py", {"agents": agents, "rounds": rounds}, {"grade-school-math": question})
        [(contexts, gold)] = json.load(open(f"gsm_{agents}_{rounds}.json")).values()
        # The vote is inside the function that scores; its result is read where it is made.
        votes, most_frequent = [], vote.most_frequent
        vote.most_frequent = lambda answers: votes.append(most_frequent(answers)) or votes[-1]
        vote.pred_solutions = [context[-1]["content"] for context in contexts]
        scored = vote.compute_accuracy(gold, vote.pred_solutions)
        vote.most_frequent = most_frequent
        settings = {"agents": agents, "rounds": rounds}
        more = {"program": "gsm", "gold": "7", "scored": scored}
        cases.append(facts.case(name, settings, answers, endpoint.log, votes[-1], **more))
    for name, (agents, rounds, answers) in MATH.items():
        with Endpoint(debate(agents, answers, lambda answer: f"The answer is {answer}")) as endpoint:
            openai.api_base = endpoint.url
            constants = {"agents": agents, "rounds": rounds, "evaluation_round": 1}
            variables = run(root / "math/gen_math.py", constants, {})
        answer = f"{variables['text_answer']:g}"
        cases.append(facts.case(name, {"agents": agents, "rounds": rounds}, answers, endpoint.log, answer, program="math"))
    facts.write(
        "debate",
        {
            "repository": "https://github.com/composable-models/llm_multiagent_debate",
            "commit": COMMIT,
            "program": "gsm/gen_gsm.py with the vote of gsm/eval_gsm.py; math/gen_math.py",
            "ran": True,
            "how": "Both programs were run with their constants set and one question; members answer in turn.",
            "cases": cases,
            "differences": DIFFERENCES,
        },
    )


DIFFERENCES = [
    {
        "what": "A member is shown the last round only; the official conversation grows and shows all earlier rounds.",
        "why": "A request grows with the number of members heard and not with the rounds. With two rounds there is no difference.",
        "rule": "last-round",
    },
    {
        "what": "A member whose last reply has no answer votes with its answer before; in the official vote of GSM its vote is for no "
        "answer, which can win and is then scored as right, and in the vote of Math it has no vote.",
        "why": "A failed reply does not withdraw an answer, and no answer is never right.",
        "rule": "keeps-its-answer",
    },
    {
        "what": "Members are not shown a reply without an answer; officially any reply is shown.",
        "why": "What is passed on is an answer with its reasons, and a reply that has none fails.",
        "rule": "answers-only",
    },
    {
        "what": "The official program sets no temperature either, so its service's default of 1 holds; other services have other defaults.",
        "why": "Sampling belongs to the scenario (`settings`).",
        "rule": None,
    },
    {
        "what": "Answers and reasons come in a record; officially a reply is text, and the vote searches it for the last number.",
        "why": "One form of reply serves items of every kind.",
        "rule": None,
    },
]


if __name__ == "__main__":
    main()
