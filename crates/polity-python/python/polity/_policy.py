"""Policies in Python: one call a round for all agents of a cohort."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Mapping

from . import _arrays, _polity


class Society:
    """What a policy or a world may know of its society before the first round."""

    def __init__(self, told: dict[str, Any], core: _polity.Setup) -> None:
        #: The number of agents at the start.
        self.agents: int = told["agents"]
        #: The world's name; ``None`` for a world itself.
        self.world: str | None = told.get("world")
        #: The planned rounds; ``None`` for a world.
        self.rounds: int | None = told.get("rounds")
        #: The names of the numbers that agents see.
        self.observations: list[str] = told.get("numbers", []) + told.get("texts", [])
        #: The actions of the world: name, form (``number``, ``choice``, ``text``, ...) and its bounds or options.
        self.actions: list[dict[str, Any]] = told.get("actions", [])
        self._core = core
        self._attributes: dict[str, Any] = {}
        self._ties: tuple[Any, Any] | None = None

    def attribute(self, name: str) -> Any:
        """An attribute of the rows of the population (one row for each agent, unless agents were drawn from a smaller table)."""
        if name not in self._attributes:
            made = self._core.attribute(name)
            self._attributes[name] = _arrays.column(made, "f8") if isinstance(made, bytes) else made
        return self._attributes[name]

    @property
    def attribute_names(self) -> list[str]:
        """The names of the attributes."""
        return self._core.names()

    @property
    def ties(self) -> tuple[Any, Any]:
        """Who hears whom: ``offsets, targets``. Agent i hears the agents ``targets[offsets[i]:offsets[i + 1]]``."""
        if self._ties is None:
            offsets, targets = self._core.ties()
            self._ties = (_arrays.column(offsets, "u8"), _arrays.column(targets, "u4"))
        return self._ties


class Attributes(Mapping[str, Any]):
    """Attributes of the agents of a round, by name."""

    def __init__(self, society: Society, rows: Any) -> None:
        self._society, self._rows = society, rows

    def __getitem__(self, name: str) -> Any:
        values = self._society.attribute(name)
        if _arrays.numpy() is not None and not isinstance(values, list):
            return values[self._rows]
        return [values[row] for row in self._rows]

    def __iter__(self) -> Any:
        return iter(self._society.attribute_names)

    def __len__(self) -> int:
        return len(self._society.attribute_names)


class Agents:
    """The agents of a cohort in a round. ``agents["guess"]`` is what the world shows each of them, in order of id."""

    def __init__(
        self, society: Society, ids: bytes, rows: bytes, columns: dict[str, Any], state: dict[str, Any], rng: Any
    ) -> None:
        #: Their ids.
        self.id: Any = _arrays.column(ids, "u4")
        #: What is kept from round to round, and saved with the run: numbers, texts, lists, dictionaries, NumPy arrays.
        self.state: dict[str, Any] = state
        #: Random numbers of this round: the same for the same seed (``numpy.random.Generator``; ``random.Random`` without NumPy).
        self.rng: Any = rng
        #: The society.
        self.society: Society = society
        #: Their attributes.
        self.attributes: Attributes = Attributes(society, _arrays.column(rows, "u4"))
        self._columns = columns
        self._tells: Any = None

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            from ._table import missing

            raise KeyError(missing(f"the world `{self.society.world}`", "observation", name, self._columns))
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self.id)

    def tell(self, values: Any) -> None:
        """Sends a number of each agent to those who hear it, who read it in the next round (NaN: none)."""
        self._tells = values


def _made(make: Any, params: dict[str, Any], name: str) -> Any:
    """The object that acts: an instance of the class, or the function with its parameters."""
    if inspect.isclass(make):
        return make(**params)
    known = list(inspect.signature(make).parameters.values())[2:]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known):
        return make
    names = {parameter.name for parameter in known}
    wrong = next((key for key in params if key not in names), None)
    if wrong is not None:
        raise TypeError(f"{name} has no parameter `{wrong}` (it has: {', '.join(sorted(names)) or 'none'})")
    return make


class _Bound:
    """A policy in a society. The Rust side calls it."""

    def __init__(self, name: str, make: Any, params: dict[str, Any], society: Society, numbers: list[str], texts: list[str]):
        self._name, self._params, self._society = name, params, society
        self._numbers, self._texts = numbers, texts
        self._policy = _made(make, params, f"the policy `{name}`")
        self._is_object = inspect.isclass(make)
        self.tells = bool(getattr(make, "tells", False))
        self._own = self._attributes()

    def _attributes(self) -> dict[str, int]:
        return {key: id(value) for key, value in getattr(self._policy, "__dict__", {}).items()} if self._is_object else {}

    def initial(self) -> bytes:
        start = getattr(self._policy, "init", None) if self._is_object else None
        return _arrays.packed(start(self._society) if start else {}, f"the policy `{self._name}`")

    def step(
        self,
        round: int,
        ids: bytes,
        rows: bytes,
        numbers: list[bytes],
        texts: list[list[str]],
        state: bytes,
        key: tuple[int, int],
    ) -> tuple[bytes, list[tuple[int, Any]], bytes | None]:
        columns: dict[str, Any] = {name: _arrays.column(data, "f8") for name, data in zip(self._numbers, numbers)}
        columns.update(zip(self._texts, texts))
        agents = Agents(self._society, ids, rows, columns, _arrays.unpacked(state), _arrays.generator(key))
        if self._is_object:
            acted = self._policy.act(round, agents)
            if self._attributes() != self._own:
                raise TypeError(
                    "act() changed an attribute of the policy, which is not saved with the run: keep it in agents.state"
                )
        else:
            acted = self._policy(round, agents, **self._params)
        whose = f"the policy `{self._name}`"
        tells = None if agents._tells is None else _arrays.doubles(agents._tells, len(agents), "what agents tell")
        return _arrays.packed(agents.state, whose), self._acts(acted, len(agents)), tells

    def _acts(self, acted: Any, n: int) -> list[tuple[int, Any]]:
        known = self._society.actions
        if acted is None:
            return []
        if not isinstance(acted, Mapping):
            if len(known) != 1:
                names = ", ".join(action["name"] for action in known)
                raise TypeError(
                    f"act() must return a dictionary of actions, since the world `{self._society.world}` has {len(known)} actions: {names}"
                )
            acted = {known[0]["name"]: acted}
        done: list[tuple[int, Any]] = []
        for name, values in acted.items():
            kind = next((i for i, action in enumerate(known) if action["name"] == name), None)
            if kind is None:
                from ._table import missing

                raise KeyError(missing(f"the world `{self._society.world}`", "action", name, [a["name"] for a in known]))
            action, what = known[kind], f"the action `{name}`"
            if action["form"] in ("text", "record"):
                done.append((kind, _arrays.texts(values, n, what)))
            elif action["form"] == "seen" and action["of"]["words"]:
                raise TypeError(f"{what} carries a number and a text, which a policy in Python cannot perform")
            else:
                done.append((kind, _arrays.doubles(_chosen(action, values), n, what)))
        return done


def _chosen(action: dict[str, Any], values: Any) -> Any:
    """Options by their names, as numbers."""
    if action["form"] != "choice" or isinstance(values, (int, float)) or len(values) == 0:
        return values
    options = action["of"]["options"]
    if not any(isinstance(value, str) for value in values):
        return values
    place = {option: i for i, option in enumerate(options)}
    wrong = next((value for value in values if value is not None and value not in place), None)
    if wrong is not None:
        raise ValueError(f"the action `{action['name']}` has no option {wrong!r} (it has: {', '.join(options)})")
    return [float("nan") if value is None else place[value] for value in values]


class Policy:
    """A policy of a name. :func:`policy` makes it; ``polity.run(..., policies=[it])`` uses it."""

    def __init__(self, name: str, make: Any) -> None:
        self.name = name
        self.summary = (inspect.getdoc(make) or "A policy in Python").splitlines()[0]
        self._make = make
        self.__doc__ = inspect.getdoc(make)

    def open(self, params: str, told: str, core: _polity.Setup) -> _Bound:
        known = json.loads(told)
        return _Bound(self.name, self._make, json.loads(params), Society(known, core), known["numbers"], known["texts"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The class or function itself, as it was written."""
        return self._make(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<polity.Policy {self.name}>"


def policy(name: str) -> Callable[[Any], Policy]:
    """Makes a policy of a class or a function. Scenarios name it: ``policy: {kind: NAME, ...}``.

    A function is called ``function(round, agents, **parameters)``; a class is made with the parameters, and its ``act(round, agents)`` is
    called. Both are called once a round for all agents of a cohort, and return what they do: an array with a value for each agent (a
    number, or the index or name of an option; NaN or None: nothing), or a dictionary of such arrays by action.

    >>> import polity
    >>> @polity.policy("halfway")
    ... def halfway(round, agents, rate=0.5):
    ...     return agents["own-last"] * rate
    """
    _check(name)
    return lambda make: Policy(name, make)


def _check(name: str) -> None:
    if not isinstance(name, str) or not name or any(c.isspace() for c in name):
        raise TypeError(f"a name is given first, without spaces: @polity.policy(\"my-policy\"), not {name!r}")
