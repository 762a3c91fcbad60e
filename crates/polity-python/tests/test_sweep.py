"""Sweeps and comparisons."""

import polity
import pytest


def test_a_sweep_has_tables_and_runs(guess):
    scenario = {**guess, "design": {"seeds": 3, "factors": {"world.fraction": [0.4, 0.8]}}}
    sweep = polity.sweep(scenario, out="sweep", jobs=2)
    assert sweep.done and sweep.summary["runs"] == 6
    summary = sweep.tables["summary"].to_polars()
    assert summary.height > 0 and {"arm", "metric", "mean", "low", "high"} <= set(summary.columns)
    opened = polity.open("sweep")
    assert isinstance(opened, polity.Sweep) and opened.done and opened.summary is None
    assert opened.tables["summary"].to_polars().equals(summary)
    arm = opened.manifest["arms"][0]["name"]
    run = opened.run(arm, opened.manifest["design"]["arms"][0]["seeds"][0])
    assert run.status == "done" and run.scenario["world"]["fraction"] == 0.4
    with pytest.raises(KeyError, match="this sweep has no arm `nothing`"):
        opened.run("nothing", 1)
    assert opened.resume().summary["digest"] == sweep.summary["digest"]
    assert "2 arms, done" in repr(sweep)


def test_a_sweep_needs_a_design(guess):
    with pytest.raises(polity.InputError, match="design"):
        polity.sweep(guess, out="sweep")
    with pytest.raises(KeyError, match="no table"):
        polity.sweep({**guess, "design": {"seeds": 2}}, out="other").tables["nothing"]


def test_policies_of_your_own_are_swept(guess):
    @polity.policy("flat")
    def flat(round, agents, value=7.0):
        return [value] * len(agents)

    scenario = {
        **guess,
        "cohorts": [{"policy": {"kind": "flat", "value": 1}}],
        "design": {"seeds": 2, "factors": {"named": {"path": "cohorts[0].policy.value", "values": [1, 5]}}},
    }
    sweep = polity.sweep(scenario, policies=[flat], out="sweep")
    means = sweep.tables["summary"].to_polars()
    assert sorted(means.filter(means["metric"].str.contains("guess.mean"))["mean"].to_list()) == [1.0, 5.0]


ITEMS = "question,answer,difficulty\n" + "".join(f"What is {i} + {i}?,{2 * i},0\n" for i in range(8))


def test_methods_are_compared(folder):
    (folder / "items.csv").write_text(ITEMS)
    compared = polity.compare(["direct", "self-consistency@3"], task="items.csv", model="sim/medium", limit=6, out="compared")
    assert compared.summary["items"] == 6
    methods = compared.methods.to_polars()
    assert methods["method"].to_list() == ["direct", "self-consistency@3"] and methods["calls"].to_list() == [6, 18]
    assert compared.pairs.to_polars()["verdict"].len() == 1 and compared.items.to_polars().height == 12
    assert compared.report().exists()
    opened = polity.open("compared")
    assert isinstance(opened, polity.Comparison) and opened.methods.to_polars().equals(methods)
    # The same comparison with the same folder costs nothing.
    again = polity.compare(["direct", "self-consistency@3"], task="items.csv", model="sim/medium", limit=6, out="compared")
    assert again.methods.to_polars().equals(methods)


def test_models_and_tasks_are_compared(folder):
    (folder / "a.csv").write_text(ITEMS)
    (folder / "b.csv").write_text(ITEMS)
    compared = polity.compare(
        ["debate", "silent=debate:show_reasons=false"], task=["a.csv", "b.csv"], model=["sim/small", "sim/large"], limit=3, out="all"
    )
    methods = compared.methods.to_polars()
    assert methods.height == 8 and methods["task"].to_list() == ["a"] * 4 + ["b"] * 4
    assert compared.pairs.to_polars().height == 4 and compared.overall.to_polars().height == 4 + 2


def test_a_function_answers_in_a_comparison(folder):
    (folder / "items.csv").write_text(ITEMS)

    def model(request):
        return {name: "4" for name, _ in request.format["record"]}

    compared = polity.compare(["direct", "self-consistency@3"], task="items.csv", model="my/model", models={"my/model": model}, limit=4)
    assert compared.methods.to_polars()["accuracy"].to_list() == [0.25, 0.25]


def test_what_cannot_be_compared_is_refused(folder):
    (folder / "items.csv").write_text(ITEMS)
    with pytest.raises(polity.InputError, match="did you mean `direct`"):
        polity.compare(["dircet", "debate"], task="items.csv", model="sim/medium")
    with pytest.raises(TypeError, match="methods are a list"):
        polity.compare("direct", task="items.csv", model="sim/medium")
    with pytest.raises(polity.InputError, match="there is no unit `dollars`"):
        polity.compare(["direct", "debate"], task="items.csv", model="sim/medium", equal="dollars")
    with pytest.raises(polity.BudgetError, match="the same comparison with the folder cut and a higher limit continues"):
        polity.compare(["direct", "self-consistency@3"], task="items.csv", model="sim/medium", max_calls=3, out="cut")
