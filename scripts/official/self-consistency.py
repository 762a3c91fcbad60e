"""Self-consistency. Its authors published prompts in the paper and no program, so this is a check against the paper's rule: the answer
is the most frequent one of independent samples of one prompt. The paper breaks no ties; the first of equals is the usual reading
(`max` over answers in the order of the samples)."""

import facts

CASES = {
    "all agree": ["7", "7", "7"],
    "disagreement": ["1", "2", "3"],
    "a majority": ["5", "7", "7", "5", "7"],
    "a minority is right and loses": ["5", "7", "5", "5"],
    "a plurality below one half": ["1", "2", "2", "3", "4"],
    "a tie": ["1", "2", "2", "1"],
    "equal as numbers": ["7", "7.0", "8", "8", "7.00"],
    "a sample without an answer": [None, "2", "1", "2"],
    "no sample with an answer": [None, None],
    "one sample": ["7"],
}

DIFFERENCES = [
    {
        "what": "The paper prompts with worked examples and samples with temperature 0.5 to 0.7; our prompt has no examples and our method "
        "sets no temperature.",
        "why": "Examples belong to a data set and sampling to the scenario.",
        "rule": None,
    },
]


def most_frequent(answers):
    """The answer that most samples give, in the words of the first; the first of equals."""
    given = [answer for answer in answers if answer is not None]
    count = lambda answer: sum(float(answer) == float(other) for other in given)
    return max(given, key=count, default=None)


def main():
    cases = [
        {
            "name": name,
            "settings": {"agents": len(answers), "rounds": 1},
            "replies": answers,
            "calls": [
                {"round": 0, "member": n, "kind": "answer", "temperature": None, "shown": []} for n in range(len(answers))
            ],
            "number_of_calls": len(answers),
            "stopped_after_round": 1,
            "answer": most_frequent(answers),
            "theory": True,
        }
        for name, answers in CASES.items()
    ]
    facts.write(
        "self-consistency",
        {
            "repository": None,
            "commit": None,
            "program": None,
            "ran": False,
            "reason": "The authors published no program.",
            "how": "A check against the paper's rule, written out in scripts/official/self-consistency.py.",
            "cases": cases,
            "differences": DIFFERENCES,
        },
    )


if __name__ == "__main__":
    main()
