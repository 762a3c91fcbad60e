"""Runs: where scenarios come from, what comes back, and what can be done with it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polity
import pytest

YAML = """
rounds: 6
agents: 50
seed: 3
world: {kind: guess-average, fraction: 0.6}
cohorts: [{policy: {kind: adaptive, rate: 0.5}}]
metrics: [{kind: mean, of: guess}]
name: guess
"""


def test_a_scenario_may_be_a_dictionary_a_text_a_file_or_a_name(guess, folder):
    of_value = polity.run(guess, out="value")
    of_text = polity.run(YAML, out="text")
    (folder / "guess.yaml").write_text(YAML)
    of_file = polity.run("guess.yaml", out="file")
    of_path = polity.run(folder / "guess.yaml", out="path")
    assert len({run.digest for run in (of_value, of_text, of_file, of_path)}) == 1
    assert (of_value.status, of_value.rounds, of_value.agents, of_value.name) == ("done", 6, 50, "guess")
    assert polity.run("guess-average", rounds=2, agents=9).folder == folder.__class__("runs/guess-average-1")
    with pytest.raises(polity.InputError, match="no scenario `gues-average` in the box; did you mean `guess-average`"):
        polity.run("gues-average")
    with pytest.raises(polity.InputError, match="nothing.yaml"):
        polity.run("nothing.yaml")
    with pytest.raises(TypeError, match="a scenario is a path, a dictionary, or a text, not a int"):
        polity.run(3)


def test_keys_are_edited_by_their_paths(guess):
    run = polity.run(guess, out="a", seed=4, rounds=2, agents=7, world__fraction=0.25, edits={"cohorts[0].policy.rate": np.float64(0.75)})
    assert run.scenario["world"]["fraction"] == 0.25
    assert run.scenario["cohorts"][0]["policy"]["rate"] == 0.75
    assert (run.rounds, run.agents, run.manifest["seed"]) == (2, 7, 4)
    with pytest.raises(TypeError, match="there is no parameter `fraction`.*world__fraction"):
        polity.run(guess, fraction=0.5)
    with pytest.raises(polity.InputError) as found:
        polity.run(guess, world__fration=0.5)
    assert found.value.path == "world.fration" and "did you mean `fraction`" in str(found.value)
    assert found.value.exit_code == 2 and isinstance(found.value, ValueError)


def test_errors_name_the_place():
    with pytest.raises(polity.InputError, match="^the scenario's text:3:15: world: there is no world `guess-avrage`"):
        polity.validate("rounds: 3\nagents: 5\nworld: {kind: guess-avrage}\ncohorts: [{policy: noise}]")
    with pytest.raises(polity.FolderError):
        polity.open("nowhere")
    polity.validate(YAML)


def test_a_run_is_resumed_forked_replayed_and_verified(guess):
    whole = polity.run(guess, out="whole")
    stopped = polity.run(guess, out="stopped", on_event=lambda event: event["event"] != "round" or event["round"] < 2)
    assert stopped.status == "stopped" and stopped.rounds < 6
    resumed = polity.open("stopped").resume()
    assert (resumed.status, resumed.digest) == ("done", whole.digest)
    replayed = whole.replay()
    assert replayed and (replayed.status, replayed.rounds, replayed.digest) == ("same", 6, whole.digest)
    fork = whole.fork(3, cohorts__0__policy__rate=0.9)
    assert fork.series("guess.mean")[:3] == whole.series("guess.mean")[:3]
    assert fork.metrics["guess.mean"] < whole.metrics["guess.mean"]
    assert whole.verify()
    (whole.folder / "manifest.json").write_text("{}")
    found = whole.verify()
    assert not found and "manifest.json" in found.faults[0]


def test_events_come_as_dictionaries_and_their_errors_come_back(guess):
    events = []
    polity.run(guess, out="a", on_event=events.append)
    assert [event["round"] for event in events if event["event"] == "round"] == list(range(6))
    assert events[0]["metrics"]["guess.mean"] > 0

    def fails(event):
        raise LookupError("of the handler")

    with pytest.raises(LookupError, match="of the handler"):
        polity.run(guess, out="b", on_event=fails)
    assert polity.open("b").resume().status == "done"


MINDS = {"rounds": 3, "agents": 4, "model": "my/model", "world": {"kind": "guess-average"}, "cohorts": [{"policy": "mind"}], "metrics": [{"kind": "mean", "of": "guess"}]}


def test_a_function_answers_as_a_model():
    asked = []

    def model(request):
        asked.append(request)
        return np.float64(42)

    run = polity.run(MINDS, models={"my/model": model}, out="a")
    assert run.metrics["guess.mean"] == 42 and run.totals["calls"] == 12 == len(asked)
    request = asked[0]
    assert (request.model, request.format["number"]["high"]) == ("my/model", 100.0)
    assert {message["role"] for message in request.messages} <= {"system", "user"} and "Which number" in request.prompt
    calls = run.calls.to_polars()
    assert calls["answer"].unique().to_list() == ["42.0"] and calls.height == 12
    said = run.interview([0, 3], "Why this number?").to_polars()
    assert said["agent"].to_list() == [0, 3] and said["answer"].to_list() == ["42.0", "42.0"]
    # Replays need no model.
    assert polity.open("a").replay()
    assert polity.open("a", models={"my/model": model}).fork(1).status == "done"


def test_a_model_that_fails_is_an_outcome_and_not_a_reply():
    def fails(request):
        raise ZeroDivisionError("inside")

    run = polity.run(MINDS, models={"my/model": fails}, out="a")
    calls = run.calls.to_polars()
    assert calls["outcome"].unique().to_list() == ["failed"]
    assert "ZeroDivisionError: inside" in calls["answer"][0] and "in fails" in calls["answer"][0]
    refusing = polity.run(MINDS, models={"my/model": lambda request: polity.Refused("I would rather not")}, out="b")
    assert refusing.calls.to_polars()["outcome"].unique().to_list() == ["refused"]


def test_a_budget_that_is_used_up_is_a_status(guess):
    scenario = {**MINDS, "model": "sim/small"}
    run = polity.run(scenario, max_calls=5, out="a")
    assert run.status == "budget" and run.totals["calls"] <= 5
    assert run.resume(max_calls=100).status == "done"


def test_reports_and_notebooks(guess):
    run = polity.run(guess, out="a")
    assert run.report().read_text().startswith("<!DOCTYPE html>")
    page = run._repr_html_()
    assert "<svg" in page and "guess.mean" in page and "done" in page
    assert repr(run) == "<polity.Run guess: done, 50 agents, 6 rounds, in a>"
    assert run.alarms == run.summary["health"]


def test_leaves_are_listed():
    leaves = polity.list_leaves().to_polars()
    assert set(leaves["kind"]) == {
        "environments",
        "methods",
        "metrics",
        "policies",
        "toolkits",
        "worlds",
    }
    assert "debate" in polity.list_leaves("methods").to_polars()["name"].to_list()
    assert json.loads(leaves["parameters"][0])["type"] == "object"
    with pytest.raises(polity.InputError, match="there is no kind `world`"):
        polity.list_leaves("world")


def test_trouble_outside_is_a_warning_and_then_an_error(monkeypatch):
    # Nobody listens there.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    scenario = {**MINDS, "model": "openai/any", "budget": {"calls": 100}}
    began = time.monotonic()
    with pytest.warns(RuntimeWarning, match="127.0.0.1:9"), pytest.raises(polity.ModelError, match="no model can answer"):
        polity.run(scenario, out="a")
    assert time.monotonic() - began < 60
    assert polity.open("a").status == "stopped"


SLOW = """
import polity, sys, time
@polity.policy("slow")
def slow(round, agents):
    time.sleep(0.05)
