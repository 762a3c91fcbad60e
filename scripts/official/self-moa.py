"""Self-MoA. The authors' repository (wenzhe-li/Self-MoA) holds no program, only its README.

What runs is the mixture's program (togethercomputer/MoA) with one model in all places, which is what the authors define as
Self-MoA. The windows of Self-MoA-Seq are no program's: their facts follow from the paper's rule, which is written out below.
"""

import pathlib
import sys

import facts
import mixture

COMMIT = "bd6a5278ab7240d58642f1f7080d141050a4a1a3"

#: By name: the samples' answers (`None`: the service refuses) and the aggregator's.
CASES = {
    "the paper's six samples": (["1", "2", "3", "3", "5", "6"], "3"),
    "all agree at once": (["7", "7", "7"], "7"),
    "disagreement": (["1", "2", "3"], "2"),
    "a minority is right": (["5", "7", "5", "5"], "7"),
    "a tie": (["1", "2", "1", "2"], "2"),
    "one sample": (["7"], "8"),
    "a sample fails": (["1", None, "3"], "3"),
    "all samples fail": ([None, None], "4"),
}

#: By name: the samples, the window, and what the aggregator says to each window.
WINDOWS = {
    "windows of three of six": (["1", "2", "3", "4", "5", "6"], 3, ["2", "4", "6"]),
    "windows of two of four": (["1", "2", "3", "4"], 2, ["1", "2", "3"]),
    "a window as large as the samples": (["1", "2", "3"], 3, ["2"]),
    "a window larger than the samples": (["1", "2", "3"], 5, ["2"]),
}

DIFFERENCES = [
    {
        "what": "In the paper's windows the synthesis so far stands for several of the proposals; here it is one of them.",
        "why": "A window of any size, from two on, has room for one.",
        "rule": None,
    },
    {
        "what": "Proposals stand in the user's message with the name of their author; in the mixture's program they are numbered, without "
        "names, in the system prompt.",
        "why": "All methods here show others' answers in one form.",
        "rule": None,
    },
    {
        "what": "The mixture's program sets temperature 0.7; here the scenario has to (`settings: {temperature: 0.7}`).",
        "why": "Sampling belongs to the scenario, and the provider decides what is not set.",
        "rule": None,
    },
]


def windows(samples, size, said):
    """The calls of Self-MoA-Seq: the first `size` samples, then the synthesis so far with the next `size - 1`."""
    call = lambda round, member, kind, shown: {
        "round": round, "member": member, "kind": kind, "temperature": None, "shown": shown
    }
    calls = [call(0, n, "answer", []) for n in range(len(samples))]
    shown, done = [[0, n] for n in range(min(size, len(samples)))], min(size, len(samples))
    for n in range(len(said)):
        calls.append(call(1, f"aggregator {n}", "aggregate", shown))
        shown = [[1, f"aggregator {n}"]] + [[0, k] for k in range(done, min(done + size - 1, len(samples)))]
        done = min(done + size - 1, len(samples))
    assert done == len(samples), "the last window holds the last sample"
    return calls


def main():
    module = mixture.program(pathlib.Path(sys.argv[1]))
    cases = []
    for name, (answers, final) in CASES.items():
        log, answer = mixture.run(module, [answers], final, ["the-one-model"] * len(answers))
        for call in log:
            if call.reply.kind == "aggregate":
                call.reply.member = "aggregator 0"
        settings = {"agents": len(answers), "rounds": 1, "settings": {"temperature": 0.7}}
        replies = {"answers": answers, "aggregator": [final]}
        cases.append(facts.case(name, settings, replies, log, answer, theory=False))
    for name, (samples, size, said) in WINDOWS.items():
        calls = windows(samples, size, said)
        cases.append(
            {
                "name": name,
                "settings": {"agents": len(samples), "rounds": 1, "method": {"kind": "self-moa", "window": size}},
                "replies": {"answers": samples, "aggregator": said},
                "calls": calls,
                "number_of_calls": len(calls),
                "stopped_after_round": 1,
                "answer": said[-1],
                "theory": True,
            }
        )
    facts.write(
        "self-moa",
        {
            "repository": "https://github.com/wenzhe-li/Self-MoA",
            "commit": COMMIT,
            "program": None,
            "ran": False,
            "reason": "The repository holds a README and no program.",
            "how": "In its place generate_for_alpaca_eval.py of https://github.com/togethercomputer/MoA at "
            "1b5cab0f0905d9da821e37322ac6df96ba65e1a7 was run with one model in all places. Cases with `theory` follow from the "
            "paper's rule for windows and from no program.",
            "cases": cases,
            "differences": DIFFERENCES,
        },
    )


if __name__ == "__main__":
    main()
