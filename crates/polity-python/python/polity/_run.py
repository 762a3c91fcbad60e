"""Runs, sweeps and comparisons."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

from . import _polity
from ._errors import Error, FolderError, RunError
from ._html import MOST_CHARTS, page
from ._progress import Progress
from ._table import Metrics, Table, Tables

if TYPE_CHECKING:
    from ._policy import Policy
    from ._world import World

Model = Callable[["Request"], Any]


class Request:
    """What a model is asked. A function that answers as a model gets it."""

    def __init__(self, told: dict[str, Any], messages: list[tuple[str, str]]) -> None:
        #: ``provider/model``.
        self.model: str = str(told.get("model"))
        #: The conversation: dictionaries of ``role`` (system, user, assistant) and ``content``.
        self.messages: list[dict[str, str]] = [{"role": role, "content": content} for role, content in messages]
        #: The kind of answer that is wanted, as JSON: ``"text"``, ``{"number": {"low": 0, "high": 100, ...}}``, ``{"choice": [...]}``, ...
        self.format: Any = told.get("response_format")
        #: The purpose in a word.
        self.purpose: str = told.get("purpose", "")
        #: Sampling settings.
        self.settings: dict[str, Any] = told.get("settings") or {}

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        return "\n\n".join(message["content"] for message in self.messages)

    def __repr__(self) -> str:
        return f"<polity.Request to {self.model}: {self.purpose}>"


class Refused(str):
    """A reply by which a model declines, in its words."""


def adapted(function: Model) -> Callable[[str, list[tuple[str, str]]], tuple[bool, str]]:
    """A function as the Rust side calls it."""

    def answer(told: str, messages: list[tuple[str, str]]) -> tuple[bool, str]:
        reply = function(Request(json.loads(told), messages))
        if isinstance(reply, Refused):
            return False, str(reply)
        if isinstance(reply, str):
            return True, reply
        if reply is None:
            raise TypeError("the function that answers as a model returned None; return a text, a number, or what is JSON")
        return True, json.dumps(reply, default=plain)

    return answer


def plain(value: Any) -> Any:
    """NumPy's values as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} has no form in JSON: {value!r}")


class Verified(NamedTuple):
    """Whether files are as they were written. It is true if all are."""

    #: Files that are not, each with what is wrong.
    faults: list[str]

    def __bool__(self) -> bool:
        return not self.faults


class Replayed(NamedTuple):
    """Whether a replay gave the recorded digest. It is true if it did."""

    #: ``same`` or ``different``.
    status: str
    #: The rounds recomputed.
    rounds: int
    #: The digest.
    digest: str
    #: The first round that differs.
    first_difference: int | None

    def __bool__(self) -> bool:
        return self.status == "same"


class Own:
    """The user's policies, worlds and models."""

    def __init__(
        self,
        policies: Sequence["Policy"] = (),
        worlds: Sequence["World"] = (),
        models: Mapping[str, Model] | None = None,
    ) -> None:
        from ._policy import Policy
        from ._world import World

        for given, kind in [(policies, Policy), (worlds, World)]:
            wrong = next((one for one in given if not isinstance(one, kind)), None)
            if wrong is not None:
                word = kind.__name__.lower()
                raise TypeError(f"{wrong!r} is no {word}: make it one with @polity.{word}(\"its-name\")")
        self.leaves = _polity.Leaves(list(policies), list(worlds)) if policies or worlds else None
        self.models = dict(models or {})

    def give(self, simulation: _polity.Simulation) -> None:
        """Adds them to a simulation."""
        if self.leaves is not None:
            simulation.leaves(self.leaves)
        for name, function in self.models.items():
            simulation.model(name, adapted(function))

    def failed(self) -> BaseException | None:
        """The exception of a policy or a world, if one was raised."""
        return self.leaves.error() if self.leaves is not None else None


def execute(
    simulation: _polity.Simulation,
    own: Own,
    progress: bool | None,
    on_event: Callable[[dict[str, Any]], Any] | None,
) -> "Run":
    """Runs a simulation, and shows its progress."""
    shown = Progress(progress)
    hear: Callable[[str], Any] | None = None
    if on_event is not None:

        def hear(text: str) -> Any:
            return on_event(json.loads(text))

    try:
        core, interrupted = simulation.run(hear, shown if shown.shows else None, shown.note)
    except Error as error:
        cause = own.failed()
        if cause is not None:
            raise error from cause
        raise
    except KeyboardInterrupt:
        # The second one: a call does not return.
        how = "what is in flight is given up; polity.open(FOLDER).resume() goes on from the last save"
        raise KeyboardInterrupt(f"interrupted twice, so the run was not waited for: {how}") from None
    finally:
        shown.close()
    if interrupted is not None and not isinstance(interrupted, KeyboardInterrupt):
        raise interrupted
    if interrupted is not None:
        how = "it had ended" if core.status == "done" else "it was stopped and saved, and goes on with .resume()"
        raise KeyboardInterrupt(f"the run is in {core.folder}: {how}; polity.open({str(core.folder)!r}) opens it") from None
    return Run(core, own)


