"""Drives the discussions of MALLM with scripted replies.

Its program is fetched outside the repository (`git archive` of Multi-Agent-LLMs/mallm), and the packages that its coordinator imports are installed
in an environment of their own (httpx, rich, langchain-core, openai, scikit-learn, requests, json-repair):
    venv/bin/python scripts/official/discussion.py FOLDER COMMIT
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

from endpoint import Endpoint, Reply
from facts import METHODS, case, write

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
    ("debate", {"paradigm": "debate", "max_turns": 2}, [[S, C, M, C, M], [S, C, M, C, M]], []),
    ("debate of four", {"paradigm": "debate", "max_turns": 2, "num_agents": 4}, [[S, C, M, S, C, M, S]] * 2, []),
    ("debate with agreement", {"paradigm": "debate", "max_turns": 2}, [[C, C, C, C, C]], []),
]
NEWEST = [
    ("a vote", {"decision": "simple_voting"}, [[S, C, M]] * 3, [[1, 1, 0]]),
    ("a vote that ties", {"decision": "simple_voting"}, [[S, C, M]] * 4, [[0, 1, 2], [1, 1, 0]]),
    ("a vote that ties to the end", {"decision": "simple_voting", "max_turns": 3}, [[S, C, M]] * 3, [[0, 1, 2]]),
    ("ranks", {"decision": "ranked_voting"}, [[S, C, M]] * 3, [["1 0 2", "0 1 2", "1 2 0"]]),
    ("points", {"decision": "cumulative_voting"}, [[S, C, M]] * 3, [[[0, 8, 2], [10, 0, 0], [0, 10, 0]]]),
    ("approval", {"decision": "approval_voting"}, [[S, C, M]] * 3, [["1", "0,1", "2"]]),
    ("a judge", {"decision": "judge"}, [[S, C, M]] * 3, [[C]]),
]


# No counterpart.
CONSENSUS_ONLY = [("relay with agreement", {"paradigm": "relay"}, [[S, C, C], [C, C, C]], [])]
NEWEST_ONLY = [("all agree, and no count sees it", {"max_turns": 2}, [[C, C, C]] * 2, [])]


class Script:
    """Recognises what a request is and gives the reply that the case has for it."""

    def __init__(self, settings, answers, votes):
        n = settings.get("num_agents", 3)
        # In a debate all but the first speak twice in a turn.
        self.debate = settings.get("paradigm") == "debate"
        self.slots = [0, *range(1, n), *range(1, n)] if self.debate else range(n)
        self.said = [answer for turn in answers for answer in turn]
        self.votes = [vote for turn in votes for vote in turn]
        self.order, self.heard, self.final, self.voted = [], [], 0, 0

    def speech(self, prompt):
        turn, slot = divmod(len(self.order), len(self.slots))
        member = int(re.search(r"Your role: Participant (\d+)", prompt).group(1)) - 1
        assert member == self.slots[slot]
        name = f"{member}, speech {int(slot >= len(self.slots) // 2 + 1)}" if self.debate else member
        answer = self.said[len(self.order)]
        self.order.append((turn, member, name))
        draft = re.search(r"Current Solution: (\S+)", prompt)
        words = "I [AGREE] with it:" if draft and draft.group(1) == answer else "I [DISAGREE]:"
        return Reply(f"{words} MARK {answer}", turn, name)

    def __call__(self, call):
        prompt = call.prompt
        if "Your role:" in prompt and "You take part in a discussion" in prompt:
            self.final = self.voted = 0
            return self.speech(prompt)
        turn, _, name = self.order[-1]
        if "Extract the final solution" in prompt:
            before = re.search(r"(?:Your previous response|Output Text): (.*)", prompt).group(1)
            solution = next(answer for answer in (S, C, M) if answer in before) + " MARK"
            if not re.search(r"I \[(DIS)?AGREE\]", prompt):
                self.final += 1
                return Reply(solution, turn, f"{self.final - 1}'s final solution", "extract")
            return Reply(solution, turn, f"{name}'s solution", "extract")
        vote = self.votes.pop(0)
        if isinstance(vote, list):
            vote = "{" + ", ".join(f'"{i}": {points}' for i, points in enumerate(vote)) + "}"
        self.voted += 1
        judge = "provide a summary" in prompt
        return Reply(str(vote), turn, "judge" if judge else f"{self.voted - 1}'s vote", "vote", bare=True)


def run(name, settings, answers, votes):
    script = Script(settings, answers, votes)
    with Endpoint(script) as endpoint, tempfile.TemporaryDirectory() as folder:
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
            told = [int(agent.persona.split(" ")[1]) - 1 for agent in agents]
            script.heard.append(sorted(member for member in told if member != script.order[-1][1]))
            heard(memories, agents)

        quiet = Console(file=open(os.devnull, "w"), record=True)
        generators = ["nopersona"] * config.num_agents
        coordinator = Coordinator(model=chat, client=None, agent_generators=generators, console=quiet)
        coordinator.update_memories = update_memories
        nothing = WorkerFunctions(*[lambda _: None] * len(dataclasses.fields(WorkerFunctions)))
        sample = InputExample(example_id="x", dataset_id=None, inputs=[QUESTION], context=None, references=[C])
        answer, _, _, _, _, _, agreed, *_ = coordinator.discuss(config, sample, nothing)
    ours = {"paradigm": config.discussion_paradigm, "decision": config.decision_protocol.replace("_", "-")}
    scenario = {"agents": config.num_agents, "rounds": config.max_turns, "method": {"kind": "discussion"} | ours}
    replies = {"answers": answers, "votes": votes}
    more = {"heard": script.heard, "newest": newest, "agreed": agreed}
    return case(name, scenario, replies, endpoint.log, answer.split(" ")[0] or None, **more)


newest = (program / "mallm/decision_protocols").exists()
DIFFERENCES = [
    {
        "what": "Officially agreement is read from the words of a reply; ours agrees if its answer is the current proposal.",
        "why": "Words of agreement beside another answer are no agreement.",
        "rule": None,
    },
    {
        "what": "Officially a second question after each speech, and one more before a vote, cuts the solution out of the text; ours ask for reasons and an answer at once.",
        "why": "The question says nothing new and would double the calls.",
        "rule": "typed",
    },
    {
        "what": "In the newest version (since e20d40c, October 2024) no agreement ends a discussion of three or more, since a speech that agrees carries a solution and the count stops at the last solution; ours counts as the version before.",
        "why": "It goes against the repository's own description of its protocols; the cases of consensus are those of the version before.",
        "rule": None,
    },
    {
        "what": "Officially a speaker is shown all that it has said and heard, whatever its limit of two turns says; ours its own last speech and what it has heard since.",
        "why": "A speech answers all that came before it, and prompts that show every turn grow with the square of the turns.",
        "rule": "since-the-last",
    },
    {
        "what": "In the official debate a hearer is also given all that others have said before in the turn; ours is given what is said to it.",
        "why": "The official list of speeches is emptied after each speaker in the other paradigms, and not in the debate.",
        "rule": "passed-on",
    },
    {
        "what": "In the official relay a speaker is asked about the last new proposal that it has heard, even if the others have agreed on another; ours about the current proposal of all.",
        "why": "Agreement is counted over all, and so has to be with the same proposal.",
        "rule": None,
    },
    {
        "what": "Officially a vote that ties in the last turn gives no answer; ours takes the first of the tied.",
        "why": "A team that has answers gives one.",
        "rule": "last-tie",
    },
    {
        "what": "The official judge is the first member, who writes one answer out of all; ours names the best of them and may be a member with that role.",
        "why": "A decision is between the answers that were given.",
        "rule": None,
    },
    {
        "what": "Officially each kind of vote has its own question; ours asks for marks and makes the votes from them.",
        "why": "The same marks under another rule show what the rule does.",
        "rule": None,
    },
]

path = METHODS / "discussion/official.json"
before = json.loads(path.read_text()) if path.exists() else {}
other = {key: [each for each in before.get(key, []) if each["newest"] != newest] for key in ("cases", "official_only")}
facts = {
    "repository": "https://github.com/Multi-Agent-LLMs/mallm",
    "commit": commit if newest else before.get("commit", ""),
    "commit of the consensus cases": before.get("commit of the consensus cases", "") if newest else commit,
    "program": "mallm/coordinator.py",
    "ran": True,
    "how": "Coordinator.discuss with members without personas; the scheduler around it was left out. `heard`: who is told of each speech.",
    "cases": other["cases"] + [run(*each) for each in (NEWEST if newest else CONSENSUS)],
    "official_only": other["official_only"] + [run(*each) for each in (NEWEST_ONLY if newest else CONSENSUS_ONLY)],
    "differences": DIFFERENCES,
}
write("discussion", facts)
