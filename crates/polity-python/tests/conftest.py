"""Every test works in a folder of its own. `scripts/python-tests.sh` sets the path of the package."""

import os

import pytest

GUESS = {
    "name": "guess",
    "rounds": 6,
    "agents": 50,
    "seed": 3,
    "world": {"kind": "guess-average", "fraction": 0.6},
    "cohorts": [{"policy": {"kind": "adaptive", "rate": 0.5}}],
    "metrics": [{"kind": "mean", "of": "guess"}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def guess():
    return dict(GUESS)


@pytest.fixture
def repository():
    return os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
