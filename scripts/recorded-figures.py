#!/usr/bin/env python3
"""Computes what the recorded answers in data/recorded say about claims, in Python alone and without Polity.

usage: recorded-figures.py [CLAIM...]     one JSON object a claim
       recorded-figures.py --write        writes the table of docs/book/src/recorded.md anew
       recorded-figures.py --check        fails if that table is out of date

Teams, weights, prompts and subjects are chosen on the fit items. Figures are of the held-out items.
A vote is a plurality; the first of equals wins, and an unreadable answer abstains. It counts as wrong.
Intervals: Student's t, 95 %, over items; paired where two arms answer the same items. "Welch" compares two groups of items,
"jackknife" leaves out one of 20 groups of items at a time. Lots are drawn from Python's generator with a fixed seed.
"""
import csv
import hashlib
import json
import math
import random
import sys
from collections import Counter, defaultdict, namedtuple
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data" / "recorded"
PAGE = ROOT / "docs" / "book" / "src" / "recorded.md"
BEGIN, END = "<!-- recorded: python3 scripts/recorded-figures.py --write -->\n", "<!-- end -->"

Estimate = namedtuple("Estimate", "figure low high n df")
Claim = namedtuple("Claim", "name data quantity bound when says of")
CLAIMS = {}


def claim(name, data, quantity, bound=0.0, when="first list", each=None):
    """Registers a function as a claim: that its figure is above the bound. With `each`, one claim for each ending of the name and its argument."""

    def register(of):
        for ending, argument in (each or {"": None}).items():
            says = " ".join(of.__doc__.split()).format(argument)
            run = partial(of, argument) if each else of
            CLAIMS[name + ending] = Claim(name + ending, data, quantity, bound, when, says, run)
        return of

    return register


# ---------------------------------------------------------------- statistics


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def variance(values):
    middle = mean(values)
    return math.fsum((x - middle) ** 2 for x in values) / (len(values) - 1)


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d, product = 1.0, 1 / (1 - (a + b) * x / (a + 1)), 1 / (1 - (a + b) * x / (a + 1))
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            product *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * product


def two_sided(t, df):
    """The probability that Student's t is farther from 0 than this."""
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


@lru_cache(maxsize=None)
def t_quantile(df):
    """The 97.5 % quantile of Student's t, by bisection."""
    low, high = 0.0, 1000.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, df) > 0.05 else (low, middle)
    return (low + high) / 2


def around(figure, error, df, n):
    half = t_quantile(df) * error
    return Estimate(figure, figure - half, figure + half, n, df)


def student(values):
    """The mean of independent values."""
    values = list(values)
    return around(mean(values), math.sqrt(variance(values) / len(values)), len(values) - 1, len(values))


def paired(ours, theirs):
    """The mean difference of two arms on the same items."""
    return student(a - b for a, b in zip(ours, theirs))


def welch(ours, theirs):
    """The difference of the means of two groups of items."""
    a, b = variance(ours) / len(ours), variance(theirs) / len(theirs)
    df = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1)) if a + b else 1
    return around(mean(ours) - mean(theirs), math.sqrt(a + b), df, len(ours) + len(theirs))


def jackknife(of, ids, groups=None):
    """A figure of many items at once; `of` computes it from their places."""
    if groups is None:
        groups = [hashlib.sha256(i.encode()).digest()[2] % 20 for i in ids]
    every = range(len(ids))
    left = [of([i for i in every if groups[i] != g]) for g in sorted(set(groups))]
    k, middle = len(left), mean(left)
    error = math.sqrt((k - 1) / k * sum((x - middle) ** 2 for x in left))
    return around(of(list(every)), error, k - 1, len(ids))


def phi(ours, theirs, places=None):
    """The correlation of two lists of marks."""
    if places is not None:
        ours, theirs = [ours[i] for i in places], [theirs[i] for i in places]
    n, a, b = len(ours), sum(ours), sum(theirs)
    both = sum(x and y for x, y in zip(ours, theirs))
    return (n * both - a * b) / math.sqrt(a * (n - a) * b * (n - b))


# ---------------------------------------------------------------- lots


def lots(seed):
    return random.Random(f"recorded {seed}")


def shuffled(values, rng):
    """A permutation that needs only `random()`, which is the same in every version of Python."""
    return sorted(values, key=lambda _: rng.random())


def pick(values, rng):
    return values[int(rng.random() * len(values))]


def average(arms):
    """The mean of several arms, item by item."""
    arms = list(arms)
    return [sum(marks) / len(arms) for marks in zip(*arms)]


def range_of(draws, n):
    """The mean of a placebo's draws, and the range of 95 % of them."""
    ordered = sorted(draws)

    def at(share):
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        return ordered[below] + (place - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])

    return Estimate(mean(draws), at(0.025), at(0.975), n, len(draws) - 1)


def welch_by_lot(values, k, seed):
    """Welch's difference where the first group of k items is drawn by lot: means of 200 draws."""
    found = []
    for draw in range(200):
        mixed = shuffled(values, lots((seed, draw)))
        found.append(welch(mixed[:k], mixed[k:]))
    figure, half = mean(e.figure for e in found), mean(e.high - e.figure for e in found)
    return Estimate(figure, figure - half, figure + half, len(values), mean(e.df for e in found))


def signs_by_lot(differences, seed):
    """Two arms swapped by lot for each item: mean of 200 draws."""
    rng = lots(seed)
    return student(d * mean(1 if rng.random() < 0.5 else -1 for _ in range(200)) for d in differences)


def places_by_lot(marked, seed):
    """How often each item is marked if the marks are shuffled among items, in 200 draws."""
    return average(shuffled(marked, lots((seed, draw))) for draw in range(200))


def mixture(share, ours, theirs):
    """One of two arms by lot, `ours` with this share (a number, or one for each item)."""
    shares = share if isinstance(share, list) else [share] * len(ours)
    return [s * a + (1 - s) * b for s, a, b in zip(shares, ours, theirs)]


# ---------------------------------------------------------------- tables


