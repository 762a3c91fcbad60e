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

from endpoint2 import Endpoint, Queue, case, write

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
    ("tests that pass", [R], [GOOD], [R]),
]


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


def rule(queue):
    def reply(request, _):
        prompt, last = request["prompt"], request["messages"][-1]["content"]
        if "project_path" in prompt and "resources" in prompt and "Original Requirement" in prompt:
            return {"kind": "resources", "text": '```json\n{"resources": [], "project_path": "", "reason": "none"}\n```'}
        for kind, node, sign in (("requirements", WRITE_PRD_NODE, "User Stories"), ("design", DESIGN_API_NODE, "Implementation approach"), ("tasks", PM_NODE, "Required packages")):
            if "[CONTENT]" in prompt and f'"{sign}"' in last.split("## format example")[-1].split("## nodes")[0]:
                return {"kind": kind, "text": document(node)}
        if "Code Review Result" in last and "Rewrite Code" not in last.split("# Instruction")[-1][:0] and "rewrite this code" not in last.lower():
            good = queue.next("review")
            return {"kind": "review", "text": f"## Code Review: main.py\n1. MARK\n\n## Actions\n1. none\n\n## Code Review Result\n{'LGTM' if good else 'LBTM'}\n"}
        if "Write code for unit test" in prompt or "unit test" in last.lower() and "code_to_test" not in last and "test_main.py" in last and "Console logs" not in last and "Running Command" not in last:
            test = "import unittest\nfrom main import double\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(double(3), 6)\nif __name__ == '__main__':\n    unittest.main()"
            return {"kind": "tests", "text": f"```python\n# MARK\n{test}\n```"}
        if "Running Command" in last or "## Status" in last:
            return {"kind": "run", "text": "## instruction:\nnone MARK\n## File To Rewrite:\nnone\n## Status:\nPASS\n## Send To:\nNoOne\n---"}
        said = queue.next("program")
        return {"kind": "program", "text": f"## main.py\n```python\n# MARK\ndef double(x):\n    return {BODY[said]}\n```"}

    return reply


async def run(name, programs, reviews, tests):
    replies = {"program": programs, "review": reviews}
    endpoint = Endpoint(rule(Queue(replies)))
    config = Config(
        llm={"api_type": "openai", "base_url": endpoint.url, "api_key": "none", "model": "gpt-4", "stream": False},
        workspace={"path": str(work / name.replace(" ", "_"))},
        mermaid={"engine": "none"},
    )
    context = Context(config=config)
    team = Team(context=context, use_mgx=False)
    team.hire([
        ProductManager(use_fixed_sop=True, context=context),
        Architect(use_fixed_sop=True, context=context),
        ProjectManager(use_fixed_sop=True, context=context),
        Engineer(n_borg=5, use_code_review=True, context=context),
    ])
    if tests:
        team.hire([QaEngineer(context=context)])
    team.invest(3.0)
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        await team.run(n_round=12 if tests else 8, idea=REQUIREMENT, auto_archive=False)
    endpoint.close()
    code = next(Path(config.workspace.path).rglob("main.py")).read_text()
    answer = code.split("return ")[1].strip()
    rewritten = sum(call["kind"] == "program" for call in endpoint.calls) - 1
    return case(name, {"code_validate_k_times": config.code_validate_k_times}, replies, endpoint, answer, stopped_after_round=rewritten)


if __name__ == "__main__":
    facts = {
        "repository": "FoundationAgents/MetaGPT",
        "commit": commit,
        "program": "metagpt/team.py, metagpt/roles (ProductManager, Architect, ProjectManager with use_fixed_sop; Engineer; QaEngineer)",
        "ran": True,
        "how": "Team.run with the line of roles, one file, and a scripted endpoint; diagrams are empty, and tests install nothing.",
        "cases": [asyncio.run(run(*each)) for each in CASES],
        "differences": [
            {
                "what": "MetaGPT first asks whether the requirement names a folder; here nobody is asked.",
                "why": "A team writes one program, not a repository in a folder.",
            },
            {
                "what": "In MetaGPT only the product manager reads the requirement; here all do.",
                "why": "HumanEval's requirement is the beginning of the program itself, word for word; a document about it does not replace it.",
            },
            {
                "what": "MetaGPT's engineer reviews and rewrites its program, `code_validate_k_times` (2) times at most; here tests are run and failures go back, `feedback` (3) times at most.",
                "why": "Executable feedback is the paper's; the repository has reviews in its place.",
            },
            {
                "what": "MetaGPT's QA engineer reads the program when it writes tests, and repairs the tests; here tests are written from the requirement, and the program is repaired.",
                "why": "Tests made from a program say that it does what it does.",
            },
        ],
    }
    write("metagpt", facts)
