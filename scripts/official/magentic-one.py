"""Drives the Magentic-One of AutoGen (the packages autogen-agentchat and autogen-ext[openai]) with scripted replies.

Run with the Python of an environment in which they are installed:
    venv/bin/python scripts/official/magentic-one.py
"""

import asyncio
import json
import re

import autogen_agentchat
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from endpoint import MARKER, Endpoint, Reply
from facts import Queue, case, write

QUESTION = "What is the capital of Australia?"
WORKERS = ["Worker_0", "Worker_1"]


def step(next=0, satisfied=False, looping=False, progressing=True):
    return {"satisfied": satisfied, "looping": looping, "progressing": progressing, "next": next}


DONE = step(satisfied=True)
LOOP, STALL = step(looping=True), step(progressing=False)
CASES = [
    # name, max_stalls, turns, progress ledgers, answers of the members
    ("success at once", 3, 20, [step(), DONE], ["Canberra"]),
    ("two members share a thread", 3, 20, [step(0), step(1), step(0), DONE], ["Sydney", "Canberra", "Canberra"]),
    ("a stall and a new plan", 2, 20, [step(), STALL, STALL, step(1), DONE], ["Sydney", "Sydney", "Canberra"]),
    ("loops count as stalls, progress takes one off", 2, 20, [LOOP, step(1), LOOP, LOOP, step(), DONE], ["Sydney"] * 3 + ["Canberra"]),
    ("limit reached", 3, 2, [step(0), step(1), step(0)], ["Sydney"] * 3),
    ("new plans up to the limit", 1, 3, [STALL, step(1), STALL, step(0)], ["Sydney"] * 2),
]
# No counterpart: ours gives the first order, and forgets the stalls of an old plan.
OFFICIAL_ONLY = [
    ("satisfied before anybody has worked", 3, 20, [DONE], []),
    ("progress after two plans leads to a third", 1, 3, [STALL, STALL, step(1), STALL], []),
]


def script(queue):
    """Recognises what a request is. Facts and plans belong to the round of the ledger that follows them."""

    def reply(call):
        prompt, ledgers = call.prompt.rstrip(), queue.used.get("progress", 0)
        if re.fullmatch(rf"order {MARKER.pattern}", prompt.splitlines()[-1]):
            member = queue.replies["progress"][ledgers - 1]["next"]
            return Reply(f"MARK {queue.next('work')}", ledgers - 1, member)
        if "pure JSON" in prompt:
            said = queue.next("progress")
            answers = {
                "is_request_satisfied": said["satisfied"],
                "is_in_loop": said["looping"],
                "is_progress_being_made": said["progressing"],
                "next_speaker": WORKERS[said["next"]],
                "instruction_or_question": "order MARK",
            }
            text = json.dumps({key: {"reason": "so it looks", "answer": value} for key, value in answers.items()})
            return Reply(text, ledgers, "progress", "progress")
        for kind, signs in (("plan", ["bullet-point"]), ("facts", ["pre-survey", "old fact sheet"])):
            if any(sign in prompt for sign in signs):
                return Reply(f"MARK {kind}", ledgers, kind, kind)
        return Reply("MARK Canberra", ledgers - 1, "final", "final")

    return reply


async def run(name, max_stalls, turns, ledgers, answers):
    replies = {"progress": ledgers, "work": answers}
    info = {"vision": False, "function_calling": False, "json_output": True, "family": "unknown", "structured_output": False}
    with Endpoint(script(Queue(replies))) as endpoint:
        client = OpenAIChatCompletionClient(model="scripted", base_url=endpoint.url, api_key="none", model_info=info)
        members = [AssistantAgent(worker, client, description=f"A member: {worker}") for worker in WORKERS]
        team = MagenticOneGroupChat(members, client, max_turns=turns, max_stalls=max_stalls)
        result = await team.run(task=QUESTION)
    answer = next(m.content for m in reversed(result.messages) if m.type == "TextMessage").split(" ")[1]
    # `max_turns` is a turn short of what is done.
    settings = {"agents": 3, "rounds": turns + 1, "method": {"kind": "magentic-one", "max_stalls": max_stalls}}
    return case(name, settings, replies, endpoint.log, answer, max_turns=turns, stop_reason=result.stop_reason)


facts = {
    "repository": "https://github.com/microsoft/autogen",
    "commit": f"package autogen-agentchat {autogen_agentchat.__version__}",
    "program": "autogen_agentchat/teams/_group_chat/_magentic_one",
    "ran": True,
    "how": "MagenticOneGroupChat with two assistants without tools. The round of facts and a plan is that of the ledger that follows them.",
    "cases": [asyncio.run(run(*each)) for each in CASES],
    "official_only": [asyncio.run(run(*each)) for each in OFFICIAL_ONLY],
    "differences": [
        {
            "what": "The official program takes one turn more than its `max_turns`; ours takes as many as `rounds` says.",
            "why": "It counts turns from 0 and stops when the count is larger than the limit. A limit holds as it is written.",
            "rule": None,
        },
        {
            "what": "Officially a ledger that calls the request satisfied ends the work even if nobody has answered yet; ours then gives its order.",
            "why": "The answer of the team is that of members who worked, and without one there is nothing that could settle the question.",
            "rule": None,
        },
        {
            "what": "Officially stalls are counted on over new plans, so that one more stall, or even progress, can lead to the next plan; ours count from 0 with each plan.",
            "why": "A plan that is new is given the same number of stalls as the first.",
            "rule": None,
        },
    ],
}
write("magentic-one", facts)
