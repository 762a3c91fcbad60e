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

from endpoint2 import Endpoint, Queue, case, write

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
    ("accepted one after the other", [(OK, NO), (NO, OK)], [G], [[(C, True)]]),
    ("a step in two tries", [(OK, OK)], [G, E], [[(S, False), (C, True)], [(C, True)]]),
    ("a step that is never done", [(OK, OK)], [G, E], [[(S, False)] * 5, [(C, True)]]),
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


def rule(queue, steps):
    def reply(request, _):
        prompt = request["prompt"]
        if "choose one of the following stages" in prompt:
            return {"kind": "state", "text": "0"}
        if "break down tasks by creating multiple LLM agents" in prompt:
            return {"kind": "draft", "text": draft(steps)}
        for part, of in (("roles", "the created Expert Roles"), ("plan", "the Execution Plan")):
            if f"check if {of}" in prompt:
                accepted = queue.next(f"check {part}")
                return {
                    "kind": f"check {part}",
                    "text": "## Thought\nnone\n\n## Suggestions\n" + ("No Suggestions" if accepted else "1. remark MARK"),
                }
        answer, final = queue.next("work")
        action = "Final Output" if final else "Print"
        role = re.search(r"You are (\w+)\. Base on", prompt).group(1)
        step = int(re.search(r"# Task\s+\d*\.?\s*\[[^\]]*\]: task (\d+)", prompt).group(1)) - 1
        text = f"## Thought\nnone\n\n## Task\ntask\n\n## CurrentStep\nfind it\n\n## Action\n{action}\n\n## ActionInput\nMARK {answer}"
        return {"kind": "work", "role": role, "step": step, "text": text}

    return reply


async def run(name, drafts, steps, results):
    global url
    replies = {
        "draft": [steps] * len(drafts),
        "check roles": [roles for roles, _ in drafts],
        "check plan": [plan for _, plan in drafts],
        "work": [each for step in results for each in step],
    }
    endpoint = Endpoint(rule(Queue(replies), steps))
    url = endpoint.url
    explorer = Explorer()
    with contextlib.redirect_stdout(open(os.devnull, "w")):
        explorer.hire([Manager(proxy="", llm_api_key="none", serpapi_api_key="none")])
        explorer.invest(10.0)
        await explorer.start_project(idea=QUESTION, llm_api_key="none", proxy="", serpapi_key="none", task_id="x")
        await explorer.run(n_round=10)
    endpoint.close()
    results = [message.content for message in explorer.environment.memory.get() if "## Response" in message.content]
    answer = results[-1].rsplit("mark-", 1)[1].split()[1]
    substeps = max((len(step) for step in CASES_BY_NAME[name][3]), default=1)
    return case(name, {"drafts": 3, "tries": substeps}, replies, endpoint, answer, stopped_after_round=len(results))


CASES_BY_NAME = {each[0]: each for each in CASES}
facts = {
    "repository": "Link-AGI/AutoAgents",
    "commit": commit,
    "program": "startup.py (autoagents/explorer.py, roles/manager.py, roles/group.py)",
    "ran": True,
    "how": "Explorer.run as in startup.py with a scripted endpoint; stand-ins for litellm and tiktoken, no pauses.",
    "cases": [asyncio.run(run(*each)) for each in CASES],
    "differences": [
        {
            "what": "AutoAgents first asks its manager for a stage and does not use the reply; here nobody is asked.",
            "why": "The call has no effect: the manager always goes through its three actions in order.",
        },
        {
            "what": "AutoAgents has observers check the last draft as well, whose remarks nobody reads; here they do not.",
            "why": "The calls have no effect.",
        },
        {
            "what": "In AutoAgents an acceptance of an earlier draft counts for all later ones; here both observers accept the same draft.",
            "why": "The repository searches all remarks so far for the words of acceptance. A draft that one of them faults is not accepted.",
        },
        {
            "what": "The plan's observer in AutoAgents is shown the earlier remarks on the roles as if they were its own; here each is shown its own.",
            "why": "The repository takes the wrong variable (`suggestions_roles` under the heading of the plan).",
        },
        {
            "what": "In AutoAgents a role says itself when its step is done, after five substeps at most; here an action observer says so, after `tries` tries at most.",
            "why": "The paper has an action observer. The repository's is switched off.",
        },
        {
            "what": "A step in AutoAgents may have several roles, who are asked one after the other; here it has one, and such a step is several.",
            "why": "In the repository the results of all roles of a step but the last are lost; steps keep them.",
        },
    ],
}
write("autoagents", facts)
