"""Drives the discussions of MALLM with scripted replies.

Its program is fetched outside the repository (`git archive` of Multi-Agent-LLMs/mallm), and the packages that its coordinator imports are installed
in an environment of their own (httpx, rich, langchain-core, openai, scikit-learn, requests, json-repair):
    venv/bin/python scripts/official/mallm.py FOLDER COMMIT
It is run twice, for two versions: the newest, and the last one in which agreement could end a discussion (1fb92fe, October 2024).
The scheduler is passed over: it needs sentence-transformers for a figure that no discussion uses.
"""

import dataclasses
import json
import logging
import os
import re
import sys
import tempfile
import types
from pathlib import Path

from endpoint2 import METHODS, Endpoint, case, write

program, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
sys.path.insert(0, str(program))
# Its types name the tensors of torch, which no discussion makes.
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = object
# Its evaluation is used only by interventions of a judge, which are off.
sys.modules["mallm.evaluation.evaluator"] = types.ModuleType("evaluator")
sys.modules["mallm.evaluation.evaluator"].Evaluator = object

from mallm.coordinator import Coordinator  # noqa: E402
from mallm.models.Chat import Chat  # noqa: E402
from mallm.utils.config import Config  # noqa: E402
from mallm.utils.types import InputExample, WorkerFunctions  # noqa: E402
from openai import OpenAI  # noqa: E402
from rich.console import Console  # noqa: E402

logging.disable(logging.CRITICAL)
QUESTION = "What is the capital of Australia?"
S, C, M = "Sydney", "Canberra", "Melbourne"
# Who says what in which turn. A speaker agrees if the solution that it is shown is its own. The consensus cases are for the last commit in
# which agreement could end a discussion, the others for the newest.
CONSENSUS = [
    # name, settings, answers by turn and speaker, choices of the voters
    ("agreement at once", {}, [[C, C, C]], []),
    ("agreement in the second turn", {}, [[S, C, C], [C]], []),
    ("never agreement", {"max_turns": 2}, [[S, C, M], [S, C, M]], []),
    ("five members, four of them agree in four turns", {"num_agents": 5, "max_turns": 4}, [[S, C, C, C, M]] * 4, []),
    ("five members, four of them agree in the fifth turn", {"num_agents": 5}, [[S, C, C, C, M]] * 4 + [[S, C, C, C, C]], []),
    ("majority", {"decision": "majority_consensus"}, [[S, C, C]], []),
    ("supermajority", {"decision": "supermajority_consensus"}, [[S, C, M], [S, C, C]], []),
    ("unanimity", {"decision": "unanimity_consensus"}, [[S, C, C], [C]], []),
    ("report", {"paradigm": "report", "max_turns": 2}, [[S, C, M], [S, C, M]], []),
    ("report with agreement", {"paradigm": "report"}, [[S, C, M], [C, C, C]], []),
    ("relay", {"paradigm": "relay", "max_turns": 2}, [[S, C, M], [S, C, M]], []),
    ("relay with agreement", {"paradigm": "relay"}, [[S, C, C], [C, C, C]], []),
    ("debate", {"paradigm": "debate", "max_turns": 2}, [[S, C, M, C, M], [S, C, M, C, M]], []),
    ("debate of four", {"paradigm": "debate", "max_turns": 2, "num_agents": 4}, [[S, C, M, S, C, M, S]] * 2, []),
    ("debate with agreement", {"paradigm": "debate", "max_turns": 2}, [[C, C, C, C, C]], []),
]
NEWEST = [
    ("all agree, and no count sees it", {"max_turns": 2}, [[C, C, C]] * 2, []),
    ("a vote", {"decision": "simple_voting"}, [[S, C, M]] * 3, [[1, 1, 0]]),
    ("a vote that ties", {"decision": "simple_voting"}, [[S, C, M]] * 4, [[0, 1, 2], [1, 1, 0]]),
    ("a vote that ties to the end", {"decision": "simple_voting", "max_turns": 3}, [[S, C, M]] * 3, [[0, 1, 2]]),
    ("ranks", {"decision": "ranked_voting"}, [[S, C, M]] * 3, [["1 0 2", "0 1 2", "1 2 0"]]),
    ("points", {"decision": "cumulative_voting"}, [[S, C, M]] * 3, [[[0, 8, 2], [10, 0, 0], [0, 10, 0]]]),
    ("approval", {"decision": "approval_voting"}, [[S, C, M]] * 3, [["1", "0,1", "2"]]),
    ("a judge", {"decision": "judge"}, [[S, C, M]] * 3, [[C]]),
]


class Script:
    """Recognises what a request is and gives the reply that the case has for it."""

    def __init__(self, settings, answers, votes):
        self.n, self.paradigm = settings.get("num_agents", 3), settings.get("paradigm", "memory")
        self.said = [answer for turn in answers for answer in turn]
        self.votes = [vote for turn in votes for vote in turn]
        self.speeches = self.voted = 0
        self.last = None

    def __call__(self, request, _):
        prompt = request["prompt"]
        if "Your role:" in prompt and "You take part in a discussion" in prompt:
            member = int(re.search(r"Your role: Participant (\d+)", prompt).group(1)) - 1
            # What is not scripted agrees with the last solution.
            answer = self.said[self.speeches] if self.speeches < len(self.said) else self.last
            self.speeches += 1
            draft = re.search(r"Current Solution: (\S+)", prompt)
            words = "I [AGREE] with it:" if draft and draft.group(1) == answer else "I [DISAGREE]:"
            self.last = answer
            turn = (self.speeches - 1) // (2 * self.n - 1 if self.paradigm == "debate" else self.n)
            return {"kind": "speak", "member": member, "round": turn, "text": f"{words} MARK {answer}"}
        if "Extract the final solution" in prompt:
            before = re.search(r"(?:Your previous response|Output Text): (.*)", prompt).group(1)
            return {"kind": "extract", "text": next(answer for answer in (S, C, M) if answer in before) + " MARK"}
        vote = self.votes[self.voted]
        self.voted += 1
        if isinstance(vote, list):
            vote = "{" + ", ".join(f'"{i}": {points}' for i, points in enumerate(vote)) + "}"
        return {"kind": "vote", "text": str(vote)}


