"""SMoA: `run_alignment.py` of David-Li0406/SMoA, run whole.

The program needs Together's library, tokenizers and a hub only to count tokens and to load its data set; these are replaced, and
its service address is led to the scripted endpoint. It reads its prompts and writes its output beside itself, so it runs in a
temporary copy of its folder.
"""

import json
import os
import pathlib
import runpy
import shutil
import sys
import tempfile
import types

import requests

import facts
import mixture
from endpoint import Endpoint, Reply

COMMIT = "1f3444d48069a7e31fcdbad730324106d07c52cd"

#: Who may reply with how many tokens: all but the aggregator, who has the program's own default.
TOKENS = 1000

#: By name: settings of ours, the references' answers by layer, the moderator's choice and end by layer, and the aggregator's answer.
#: `None` for an answer: the service refuses.
CASES = {
    "the moderator never ends it": (
        {}, [["1", "2", "3", "4"], ["5", "6", "7", "8"]], [([1, 3], False), ([0, 2], False)], "7",
    ),
    "all agree and the moderator ends it": (
        {}, [["7", "7", "7", "7"], ["8", "8", "8", "8"]], [([0, 1], True), ([0, 1], True)], "7",
    ),
    "the end after the second layer": (
        {}, [["1", "2", "3", "4"], ["2", "2", "2", "1"], ["9", "9", "9", "9"]],
        [([1, 2], False), ([0, 1], True), ([0, 1], False)], "2",
    ),
    "disagreement till the end": (
        {}, [["1", "2", "3", "4"], ["1", "2", "3", "4"], ["1", "2", "3", "4"]],
        [([0, 1], False), ([2, 3], False), ([1, 2], False)], "2",
    ),
    "a minority is chosen": (
        {"keep": 1}, [["5", "7", "5", "5"], ["7", "7", "7", "5"]], [([1], False), ([0], False)], "7",
    ),
    "three of five are kept": (
        {"keep": 3}, [["1", "2", "3", "4", "5"], ["2", "4", "2", "4", "5"]], [([1, 3, 4], False), ([0, 1, 2], True)], "4",
    ),
    "no early end": (
        {"stop_early": False}, [["7", "7", "7", "7"], ["8", "8", "8", "8"]], [([0, 1], True), ([2, 3], True)], "8",
    ),
    "a reference fails": (
        {}, [["1", None, "3", "4"], ["5", "6", "7", "8"]], [([0, 1], False), ([2, 3], False)], "8",
    ),
    "roles are written once": (
        {"roles": True}, [["1", "2", "3", "4"], ["5", "6", "7", "8"]], [([0, 1], False), ([2, 3], False)], "8",
    ),
    "the best is named second": (
        {}, [["1", "2", "3", "4"], ["5", "6", "7", "8"]], [([3, 0], False), ([2, 1], False)], "8",
    ),
}

DIFFERENCES = [
    {
        "what": "The official moderator names the kept responses and says whether to end in one call; ours marks all in one call and "
        "checks the best one in a second, and the end means that the best one is right, not that the responses agree.",
        "why": "Marks and checks are kinds of question that the simulated models answer; a named set with an end in one record is not.",
        "rule": "judge-and-moderator",
    },
    {
        "what": "The official program keeps the roles that it writes for a data set in a file, which later runs read; ours writes them "
        "once a run, in one call, too, and from the data set's first questions unless `about` describes it.",
        "why": "A run reads nothing that another run wrote. With `roles: false` and a `persona` for each member, roles are given and "
        "cost no call.",
        "rule": None,
    },
    {
        "what": "The kept responses are shown in the order in which the official moderator names them; ours are shown by falling marks.",
        "why": "Marks have no other order. If they fall in the order named, both are the same.",
        "rule": None,
    },
    {
        "what": "If the official moderator names no responses or too many, `num_select_response` are drawn by lot, and if its call fails, "
        "the question has no answer; if ours gives no marks, all are passed on.",
        "why": "A call that failed should not throw away answers.",
        "rule": None,
    },
    {
        "what": "The official program sets temperature 0.7; here the scenario has to (`settings: {temperature: 0.7}`).",
        "why": "Sampling belongs to the scenario, and the provider decides what is not set.",
        "rule": None,
    },
    {
        "what": "Proposals stand in the user's message with their authors' names; officially they are numbered, without names, in the "
        "system prompt.",
        "why": "All methods here show others' answers in one form.",
        "rule": None,
    },
    {
        "what": "The official program asks again up to five times if the service fails; here the scenario says how often (`max_retries`).",
        "why": "Retries cost money and belong to the scenario.",
        "rule": None,
    },
]


class Words:
    """A tokenizer that counts words."""

    @staticmethod
    def from_pretrained(_):
        return Words()

    def tokenize(self, text):
        return text.split()


class Items(list):
    """As much of a data set as the program uses."""

    @staticmethod
    def from_dict(columns):
        return Items(dict(zip(columns, row)) for row in zip(*columns.values()))

    def map(self, function, **_):
        return Items({**item, **function(item)} for item in self)

    def to_dict(self):
        return {key: [item[key] for item in self] for key in self[0]}


