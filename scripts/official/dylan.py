"""DyLAN: the network `LLMLP` of SALT-NLP/DyLAN (`code/demo`), run forward and backward as `run_DyLAN.py` does.

A member's place is its place in the order by lot of its round: replies and facts are given by round and place, so they do not depend
on the lot. The scripted endpoint reads from a prompt in which order the answers of the round before are shown, and gives its marks
and the ranker's choice in that order.
"""

import pathlib
import random
import sys

import openai

import facts
from endpoint import Endpoint, Reply

COMMIT = "572341b56a0fdf1db07935295f177ae9d10986bb"

#: By name: the number of agents, the answers by round and place, the marks for the round before by round, place and its place (or
#: `None`: the reply gives no marks), and the two places that the ranker names.
CASES = {
    "all agree at once": (4, [["7", "7", "7", "7"]], [], None),
    "three of four agree after one who does not": (4, [["5", "7", "7", "7"]], [], None),
    "agreement in the second round": (
        4, [["1", "2", "3", "4"], ["7", "7", "7", "7"]], [[[5, 1, 2, 2], [1, 5, 3, 1], [2, 2, 4, 2]]], None,
    ),
    "disagreement till the end": (
        4, [["1", "2", "3", "4"], ["1", "2", "3", "4"], ["2", "4"]],
        [[[5, 1, 1, 1], [1, 5, 1, 1], [1, 1, 5, 1], [1, 1, 1, 5]], [[1, 5, 1, 3], [2, 2, 1, 5]]], (1, 3),
    ),
    "the ranker's two agree": (
        4, [["1", "2", "3", "4"], ["9", "2", "9", "4"], ["9", "9"]],
        [[[5, 1, 1, 1], [1, 5, 1, 1], [1, 1, 5, 1], [2, 3, 4, 5]], [[1, 5, 1, 3], [2, 2, 1, 5]]], (0, 2),
    ),
    "two against two": (
        4, [["1", "1", "2", "2"], ["2", "1", "1", "2"], ["2", "2"]],
        [[[4, 4, 1, 1], [4, 4, 1, 1], [1, 1, 4, 4], [1, 1, 4, 4]], [[5, 1, 1, 5], [5, 1, 1, 4]]], (3, 0),
    ),
    "a minority is right in the end": (
        4, [["5", "7", "5", "6"], ["7", "7", "5", "6"], ["7", "7"]],
        [[[1, 5, 1, 1], [1, 5, 1, 1], [3, 3, 3, 3], [1, 4, 1, 5]], [[5, 5, 1, 1], [5, 4, 2, 1]]], (0, 1),
    ),
    "no marks are given": (
        4, [["1", "2", "3", "4"], ["1", "2", "3", "4"], ["2", "3"]], [[None] * 4, [None] * 2], (1, 2),
    ),
    "seven agents": (
        7, [["1", "2", "3", "4", "5", "6", "7"], ["1", "8", "8", "3", "8", "8", "8"]],
        [[[1, 2, 3, 4, 5, 1, 2]] * 7], None,
    ),
    "seven agents to the end": (
        7, [["1", "1", "1", "1", "5", "6", "7"], ["1", "1", "1", "1", "5", "6", "7"], ["1", "7"]],
        [[[1, 2, 3, 4, 5, 1, 2]] * 7, [[2, 1, 1, 1, 1, 1, 5], [5, 1, 1, 1, 1, 1, 2]]], (6, 0),
    ),
    "three agents have no ranker": (
        3, [["1", "2", "2"], ["1", "2", "2"], ["2", "2", "3"]],
        [[[5, 1, 1], [1, 4, 5], [1, 5, 4]], [[1, 5, 5], [1, 5, 5], [2, 2, 2]]], None,
    ),
    "three agents, four rounds": (
        3, [["1", "2", "3"], ["1", "2", "3"], ["1", "2", "3"], ["3", "3", "3"]],
        [[[5, 1, 1], [1, 5, 1], [1, 1, 5]], [[5, 1, 1], [1, 5, 1], [1, 1, 5]], [[1, 1, 5], [1, 1, 5], [2, 1, 5]]], None,
    ),
}

