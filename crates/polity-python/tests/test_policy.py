"""Policies in Python: deterministic, saved with the run, and told apart from the kernel's defects."""

import subprocess
import sys

import numpy as np
import polity
import pytest


@polity.policy("drifter")
class Drifter:
    """Goes some of the way down, with noise"""

    def __init__(self, rate=0.5, noise=1.0):
        self.rate, self.noise = rate, noise

    def init(self, society):
        return {"round": 0, "level": np.full(2, 50.0), "words": ["a", {"b": None}]}

    def act(self, round, agents):
        state = agents.state
        assert state["round"] == round and state["words"] == ["a", {"b": None}]
        state["round"] += 1
        state["level"] = state["level"] * self.rate
        return np.clip(state["level"][0] + self.noise * agents.rng.normal(size=len(agents)), 0, 100)


@polity.policy("flat")
def flat(round, agents, value=7.0):
    return {"guess": np.full(len(agents), value)}


OWN = [Drifter, flat]


@pytest.fixture
def mixed(guess):
    cohorts = [{"share": 0.5, "policy": {"kind": "drifter", "rate": 0.8}}, {"share": 0.5, "policy": {"kind": "flat", "value": 9}}]
    return {**guess, "cohorts": cohorts}


def test_the_same_seed_gives_the_same_run(mixed):
    first, second = (polity.run(mixed, policies=OWN, out=out) for out in "ab")
    other = polity.run(mixed, policies=OWN, out="c", seed=4)
    assert first.digest == second.digest != other.digest
    acts = first.tables["acts"].to_polars()
    assert acts.height == 6 * 50 and acts.filter(acts["agent"] >= 25)["value"].unique().to_list() == [9.0]
    assert {name: len(seconds) for name, seconds in first.python_seconds.items()} == {"drifter": 6, "flat": 6}


@pytest.mark.parametrize("at", range(5))
def test_a_run_that_stopped_anywhere_goes_on_with_its_state(mixed, at):
    whole = polity.run(mixed, policies=OWN, out="whole")
    polity.run(mixed, policies=OWN, out="cut", on_event=lambda event: event["event"] != "round" or event["round"] < at)
    cut = polity.open("cut", policies=OWN)
    assert cut.status == "stopped"
    assert cut.resume().digest == whole.digest
    assert polity.open("cut", policies=OWN).replay()


def test_snapshots_have_the_state(mixed):
    scenario = {**mixed, "rounds": 40, "snapshot": {"rounds": 5}}
    whole = polity.run(scenario, policies=OWN, out="whole")
    polity.run(scenario, policies=OWN, out="cut", on_event=lambda event: event["event"] != "round" or event["round"] < 33)
    assert polity.open("cut", policies=OWN).resume().digest == whole.digest


def test_forks_change_parameters(mixed):
    whole = polity.run(mixed, policies=OWN, out="whole")
    fork = whole.fork(3, edits={"cohorts[1].policy.value": 1})
    assert fork.series("guess.mean")[:3] == whole.series("guess.mean")[:3] != fork.series("guess.mean")[3:]
    assert fork.metrics["guess.mean"] < whole.metrics["guess.mean"]


def test_a_run_without_its_policies_says_which_is_missing(mixed):
    polity.run(mixed, policies=OWN, out="a")
    with pytest.raises(polity.InputError, match="there is no policy `drifter`"):
        polity.open("a").replay()


def test_what_python_raises_stops_the_run_with_its_line(guess):
    @polity.policy("failing")
    def failing(round, agents):
        if round == 2:
            raise LookupError("as asked")

    scenario = {**guess, "cohorts": [{"policy": "failing"}]}
    with pytest.raises(polity.RunError, match=r"round 2: `failing`, which is written in Python, raised LookupError: as asked \(.*test_policy.py, line \d+, in failing\)") as found:
        polity.run(scenario, policies=[failing], out="a")
    assert isinstance(found.value.__cause__, LookupError)
    assert polity.open("a").rounds == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (900.0, "the action `guess` of agent 0 is 900, and must be a number from 0 to 100"),
        (float("inf"), "the action `guess` of agent 0 is inf"),
        ([1.0, 2.0], "must have one value for each of the 50 agents"),
        ("many", "must be numbers"),
        ({"gues": 1.0}, "has no action `gues`; did you mean `guess`"),
    ],
)
def test_actions_that_do_not_fit_are_refused(guess, values, message):
    @polity.policy("odd")
    def odd(round, agents):
        return values

    with pytest.raises(polity.RunError, match=message):
        polity.run({**guess, "cohorts": [{"policy": "odd"}]}, policies=[odd], out="a")