def run(name, settings, answers, votes):
    endpoint = Endpoint(Script(settings, answers, votes))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        config = Config(
            input_json_file_path="x.json",
            output_json_file_path=f"{folder}/out.json",
            task_instruction_prompt="Answer the question.",
            endpoint_url=endpoint.url,
            max_turns=settings.get("max_turns", 10),
            discussion_paradigm=settings.get("paradigm", "memory"),
            decision_protocol=settings.get("decision", "hybrid_consensus"),
            num_agents=settings.get("num_agents", 3),
        )
        chat = Chat(client=OpenAI(base_url=endpoint.url, api_key="none", max_retries=0), model="scripted")
        heard = Coordinator.update_memories

        def update_memories(memories, agents):
            """Notes who is told of the last speech."""
            speech = next(call for call in reversed(endpoint.calls) if call["kind"] == "speak")
            told = [agent.persona.split(" ")[1] for agent in agents]
            speech["to"] = sorted(int(n) - 1 for n in told if int(n) - 1 != speech["member"])
            heard(memories, agents)

        quiet = Console(file=open(os.devnull, "w"), record=True)
        generators = ["nopersona"] * config.num_agents
        coordinator = Coordinator(model=chat, client=None, agent_generators=generators, console=quiet)
        coordinator.update_memories = update_memories
        nothing = WorkerFunctions(*[lambda _: None] * len(dataclasses.fields(WorkerFunctions)))
        sample = InputExample(example_id="x", dataset_id=None, inputs=[QUESTION], context=None, references=[C])
        answer, _, _, turns, _, _, agreed, *_ = coordinator.discuss(config, sample, nothing)
    endpoint.close()
    answer = answer.split(" ")[0]
    ours = {
        "rounds": config.max_turns,
        "agents": config.num_agents,
        "paradigm": config.discussion_paradigm,
        "decision": config.decision_protocol.replace("_", "-"),
    }
    replies = {"speak": answers, "vote": votes}
    return case(name, ours, replies, endpoint, answer, newest=(program / "mallm/decision_protocols").exists(), stopped_after_round=turns, agreed=agreed)


DIFFERENCES = [
    {
        "what": "MALLM reads agreement from the words of a reply; here a speaker agrees whose answer is the current proposal.",
        "why": "An answer that is typed needs no second reading, and words of agreement beside another answer are no agreement.",
    },
    {
        "what": "MALLM asks a second time after each speech, and once more before a vote, to cut the solution out of the text; here replies are typed.",
        "why": "The calls say nothing new; they would double the cost of every discussion.",
    },
    {
        "what": "Since October 2024 no agreement ends a discussion of three or more in MALLM: a speech that agrees carries a solution, and the count stops at the last solution.",
        "why": "It is a mistake of the repository (commit e20d40c), against its documents and papers. The consensus cases are those of the commit before.",
    },
    {
        "what": "A speaker in MALLM is shown all that it has heard and said (its limit of two turns has no effect); here, its own last speech and what it has heard since.",
        "why": "Prompts that grow with every turn cost the square of the turns. What a speaker has answered already is in its own last speech.",
    },
    {
        "what": "In MALLM's debate a hearer also gets all that others have said before in the same turn; here, only what is said to it.",
        "why": "The repository's list of speeches is not emptied between speakers, as it is in its other paradigms.",
    },
    {
        "what": "In a relay MALLM shows the last proposal that a speaker has heard in full, even if the others have agreed on another since; here there is one current proposal.",
        "why": "Agreement is with the current proposal of all, or its count means nothing.",
    },
    {
        "what": "A vote that is still tied after the last turn gives no answer in MALLM; here the first of the tied answers is taken.",
        "why": "A team that has answers should give one.",
    },
    {
        "what": "MALLM's judge is the first member, who writes one answer out of all; here the judge names the best of them.",
        "why": "The decision is between the members' answers, and a member with the role `judge` can be another model.",
    },
    {
        "what": "Voters give marks, from which all four kinds of ballot are made; MALLM asks for each kind in its own words.",
        "why": "One form serves all ballots, and the same marks under another rule show what the rule does.",
    },
]

path = METHODS / "discussion/official.json"
facts = json.loads(path.read_text()) if path.exists() else {"cases": []}
newest = (program / "mallm/decision_protocols").exists()
facts = {
    "repository": "Multi-Agent-LLMs/mallm",
    "commit": commit if newest else facts.get("commit", ""),
    "commit of the consensus cases": facts.get("commit of the consensus cases", "") if newest else commit,
    "program": "mallm/coordinator.py",
    "ran": True,
    "how": "Coordinator.discuss with members without personas and a scripted endpoint; the scheduler around it was left out.",
    "cases": [each for each in facts["cases"] if each["newest"] != newest] + [run(*each) for each in (NEWEST if newest else CONSENSUS)],
    "differences": DIFFERENCES,
}
write("discussion", facts)
