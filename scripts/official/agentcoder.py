"""Drives AgentCoder with scripted replies.

Its program is fetched outside the repository (`git archive` of huangd1999/AgentCoder, which has no licence: it is run, and nothing of it is kept), and
openai==0.28.1, numpy, tqdm and python-dotenv are installed in an environment of their own:
    venv/bin/python scripts/official/agentcoder.py FOLDER COMMIT
Stand-ins: `datasets` (one problem of our own in the form of HumanEval) and `codegeex`, which the repository names as a submodule and does not
hold. The original's check of a program reads another field than AgentCoder sets (`test_code`, `full_code`); this one runs what AgentCoder sets.
"""

import contextlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from endpoint import Endpoint, Reply
from facts import Queue, case, write

program, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
PROBLEM = {
    "task_id": "own/0",
    "prompt": 'def double(x):\n    """Returns twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
BODY = {"right": "2 * x", "wrong": "x"}
TEST = {"right": "assert double(3) == 6", "wrong": "assert double(3) == 7"}
R, W = "right", "wrong"
CASES = [
    # name, for each generation: five programs and ten suites of tests
    ("success at once", [([R] * 5, [R] * 10)]),
    ("failure, then repair", [([W] * 5, [R] * 10), ([R] * 5, [R] * 10)]),
    ("limit reached", [([W] * 5, [R] * 10)] * 6),
    ("wrong tests for a right program", [([R] * 5, [W] * 10)] * 6),
]
# No counterpart: replies of one generation that differ.
OFFICIAL_ONLY = [
    ("one of five programs, three of ten suites", [([W, R, W, W, W], [W] * 7 + [R] * 3)]),
    ("two of ten suites do not suffice", [([R] * 5, [W] * 8 + [R] * 2), ([R] * 5, [R] * 10)]),
]


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def check_correctness(_task, sample, _language, timeout, _folder):
    ran = subprocess.run([sys.executable, "-c", sample["full_code"]], timeout=timeout + 5, capture_output=True)
    return {"passed": ran.returncode == 0}


helper = {"python": ["import math", "import re"]}
stand_in("datasets", load_dataset=lambda *_, **__: [dict(PROBLEM)])
stand_in("codegeex")
stand_in("codegeex.benchmark")
stand_in("codegeex.benchmark.utils", read_dataset=None, IMPORT_HELPER=helper)
stand_in("codegeex.benchmark.execution", check_correctness=check_correctness)

import openai  # noqa: E402

os.environ["OPENAI_API_KEY"] = "none"
create = openai.ChatCompletion.create
endpoint = None
# The address is fixed in the programs.
openai.ChatCompletion.create = lambda **settings: create(api_base=endpoint.url, api_key="none", **settings)


def script(queue):
    def reply(call):
        designer = "role: You are a code developer" in call.prompt or call.prompt.startswith("You are a code developer")
        kind = "tests" if designer else "program"
        said = queue.next(kind)
        code = TEST[said] if designer else f"def double(x):\n    return {BODY[said]}"
        generation, place = divmod(queue.used[kind] - 1, 10 if designer else 5)
        text = f"```python\n# MARK\n{code}\n```"
        return Reply(text, generation, f"suite {place}", "tests") if designer else Reply(text, generation, place)

    return reply


def run(name, generations):
    global endpoint
    replies = {"program": [p for programs, _ in generations for p in programs], "tests": [t for _, tests in generations for t in tests]}
    with Endpoint(script(Queue(replies))) as endpoint, tempfile.TemporaryDirectory() as folder:
        for part in ("src", "prompts"):
            shutil.copytree(program / part, f"{folder}/{part}")
        os.mkdir(f"{folder}/dataset")
        os.chdir(folder)
        sys.path.insert(0, f"{folder}/src")
        for module in ("programmer_humaneval", "test_designer_humaneval"):
            sys.modules.pop(module, None)
        quiet = open(os.devnull, "w")
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            for part in ("programmer_humaneval", "test_designer_humaneval", "test_executor_humaneval"):
                state = runpy.run_path(f"src/{part}.py", run_name="__main__")
        sys.path.pop(0)
        os.chdir("/")
    last = state["dataset"][0]["completion"]
    answer = re.search(r"return (.*)", last).group(1)
    return case(name, {"agents": 1, "rounds": 5}, {"programs": [p for p, _ in generations], "suites": [t for _, t in generations]}, endpoint.log, answer)


facts = {
    "repository": "https://github.com/huangd1999/AgentCoder",
    "commit": commit,
    "program": "src/programmer_humaneval.py, src/test_designer_humaneval.py, src/test_executor_humaneval.py",
    "ran": True,
    "how": "The three scripts in order, as in scripts/run.sh, on one problem; stand-ins for its data set and for its missing submodule.",
    "cases": [run(*each) for each in CASES],
    "official_only": [run(*each) for each in OFFICIAL_ONLY],
    "differences": [
        {
            "what": "The official program asks for five programs and ten suites of tests in each generation and keeps the program that passes most; ours asks for one of each.",
            "why": "The paper has one program that is repaired; a choice of five is another method.",
            "rule": "one-of-each",
        },
        {
            "what": "Officially three suites of ten that pass are enough; ours has to pass its one suite.",
            "why": "One suite has no share.",
            "rule": None,
        },
        {
            "what": "The official program is written anew in each generation, from the same prompt, with neither the program nor the error before it; ours is shown both.",
            "why": "The paper hands the executor's feedback to the programmer.",
            "rule": "repairs",
        },
        {
            "what": "Officially new tests are written in each generation; ours are written once.",
            "why": "Only the same tests show whether a repair has helped.",
            "rule": "tests-once",
        },
    ],
}
write("agentcoder", facts)
