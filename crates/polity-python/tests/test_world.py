"""Worlds in Python."""

import numpy as np
import polity
import pytest


@polity.world("well")
class Well:
    """A well that all draw from"""

    observation = {"level": "water in the well", "own": "what the agent drew last"}
    actions = {"draw": polity.Number(0, 1, "draw water"), "pray": polity.Nothing("pray for rain")}
    columns = {"drawn": ("all that the agent drew", 0, 100)}
    metrics = {"water": "water in the well", "prayers": "prayers of the round"}
    reward = "what the agent drew last"

    def __init__(self, inflow=1.0):
        self.inflow = inflow

    def init(self, society, rng):
        return {"level": 10.0 + rng.random(), "own": np.zeros(society.agents), "drawn": np.zeros(society.agents), "prayers": 0}

    def observe(self, state):
        return {"level": state["level"], "own": state["own"]}

    def measure(self, state):
        return {"drawn": state["drawn"], "reward": state["own"]}

    def summarise(self, state):
        return {"water": state["level"], "prayers": state["prayers"]}

    def apply(self, round, state, actions, rng):
        who, wanted = actions["draw"]
        got = wanted * min(1, state["level"] / max(wanted.sum(), 1e-9))
        state["own"][:] = 0
        state["own"][who] = got
        state["drawn"] += state["own"]
        state["level"] += self.inflow - got.sum() + rng.random()
        state["prayers"] = len(actions["pray"][0])
        return "the well is dry" if state["level"] < 0.5 else None


@polity.policy("sip")
def sip(round, agents, share=0.5):
    assert "level" in agents and agents["own"].shape == (len(agents),)
    return {"draw": np.minimum(agents["level"], share), "pray": agents.id % 2}


OWN = {"worlds": [Well], "policies": [sip]}
SCENARIO = {
    "rounds": 20,
    "agents": 10,
    "world": {"kind": "well", "inflow": 0.2},
    "cohorts": [{"count": 8, "policy": {"kind": "sip", "share": 0.1}}, {"count": 2, "policy": "noise"}],
    "metrics": [{"kind": "mean", "of": "drawn"}],
}


def test_a_world_in_python_is_run_replayed_and_resumed():
    whole = polity.run(SCENARIO, **OWN, out="whole")
    assert whole.summary["reason"] == "the well is dry" or whole.rounds == 20
    assert whole.metrics["prayers"] == 4 and whole.metrics["drawn.mean"] > 0
    assert whole.replay()
    assert polity.run(SCENARIO, **OWN, out="again").digest == whole.digest
    assert polity.run(SCENARIO, **OWN, out="other", seed=9).digest != whole.digest
    polity.run(SCENARIO, **OWN, out="cut", on_event=lambda event: event["event"] != "round" or event["round"] < 3)
    assert polity.open("cut", **OWN).resume().digest == whole.digest
    assert set(whole.python_seconds) == {"sip", "well"}


def test_rules_in_the_box_live_in_it():
    scenario = {**SCENARIO, "cohorts": [{"policy": "noise"}]}
    assert polity.run(scenario, worlds=[Well], out="a").status == "done"


def changed(**methods):
    return polity.world("well")(type("Changed", (Well._make,), methods))


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("apply", lambda *_: 1 / 0, "the world, round 0: `well`, which is written in Python, raised ZeroDivisionError"),
        ("apply", lambda *_: 7, "apply\\(\\) must return None, or the reason"),
        ("observe", lambda self, state: {"level": 1.0}, "observe\\(\\) returned no `own`"),
        ("measure", lambda self, state: {"drawn": [1.0], "reward": 0.0}, "must have one value for each of the 10 agents"),
        ("init", lambda *_: {"level": 1.0, "own": 0.0, "file": open}, "the state of the world `well` has a builtin_function_or_method at state\\['file'\\]"),
    ],
)
def test_what_a_world_does_wrong_stops_the_run(method, body, message):
    with pytest.raises(polity.RunError, match=message):
        polity.run(SCENARIO, worlds=[changed(**{method: body})], policies=[sip], out="a")


def test_a_round_that_failed_does_not_count():
    def fails(self, round, state, actions, rng):
        if round == 2:
            raise LookupError("in the third round")
        return Well._make.apply(self, round, state, actions, rng)

    with pytest.raises(polity.RunError):
        polity.run(SCENARIO, worlds=[changed(apply=fails)], policies=[sip], out="a")
    cut = polity.open("a", **OWN)
    assert cut.rounds == 2
    # With the mistake mended it goes on.
    assert cut.resume().digest == polity.run(SCENARIO, **OWN, out="b").digest


def test_declarations_that_do_not_fit_are_input_errors():
    class Half:
        observation = {"a": "a"}

        def init(self, society, rng):
            return {}

    with pytest.raises(polity.InputError, match="the world `half` has no method observe"):
        polity.run({**SCENARIO, "world": "half"}, worlds=[polity.world("half")(Half)], policies=[sip], out="a")
    with pytest.raises(polity.InputError, match="unexpected keyword argument 'depth'"):
        polity.run({**SCENARIO, "world": {"kind": "well", "depth": 3}}, **OWN, out="a")