DIFFERENCES = [
    {
        "what": "The official ranker names two answers; ours marks all, and those with the highest marks stay.",
        "why": "Marks are a kind of question that simulated models answer, and they rank any number to keep.",
        "rule": None,
    },
    {
        "what": "In the third round the official program asks as many members as the ranker named, but not those that it named: it looks "
        "up their numbers in the shuffled order. Ours asks the members named.",
        "why": "The paper deactivates the members that the ranker finds weak; the program's choice is one by lot.",
        "rule": None,
    },
    {
        "what": "With more than three agents and more than three rounds the official program stops with an assertion in the fourth; ours "
        "goes on with the members that stayed.",
        "why": "Nothing in the method limits the rounds, and who was dropped stays out.",
        "rule": None,
    },
    {
        "what": "Officially replies without an answer agree with each other and can end the work with no answer; ours count for nothing.",
        "why": "No answer is no opinion.",
        "rule": None,
    },
    {
        "what": "The official program sets temperature 1; here the scenario has to (`settings: {temperature: 1}`).",
        "why": "Sampling belongs to the scenario, and the provider decides what is not set.",
        "rule": None,
    },
    {
        "what": "Officially the order in which answers are shown is drawn anew for each call; here it is the order of their round.",
        "why": "That order is drawn by lot, too, so no member has a better place over many items.",
        "rule": "order-of-the-round",
    },
    {
        "what": "Officially each member has a role's prompt, and answers are shown without names; here roles are personas of the scenario, "
        "and answers have their authors' names.",
        "why": "All methods here show others' answers in one form.",
        "rule": None,
    },
    {
        "what": "If the official ranker names no two answers, two are drawn by lot; if ours gives no marks, all members stay.",
        "why": "A call that failed should not drop members by lot.",
        "rule": None,
    },
    {
        "what": "Officially a mark above 5 counts as 5 and one below 1 as none; here a reply with such a mark does not fit what was asked.",
        "why": "Bounds of a reply are checked in one place for all methods, and a scenario can ask again (`max_retries`).",
        "rule": None,
    },
]


def run(agents, answers, marks, ranked, rounds, seed):
    """Runs the network. Returns the log, the answer, the number of calls that it counts, and the scores by round and place."""
    from LLMLP import LLMLP

    random.seed(seed)
    net = LLMLP("scripted", agents, ["Assistant"] * agents, rounds, "listwise", "math_exp", "scripted")
    order = [[] for _ in range(rounds)]
    now = {}
    for number, node in enumerate(net.nodes):
        def activate(question, number=number, run=node.activate):
            layer = number // agents
            order[layer].append(number % agents)
            now.update(round=layer, place=len(order[layer]) - 1, rank=False)
            run(question)

        node.activate = activate
    rank = net.activation
    net.activation = lambda *given: now.update(rank=True) or rank(*given)

    def script(call):
        places = {other.marker: other.reply.member for other in endpoint.log if other.marker}
        shown = [places[marker] for marker in call.shown]
        if now["rank"]:
            first, second = (shown.index(place) + 1 for place in ranked)
            return Reply(f"The best are [{first}, {second}]", now["round"] + 1, "ranker", "rank")
        layer, place = now["round"], now["place"]
        given = marks[layer - 1][place] if layer else None
        text = f"[[{', '.join(str(given[other]) for other in shown)}]] " if given else ""
        answer = answers[layer][place]
        return Reply(text + ("I cannot tell." if answer is None else f"The answer is {answer}"), layer, place)

    with Endpoint(script) as endpoint:
        openai.api_key, openai.api_base = "none", endpoint.url
        net.zero_grad()
        answer, count, *_ = net.forward("How many?")
        importance = net.backward(answer)
    scores = [[round(importance[layer * agents + agent], 9) for agent in order[layer]] for layer in range(rounds)]
    return endpoint.log, answer, count, scores, order


def main():
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "code/demo"))
    out, sys.stdout = sys.stdout, sys.stderr
    cases = []
    for seed, (name, (agents, answers, marks, ranked)) in enumerate(CASES.items()):
        rounds = max(3, len(answers))
        log, answer, count, scores, order = run(agents, answers, marks, ranked, rounds, seed)
        assert count == len(log), "the program counts its calls"
        more = {"importance": scores, "agents_in_order": order}
        if ranked:
            more["named_by_the_ranker"] = [order[1][place] for place in ranked]
        replies = {"answers": answers, "marks": marks, "ranker": ranked}
        settings = {"agents": agents, "rounds": rounds, "settings": {"temperature": 1}}
        cases.append(facts.case(name, settings, replies, log, answer, **more))
    only = []
    try:
        four = [["1", "2", "3", "4"], ["1", "2", "3", "4"], ["1", "2"], ["1", "2"]]
        run(4, four, [[None] * 4] * 3, (0, 1), 4, 0)
    except AssertionError:
        only.append({"name": "four agents, four rounds", "ends_with": "AssertionError"})
    nothing = [[None, None, None, "7"]]
    log, answer, *_ = run(4, nothing, [], None, 3, 0)
    only.append({"name": "three replies without an answer", "number_of_calls": len(log), "answer": answer})
    sys.stdout = out
    facts.write(
        "dylan",
        {
            "repository": "https://github.com/SALT-NLP/DyLAN",
            "commit": COMMIT,
            "program": "code/demo/LLMLP.py",
            "ran": True,
            "how": "The network was built and run forward and backward as in code/demo/run_DyLAN.py, with answers read as formulas. A "
            "`member` is a place in the order by lot of its round; `importance` is given by round and place.",
            "cases": cases,
            "official_only": only,
            "differences": DIFFERENCES,
        },
    )


if __name__ == "__main__":
    main()
