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

from endpoint2 import Endpoint, Queue, case, write

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


def rule(queue):
    def reply(request, _):
        designer = request["messages"][0]["content"].startswith("You are a code developer")
        kind = "tests" if designer else "program"
        said = queue.next(kind)
        code = TEST[said] if designer else f"def double(x):\n    return {BODY[said]}"
        generation = (queue.used[kind] - 1) // (10 if designer else 5)
        return {"kind": kind, "round": generation, "text": f"```python\n# MARK\n{code}\n```"}

    return reply


def run(name, generations):
    global endpoint
    replies = {"program": [p for programs, _ in generations for p in programs], "tests": [t for _, tests in generations for t in tests]}
    endpoint = Endpoint(rule(Queue(replies)))
    with tempfile.TemporaryDirectory() as folder:
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
    endpoint.close()
    last = state["dataset"][0]["completion"]
    answer = re.search(r"return (.*)", last).group(1)
    generation = max(call["round"] for call in endpoint.calls) + 1
    return case(name, {"rounds": 5}, {"generations": generations}, endpoint, answer, stopped_after_round=generation)


facts = {
    "repository": "huangd1999/AgentCoder",
    "commit": commit,
    "program": "src/programmer_humaneval.py, src/test_designer_humaneval.py, src/test_executor_humaneval.py",
    "ran": True,
    "how": "The three scripts in order, as in scripts/run.sh, with a scripted endpoint and one problem; stand-ins for its data set and for its missing submodule.",
    "cases": [run(*each) for each in CASES],
    "differences": [
        {
            "what": "AgentCoder asks for five programs and ten suites of tests in each generation and takes the program that passes most; here there is one of each.",
            "why": "The paper has one programmer, one test designer and one program that is repaired. A choice of five is another method (best of n).",
        },
        {
            "what": "AgentCoder accepts a program that passes three of ten suites; here it must pass its tests.",
            "why": "With one suite there is no share of suites.",
        },
        {
            "what": "AgentCoder writes programs anew from the same prompt, without the program or the error before; here the programmer is shown both.",
            "why": "The paper hands the executor's feedback to the programmer. The repository does not do so.",
        },
        {
            "what": "AgentCoder writes new tests in each generation; here tests are written once.",
            "why": "A repair is a repair only against the same tests. The paper's tests are written once.",
        },
    ],
}
write("agentcoder", facts)
