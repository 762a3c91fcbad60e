"""Running, opening, sweeping, comparing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from . import _polity
from ._errors import InputError
from ._policy import Policy
from ._run import Comparison, Model, Own, Run, Sweep, adapted, edit, execute, limit, plain, swept
from ._table import Table
from ._world import World

Scenario = Any


def _simulation(scenario: Scenario) -> _polity.Simulation:
    """A file, a dictionary, the text of a scenario, or the name of one in the box."""
    if isinstance(scenario, os.PathLike):
        return _polity.Simulation("file", os.fspath(scenario))
    if isinstance(scenario, Mapping):
        return _polity.Simulation("json", json.dumps(dict(scenario), default=plain))
    if not isinstance(scenario, str):
        raise TypeError(f"a scenario is a path, a dictionary, or a text, not a {type(scenario).__name__}")
    if "\n" in scenario or scenario.lstrip().startswith("{"):
        return _polity.Simulation("yaml", scenario)
    if re.fullmatch(r"[a-z0-9-]+", scenario) and not os.path.exists(scenario):
        return _polity.Simulation("example", scenario)
    return _polity.Simulation("file", scenario)


def _ready(
    scenario: Scenario,
    own: Own,
    *,
    out: Any = None,
    seed: int | None = None,
    agents: int | None = None,
    rounds: int | None = None,
    model: str | None = None,
    edits: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    **limits: Any,
) -> _polity.Simulation:
    simulation = _simulation(scenario)
    own.give(simulation)
    edit(simulation, edits, more or {})
    limit(simulation, seed=seed, agents=agents, rounds=rounds, ask=model, **limits)
    if out is not None:
        simulation.out(os.fspath(out))
    return simulation


def run(
    scenario: Scenario,
    *,
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    agents: int | None = None,
    rounds: int | None = None,
    model: str | None = None,
    models: Mapping[str, Model] | None = None,
    policies: Sequence[Policy] = (),
    worlds: Sequence[World] = (),
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_time: float | None = None,
    progress: bool | None = None,
    on_event: Callable[[dict[str, Any]], Any] | None = None,
    edits: Mapping[str, Any] | None = None,
    **more: Any,
) -> Run:
    """Runs a scenario, and returns the run when it has ended, was stopped, or has used up its budget.

    ``scenario`` is the path of a file, a dictionary, the text of a scenario (YAML), or the name of one in the box. Keys of the scenario
    can be set: ``world__fraction=0.5`` or ``edits={"world.fraction": 0.5}``. The run's folder is ``out``, else ``runs/NAME-SEED``.

    ``models`` are functions that answer as models: ``{"my/model": function}``. ``policies`` and ``worlds`` are those made by
    :func:`polity.policy` and :func:`polity.world`. ``on_event`` is called with every event, a dictionary, and stops the run by returning
    ``False``. ``max_cost`` (US dollars), ``max_calls``, ``max_tokens`` and ``max_time`` (seconds) are hard limits.

    Ctrl-C saves the run and raises ``KeyboardInterrupt``, whose message names the folder.

    Raises :class:`polity.InputError` for a wrong scenario, :class:`polity.FolderError` for a folder that is taken,
    :class:`polity.ModelError` if no model can answer, and :class:`polity.RunError` if a policy or a world of yours fails.
    """
    own = Own(policies, worlds, models)
    simulation = _ready(
        scenario, own, out=out, seed=seed, agents=agents, rounds=rounds, model=model, edits=edits, more=more,
        max_cost=max_cost, max_calls=max_calls, max_tokens=max_tokens, max_time=max_time,
    )  # fmt: skip
    return execute(simulation, own, progress, on_event)


def validate(
    scenario: Scenario,
    *,
    agents: int | None = None,
    rounds: int | None = None,
    model: str | None = None,
    models: Mapping[str, Model] | None = None,
    policies: Sequence[Policy] = (),
    worlds: Sequence[World] = (),
    edits: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Checks a scenario without running it. Raises :class:`polity.InputError`, which names the place."""
    own = Own(policies, worlds, models)
    _ready(scenario, own, agents=agents, rounds=rounds, model=model, edits=edits, more=more).validate()


