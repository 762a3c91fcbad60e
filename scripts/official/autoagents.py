"""Drives AutoAgents with scripted replies.

Its program is fetched outside the repository (`git archive` of Link-AGI/AutoAgents), and the packages that it imports are installed in an environment
of their own (openai==0.28.1, pydantic 1, tenacity, loguru, PyYAML, aiohttp, websockets and what else it names):
    venv/bin/python scripts/official/autoagents.py FOLDER COMMIT
Stand-ins: `litellm` and `tiktoken`, whose old versions load a vocabulary from a server when they are imported. Its pauses of 30 seconds are left out.
"""

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import types
import urllib.request
from pathlib import Path

from endpoint import Endpoint, Reply
from facts import Queue, case, write

program, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
url = None


class Stream:
    """A streamed reply, as litellm gives it."""

    def __init__(self, text):
        self.text = text

    async def __aiter__(self):
        yield {"choices": [{"delta": {"content": self.text}}]}


async def acompletion(**settings):
    body = json.dumps({key: value for key, value in settings.items() if key != "stream"}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return Stream(json.load(reply)["choices"][0]["message"]["content"])


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


words = types.SimpleNamespace(encode=str.split)
stand_in("litellm", acompletion=acompletion)
stand_in("tiktoken", encoding_for_model=lambda _: words, get_encoding=lambda _: words)
# The script has the name of the package that it drives.
sys.path[:] = [str(program)] + [each for each in sys.path if Path(each or ".").resolve() != Path(__file__).parent]
work = tempfile.mkdtemp()
os.chdir(work)
Path(".project_root").touch()

from autoagents.actions.custom_action import CustomAction  # noqa: E402, F401
from autoagents.explorer import Explorer  # noqa: E402
from autoagents.roles import Manager  # noqa: E402
from autoagents.roles import group  # noqa: E402
from loguru import logger  # noqa: E402

logger.remove()
group.SLEEP_RATE = 0
QUESTION = "What is the capital of Australia?"
S, C, M = "Sydney", "Canberra", "Melbourne"
G, E, B = "Geographer", "Editor", "Geographer, Editor"
OK, NO = True, False
CASES = [
    # name, drafts (what the observers of roles and plan find), roles of the steps, results of the substeps (an answer, and whether it is final)
    ("success at once", [(OK, OK)], [G, E], [[(S, True)], [(C, True)]]),
    ("six steps", [(OK, OK)], [G, E, G, E, G, E], [[(S, True)]] * 5 + [[(C, True)]]),
    ("a second draft", [(NO, OK), (OK, OK)], [G, E], [[(S, True)], [(C, True)]]),
    ("remarks on every draft", [(NO, NO)] * 3, [G, E], [[(S, True)], [(C, True)]]),
    ("a step in two tries", [(OK, OK)], [G, E], [[(S, False), (C, True)], [(C, True)]]),
    ("a step that is never done", [(OK, OK)], [G, E], [[(S, False)] * 5, [(C, True)]]),
]
# No counterpart: ours would draft again, and its steps have one role.
OFFICIAL_ONLY = [
    ("accepted one after the other", [(OK, NO), (NO, OK)], [G], [[(C, True)]]),
    ("a step of two roles", [(OK, OK)], [B, E], [[(S, True), (M, True)], [(C, True)]]),
]


def draft(steps):
    roles = sorted({name for step in steps for name in step.split(", ")})
    blob = lambda name: {"name": name, "description": "expert MARK", "tools": [], "suggestions": "none", "prompt": f"You are {name}."}
    created = ",\n".join(json.dumps(blob(name)) for name in roles)
    plan = "\n".join(f"{n}. [{step}]: task {n} MARK" for n, step in enumerate(steps, 1))
    return (
        f"## Thought\nnone\n\n## Question or Task:\n{QUESTION}\n\n## Selected Roles List:\n\n## Created Roles List:\n{created}\n\n"
        f"## Execution Plan:\n{plan}\n\n## RoleFeedback\nnone\n\n## PlanFeedback\nnone\n"
    )


def script(queue, steps):
    queue.drafts, queue.tries = 0, {}

    def reply(call):
        prompt = call.prompt
        if "choose one of the following stages" in prompt:
            return Reply("0", 0, "manager", "stage")
        if "break down tasks by creating multiple LLM agents" in prompt:
            queue.drafts += 1
            return Reply(draft(steps), queue.drafts - 1, "planner", "draft")
        for part, observer, of in (("roles", "agent", "the created Expert Roles"), ("plan", "plan", "the Execution Plan")):
            if f"check if {of}" in prompt:
                found = "No Suggestions MARK" if queue.next(part) else "1. remark MARK"
                return Reply(f"## Thought\nnone\n\n## Suggestions\n{found}", queue.drafts - 1, f"{observer} observer", "check")
        answer, final = queue.next("work")
        action = "Final Output" if final else "Print"
        role = re.search(r"You are (\w+)\. Base on", prompt).group(1)
        step = int(re.search(r"# Task\s+\d*\.?\s*\[[^\]]*\]: task (\d+)", prompt).group(1)) - 1
        n = queue.tries[step, role] = queue.tries.get((step, role), -1) + 1
        text = f"## Thought\nnone\n\n## Task\ntask\n\n## CurrentStep\nfind it\n\n## Action\n{action}\n\n## ActionInput\nMARK {answer}"
        return Reply(text, step, f"{role}, try {n}")

    return reply


async def run(name, drafts, steps, results):
    global url
    replies = {
        "roles": [roles for roles, _ in drafts],
        "plan": [plan for _, plan in drafts],
        "work": [each for step in results for each in step],
    }
    with Endpoint(script(Queue(replies), steps)) as endpoint:
        url = endpoint.url
        explorer = Explorer()
        with contextlib.redirect_stdout(open(os.devnull, "w")):
            explorer.hire([Manager(proxy="", llm_api_key="none", serpapi_api_key="none")])
            explorer.invest(10.0)
            await explorer.start_project(idea=QUESTION, llm_api_key="none", proxy="", serpapi_key="none", task_id="x")
            await explorer.run(n_round=10)
    said = [message.content for message in explorer.environment.memory.get() if "## Response" in message.content]
    answer = said[-1].rsplit("mark-", 1)[1].split()[1]
    settings = {"agents": 1, "rounds": 10, "settings": {"temperature": 0.3}}
    method = {"kind": "autoagents", "drafts": 3, "tries": max(len(step) for step in results)}
    return case(name, settings | {"method": method}, replies | {"steps": steps}, endpoint.log, answer)


facts = {
    "repository": "https://github.com/Link-AGI/AutoAgents",
    "commit": commit,
    "program": "startup.py (autoagents/explorer.py, roles/manager.py, roles/group.py)",
    "ran": True,
    "how": "Explorer.run as in startup.py; stand-ins for litellm and tiktoken, no pauses. A member's `try` counts its substeps in a step.",
    "cases": [asyncio.run(run(*each)) for each in CASES],
    "official_only": [asyncio.run(run(*each)) for each in OFFICIAL_ONLY],
    "differences": [
        {
            "what": "The official program first asks its manager for a stage and does not use the reply; ours asks nobody.",
            "why": "The manager goes through its three actions in order, whatever the reply.",
            "rule": "stage",
        },
        {
            "what": "Officially observers check the last draft as well; ours do not.",
            "why": "No draft follows that could use their remarks.",
            "rule": "last-draft",
        },
        {
            "what": "Officially an observer that has accepted one draft counts as accepting all later ones; ours has to accept the draft that is used.",
            "why": "The official program looks for the words of acceptance in all remarks so far, and so uses a draft that an observer faults.",
            "rule": None,
        },
        {
            "what": "The official observers are also shown earlier remarks: that of the roles those on the draft before, that of the plan those on the roles, too; ours are shown the draft alone.",
            "why": "A check of an answer is one question in all methods here. Remarks reach the planner, whose next draft shows what became of them.",
            "rule": "draft-alone",
        },
        {
            "what": "Officially the next draft is written with all remarks in view; ours is shown only those that find fault.",
            "why": "An acceptance asks for no change.",
            "rule": "faults-only",
        },
        {
            "what": "Officially a role reads the plan before the answers of earlier steps; ours, after them.",
            "why": "The order stands last in all prompts here.",
            "rule": "order-last",
        },
        {
            "what": "Officially a role says itself when its step is done; ours is checked by an action observer.",
            "why": "The paper has an action observer; in the official program it is switched off.",
            "rule": "action-observer",
        },
        {
            "what": "Officially all tries of a step are shown, to its later tries and to the next step; ours are shown the last.",
            "why": "A try is a whole answer in place of the one before.",
            "rule": "last-try",
        },
        {
            "what": "An official step may have several roles, and only the result of the last is kept; ours has one role.",
            "why": "Work of several roles is several steps here, and each of them is kept.",
            "rule": None,
        },
    ],
}
write("autoagents", facts)
