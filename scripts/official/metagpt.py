"""Drives MetaGPT's line of roles with scripted replies.

Its program is fetched outside the repository (`git archive` of FoundationAgents/MetaGPT), and the packages that it imports are installed in an
environment of their own (Python 3.11; those of its requirements.txt that `import metagpt.roles` asks for):
    venv/bin/python scripts/official/metagpt.py FOLDER COMMIT
The line is the one of its roles with `use_fixed_sop`, and of its Engineer and QaEngineer, which its command line no longer hires.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path

from endpoint import Endpoint, Reply
from facts import Queue, case, write

program, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
# The script has the name of the package that it drives.
sys.path[:] = [str(program)] + [each for each in sys.path if Path(each or ".").resolve() != Path(__file__).parent]
work = Path(tempfile.mkdtemp())
os.environ |= {"HOME": str(work), "METAGPT_PROJECT_ROOT": str(work), "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@x"}
(work / ".metagpt").mkdir()
(work / ".metagpt/config2.yaml").write_text("llm: {api_type: openai, base_url: 'http://127.0.0.1:1/v1', api_key: none, model: gpt-4}\n")
os.chdir(work)

from loguru import logger  # noqa: E402
from metagpt.actions.design_api_an import DESIGN_API_NODE  # noqa: E402
from metagpt.actions.project_management_an import PM_NODE  # noqa: E402
from metagpt.actions.run_code import RunCode  # noqa: E402
from metagpt.actions.write_prd_an import WRITE_PRD_NODE  # noqa: E402
from metagpt.config2 import Config  # noqa: E402
from metagpt.context import Context  # noqa: E402
from metagpt.roles import Architect, Engineer, ProductManager, ProjectManager, QaEngineer  # noqa: E402
from metagpt.team import Team  # noqa: E402

logger.remove()
RunCode._install_dependencies = staticmethod(lambda **_: None)
REQUIREMENT = "A function double(x) that returns twice x."
BODY = {"right": "2 * x", "wrong": "x"}
R, W = "right", "wrong"
GOOD, BAD = True, False
CASES = [
    # name, programs (the first and the rewritten ones), reviews, runs of the tests or none
    ("success at once", [R], [GOOD], None),
    ("a review that finds fault, then none", [W, R], [BAD, GOOD], None),
    ("limit of reviews reached", [W, W, R], [BAD, BAD], None),
]
# No counterpart: a QA engineer who reads the program.
OFFICIAL_ONLY = [("tests that pass", [R], [GOOD], [R])]


def document(node):
    """A document with a mark in every field; diagrams are left out."""
    fields = {}
    for key, (kind, _) in node.get_mapping("auto").items():
        if "list" in str(kind).lower():
            fields[key] = [["main.py", "MARK"]] if str(kind).lower().count("list") > 1 else ["main.py"] if "File" in key or key == "Task list" else ["MARK"]
        else:
            fields[key] = "own_project" if key == "Project Name" else "" if "Chart" in key or "flow" in key.lower() or "Data structures" in key else "MARK"
    if "Required packages" in fields:
        fields["Required packages"] = []
    return "[CONTENT]\n" + json.dumps(fields, indent=1) + "\n[/CONTENT]"


TEST = """import unittest
from main import double
class T(unittest.TestCase):
    def test(self):
        self.assertEqual(double(3), 6)