def open(
    folder: str | os.PathLike[str],
    *,
    policies: Sequence[Policy] = (),
    worlds: Sequence[World] = (),
    models: Mapping[str, Model] | None = None,
) -> Run | Sweep | Comparison:
    """Opens the folder of a run, a sweep or a comparison. Nothing is run or changed.

    A run with policies, worlds or models of your own needs them again to be resumed, replayed or forked.
    """
    path = Path(folder)
    own = Own(policies, worlds, models)
    if _polity.is_sweep(path):
        return Sweep(_polity.Sweep.open(path, own.leaves), own)
    if (path / "comparison.json").exists():
        return Comparison(path)
    return Run(_polity.Run.open(path, own.leaves), own)


def sweep(
    scenario: Scenario,
    *,
    out: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    agents: int | None = None,
    rounds: int | None = None,
    model: str | None = None,
    models: Mapping[str, Model] | None = None,
    policies: Sequence[Policy] = (),
    worlds: Sequence[World] = (),
    jobs: int | None = None,
    edits: Mapping[str, Any] | None = None,
    **more: Any,
) -> Sweep:
    """Runs the design of a scenario (its key ``design``): all arms, each with its seeds. ``jobs``: the most concurrent runs."""
    own = Own(policies, worlds, models)
    if seeds is not None:
        edits = {**(edits or {}), "design.seeds": seeds}
    simulation = _ready(scenario, own, out=out, agents=agents, rounds=rounds, model=model, edits=edits, more=more)
    try:
        core, interrupted = simulation.sweep(jobs)
    except Exception as error:
        cause = own.failed()
        if cause is not None:
            raise error from cause
        raise
    return swept(core, interrupted, own)


def compare(
    methods: Sequence[str],
    *,
    task: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    model: str | Sequence[str],
    models: Mapping[str, Model] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    repeats: int = 1,
    equal: str | None = None,
    pilot: int | None = None,
    out: str | os.PathLike[str] | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_time: float | None = None,
    edits: Mapping[str, Any] | None = None,
    **more: Any,
) -> Comparison:
    """Compares methods (``"single"``, ``"sc@5"``, ``"silent=debate:show_reasons=false"``) on the items of a file, or of several files, with a
    model, or with several.

    ``equal`` gives them equal budgets in ``"tokens"``, ``"calls"`` or ``"usd"``, or a stated amount per item (``"tokens=3000"``). An unfinished
    comparison in the folder ``out`` is continued.
    """
    if isinstance(methods, str):
        raise TypeError(f"methods are a list, [{methods!r}, ...], not one text")
    both = {**(edits or {}), **{word.replace("__", "."): value for word, value in more.items()}}
    told = _polity.compare(
        list(methods),
        [os.fspath(one) for one in ([task] if isinstance(task, (str, os.PathLike)) else task)],
        [model] if isinstance(model, str) else list(model),
        models=[(name, adapted(function)) for name, function in (models or {}).items()],
        limit=limit, seed=seed, repeats=repeats, equal=equal, pilot=pilot, out=None if out is None else os.fspath(out),
        max_cost=max_cost, max_calls=max_calls, max_tokens=max_tokens, max_time=max_time,
        edits=[(path, json.dumps(value, default=plain)) for path, value in both.items()],
    )  # fmt: skip
    summary = json.loads(told)
    return Comparison(Path(summary["folder"]), summary)


def list_leaves(kind: str | None = None) -> Table:
    """What scenarios can name: worlds, environments, policies, methods and metrics, with one line each."""
    found: dict[str, list[dict[str, Any]]] = json.loads(_polity.Leaves([], []).listed())
    if kind is not None and kind not in found:
        raise InputError(f"there is no kind `{kind}` (there are: {', '.join(found)})")
    rows = [
        {"kind": one, "name": leaf["name"], "summary": leaf["summary"], "parameters": json.dumps(leaf["parameters"])}
        for one, leaves in found.items()
        for leaf in leaves
        if kind in (None, one)
    ]
    columns = [
        ("kind", "text", "worlds, environments, policies, methods or metrics"),
        ("name", "text", "what a scenario writes"),
        ("summary", "text", "one line"),
        ("parameters", "text", "JSON Schema of its parameters"),
    ]
    return Table._of_rows("leaves", "One row per leaf in the box.", columns, rows)
