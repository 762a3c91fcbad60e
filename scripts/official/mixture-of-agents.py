"""The mixture of agents: the benchmark program of togethercomputer/MoA."""

import pathlib
import sys

import facts
import mixture

COMMIT = "1b5cab0f0905d9da821e37322ac6df96ba65e1a7"

#: By name: the references' answers by layer, and the aggregator's. `None`: the service refuses the request.
CASES = {
    "the paper's size": ([["1", "2", "3", "4", "5", "6"], ["2", "2", "3", "4", "4", "6"]], "4"),
    "all agree at once": ([["7", "7", "7"], ["7", "7", "7"]], "7"),
    "disagreement till the end": ([["1", "2", "3"], ["1", "2", "3"]], "3"),
    "the aggregator is nobody's voice": ([["1", "1", "1"]], "9"),
    "a minority convinces the others": ([["5", "7", "5", "5"], ["7", "7", "7", "5"]], "7"),
    "two layers and the aggregator": ([["1", "2"]], "2"),
    "three layers of references": ([["1", "2"], ["3", "4"], ["5", "6"]], "6"),
    "a reference fails": ([["1", None, "3"], ["1", "2", "3"]], "3"),
    "a whole layer fails": ([["1", "2"], [None, None]], "8"),
    "the first layer fails": ([[None, None], ["1", "2"]], "2"),
    "the aggregator fails": ([["1", "2", "3"]], None),
}

DIFFERENCES = [
    {
        "what": "The official program sets temperature 0.7; here the scenario has to (`settings: {temperature: 0.7}`).",
        "why": "Sampling belongs to the scenario, and the provider decides what is not set.",
        "rule": None,
    },
    {
        "what": "Without a reply of the aggregator the official program has no answer; ours takes the last proposal.",
        "why": "A mixture whose last call fails still has proposals, and an item without an answer tells nothing about them.",
        "rule": "last-proposal",
    },
    {
        "what": "Proposals stand in the user's message with their authors' names; officially they are numbered, without names, in the "
        "system prompt.",
        "why": "All methods here show others' answers in one form, so that methods and not their layouts are compared.",
        "rule": None,
    },
    {
        "what": "The official program asks again up to five times if the service fails; here the scenario says how often (`max_retries`).",
        "why": "Retries cost money and belong to the scenario.",
        "rule": None,
    },
]


def main():
    module = mixture.program(pathlib.Path(sys.argv[1]))
    cases = []
    for name, (answers, final) in CASES.items():
        log, answer = mixture.run(module, answers, final)
        settings = {"agents": len(answers[0]), "rounds": len(answers) + 1, "settings": {"temperature": 0.7}}
        cases.append(facts.case(name, settings, {"answers": answers, "aggregator": final}, log, answer))
    facts.write(
        "mixture-of-agents",
        {
            "repository": "https://github.com/togethercomputer/MoA",
            "commit": COMMIT,
            "program": "generate_for_alpaca_eval.py",
            "ran": True,
            "how": "The program was run whole on one question; its service address was led to the scripted endpoint. Our `rounds` is "
            "its `rounds` and the aggregator's layer. The aggregator is the first of the reference models.",
            "cases": cases,
            "differences": DIFFERENCES,
        },
    )


if __name__ == "__main__":
    main()