def test_an_agent_may_do_nothing(guess):
    @polity.policy("some")
    def some(round, agents):
        return np.where(agents.id % 2 == 0, 5.0, np.nan)

    run = polity.run({**guess, "cohorts": [{"policy": "some"}]}, policies=[some], out="a")
    acts = run.tables["acts"].to_polars()
    assert acts.height == 6 * 25 and (acts["agent"] % 2 == 0).all()


def test_state_that_cannot_be_saved_is_refused(guess):
    @polity.policy("hoarder")
    def hoarder(round, agents):
        agents.state["kept"] = [object()]

    with pytest.raises(polity.RunError, match=r"the state of the policy `hoarder` has a object at state\['kept'\]\[0\]"):
        polity.run({**guess, "cohorts": [{"policy": "hoarder"}]}, policies=[hoarder], out="a")

    @polity.policy("hidden")
    class Hidden:
        def __init__(self):
            self.count = 0

        def act(self, round, agents):
            self.count += 1

    with pytest.raises(polity.RunError, match="keep it in agents.state"):
        polity.run({**guess, "cohorts": [{"policy": "hidden"}]}, policies=[Hidden], out="b")


def test_parameters_that_do_not_fit_are_input_errors(guess):
    for policy in ({"kind": "drifter", "speed": 1}, {"kind": "flat", "speed": 1}):
        with pytest.raises(polity.InputError, match="speed") as found:
            polity.run({**guess, "cohorts": [{"policy": policy}]}, policies=OWN, out="a")
        assert found.value.path == "cohorts[0].policy"
    with pytest.raises(TypeError, match="is no policy"):
        polity.run(guess, policies=[lambda round, agents: None])
    with pytest.raises(TypeError, match="a name is given first"):

        @polity.policy
        def unnamed(round, agents):
            return None


def test_agents_have_attributes_and_ties(guess, folder):
    rows = "\n".join(f"{20 + i},{'ab'[i % 2]}" for i in range(10))
    (folder / "people.csv").write_text(f"age,group\n{rows}\n")
    seen = {}

    @polity.policy("by-age")
    def by_age(round, agents):
        offsets, targets = agents.society.ties
        seen.update(age=agents.attributes["age"], group=agents.attributes["group"], ties=(offsets, targets), names=list(agents.attributes))
        return agents.attributes["age"]

    scenario = {
        "rounds": 1,
        "agents": 10,
        "population": {"file": "people.csv"},
        "topology": {"kind": "ring", "neighbours": 2},
        "world": {"kind": "guess-average"},
        "cohorts": [{"policy": "by-age"}],
    }
    run = polity.run(scenario, policies=[by_age], out="a")
    assert run.tables["acts"].to_polars()["value"].to_list() == list(range(20, 30))
    assert seen["group"][:3] == ["a", "b", "a"] and seen["names"] == ["age", "group"]
    offsets, targets = seen["ties"]
    assert offsets.tolist() == list(range(0, 22, 2)) and sorted(targets[:2].tolist()) == [1, 9]


def test_agents_tell_their_neighbours_and_hear_others(folder):
    @polity.policy("teller")
    class Teller:
        tells = True

        def act(self, round, agents):
            agents.tell(np.full(len(agents), 1.0))
            return agents["opinion"]

    scenario = {
        "rounds": 3,
        "agents": 10,
        "topology": {"kind": "ring", "neighbours": 2},
        "world": {"kind": "opinion"},
        "cohorts": [{"policy": "teller"}],
    }
    run = polity.run(scenario, policies=[Teller], out="a")
    assert run.tables["rounds"].to_polars()["messages"].sum() == 3 * 20


def test_it_works_without_numpy(guess):
    code = f"""
import sys
sys.modules["numpy"] = None
import polity
@polity.policy("plain")
def plain(round, agents):
    agents.state["n"] = agents.state.get("n", 0) + 1
    return [agents.rng.uniform(0, 100) if a % 2 else None for a in agents.id]
scenario = {{**{guess!r}, "cohorts": [{{"policy": "plain"}}]}}
a = polity.run(scenario, policies=[plain], out="a")
b = polity.run(scenario, policies=[plain], out="b")
assert a.digest == b.digest and a.tables["acts"].rows == 150 and a.replay()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