if __name__ == '__main__':
    unittest.main()"""
DOCUMENTS = [("Product Manager", WRITE_PRD_NODE), ("Architect", DESIGN_API_NODE), ("Project Manager", PM_NODE)]


def script(queue):
    def program(round):
        return Reply(f"## main.py\n```python\n# MARK\ndef double(x):\n    return {BODY[queue.next('program')]}\n```", round, "engineer")

    def reply(call):
        prompt = call.prompt
        if "# Instruction: rewrite the `main.py`" in prompt:
            return program(queue.used["review"])
        if "## Code Review Result: str." in prompt:
            good = queue.next("review")
            text = f"## Code Review: main.py\n1. MARK\n\n## Actions\n1. none\n\n## Code Review Result\n{'LGTM' if good else 'LBTM'}\n"
            return Reply(text, queue.used["review"] - 1, "engineer's review", "review")
        if "write appropriate test cases using Python's unittest" in prompt:
            return Reply(f"```python\n# MARK\n{TEST}\n```", 0, "qa engineer", "tests")
        if "# Console" in prompt and "rewrite the development code or the test code" in prompt:
            return Reply(f"```python\n# MARK\n{TEST}\n```", 0, "qa engineer", "repair")
        if "# Console" in prompt or "## Status:" in prompt or "Running Command" in prompt:
            return Reply("## instruction:\nnone MARK\n## File To Rewrite:\nnone\n## Status:\nPASS\n## Send To:\nNoOne\n---", 0, "qa engineer", "run")
        if "Determine the previous message's intent." in prompt:
            return Reply("Thought: none\nResponse Category: TASK", 0, "product manager", "intent")
        if 'follow "Format example", write code.' in prompt:
            return program(0)
        for role, node in DOCUMENTS:
            if f"You are a {role}, named" in prompt and "wrapped inside [CONTENT][/CONTENT]" in prompt:
                return Reply(document(node), 0, role.lower(), "document")
        if "project_path" in prompt and "resources" in prompt:
            return Reply('```json\n{"resources": [], "project_path": "", "reason": "none"}\n```', 0, "product manager", "resources")
        raise ValueError(repr((queue.used, prompt[:300], prompt[-300:])))

    return reply


async def run(name, programs, reviews, tests):
    replies = {"program": programs, "review": reviews}
    endpoint = Endpoint(script(Queue(replies))).__enter__()
    config = Config(
        llm={"api_type": "openai", "base_url": endpoint.url, "api_key": "none", "model": "gpt-4", "stream": False},
        workspace={"path": str(work / name.replace(" ", "_"))},
        mermaid={"engine": "none"},
    )
    context = Context(config=config)
    team = Team(context=context, use_mgx=False)
    line = [role(use_fixed_sop=True, context=context) for role in (ProductManager, Architect, ProjectManager)]
    for role in line:
        # As shipped, a role of the line repeats its action until it has acted 50 times.
        role.rc.max_react_loop = 1
    team.hire([
        *line,
        Engineer(n_borg=5, use_code_review=True, context=context),
    ])
    if tests:
        team.hire([QaEngineer(context=context)])
    # A new project in a folder that is named beforehand; otherwise the second of two preparations makes it a change of the first.
    context.config.project_path = str(work / name.replace(" ", "_") / "project")
    context.config.inc = False
    team.invest(3.0)
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        await team.run(n_round=12 if tests else 8, idea=REQUIREMENT, auto_archive=False)
    endpoint.__exit__()
    code = next(Path(config.workspace.path).rglob("main.py")).read_text()
    answer = code.split("return ")[1].strip()
    method = {"kind": "metagpt", "feedback": config.code_validate_k_times}
    return case(name, {"agents": 5, "rounds": 1, "settings": {"temperature": 0}, "method": method}, replies, endpoint.log, answer)


if __name__ == "__main__":
    facts = {
        "repository": "https://github.com/FoundationAgents/MetaGPT",
        "commit": commit,
        "program": "metagpt/team.py, metagpt/roles (ProductManager, Architect, ProjectManager with use_fixed_sop; Engineer; QaEngineer)",
        "ran": True,
        "how": "Team.run with the line of roles and one file; diagrams are empty, and tests install nothing. The folder is named beforehand. A role acts once on a message (`max_react_loop` 1); as shipped, with 50, the product manager writes its document until it has acted 50 times. `feedback` stands for the limit of reviews.",
        "cases": [asyncio.run(run(*each)) for each in CASES],
        "official_only": [asyncio.run(run(*each)) for each in OFFICIAL_ONLY],
        "differences": [
            {
                "what": "The official program first asks its product manager what kind of request it is; ours asks nobody.",
                "why": "An item of HumanEval is always a program to write.",
                "rule": "kind-of-request",
            },
            {
                "what": "Officially each role is shown the documents that its action reads; ours are shown all earlier ones.",
                "why": "The paper has a pool of messages that all can read; these documents are short.",
                "rule": "pool",
            },
            {
                "what": "The official engineer reviews its program and rewrites it; ours is run with the QA engineer's tests and repaired, with the program and the error in view and without the documents.",
                "why": "The paper has executable feedback where the repository has reviews. A revision is one question in all methods here.",
                "rule": "executable-feedback",
            },
            {
                "what": "The official QA engineer reads the program when it writes tests, and repairs the tests; ours writes them from the requirement, and the program is repaired.",
                "why": "Tests made from a program say that it does what it does.",
                "rule": None,
            },
        ],
    }
    write("metagpt", facts)
