"""The command `polity` of the package: its exit codes, its streams, its signals."""

import json
import os
import signal
import subprocess
import sys
import time

import polity
import pytest

POLITY = [sys.executable, "-m", "polity"]


def polity_command(*words, **more):
    return subprocess.run([*POLITY, *words], capture_output=True, text=True, timeout=60, **more)


def test_it_runs_what_is_in_the_box():
    done = polity_command("run", "guess-average", "--rounds", "3", "--json", "--out", "run")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["digest"] == polity.open("run").digest == polity.run("guess-average", rounds=3, out="other").digest
    assert "done: " in done.stderr and os.path.exists("run/report.html")
    assert polity_command("--version").stdout.strip() == f"polity {polity.__version__}"
    # The last words of standard output are flushed, whatever their length.
    assert len(polity_command("schema").stdout) > 10_000 and polity_command("schema").stdout.endswith("}\n")


def test_exit_codes_are_those_of_the_program():
    wrong = polity_command("run", "gues-average")
    assert wrong.returncode == 2 and "gues-average" in wrong.stderr
    assert polity_command("run").returncode == 2
    assert polity_command("verify", "nowhere").returncode == 3
    usage = polity_command("rnu", "--json")
    assert usage.returncode == 2 and json.loads(usage.stdout)["exit_code"] == 2
    scenario = '{"rounds": 9, "agents": 3, "model": "sim/small", "world": {"kind": "guess-average"}, "cohorts": [{"policy": "mind"}]}'
    with open("minds.yaml", "w") as file:
        file.write(scenario)
    assert polity_command("run", "minds.yaml", "--max-calls", "4", "--out", "run").returncode == 7


LONG = ["run", "guess-average", "--rounds", "100000000", "--agents", "20000", "--no-report", "--out", "run"]


def begun(*words):
    process = subprocess.Popen([*POLITY, *words], stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if os.path.exists("run/journal") and os.listdir("run/journal"):
            time.sleep(0.3)
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError("the run did not begin")


def test_the_first_interrupt_saves():
    process = begun(*LONG)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=40)[1]
    assert process.returncode == 6, said
    assert "finishing what is in flight and saving" in said and "Traceback" not in said
    assert polity.open("run").status == "stopped"


def test_the_second_interrupt_stops_at_once():
    process = begun(*LONG)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    assert process.returncode == 6


def test_an_interrupt_ends_a_command_that_saves_nothing():
    process = subprocess.Popen([*POLITY, "mock-server", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    if process.poll() is not None:
        pytest.skip(f"the mock server takes other flags: {process.stderr.read()}")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode in (-signal.SIGINT, 0, 130)
