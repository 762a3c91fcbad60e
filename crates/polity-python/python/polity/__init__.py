"""Polity: societies of agents, from three models that debate to a million citizens.

>>> import polity
>>> run = polity.run("guess-average", rounds=3, out="/tmp/polity-first")  # doctest: +SKIP
>>> run.tables["acts"].to_polars()  # doctest: +SKIP
"""

from __future__ import annotations

from ._api import compare, list_leaves, open, run, sweep, validate
from ._errors import BudgetError, DiskError, Error, FolderError, InputError, ModelError, ReplayError, RunError
from ._policy import Agents, Policy, Society, policy
from ._polity import __version__
from ._run import Comparison, Refused, Replayed, Request, Run, Sweep, Verified
from ._table import Column, Metrics, Table, Tables
from ._world import Actions, Choice, Nothing, Number, Text, World, world

__all__ = [
    "Actions",
    "Agents",
    "BudgetError",
    "Choice",
    "Column",
    "Comparison",
    "DiskError",
    "Error",
    "FolderError",
    "InputError",
    "Metrics",
    "ModelError",
    "Nothing",
    "Number",
    "Policy",
    "Refused",
    "Replayed",
    "ReplayError",
    "Request",
    "Run",
    "RunError",
    "Society",
    "Sweep",
    "Table",
    "Tables",
    "Text",
    "Verified",
    "World",
    "__version__",
    "compare",
    "list_leaves",
    "open",
    "policy",
    "run",
    "sweep",
    "validate",
    "world",
]