try:
    polity.run({"rounds": 10000, "agents": 3, "world": {"kind": "guess-average"}, "cohorts": [{"policy": "slow"}]}, policies=[slow], out="run",
               on_event=lambda event: print(event["event"], flush=True))
except KeyboardInterrupt as stopped:
    print("INTERRUPTED", stopped, flush=True)
"""


def test_ctrl_c_saves_the_run_and_raises_keyboard_interrupt():
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "round\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[0]
    assert "INTERRUPTED the run is in run: it was stopped and saved" in said, said
    run = polity.open("run")
    assert run.status == "stopped" and 0 < run.rounds < 10000
    assert not os.path.exists("run/report.html")


def test_the_second_ctrl_c_does_not_wait():
    code = SLOW.replace("time.sleep(0.05)", "time.sleep(60 if round == 1 else 0)") + "import os; os._exit(0)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "round\n"
    for _ in range(2):
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
    assert "INTERRUPTED interrupted twice" in process.communicate(timeout=20)[0]


def test_an_interrupted_sweep_goes_on(guess):
    code = f"""
import polity, threading, os, signal, time
@polity.policy("slow")
def slow(round, agents):
    time.sleep(0.05)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
scenario = {{**{guess!r}, "rounds": 20, "cohorts": [{{"policy": "slow"}}], "design": {{"seeds": 8}}}}
try:
    polity.sweep(scenario, policies=[slow], out="sweep", jobs=2)
except KeyboardInterrupt as stopped:
    print("INTERRUPTED", stopped)
sweep = polity.open("sweep", policies=[slow])
assert not sweep.done
assert sweep.resume().done
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "INTERRUPTED the sweep in sweep was stopped and saved" in done.stdout


def test_progress_is_told_in_terminals_only_unless_it_is_wanted(guess, capfd):
    polity.run(guess, out="a")
    assert capfd.readouterr().err == ""

    @polity.policy("slow")
    def slow(round, agents):
        time.sleep(0.15)

    polity.run({**guess, "cohorts": [{"policy": "slow"}]}, policies=[slow], out="b", progress=True)
    assert "round 3 of 6, 50 agents" in capfd.readouterr().err
