"""Drives the Magentic-One of AutoGen (the packages autogen-agentchat and autogen-ext[openai]) with scripted replies.

Run with the Python of an environment in which they are installed:
    venv/bin/python scripts/official/magentic-one.py
"""

import asyncio
import json

import autogen_agentchat
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from endpoint2 import Endpoint, Queue, case, write

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
    ("new plans up to the limit", 1, 3, [STALL, STALL, step(1), STALL], ["Sydney"]),
    ("satisfied before anybody has worked", 3, 20, [DONE], []),
]


def rule(queue):
    def reply(request, _):
        last = request["messages"][-1]["content"]
        if "pre-survey" in last or "fact sheet" in last:
            kind = "facts"
        elif "bullet-point" in last:
            kind = "plan"
        elif "pure JSON" in last:
            kind = "progress"
        elif "finished" in last.lower() or "completed the task" in last.lower():
            kind = "final"
        else:
            kind = "work"
        said = queue.next(kind)
        if kind == "progress":
            answers = {
                "is_request_satisfied": said["satisfied"],
                "is_in_loop": said["looping"],
                "is_progress_being_made": said["progressing"],
                "next_speaker": WORKERS[said["next"]],
                "instruction_or_question": "order MARK",
            }
            text = json.dumps({key: {"reason": "so it looks", "answer": value} for key, value in answers.items()})
            return {"kind": kind, "text": text}
        return {"kind": kind, "text": f"MARK {said}"}

    return reply


async def run(name, max_stalls, turns, ledgers, answers):
    plans = 10
    replies = {
        "facts": ["facts"] * plans,
        "plan": ["plan"] * plans,
        "progress": ledgers,
        "work": answers,
        "final": ["Canberra"],
    }
    endpoint = Endpoint(rule(Queue(replies)))
    info = {"vision": False, "function_calling": False, "json_output": True, "family": "unknown", "structured_output": False}
    client = OpenAIChatCompletionClient(model="scripted", base_url=endpoint.url, api_key="none", model_info=info)
    members = [AssistantAgent(worker, client, description=f"A member: {worker}") for worker in WORKERS]
    team = MagenticOneGroupChat(members, client, max_turns=turns, max_stalls=max_stalls)
    result = await team.run(task=QUESTION)
    endpoint.close()
    used = {kind: replies[kind][: sum(call["kind"] == kind for call in endpoint.calls)] for kind in replies}
    rounds = sum(call["kind"] == "progress" for call in endpoint.calls)
    answer = result.messages[-2 if result.messages[-1].type == "StopMessage" else -1].content.split(" ", 1)[1]
    settings = {"max_stalls": max_stalls, "max_turns": turns}
    return case(name, settings, used, endpoint, answer, stopped_after_round=rounds, stop_reason=result.stop_reason)


facts = {
    "repository": "microsoft/autogen",
    "commit": f"package autogen-agentchat {autogen_agentchat.__version__}",
    "program": "autogen_agentchat/teams/_group_chat/_magentic_one",
    "ran": True,
    "how": "MagenticOneGroupChat with two assistants without tools, run from the package with a scripted endpoint.",
    "cases": [asyncio.run(run(*each)) for each in CASES],
    "differences": [
        {
            "what": "AutoGen takes one turn more than `max_turns`; here `rounds` is the number of turns.",
            "why": "Its test is `n_rounds > max_turns` with a count from 0. A limit should hold as it is written.",
        },
        {
            "what": "A progress ledger that calls the request satisfied before anybody has answered ends AutoGen's run; here it counts as an order.",
            "why": "The team's answer is the answer of a member who worked. Without one there is nothing that could settle the question.",
        },
    ],
}
write("magentic-one", facts)