class Run:
    """A run that has ended or stopped: its results, and what can be done with it."""

    def __init__(self, core: _polity.Run, own: Own | None = None) -> None:
        self._own = own or Own()
        for name, function in self._own.models.items():
            core = core.with_model(name, adapted(function))
        self._core = core
        self._tables: Tables | None = None
        self._metrics: Metrics | None = None
        self._calls: Table | None = None
        #: Seconds spent in policies and worlds that are written in Python: by name, (round, seconds). Empty for a run that was opened.
        self.python_seconds: dict[str, list[tuple[int, float]]] = {}
        if self._own.leaves is not None:
            self.python_seconds = {name: seconds for name, seconds in self._own.leaves.seconds() if seconds}

    @property
    def name(self) -> str:
        """Its name in the scenario."""
        return self._core.name

    @property
    def status(self) -> str:
        """How it ended: ``done``, ``stopped`` (or killed, or in progress elsewhere) or ``budget``."""
        return self._core.status

    @property
    def digest(self) -> str:
        """Two runs have the same digest if everything that happened in them is the same."""
        return self._core.digest

    @property
    def rounds(self) -> int:
        """The number of complete rounds."""
        return self._core.rounds

    @property
    def agents(self) -> int:
        """The number of agents at the start; in an evaluation, of team members."""
        return self._core.agents

    @property
    def folder(self) -> Path:
        """Its folder."""
        return Path(self._core.folder)

    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario that was run, with all edits."""
        return json.loads(self._core.scenario())

    @property
    def totals(self) -> dict[str, Any]:
        """Calls, tokens, US dollars."""
        return json.loads(self._core.totals())

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """Signs that the run is meaningless: agents that never act, texts that repeat each other, questions without an answer."""
        return json.loads(self._core.alarms())

    @property
    def summary(self) -> dict[str, Any]:
        """All of this in one value, as ``polity run --json`` prints it."""
        return json.loads(self._core.summary())

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that determines it, and the build that made it."""
        return json.loads(self._core.manifest())

    @property
    def tables(self) -> Tables:
        """Its tables by name: ``run.tables["acts"].to_polars()``."""
        if self._tables is None:
            self._tables = Tables(self._core.tables(), self._core.table, "this run")
        return self._tables

    @property
    def metrics(self) -> Metrics:
        """The table of metrics; ``run.metrics["guess.mean"]`` is the last value of one."""
        if self._metrics is None:
            self._metrics = Metrics(lambda: self._core.table("metrics"), self._core.metrics(), "this run")
        return self._metrics

    def series(self, name: str) -> list[tuple[int, float]]:
        """A metric by round: (round, value), oldest first."""
        return self._core.series(name)

    @property
    def calls(self) -> Table:
        """Its questions to models, tools and people, with their answers."""
        if self._calls is None:
            self._calls = Table(self._core.calls())
        return self._calls

    def resume(
        self,
        *,
        max_cost: float | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_time: float | None = None,
        progress: bool | None = None,
        on_event: Callable[[dict[str, Any]], Any] | None = None,
    ) -> "Run":
        """Continues it from the newest saved state, with the recorded answers, and with these limits in place of its own."""
        simulation = self._core.resume()
        limit(simulation, max_cost=max_cost, max_calls=max_calls, max_tokens=max_tokens, max_time=max_time)
        self._own.give(simulation)
        return execute(simulation, self._own, progress, on_event)

    def fork(
        self,
        at: int,
        *,
        out: str | os.PathLike[str] | None = None,
        rounds: int | None = None,
        progress: bool | None = None,
        on_event: Callable[[dict[str, Any]], Any] | None = None,
        edits: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> "Run":
        """Reruns it up to round ``at``, with its recorded answers, and continues from there with these edits, in a folder of its own."""
        simulation = self._core.fork(at)
        if out is not None:
            simulation.out(os.fspath(out))
        if rounds is not None:
            simulation.rounds(rounds)
        edit(simulation, edits, more)
        self._own.give(simulation)
        return execute(simulation, self._own, progress, on_event)

    def replay(self) -> Replayed:
        """Recomputes it from its journal, without model calls, and compares every round."""
        try:
            told = json.loads(self._core.replay())
        except Error as error:
            cause = self._own.failed()
            raise error from cause
        return Replayed(told["status"], told["rounds"], told["digest"], told.get("first_difference"))

    def verify(self) -> Verified:
        """Verifies that every file of its folder is as it was written."""
        found = json.loads(self._core.verify())
        return Verified([f"{fault['path']}: {fault['what']}" for one in found for fault in one["faults"]])

    def interview(self, agents: int | Sequence[int], question: str, at: int | None = None) -> Table:
        """Asks agents a question, in their state before round ``at`` (None: after the last). The run does not change."""
        who = [agents] if isinstance(agents, int) else [int(agent) for agent in agents]
        rows = json.loads(self._core.interview(who, question, at))
        columns = [
            ("agent", "u64", "the agent"),
            ("round", "u64", "before which round"),
            ("answer", "text", "its answer"),
            ("outcome", "text", "how the question ended"),
            ("model", "text", "the model that answered"),
            ("simulated", "bool", "whether it is a simulated model"),
            ("tokens_in", "u64", "tokens of the request"),
            ("tokens_out", "u64", "tokens of the reply"),
            ("cost_usd", "f64", "US dollars"),
        ]
        return Table._of_rows("interview", f"Answers to: {question}", columns, rows)

    def report(self) -> Path:
        """Writes its report again, one HTML file, and returns its path."""
        return Path(self._core.report())

    def __repr__(self) -> str:
        return f"<polity.Run {self.name}: {self.status}, {self.agents} agents, {self.rounds} rounds, in {self.folder}>"

    def _repr_html_(self) -> str:
        names = [name for name in self.metrics.keys() if ".histogram." not in name]
        drawn = names[:MOST_CHARTS]
        facts = {
            "name": self.name,
            "status": self.status,
            "agents": self.agents,
            "rounds": self.rounds,
            "folder": self.folder,
            "digest": self.digest,
            "simulated": self.summary.get("simulated"),
        }
        alarms = [str(alarm.get("text") or alarm) for alarm in self.alarms]
        return page(facts, alarms, {name: self.series(name) for name in drawn}, len(names) - len(drawn))


class Sweep:
    """The runs of a design, and their tables."""

    def __init__(self, core: _polity.Sweep, own: Own | None = None) -> None:
        self._core, self._own = core, own or Own()
        self._tables: Tables | None = None

    @property
    def folder(self) -> Path:
        """Its folder."""
        return Path(self._core.folder)

    @property
    def done(self) -> bool:
        """Whether all of its runs have ended."""
        return self._core.done

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that determines it: the scenario and the expanded design."""
        return json.loads(self._core.manifest())

    @property
    def summary(self) -> dict[str, Any] | None:
        """The summary, as ``polity sweep --json`` prints it; None for a sweep that was only opened."""
        told = self._core.summary()
        return None if told is None else json.loads(told)

    @property
    def tables(self) -> Tables:
        """``runs``, ``summary`` (means with intervals), ``contrasts``, ``health``, and ``sensitivity`` or ``search`` of such
        designs; none before all runs have ended."""
        if self._tables is None:
            self._tables = Tables(self._core.tables(), self._core.table, "this sweep")
        return self._tables

    def run(self, arm: str, seed: int) -> Run:
        """One of its runs."""
        entry = next((arm_ for arm_ in self.manifest["arms"] if arm_["name"] == arm), None)
        if entry is None:
            from ._table import missing

            raise KeyError(missing("this sweep", "arm", arm, [arm_["name"] for arm_ in self.manifest["arms"]]))
        folder = self.folder / "runs" / entry["folder"] / str(seed)
        return Run(_polity.Run.open(folder, self._own.leaves), self._own)

    def resume(self, jobs: int | None = None) -> "Sweep":
        """Continues it: finished runs are read, started ones resumed, the others started."""
        core, interrupted = self._core.resume(jobs)
        return swept(core, interrupted, self._own)

    def __repr__(self) -> str:
        arms = [arm["name"] for arm in self.manifest["arms"]]
        return f"<polity.Sweep of {len(arms)} arms, {'done' if self.done else 'not done'}, in {self.folder}>"


def swept(core: _polity.Sweep, interrupted: object | None, own: Own) -> Sweep:
    """A sweep that was run, or the exception of the signal that stopped it."""
    if interrupted is not None:
        how = f"polity.open({str(core.folder)!r}).resume() goes on"
        raise KeyboardInterrupt(f"the sweep in {core.folder} was stopped and saved; {how}") from None
    return Sweep(core, own)


class Comparison:
    """Methods compared on the same items."""

    def __init__(self, folder: Path, summary: dict[str, Any] | None = None) -> None:
        #: Its folder.
        self.folder: Path = folder
        #: The results, as ``polity compare --json`` prints them; None for a comparison that was only opened.
        self.summary: dict[str, Any] | None = summary

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError) as error:
            raise FolderError(f"{path} cannot be read: {error}; repeat the comparison with this folder, which costs nothing") from error

    @property
    def methods(self) -> Table:
        """One row for each method: accuracy with its interval, use."""
        columns = [
            ("method", "text", "method as it was named"),
            ("kind", "text", "name of the method"),
            ("members", "u64", "members of its team"),
            ("rounds", "u64", "rounds at most"),
            ("items", "u64", "items"),
            ("accuracy", "f64", "mean over items of the share of right answers"),
            ("low", "f64", "lower end of its 95 % interval"),
            ("high", "f64", "upper end of its 95 % interval"),
            ("calls", "u64", "answers of models"),
            ("tokens_in", "u64", "tokens of their requests"),
            ("tokens_out", "u64", "tokens of the replies"),
            ("cost_usd", "f64", "US dollars"),
            ("coordination", "f64", "share of the tokens that were not spent on solving"),
            ("of_allowance", "f64", "use as a share of the allowance"),
            ("unscored", "u64", "answers that could not be scored"),
            ("unanswered", "u64", "items without an answer"),
            ("simulated", "bool", "whether answers came from simulated models"),
            ("run", "text", "folder of the run"),
        ]
        return Table._of_rows("methods", "One row per method.", columns, self._rows("methods.jsonl"))

    @property
    def pairs(self) -> Table:
        """One row for each pair of methods: the difference of their accuracies, its interval, and the tests."""
        columns = [
            ("a", "text", "the first method"),
            ("b", "text", "the second method"),
            ("items", "u64", "items on which both could be scored"),
            ("difference", "f64", "accuracy of the first minus that of the second"),
            ("low", "f64", "lower end of its 95 % interval"),
            ("high", "f64", "upper end of its 95 % interval"),
            ("a_only", "u64", "items on which the first is right more often"),
            ("b_only", "u64", "items on which the second is right more often"),
            ("p", "f64", "exact two-sided McNemar test (with repeats: sign test over items)"),
            ("p_holm", "f64", "the same, corrected for the number of pairs"),
            ("verdict", "text", "`real` or `not told apart`"),
        ]
        return Table._of_rows("pairs", "One row per pair of methods.", columns, self._rows("pairs.jsonl"))

    @property
    def items(self) -> Table:
        """One row for each item, method and repeat."""
        columns = [
            ("method", "text", "method as it was named"),
            ("members", "u64", "members of its team"),
            ("seed", "u64", "seed of the repeat"),
            ("item", "u64", "row of the data set"),
            ("answer", "text", "the team's answer"),
            ("extracted", "text", "the answer extracted from it"),
            ("gold", "text", "the right answer"),
            ("correct", "bool", "whether it is right"),
            ("note", "text", "the message of its tests"),
            ("rounds", "u64", "rounds the method took"),
            ("calls", "u64", "answers of models"),
            ("tokens_in", "u64", "tokens of their requests"),
            ("tokens_out", "u64", "tokens of the replies"),
            ("cost_usd", "f64", "US dollars"),
        ]
        return Table._of_rows("items", "One row per item, method and repeat.", columns, self._rows("items.jsonl"))

    def report(self) -> Path:
        """The path of its report."""
        return self.folder / "report.html"

    def __repr__(self) -> str:
        return f"<polity.Comparison of {self.methods.rows} methods, in {self.folder}>"


def edit(simulation: _polity.Simulation, edits: Mapping[str, Any] | None, more: Mapping[str, Any]) -> None:
    """Sets keys of the scenario: ``world__fraction=0.5`` is ``world.fraction``."""
    for word in more:
        if "__" not in word:
            raise TypeError(
                f"there is no parameter `{word}`; a key of the scenario is written with its path, world__{word}=..., or in "
                f"edits={{\"world.{word}\": ...}}"
            )
    both = {word.replace("__", "."): value for word, value in more.items()}
    for path, value in {**(edits or {}), **both}.items():
        simulation.set(path, json.dumps(value, default=plain))


def limit(simulation: _polity.Simulation, **limits: Any) -> None:
    """Sets the limits that are given."""
    for name, value in limits.items():
        if value is not None:
            getattr(simulation, name)(value)


__all__ = ["Comparison", "Refused", "Replayed", "Request", "Run", "RunError", "Sweep", "Verified"]