def replaced():
    """Modules that stand in for the service's library, the tokenizers and the hub."""
    question = Items([{"instruction": "What is the capital of Australia?"}])
    return {
        "together": types.SimpleNamespace(Together=lambda **_: None, AsyncTogether=lambda **_: None),
        "datasets": types.SimpleNamespace(load_dataset=lambda *_, **__: question, Dataset=Items),
        "transformers": types.SimpleNamespace(AutoTokenizer=Words),
        "huggingface_hub": types.SimpleNamespace(login=lambda _: None),
    }


def play(answers, choices, final, models, template):
    """The script. The moderator is known by the beginning of the official prompt, the aggregator by its number of tokens."""
    at = {"layer": 0, "place": 0}

    def script(call):
        layer = at["layer"]
        if call.max_tokens != TOKENS:
            return Reply(final, layer, "aggregator", "aggregate")
        if template in call.prompt:
            at.update(layer=layer + 1, place=0)
            if choices[layer] is None:
                return None
            chosen, end = choices[layer]
            return Reply(json.dumps({"reasoning": "so", "chosen responses": chosen, "end debate": end}), layer, "moderator", "moderate")
        if "Generated Role Description" in call.prompt:
            roles = "\n".join(f"[Generated Role Description {n}]\nrole {n}" for n in range(len(models)))
            return Reply(roles, 0, "roles", "roles")
        place = at["place"]
        assert call.model == models[place], "references are asked in their order"
        at["place"] += 1
        return Reply(answers[layer][place], layer, place)

    return script


def run(root, settings, answers, choices, final):
    """Runs the program on one case; returns the log and the output."""
    folder = pathlib.Path(tempfile.mkdtemp()) / "program"
    shutil.copytree(root, folder)
    if settings.get("roles"):
        (folder / "prompt/alignment/role_description.json").unlink()
    count = len(answers[0])
    models = [f"lab/model-{n}" for n in range(count)]
    if count > 4 and not settings.get("roles"):
        # The file in the repository has four roles.
        path = folder / "prompt/alignment/role_description.json"
        path.write_text(json.dumps([f"role {n}" for n in range(count)]))
    argv = ["run_alignment.py", "--model", models[0], "--reference_models", *models, "--rounds", str(len(answers))]
    argv += ["--num_select_response", str(settings.get("keep", 2)), "--max_tokens", str(TOKENS), "--num_proc", "1"]
    argv += ["--add_role", "--moderate_select"] + (["--moderate_end"] if settings.get("stop_early", True) else [])
    template = (folder / "prompt/alignment/moderator_system_prompt_v2.txt").read_text()[:40]
    here, kept, before = os.getcwd(), sys.argv, dict(sys.modules)
    out = sys.stdout
    with Endpoint(play(answers, choices, final, models, template)) as endpoint:
        send = mixture.redirect(endpoint)
        try:
            os.chdir(folder)
            sys.argv = argv
            sys.path.insert(0, str(folder))
            sys.modules.update(replaced())
            sys.modules.pop("utils", None)
            sys.stdout = open(os.devnull, "w")
            runpy.run_path("run_alignment.py", run_name="__main__")
        finally:
            sys.stdout = out
            sys.path.remove(str(folder))
            sys.argv = kept
            os.chdir(here)
            requests.Session.request = send
            for name in set(sys.modules) - set(before):
                if name in ("utils", "together", "datasets", "transformers", "huggingface_hub"):
                    del sys.modules[name]
    [path] = (folder / "output/alignment").iterdir()
    [item] = json.loads(path.read_text())
    return endpoint.log, item["output"] and item["output"].split(" ", 1)[1]


def main():
    root = pathlib.Path(sys.argv[1])
    cases = []
    for name, (more, answers, choices, final) in CASES.items():
        log, answer = run(root, more, answers, choices, final)
        method = {"keep": 2, "stop_early": True, "roles": False, **more}
        settings = {
            "agents": len(answers[0]),
            "rounds": len(answers) + 1,
            "method": {"kind": "sparse-moa", **method},
            "settings": {"temperature": 0.7},
        }
        replies = {"answers": answers, "moderator": [{"chosen": c, "end": e} for c, e in choices], "aggregator": final}
        cases.append(facts.case(name, settings, replies, log, answer))
    only, four = [], [["1", "2", "3", "4"]]
    for name, said in {"the moderator names none": (None, False), "the moderator fails": None}.items():
        log, answer = run(root, {}, four, [said], "2")
        kept = [len(call["shown"]) for call in facts.calls([call for call in log if call.reply]) if call["kind"] == "aggregate"]
        only.append({"name": name, "number_of_calls": len(log), "responses_kept": kept, "answer": answer})
    facts.write(
        "sparse-moa",
        {
            "repository": "https://github.com/David-Li0406/SMoA",
            "commit": COMMIT,
            "program": "run_alignment.py",
            "ran": True,
            "how": "The program was run whole on one question with its own prompts and its file of roles; tokenizers and data set are "
            "replaced and the service address was led to the scripted endpoint. Our `rounds` is its `rounds` and the aggregator's "
            "layer. Model 0 is moderator and aggregator, too.",
            "cases": cases,
            "official_only": only,
            "differences": DIFFERENCES,
        },
    )


if __name__ == "__main__":
    main()