def items(name, part):
    with open(DATA / name / f"{part}.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def rows(name, table="answers"):
    with open(DATA / name / f"{table}.tsv", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def by_model(name, part):
    """The items of a part, and for each model whether it was right, and its answers."""
    answers = defaultdict(dict)
    for row in rows(name):
        answers[row["model"]][row["item"]] = row["answer"]
    of_part = items(name, part)
    said = {model: [found.get(i["id"], "") for i in of_part] for model, found in sorted(answers.items())}
    right = {model: [int(a == i["answer"]) for a, i in zip(found, of_part)] for model, found in said.items()}
    return of_part, right, said


def plurality(answers, weights=None):
    """The answer with most votes, or the greatest weight; the first of equals."""
    votes = {}
    for place, answer in enumerate(answers):
        if answer != "":
            votes[answer] = votes.get(answer, 0) + (1 if weights is None else weights[place])
    return max(votes, key=votes.get) if votes else ""


def rounded(marks):
    return {name: round(value, 4) for name, value in marks.items()}


# ---------------------------------------------------------------- MMLU-Pro

FAMILIES = {
    "Llama-2": "Llama 2", "Meta-Llama": "Llama 3", "Mistral": "Mistral", "Mixtral": "Mistral", "mathstral": "Mistral",
    "Qwen": "Qwen", "Yi": "Yi", "gemini": "Gemini",
}


def family(model):
    return next((name for start, name in FAMILIES.items() if model.startswith(start)), model)


class MmluPro:
    """Models that are recorded on all items, the best on fit items first."""

    def __init__(self):
        table = {row["item"]: row for row in rows("mmlu-pro")}
        self.fit, self.held = items("mmlu-pro", "fit"), items("mmlu-pro", "held-out")
        names = [name for name in next(iter(table.values())) if name != "item"]
        names = [m for m in names if all(table[i["id"]][m] != "-" for i in self.fit + self.held)]
        self.said_fit = {m: [table[i["id"]][m] for i in self.fit] for m in names}
        self.said = {m: [table[i["id"]][m] for i in self.held] for m in names}
        self.gold_fit, self.gold = [i["answer"] for i in self.fit], [i["answer"] for i in self.held]
        self.right_fit = {m: [int(a == g) for a, g in zip(self.said_fit[m], self.gold_fit)] for m in names}
        self.right = {m: [int(a == g) for a, g in zip(self.said[m], self.gold)] for m in names}
        self.accuracy = {m: mean(self.right_fit[m]) for m in names}
        self.ranks = sorted(names, key=lambda m: -self.accuracy[m])
        self.best = self.ranks[0]
        self.ids = [i["id"] for i in self.held]

    def best_first(self, team):
        return sorted(team, key=self.ranks.index)

    def vote(self, team, weights=None):
        """Whether the vote of a team is right, by held-out item."""
        return [int(plurality(a, weights) == g) for g, *a in zip(self.gold, *(self.said[m] for m in team))]

    def vote_fit(self, team):
        return mean(plurality(a) == g for g, *a in zip(self.gold_fit, *(self.said_fit[m] for m in team)))

    def lot(self, team):
        return average(self.right[m] for m in team)

    def chosen(self, team):
        return {"team": rounded({m: self.accuracy[m] for m in team})}

    @lru_cache(maxsize=None)
    def phi_fit(self, a, b):
        return phi(self.right_fit[a], self.right_fit[b])

    @lru_cache(maxsize=None)
    def teams(self):
        """300 teams of five by lot, with their votes."""
        drawn = teams_by_lot(self.ranks)
        return [(team, self.vote(team)) for team in map(self.best_first, drawn)]

    @lru_cache(maxsize=None)
    def experts(self):
        """For each subject, the right answers of a vote by the three best models of every subject."""
        subjects = sorted({i["subject"] for i in self.fit})
        teams = {}
        for subject in subjects:
            places = [k for k, i in enumerate(self.fit) if i["subject"] == subject]
            teams[subject] = sorted(self.ranks, key=lambda m: -sum(self.right_fit[m][k] for k in places))[:3]
        votes = {subject: self.vote(team) for subject, team in teams.items()}

        def asked(rotation):
            other = {s: subjects[(k + rotation) % len(subjects)] for k, s in enumerate(subjects)}
            return [votes[other[i["subject"]]][k] for k, i in enumerate(self.held)]

        others = average(asked(rotation) for rotation in range(1, len(subjects)))
        return teams, asked(0), others


def teams_by_lot(models):
    rng = lots("teams")
    return [shuffled(models, rng)[:5] for _ in range(300)]


def orders_by_lot(models):
    rng = lots("orders")
    return [shuffled(models, rng) for _ in range(100)]


@lru_cache(maxsize=None)
def mmlu_pro():
    return MmluPro()


def against_best(team):
    """The vote of a team against its first member; in the placebo one of its members by lot answers."""
    m = mmlu_pro()
    figure = paired(m.vote(team), m.right[team[0]])
    return figure, m.chosen(team), "a member by lot answers", paired(m.lot(team), m.right[team[0]])


@claim("near-equal", "mmlu-pro", "vote - best member", when="first list, figure over all items known")
def near_equal():
    """A vote of three near-equal strong models beats its best member. The strongest three models of consecutive ranks within three points."""
    m = mmlu_pro()
    near = (m.ranks[k : k + 3] for k in range(len(m.ranks) - 2))
    return against_best(next(t for t in near if m.accuracy[t[0]] - m.accuracy[t[2]] <= 0.03))


@claim("medium-six", "mmlu-pro", "vote - best member", when="first list, figure over all items known")
def medium_six():
    """A vote of six medium models beats its best member. The six ranks around the median."""
    ranks = mmlu_pro().ranks
    start = (len(ranks) - 6) // 2
    return against_best(ranks[start : start + 6])


@claim("strong-and-five-weaker", "mmlu-pro", "strong - vote", when="first list, figure over all items known")
def strong_and_five_weaker():
    """Adding five weaker models to a strong one loses. The best model, and the five best that are at least 20 points below it."""
    m = mmlu_pro()
    team = [m.best] + [x for x in m.ranks if m.accuracy[x] <= m.accuracy[m.best] - 0.20][:5]
    placebo = paired(m.right[m.best], m.vote(m.ranks[:6]))
    return paired(m.right[m.best], m.vote(team)), m.chosen(team), "the five next best in place of the five weaker", placebo


@claim("quality-over-diversity", "mmlu-pro", "slope of accuracy - slope of diversity", when="first list, figure over all items known")
def quality_over_diversity():
    """The quality of members matters more than their diversity. 300 teams of five by lot; accuracy of the vote on held-out items, regressed on
    the mean accuracy of members and on their diversity (1 - mean phi of their errors), both of the fit items and standardised. Jackknife."""
    m = mmlu_pro()
    teams = m.teams()
    quality = [mean(m.accuracy[x] for x in team) for team, _ in teams]
    diversity = [1 - mean(m.phi_fit(a, b) for a, b in combinations(team, 2)) for team, _ in teams]

    def standardised(values):
        middle = mean(values)
        spread = math.sqrt(mean((x - middle) ** 2 for x in values))
        return [(x - middle) / spread for x in values]

    q, d = standardised(quality), standardised(diversity)
    r = mean(x * y for x, y in zip(q, d))

    def difference(accuracy):
        on_q, on_d = mean(x * y for x, y in zip(q, accuracy)), mean(x * y for x, y in zip(d, accuracy))
        return ((on_q - r * on_d) - (on_d - r * on_q)) / (1 - r * r)

    def accuracies(places):
        return [sum(vote[i] for i in places) / len(places) for _, vote in teams]

    every = accuracies(range(len(m.ids)))
    draws = [difference(shuffled(every, lots(("slopes", draw)))) for draw in range(200)]
    figure = jackknife(lambda places: difference(accuracies(places)), m.ids)
    return figure, {"teams": "300 by lot"}, "accuracies shuffled among teams (range of 200 draws)", range_of(draws, len(m.ids))


@claim("mixing-rarely-pays", "mmlu-pro", "0.5 - share of teams ahead of their best", when="first list, figure over all items known")
def mixing_rarely_pays():
    """Fewer than half of 300 teams of five by lot are ahead of their best member. Jackknife."""
    m = mmlu_pro()
    rng = lots("named")
    named = [pick(team, rng) for team, _ in m.teams()]

    def behind(against):
        def of(places):
            ahead = (sum(vote[i] - m.right[one][i] for i in places) > 0 for one, (_, vote) in zip(against, m.teams()))
            return 0.5 - mean(ahead)

        return jackknife(of, m.ids)

    return behind([team[0] for team, _ in m.teams()]), {"teams": "300 by lot"}, "the best member named by lot", behind(named)


@claim("shared-wrong-answers", "mmlu-pro", "share of equal wrong answers - chance")
def shared_wrong_answers():
    """Two models that both err give the same wrong answer more often than by chance, which is 1 in (options - 1). All pairs of the twelve best models; a ratio of sums over items."""
    m = mmlu_pro()
    team, rng = m.ranks[:12], lots("wrong answers")
    options = [len(i["choices"]) for i in m.held]
    pairs, excess, by_lot = [0] * len(m.held), [0.0] * len(m.held), [0.0] * len(m.held)
    for a, b in combinations(team, 2):
        groups = defaultdict(list)
        for i, (x, y, gold) in enumerate(zip(m.said[a], m.said[b], m.gold)):
            if x and y and gold not in (x, y):
                pairs[i] += 1
                excess[i] += (x == y) - 1 / (options[i] - 1)
                groups[options[i]].append(i)
        for places in groups.values():
            for i, other in zip(places, shuffled(places, rng)):
                by_lot[i] += (m.said[a][i] == m.said[b][other]) - 1 / (options[i] - 1)

    def ratio(found):
        share = sum(found) / sum(pairs)
        linear = student((x - share * n) / mean(pairs) for x, n in zip(found, pairs))
        half = linear.high - linear.figure
        return Estimate(share, share - half, share + half, linear.n, linear.df)

    what = "the partner's wrong answer to another item with as many options"
    return ratio(excess), m.chosen(team), what, ratio(by_lot)


@claim("family-correlation", "mmlu-pro", "phi within families - phi between")
def family_correlation():
    """Errors of models of one family are more correlated. Mean phi of pairs among the twenty best models, within families less between. Jackknife."""
    m = mmlu_pro()
    team = m.ranks[:20]
    pairs = list(combinations(range(20), 2))

    def correlations(places):
        marks = [[m.right[x][i] for i in places] for x in team]
        return [phi(marks[a], marks[b]) for a, b in pairs]

    def difference(found, families):
        within = [x for x, (a, b) in zip(found, pairs) if families[a] == families[b]]
        between = [x for x, (a, b) in zip(found, pairs) if families[a] != families[b]]
        return mean(within) - mean(between)

    families = [family(x) for x in team]
    every = correlations(range(len(m.ids)))
    draws = [difference(every, shuffled(families, lots(("families", draw)))) for draw in range(200)]
    figure = jackknife(lambda places: difference(correlations(places), families), m.ids)
    return figure, m.chosen(team), "families dealt by lot (range of 200 draws)", range_of(draws, len(m.ids))


@claim("bigger-teams-help-less", "mmlu-pro", "(vote of 9 - of 3) - (vote of 15 - of 9)")
def bigger_teams_help_less():
    """Going from 3 to 9 members gains more than going from 9 to 15. Mean of 100 orders of the models by lot, whose first members are the team."""
    m = mmlu_pro()
    votes, by_lot = defaultdict(list), defaultdict(list)
    for order in orders_by_lot(m.ranks):
        for size in (3, 9, 15):
            team = m.best_first(order[:size])
            votes[size].append(m.vote(team))
            by_lot[size].append(m.lot(team))

    def bend(arms):
        three, nine, fifteen = (average(arms[size]) for size in (3, 9, 15))
        return student(2 * b - a - c for a, b, c in zip(three, nine, fifteen))

    return bend(votes), {"teams": "100 orders by lot"}, "a member by lot answers", bend(by_lot)


@lru_cache(maxsize=None)
def weighted_votes():
    """The vote of all models with weights by accuracy on fit items, and the mean of 20 votes with these weights dealt by lot."""
    m = mmlu_pro()
    weights = [max(0.0, math.log(9 * m.accuracy[x] / (1 - m.accuracy[x]))) for x in m.ranks]
    dealt = average(m.vote(m.ranks, shuffled(weights, lots(("weights", draw)))) for draw in range(20))
    return rounded(dict(zip(m.ranks, weights))), m.vote(m.ranks, weights), dealt


@claim("weighted-vote", "mmlu-pro", "weighted vote - plain vote")
def weighted_vote():
    """A weighted vote of all 28 models beats the plain vote. Weights: the logarithm of 9 p / (1 - p), p the accuracy on fit items, at least 0."""
    m = mmlu_pro()
    weights, weighted, dealt = weighted_votes()
    plain = m.vote(m.ranks)
    return paired(weighted, plain), {"weights": weights}, "weights dealt by lot (mean of 20)", paired(dealt, plain)


@claim("weighted-against-best", "mmlu-pro", "weighted vote - best model")
def weighted_against_best():
    """The weighted vote of all 28 models beats the best model."""
    m = mmlu_pro()
    weights, weighted, dealt = weighted_votes()
    chosen = {"best": m.best, "weights": weights}
    return paired(weighted, m.right[m.best]), chosen, "weights dealt by lot (mean of 20)", paired(dealt, m.right[m.best])


@claim("experts-by-category", "mmlu-pro", "vote of experts - vote of the three best")
def experts_by_category():
    """A vote of the three best models of the item's subject beats a vote of the three best models."""
    m = mmlu_pro()
    teams, experts, others = m.experts()
    three = m.vote(m.ranks[:3])
    return paired(experts, three), {"experts": teams}, "another subject's experts (mean of all rotations)", paired(others, three)


@claim("three-best-against-best", "mmlu-pro", "vote - best model", when="exploratory")
def three_best_against_best():
    """A vote of the three best models beats the best model."""
    return against_best(mmlu_pro().ranks[:3])


@claim("experts-against-best", "mmlu-pro", "vote of experts - best model", when="exploratory")
def experts_against_best():
    """A vote of the three best models of the item's subject beats the best model."""
    m = mmlu_pro()
    teams, experts, others = m.experts()
    best = m.right[m.best]
    return paired(experts, best), {"experts": teams}, "another subject's experts (mean of all rotations)", paired(others, best)


@claim("complementary-trio", "mmlu-pro", "vote - best model", when="second list")
def complementary_trio():
    """Of the ten best models, the three whose vote is best on fit items beat the best model."""
    m = mmlu_pro()
    trio = max(combinations(m.ranks[:10], 3), key=m.vote_fit)
    figure = paired(m.vote(trio), m.right[m.best])
    return figure, m.chosen(trio), "a member by lot answers", paired(m.lot(trio), m.right[m.best])


@claim("diverse-trio", "mmlu-pro", "vote - vote of the three best", when="second list")
def diverse_trio():
    """Of the ten best models, the three whose errors are least correlated on fit items beat the three best."""
    m = mmlu_pro()
    ten, three = m.ranks[:10], m.vote(m.ranks[:3])
    trio = min(combinations(ten, 3), key=lambda t: sum(m.phi_fit(a, b) for a, b in combinations(t, 2)))
    by_lot = average(m.vote(m.best_first(shuffled(ten, lots(("trio", draw)))[:3])) for draw in range(100))
    return paired(m.vote(trio), three), m.chosen(trio), "three of the ten by lot (mean of 100)", paired(by_lot, three)


@claim("difficulty-not-shared", "mmlu-pro", "others' accuracy where the best is right - where it errs", when="second list")
def difficulty_not_shared():
    """An item that the best model misses is harder for the 27 others: difficulty is shared, against what the name says. Welch."""
    m = mmlu_pro()
    others, best = m.lot(m.ranks[1:]), m.right[m.best]
    right, missed = [x for x, b in zip(others, best) if b], [x for x, b in zip(others, best) if not b]
    by_lot = welch_by_lot(others, len(right), "difficulty")
    return welch(right, missed), {"best": m.best}, "the best model's marks shuffled among items", by_lot


@claim("stronger-of-two-is-right", "mmlu-pro", "stronger right - weaker right, where they disagree")
def stronger_of_two_is_right():
    """Where the best model and the best of another family disagree, the stronger is right more often."""
    m = mmlu_pro()
    other = next(x for x in m.ranks if family(x) != family(m.best))
    disagree = [i for i in range(len(m.held)) if m.said[m.best][i] != m.said[other][i]]
    gain = [m.right[m.best][i] - m.right[other][i] for i in disagree]
    return student(gain), m.chosen([m.best, other]), "the stronger named by lot for each item (mean of 200)", signs_by_lot(gain, "two")


@lru_cache(maxsize=None)
def cascade():
    """Three medium models answer where all three agree; else the best model is asked."""
    m = mmlu_pro()
    three = [x for x in m.ranks if m.accuracy[x] <= m.accuracy[m.best] - 0.15][:3]
    agree = [int(a != "" and a == b == c) for a, b, c in zip(*(m.said[x] for x in three))]
    vote, strong = m.vote(three), m.right[m.best]
    chosen = {**m.chosen(three), "strong": m.best}
    return chosen, agree, vote, strong, mixture(agree, vote, strong), mixture(mean(agree), vote, strong)


@claim("agreement-cascade", "mmlu-pro", "cascade - strong", bound=-0.02)
def agreement_cascade():
    """Three medium models that agree spare the strong one: no more than two points are given up against always asking it. Medium: the three best at least 15 points below the best."""
    chosen, _, _, strong, answers, by_lot = cascade()
    return paired(answers, strong), chosen, "asked by lot, with the same share of strong calls", paired(by_lot, strong)


@claim("agreement-cascade-against-lot", "mmlu-pro", "cascade - lot")
def agreement_cascade_against_lot():
    """The same cascade beats a lot with the same share of calls of the strong model."""
    chosen, agree, vote, strong, answers, by_lot = cascade()
    placebo = mixture(places_by_lot(agree, "cascade"), vote, strong)
    return paired(answers, by_lot), chosen, "agreement shuffled among items (mean of 200)", paired(placebo, by_lot)


# ---------------------------------------------------------------- CRUXEval


@lru_cache(maxsize=None)
def cruxeval():
    """Marks of all samples, whether their vote is right, and the greatest number that agree, by held-out item."""
    samples = defaultdict(list)
    for row in rows("cruxeval-output"):
        samples[row["item"]].append(row["answer"])
    held = items("cruxeval-output", "held-out")
    marks = [[int(a == i["answer"]) for a in samples[i["id"]]] for i in held]
    vote = [int(plurality(samples[i["id"]]) == i["answer"]) for i in held]
    return marks, vote, [max(Counter(samples[i["id"]]).values()) for i in held]


@claim("sc-cruxeval", "cruxeval-output", "vote - one sample")
def sc_cruxeval():
    """A vote of ten samples beats one sample (the mean of all ten)."""
    marks, vote, _ = cruxeval()
    one, rng = [mean(x) for x in marks], lots("sample")
    by_lot = average([pick(x, rng) for x in marks] for _ in range(200))
    return paired(vote, one), {}, "one of the ten by lot (mean of 200)", paired(by_lot, one)


@claim("self-agreement-marks-right", "cruxeval-output", "right where 9 agree - elsewhere", when="second list")
def self_agreement_marks_right():
    """Votes of at least 9 of 10 samples are right more often than others. Welch."""
    _, vote, most = cruxeval()
    agree, others = [v for v, n in zip(vote, most) if n >= 9], [v for v, n in zip(vote, most) if n < 9]
    return welch(agree, others), {}, "agreement shuffled among items", welch_by_lot(vote, len(agree), "agreement")


@claim("vote-leaves-half", "cruxeval-output", "(one + any) / 2 - vote")
def vote_leaves_half():
    """The vote closes less than half of the gap from one sample to any of ten."""
    marks, vote, _ = cruxeval()
    half, best = [(mean(x) + max(x)) / 2 for x in marks], [max(x) for x in marks]
    return paired(half, vote), {}, "a chooser that knows the right answer", paired(half, best)


# ---------------------------------------------------------------- DyLAN on MATH

MathTeam = namedtuple("MathTeam", "level first one by_lot final calls stopped consensus")


@lru_cache(maxsize=None)
def dylan_math():
    """For each held-out item: whether the vote of the stored first replies is right, the mean of these, one by lot, whether the team's final
    answer is right, its calls, whether it stopped in the first round, and whether three first replies agreed."""
    replies, ranked = defaultdict(lambda: defaultdict(dict)), set()
    for row in rows("dylan-math"):
        replies[row["item"]][int(row["round"])][int(row["sample"])] = row["answer"]
        if row["model"].endswith("/ranked"):
            ranked.add(row["item"])
    found, rng = [], lots("reply")
    for item in items("dylan-math", "held-out"):
        rounds, gold = replies[item["id"]], item["answer"]
        last = {member: answer for r in sorted(rounds) for member, answer in rounds[r].items()}
        final = plurality(last[member] for member in sorted(last))
        first = [rounds[0][member] for member in sorted(rounds[0])]
        end, by_rank = max(rounds), item["id"] in ranked
        if by_rank:
            calls = 9 if end == 1 else 11  # four, four and the ranker; then two more
        else:
            calls = len(first) if end == 0 else 4 + len(rounds[1])
        marks = [int(a == gold) for a in first]
        stopped = end == 0 and not by_rank
        found.append(MathTeam(
            item["level"], int(plurality(first) == gold), mean(marks), pick(marks, rng), int(final == gold), calls,
            stopped, stopped and max(Counter(first).values()) > 2,
        ))  # fmt: skip
    return found


@claim("consensus-marks-right", "dylan-math", "first vote right with consensus - without")
def consensus_marks_right():
    """First replies that reach consensus are right more often than votes of those that go on. Welch."""
    with_it = [t.first for t in dylan_math() if t.consensus]
    without = [t.first for t in dylan_math() if not t.stopped]
    by_lot = welch_by_lot(with_it + without, len(with_it), "consensus")
    return welch(with_it, without), {}, "consensus shuffled among items", by_lot


@claim("fewer-than-debate", "dylan-math", "8 - calls")
def fewer_than_debate():
    """The team needs fewer than the 8 calls of four agents that debate once after their first replies."""
    figure = student(8 - t.calls for t in dylan_math())
    return figure, {}, "consensus never seen: always 11 calls", student(-3 for _ in dylan_math())


@claim("final-over-first-vote-all", "dylan-math", "final - first vote", when="mended after the first run, figure over all items known")
def final_over_first_vote_all():
    """The final answer beats the vote of the stored first replies."""
    teams = dylan_math()
    figure = student(t.final - t.first for t in teams)
    return figure, {}, "one first reply as the final answer (mean)", student(t.one - t.first for t in teams)


@claim("final-over-one-all", "dylan-math", "final - one reply", when="mended after the first run, figure over all items known")
def final_over_one_all():
    """The final answer beats one reply (the mean of the stored first replies)."""
    teams = dylan_math()
    figure = student(t.final - t.one for t in teams)
    return figure, {}, "one first reply by lot as the final answer", student(t.by_lot - t.one for t in teams)


def gain_by_level(gain, seed):
    hard = [gain(t) for t in dylan_math() if t.level >= 4]
    easy = [gain(t) for t in dylan_math() if t.level < 4]
    return welch(hard, easy), {}, "levels shuffled among items", welch_by_lot(hard + easy, len(hard), seed)


@claim("debate-helps-harder", "dylan-math", "gain on levels 4-5 - on levels 1-3", when="second list")
def debate_helps_harder():
    """The gain of the final answer over the vote of the stored first replies is greater on levels 4 and 5 than on levels 1 to 3. Welch."""
    return gain_by_level(lambda t: t.final - t.first, "levels")


@claim("debate-helps-harder-one", "dylan-math", "gain on levels 4-5 - on levels 1-3", when="second list")
def debate_helps_harder_one():
    """The gain of the final answer over one reply is greater on levels 4 and 5 than on levels 1 to 3. Welch."""
    return gain_by_level(lambda t: t.final - t.one, "levels of one")


# ---------------------------------------------------------------- DyLAN on MMLU


class DylanMmlu:
    """Replies of teams, whether their final answers are right, and the known marks of letters."""

    def __init__(self):
        self.ids = [i["id"] for i in items("dylan-mmlu", "held-out")]
        self.replies = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
        self.final, self.marks = defaultdict(dict), defaultdict(dict)
        for row in rows("dylan-mmlu"):
            item, model = row["item"], row["model"]
            if model.endswith("/final"):
                self.final[model.split("/")[0]][item] = int(row["mark"])
                continue
            self.replies[model][item][int(row["round"])][int(row["sample"])] = row["answer"]
            if row["mark"]:
                self.marks[item][row["answer"]] = int(row["mark"])
        self.three = self.replies["team3"]
        self.first = {i: [a for _, a in sorted(self.three[i][0].items())] for i in self.three}
        self.vote = {i: plurality(found) for i, found in self.first.items()}
        self.most = {i: max(Counter(a for a in f if a).values(), default=0) for i, f in self.first.items()}

    def mark(self, item, answer, unknown):
        """Whether an answer is right; `unknown` if no one knows, and 0 if it is unreadable."""
        return self.marks[item].get(answer, unknown) if answer else 0

    def both(self, *teams):
        return [i for i in self.ids if all(i in self.final[team] for team in teams)]

    def alone(self):
        """Members of the team of 3 that stand alone against two who agree: the item, the three answers, the one, and what it says next."""
        for item in self.both("team3"):
            rounds = self.three[item]
            for r in (0, 1):
                now, then = rounds.get(r, {}), rounds.get(r + 1, {})
                counts = Counter(now.values())
                if len(now) == len(then) == 3 and "" not in counts and sorted(counts.values()) == [1, 2]:
                    pair, lone = (answer for answer, _ in counts.most_common())
                    member = next(k for k, answer in now.items() if answer == lone)
                    yield item, pair, lone, then[member]


@lru_cache(maxsize=None)
def dylan_mmlu():
    return DylanMmlu()


@claim("final-over-first-vote-mmlu", "dylan-mmlu", "final - first vote")
def final_over_first_vote_mmlu():
    """The final answer of the team of 3 beats the vote of its first replies; a first vote whose mark is unknown counts as right."""
    d, rng = dylan_mmlu(), lots("first reply")
    ids = d.both("team3")
    figure = student(d.final["team3"][i] - d.mark(i, d.vote[i], 1) for i in ids)
    placebo = student(d.mark(i, pick(d.first[i], rng), 0) - d.mark(i, d.vote[i], 0) for i in ids)
    return figure, {}, "one first reply by lot as the final answer", placebo


@claim("early-stop-majority", "dylan-mmlu", "looser stop - recorded run", bound=-0.02)
def early_stop_majority():
    """Stopping where two of three first replies agree gives up at most two points; a first vote whose mark is unknown counts as wrong."""
    d, rng = dylan_mmlu(), lots("stop")
    ids, final = d.both("team3"), d.final["team3"]
    figure = student((d.mark(i, d.vote[i], 0) - final[i]) if d.most[i] >= 2 else 0 for i in ids)
    went_on = [i for i in ids if d.most[i] < 3]
    stopped = set(shuffled(went_on, rng)[: sum(d.most[i] >= 2 for i in went_on)])
    placebo = student((d.mark(i, pick(d.first[i], rng), 0) - final[i]) if i in stopped else 0 for i in ids)
    return figure, {}, "as many items stopped by lot, with one reply by lot", placebo


@claim("more-agents-dylan", "dylan-mmlu", "team of 4 - team of 2")
def more_agents_dylan():
    """The team of 4 beats the team of 2."""
    d = dylan_mmlu()
    gain = [d.final["team4"][i] - d.final["team2"][i] for i in d.both("team4", "team2")]
    return student(gain), {}, "the teams swapped by lot for each item (mean of 200)", signs_by_lot(gain, "teams swapped")


@claim("team-of-three-of-seven", "dylan-mmlu", "team of 3 - team of 7", bound=-0.02)
def team_of_three_of_seven():
    """The team of 3 is at most two points behind the team of 7 from which it was chosen."""
    d = dylan_mmlu()
    ids, seven = d.both("team3", "team7"), d.final["team7"]

    def one(i):
        first = d.replies["team2"].get(i, {}).get(0)
        return d.mark(i, first[min(first)], 0) if first else 0

    figure = student(d.final["team3"][i] - seven[i] for i in ids)
    return figure, {}, "one first reply of the team of 2", student(one(i) - seven[i] for i in ids)


@claim("conformity", "dylan-mmlu", "adopts the others' - keeps its own")
def conformity():
    """A member who alone is right adopts the wrong answer of the two others more often than it keeps its own."""
    d = dylan_mmlu()
    cases = [(pair, lone, then) for i, pair, lone, then in d.alone() if d.marks[i].get(lone) == 1]
    figure = student((then == pair) - (then == lone) for pair, lone, then in cases)
    placebo = student((then not in (pair, lone, "")) / 2 - (then == lone) for pair, lone, then in cases)
    return figure, {}, "a letter that nobody said in place of the others'", placebo


@claim("truth-has-an-edge", "dylan-mmlu", "adopts if right - adopts if wrong")
def truth_has_an_edge():
    """A member alone adopts the answer of the two others more often if it is right than if it is wrong and its own is right. Welch."""
    d = dylan_mmlu()
    right, wrong = [], []
    for i, pair, lone, then in d.alone():
        if d.marks[i].get(lone) == 1:
            wrong.append(int(then == pair))
        elif d.marks[i].get(pair) == 1:
            right.append(int(then == pair))
    by_lot = welch_by_lot(right + wrong, len(right), "truth")
    return welch(right, wrong), {}, "right and wrong shuffled among cases", by_lot


# ---------------------------------------------------------------- one faulty member


@claim("one-bad-member", "mmlu-pro", "loss of a member by lot - loss of the vote", when="third list")
def one_bad_member():
    """Exchanging one of the three best models for the worst costs their vote less than a third of what that member loses."""
    m = mmlu_pro()
    sound, faulty = m.ranks[:3], [*m.ranks[:2], m.ranks[-1]]
    in_line = [a - b for a, b in zip(m.lot(sound), m.lot(faulty))]

    def spared(loss):
        return paired(in_line, loss)

    figure = spared([a - b for a, b in zip(m.vote(sound), m.vote(faulty))])
    alone = spared([a - b for a, b in zip(m.right[sound[2]], m.right[faulty[2]])])
    return figure, m.chosen(faulty), "the exchanged member decides alone", alone


def errors_at_first(wrong):
    """Items on which so many of the three first replies of the team of 3 err: the final mark, and the marks of a fresh reply and of another."""
    d, found = dylan_mmlu(), []
    for i in d.both("team3"):
        told = [d.mark(i, answer, 0) for answer in d.first[i]]
        fresh = [a for team in ("team4", "team2") for _, a in sorted(d.replies[team][i].get(0, {}).items())]
        if len(told) == 3 and told.count(0) == wrong and 1 in d.marks[i].values() and len(fresh) > 1:
            found.append((d.final["team3"][i], d.mark(i, fresh[0], 0), d.mark(i, fresh[-1], 0)))
    return found


@claim("one-error-of-three", "dylan-mmlu", "errors of a fresh reply - errors of the final answer", when="third list")
def one_error_of_three():
    """Where one of three first replies errs, the final answer after the exchange errs less often than a fresh reply of another team."""
    found = errors_at_first(1)
    figure = student(final - fresh for final, fresh, _ in found)
    return figure, {}, "another fresh reply as the final answer", student(other - fresh for _, fresh, other in found)


@claim("two-errors-of-three", "dylan-mmlu", "errors of the final answer - errors of a fresh reply", when="third list")
def two_errors_of_three():
    """Where two of three first replies err, the final answer after the exchange errs more often than a fresh reply of another team."""
    found = errors_at_first(2)
    figure = student(fresh - final for final, fresh, _ in found)
    return figure, {}, "another fresh reply as the final answer", student(fresh - other for _, fresh, other in found)


def at_equal_calls():
    """By item: the mark of the final answer of the team of 3, that of a vote of as many first replies, that of one reply, and whether the team
    of 2 agreed at first. The votes are those of the team itself, then those of the teams of 4 and 2. An unknown mark of a vote counts as right."""
    d, found = dylan_mmlu(), []
    for i in d.both("team3", "team4", "team2"):
        calls = sum(len(replies) for replies in d.three[i].values())
        pool = [a for team in ("team3", "team4", "team2") for _, a in sorted(d.replies[team][i].get(0, {}).items())]
        pair = list(d.replies["team2"][i].get(0, {}).values())
        vote = plurality(pool[:calls])
        agreed = len(pair) == 2 and pair[0] == pair[1] != ""
        found.append((d.final["team3"][i], d.mark(i, vote, 1), d.mark(i, pool[0], 0), agreed))
    return found


@claim("exchange-at-equal-calls", "dylan-mmlu", "final - vote", when="third list")
def exchange_at_equal_calls():
    """The final answer of the team of 3 beats a vote of as many first replies as it made calls on the item."""
    found = at_equal_calls()
    figure = student(final - vote for final, vote, _, _ in found)
    return figure, {}, "one first reply as the final answer", student(one - vote for _, vote, one, _ in found)


@claim("exchange-where-replies-differ", "dylan-mmlu", "lead where the team of 2 differs - where it agrees", when="third list")
def exchange_where_replies_differ():
    """The lead of the final answer over a vote at equal calls is greater on items where another team, of 2, differs at first. Welch."""
    found = at_equal_calls()
    differ = [final - vote for final, vote, _, agreed in found if not agreed]
    agree = [final - vote for final, vote, _, agreed in found if agreed]
    by_lot = welch_by_lot(differ + agree, len(differ), "replies differ")
    return welch(differ, agree), {}, "items shuffled", by_lot


# ---------------------------------------------------------------- verifiers and routing


@claim("verifier-", "gsm8k-175b", "with verifier - without", each={"175b": "175b", "6b": "6b"})
def verifier(size):
    """The model of size {} with a verifier beats the finetuned model without."""
    held, right, said = by_model("gsm8k-175b", "held-out")
    checked, plain = f"{size}-verification", right[f"{size}-finetuning"]
    other = [int(a == i["answer"]) for a, i in zip(shuffled(said[checked], lots(size)), held)]
    return paired(right[checked], plain), {}, "the verified answer to another problem", paired(other, plain)


@claim("small-verified-over-large", "gsm8k-175b", "6B with verifier - 175B without")
def small_verified_over_large():
    """The small model with a verifier beats the large one without."""
    _, right, _ = by_model("gsm8k-175b", "held-out")
    large = right["175b-finetuning"]
    return paired(right["6b-verification"], large), {}, "6B without its verifier", paired(right["6b-finetuning"], large)


WEAK, STRONG = "Mixtral-8x7B-Instruct-v0.1", "gpt-4-1106-preview"


@claim("oracle-gap", "routellm-mmlu", "oracle - GPT-4", bound=0.03)
def oracle_gap():
    """A router that knows which of the two models is right beats GPT-4 by more than three points."""
    _, right, _ = by_model("routellm-mmlu", "held-out")
    weak, strong = right[WEAK], right[STRONG]
    by_lot = paired(mixture(0.5, weak, strong), strong)
    return paired(map(max, weak, strong), strong), {}, "one of the two by lot", by_lot


@claim("subject-router", "routellm-mmlu", "router - lot")
def subject_router():
    """Asking GPT-4 in some subjects beats asking it by lot with the same share. The subjects where it gains most on fit items, up to half of these."""
    fit, right_fit, _ = by_model("routellm-mmlu", "fit")
    held, right, _ = by_model("routellm-mmlu", "held-out")
    places = defaultdict(list)
    for k, item in enumerate(fit):
        places[item["topic"]].append(k)
    gain = {s: mean(right_fit[STRONG][k] - right_fit[WEAK][k] for k in found) for s, found in places.items()}
    chosen, share = [], 0
    for subject in sorted(gain, key=lambda s: -gain[s]):
        if share + len(places[subject]) > len(fit) / 2:
            break
        share += len(places[subject])
        chosen.append(subject)

    def ahead(names):
        asked = [int(names.get(i["topic"], "") in chosen) for i in held]
        weak, strong = right[WEAK], right[STRONG]
        return [a - b for a, b in zip(mixture(asked, strong, weak), mixture(mean(asked), strong, weak))]

    subjects = sorted(places)
    dealt = average(ahead(dict(zip(subjects, shuffled(subjects, lots(("subjects", draw)))))) for draw in range(200))
    what = "subjects dealt by lot, each draw against a lot with its own share (mean of 200)"
    return student(ahead({s: s for s in subjects})), {"subjects": sorted(chosen)}, what, student(dealt)


@lru_cache(maxsize=None)
def two_that_agree():
    """Mixtral's number is kept where the verified 175B model gives the same; else GPT-4 is asked."""
    _, right, said = by_model("routellm-gsm8k", "held-out")
    agree = [int(a == b != "") for a, b in zip(said[WEAK], said["175b-verification"])]
    weak, strong = right[WEAK], right[STRONG]
    return agree, weak, strong, mixture(agree, weak, strong), mixture(mean(agree), weak, strong)


@claim("mixtral-agreement-cascade", "routellm-gsm8k", "cascade - GPT-4", bound=-0.02)
def mixtral_agreement_cascade():
    """Where Mixtral's number is that of the verified 175B model, it is kept, else GPT-4 is asked: at most two points are given up."""
    _, _, strong, answers, by_lot = two_that_agree()
    return paired(answers, strong), {}, "asked by lot, with the same share", paired(by_lot, strong)


@claim("mixtral-agreement-cascade-against-lot", "routellm-gsm8k", "cascade - lot")
def mixtral_agreement_cascade_against_lot():
    """The same cascade beats a lot with the same share of calls of GPT-4."""
    agree, weak, strong, answers, by_lot = two_that_agree()
    placebo = mixture(places_by_lot(agree, "two"), weak, strong)
    return paired(answers, by_lot), {}, "agreement shuffled among items (mean of 200)", paired(placebo, by_lot)


# ---------------------------------------------------------------- LLMBar

ADVERSARIAL = ("neighbor", "gptinst", "gptout", "manual")
EXPERT = ADVERSARIAL + ("natural",)
HUMAN = ("faireval", "llmeval2", "mtbench")
ORDERS = ("AB", "BA")
PROMPTS = ("Vanilla", "CoT", "Swap", "Swap_CoT", "Metrics_Reference")
JUDGES = ("ChatGPT", "ChatGPT-0301", "Falcon", "GPT-4", "LLaMA2", "PaLM2")


class Pairs:
    """Verdicts of judges, by `JUDGE/PROMPT`, item and order."""

    def __init__(self):
        self.verdict = defaultdict(dict)
        for row in rows("llmbar"):
            self.verdict[row["model"]][row["item"], row["order"]] = row["answer"]
        self.fit, self.held = items("llmbar", "fit"), items("llmbar", "held-out")

    def share(self, models, pairs):
        """The share of the two orders in which the vote of some judges is right, by pair."""
        votes = [[plurality(self.verdict[m][i["id"], o] for m in models) for o in ORDERS] for i in pairs]
        return [mean(v == i["label"] for v in found) for found, i in zip(votes, pairs)]

    def lot(self, models, pairs):
        return average(self.share([m], pairs) for m in models)

    def ranked(self, models, subsets):
        """Accuracy on fit pairs, the best first."""
        pairs = among(self.fit, subsets)
        found = {m: mean(self.share([m], pairs)) for m in models}
        return dict(sorted(found.items(), key=lambda x: -x[1]))

    def consistent(self, model, item):
        first, second = (self.verdict[model][item["id"], o] for o in ORDERS)
        return int(first == second != "")


def among(pairs, subsets):
    return [i for i in pairs if i["subset"] in subsets]


@lru_cache(maxsize=None)
def llmbar():
    return Pairs()


def vanilla(judges=JUDGES):
    return [f"{judge}/Vanilla" for judge in judges]


def jury_against(models, against, subsets, chosen, what="a judge by lot"):
    d = llmbar()
    pairs = among(d.held, subsets)
    alone = d.share([against], pairs)
    return paired(d.share(models, pairs), alone), {"jury": rounded(chosen)}, what, paired(d.lot(models, pairs), alone)


def jury_of_three(models, chosen_on, subsets):
    best = dict(list(llmbar().ranked(models, chosen_on).items())[:3])
    return jury_against(list(best), next(iter(best)), subsets, best)


@claim("jury-of-three-adversarial", "llmbar", "jury - best judge")
def jury_of_three_adversarial():
    """On adversarial pairs a jury of the three best judges (prompt Vanilla) beats its best."""
    return jury_of_three(vanilla(), EXPERT, ADVERSARIAL)


@claim("jury-of-three-natural", "llmbar", "jury - best judge")
def jury_of_three_natural():
    """On natural pairs a jury of the three best judges (prompt Vanilla) beats its best."""
    return jury_of_three(vanilla(), EXPERT, ("natural",))


@claim("jury-of-three-human", "llmbar", "jury - best judge", when="second list")
def jury_of_three_human():
    """On pairs labelled by people (prompt Vanilla_NoRules) a jury of the three best judges beats its best."""
    d = llmbar()
    asked = {(i["id"], o) for i in among(d.fit + d.held, HUMAN) for o in ORDERS}
    return jury_of_three([m for j in JUDGES if asked <= d.verdict[m := f"{j}/Vanilla_NoRules"].keys()], HUMAN, HUMAN)


def panel(against):
    ranked = llmbar().ranked(vanilla(), EXPERT)
    three = {m: x for m, x in list(ranked.items()) if m != "GPT-4/Vanilla"}
    three = dict(list(three.items())[:3])
    return jury_against(list(three), against or next(iter(three)), EXPERT, three)


@claim("panel-of-smaller", "llmbar", "jury - GPT-4")
def panel_of_smaller():
    """A jury of the three best judges without GPT-4 beats GPT-4."""
    return panel("GPT-4/Vanilla")


@claim("panel-over-its-best", "llmbar", "jury - best judge")
def panel_over_its_best():
    """A jury of the three best judges without GPT-4 beats its best."""
    return panel(None)


@claim("first-shown-", "llmbar", "share that prefers the first - 0.5", each={judge.lower(): judge for judge in JUDGES})
def first_shown(judge):
    """{} (prompt Vanilla) prefers the output that it is shown first in more than half of its verdicts."""
    d, rng = llmbar(), lots(judge)
    shares, by_lot = [], []
    for item in among(d.held, EXPERT):
        verdicts = [(d.verdict[f"{judge}/Vanilla"][item["id"], order], order) for order in ORDERS]
        first = [verdict == order[0] for verdict, order in verdicts if verdict]
        if first:
            shares.append(mean(first) - 0.5)
            by_lot.append(mean(rng.random() < 0.5 for _ in first) - 0.5)
    return student(shares), {}, "the order dealt by lot for each verdict", student(by_lot)


@claim("orders-agree", "llmbar", "GPT-4 consistent - ChatGPT consistent")
def orders_agree():
    """GPT-4 gives the same verdict in both orders more often than ChatGPT (prompt Vanilla)."""
    d = llmbar()
    gain = [d.consistent("GPT-4/Vanilla", i) - d.consistent("ChatGPT/Vanilla", i) for i in among(d.held, EXPERT)]
    return student(gain), {}, "judges swapped by lot for each item (mean of 200)", signs_by_lot(gain, "judges")


@claim("consistent-verdicts-right", "llmbar", "right where consistent - elsewhere")
def consistent_verdicts_right():
    """Verdicts of ChatGPT (prompt Vanilla) that are equal in both orders are right more often than the others, which are counted in order AB. Welch."""
    d, model = llmbar(), "ChatGPT/Vanilla"
    groups = {0: [], 1: []}
    for item in among(d.held, EXPERT):
        groups[d.consistent(model, item)].append(int(d.verdict[model][item["id"], "AB"] == item["label"]))
    by_lot = welch_by_lot(groups[1] + groups[0], len(groups[1]), "consistent")
    return welch(groups[1], groups[0]), {}, "consistency shuffled among items", by_lot


@claim("prompts-jury-", "llmbar", "vote of prompts - best prompt", each={"gpt4": "GPT-4", "chatgpt": "ChatGPT"})
def prompts_jury(judge):
    """A vote of {} over five prompts beats the prompt that is best on fit pairs."""
    ranked = llmbar().ranked([f"{judge}/{prompt}" for prompt in PROMPTS], EXPERT)
    return jury_against(list(ranked), next(iter(ranked)), EXPERT, ranked, "a prompt by lot")


@claim("adversarial-below-chance", "llmbar", "0.5 - accuracy")
def adversarial_below_chance():
    """ChatGPT (prompt Vanilla) is below chance on adversarial pairs."""
    d, rng = llmbar(), lots("labels")
    pairs = among(d.held, ADVERSARIAL)
    verdicts = [[d.verdict["ChatGPT/Vanilla"][i["id"], o] for o in ORDERS] for i in pairs]
    by_lot = student(0.5 - mean(v == pick("AB", rng) for v in found) for found in verdicts)
    figure = student(0.5 - x for x in d.share(["ChatGPT/Vanilla"], pairs))
    return figure, {}, "labels dealt by lot", by_lot


# ---------------------------------------------------------------- trees and trials


@lru_cache(maxsize=None)
def game24():
    """Marks of the chains and of the five leaves of the tree by item, and how many chains cost as many tokens as the tree."""
    marks = defaultdict(lambda: defaultdict(list))
    for row in rows("tot-game24"):
        marks[row["model"]][row["item"]].append(int(row["answer"] == "right"))
    ids = [i["id"] for i in items("tot-game24", "held-out")]
    tokens = {row["item"]: row for row in rows("tot-game24", "tokens")}
    usual = mean(int(tokens[i]["cot"]) for i in ids if tokens[i]["cot"])
    equal = [min(100, round(int(tokens[i]["tot"]) / (int(tokens[i]["cot"] or usual) / 100))) for i in ids]
    return [marks["gpt-4/cot"][i] for i in ids], [max(marks["gpt-4/tot"][i]) for i in ids], equal


def any_of(n, marks):
    """The chance that at least one of n of these is right."""
    return 1 - math.comb(len(marks) - sum(marks), n) / math.comb(len(marks), n)


def five_chains(against):
    chains, _, _ = game24()
    return "five chains by lot in place of the five leaves", paired((any_of(5, x) for x in chains), against)


@claim("tot-over-one", "tot-game24", "tree - one chain")
def tot_over_one():
    """A tree of thoughts (any of its five leaves) beats one chain of thought (the mean of 100)."""
    chains, tree, _ = game24()
    one, rng = [mean(x) for x in chains], lots("chain")
    return paired(tree, one), {}, "one chain by lot in place of the tree", paired([pick(x, rng) for x in chains], one)


@claim("tot-over-best-of-100", "tot-game24", "tree - any of 100 chains")
def tot_over_best_of_100():
    """A tree of thoughts beats the best of 100 chains."""
    chains, tree, _ = game24()
    best = [max(x) for x in chains]
    return paired(tree, best), {}, *five_chains(best)


@claim("tot-at-equal-tokens", "tot-game24", "tree - any of n chains")
def tot_at_equal_tokens():
    """A tree of thoughts beats the best of as many chains as cost the same completion tokens, at most 100."""
    chains, tree, equal = game24()
    best = [any_of(n, x) for n, x in zip(equal, chains)]
    return paired(tree, best), {}, *five_chains(best)


@lru_cache(maxsize=None)
def trials():
    """Marks of the four trials of each held-out task."""
    marks = defaultdict(list)
    for row in rows("tau-bench"):
        marks[row["item"]].append(int(row["answer"] == "right"))
    return [marks[i["id"]] for i in items("tau-bench", "held-out")]


@claim("pass-k-falls", "tau-bench", "pass^1 - pass^4")
def pass_k_falls():
    """All four trials of a task succeed less often than one."""
    figure = student(mean(x) - min(x) for x in trials())
    return figure, {}, "the first trial counted four times", student(x[0] - x[0] for x in trials())


@claim("pass-k-over-independent", "tau-bench", "pass^4 - (pass^1)^4")
def pass_k_over_independent():
    """All four trials succeed more often than if trials were independent: tasks differ. Jackknife over tasks."""

    def excess(marks):
        each = list(range(len(marks)))
        return jackknife(lambda p: mean(min(marks[i]) for i in p) - mean(mean(marks[i]) for i in p) ** 4, each, each)

    rng = lots("trials")
    mixed = list(zip(*(shuffled(trial, rng) for trial in zip(*trials()))))
    return excess(trials()), {}, "trials shuffled among tasks", excess(mixed)


# ---------------------------------------------------------------- output


def verdict(estimate, bound):
    if estimate.low > bound:
        return "holds"
    return "does not hold" if estimate.high < bound else "not told apart"


def computed(c):
    figure, chosen, what, placebo = c.of()
    half = figure.high - figure.figure
    p = two_sided((figure.figure - c.bound) / (half / t_quantile(figure.df)), figure.df)

    def of(e):
        return {"figure": e.figure, "low": e.low, "high": e.high}

    return {
        "claim": c.name, "data": c.data, "says": c.says, "quantity": c.quantity, "bound": c.bound,
        **of(figure), "n": figure.n, "verdict": verdict(figure, c.bound), "p": p, "when": c.when,
        "placebo": {"what": what, **of(placebo), "verdict": verdict(placebo, c.bound)}, "chosen": chosen,
    }  # fmt: skip


def holm(results):
    """The claims that stay told apart if all of these are tested together (Holm, 5 %)."""
    kept = set()
    for k, r in enumerate(sorted(results, key=lambda r: r["p"])):
        if r["p"] * (len(results) - k) >= 0.05:
            break
        kept.add(r["claim"])
    return kept


def table(results):
    kept, verdicts = holm(results), Counter(r["verdict"] for r in results)
    counts = ", ".join(f"{verdicts[v]} {text}" for v, text in (
        ("holds", "hold"), ("does not hold", "do not hold"), ("not told apart", "are not told apart"),
    ))  # fmt: skip
    strict = Counter(r["verdict"] for r in results if r["claim"] in kept)
    lines = [
        f"{len(results)} claims: {counts}. {strict['holds']} of those that hold and {strict['does not hold']} of those that do not "
        "stay so after Holm's correction for all of them; the others are marked \\*.",
        "",
        "| claim | data | what it says | quantity | figure [95 %], n | verdict | placebo | claim chosen |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def number(e):
        return f"{e['figure']:+.3f} [{e['low']:+.3f}, {e['high']:+.3f}]"

    for r in results:
        above = f" > {r['bound']:+.2f}" if r["bound"] else ""
        star = "" if r["claim"] in kept or r["verdict"] == "not told apart" else " \\*"
        p = r["placebo"]
        lines.append(
            f"| `{r['claim']}` | `{r['data']}` | {r['says']} | {r['quantity']}{above} | {number(r)}, {r['n']:,} | **{r['verdict']}**{star} "
            f"| {p['what']}: {number(p)}{' (**holds too**)' if p['verdict'] == 'holds' else ''} | {r['when']} |"
        )
    return "\n".join(lines) + "\n"


def main(words):
    if words in (["--write"], ["--check"]):
        text = PAGE.read_text(encoding="utf-8")
        head, rest = text.split(BEGIN)
        made = head + BEGIN + "\n" + table([computed(c) for c in CLAIMS.values()]) + "\n" + END + rest.split(END, 1)[1]
        if words == ["--write"]:
            PAGE.write_text(made, encoding="utf-8")
        return made != text if words == ["--check"] else 0
    unknown = [word for word in words if word not in CLAIMS]
    if unknown:
        print(f"no such claim: {', '.join(unknown)}\n{__doc__}\nclaims: {', '.join(CLAIMS)}", file=sys.stderr)
        return 2
    for name in words or CLAIMS:
        print(json.dumps(computed(CLAIMS[name]), ensure_ascii=False), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
