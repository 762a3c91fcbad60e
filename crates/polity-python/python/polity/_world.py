"""Worlds in Python: all actions of a round are applied with one call."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Sequence

from . import _arrays, _polity
from ._policy import Society, _check


class Number:
    """The argument of an action: a number within bounds."""

    def __init__(self, low: float, high: float, doc: str = "") -> None:
        self.doc = doc
        self._form: Any = {"number": [float(low), float(high)]}


class Choice:
    """The argument of an action: one of some options."""

    def __init__(self, options: Sequence[str], doc: str = "") -> None:
        self.doc = doc
        self._form: Any = {"choice": list(options)}


class Text:
    """The argument of an action: a text."""

    _form: Any = "text"

    def __init__(self, doc: str = "") -> None:
        self.doc = doc


class Nothing:
    """An action without an argument."""

    _form: Any = "nothing"

    def __init__(self, doc: str = "") -> None:
        self.doc = doc


class Actions:
    """The actions of a round, in order of agent. ``actions["draw"]`` are those of one kind: ``agents, values``."""

    def __init__(self, names: list[str], who: bytes, kinds: bytes, values: bytes, texts: list[str | None] | None) -> None:
        self._names = names
        #: Who acts.
        self.agent: Any = _arrays.column(who, "u4")
        #: The number of the action.
        self.kind: Any = _arrays.column(kinds, "u4")
        #: The number, or the index of the option.
        self.value: Any = _arrays.column(values, "f8")
        self._texts = texts

    def __len__(self) -> int:
        return len(self.agent)

    def __getitem__(self, name: str) -> tuple[Any, Any]:
        if name not in self._names:
            from ._table import missing

            raise KeyError(missing("the world", "action", name, self._names))
        kind = self._names.index(name)
        if self._texts is not None and any(self._texts[i] is not None for i in range(len(self)) if self.kind[i] == kind):
            own = [i for i in range(len(self)) if self.kind[i] == kind]
            return [self.agent[i] for i in own], [self._texts[i] for i in own]
        if _arrays.numpy() is not None:
            own = self.kind == kind
            return self.agent[own], self.value[own]
        own = [i for i in range(len(self)) if self.kind[i] == kind]
        return [self.agent[i] for i in own], [self.value[i] for i in own]


class _Bound:
    """A world in a society. The Rust side calls it."""

    def __init__(self, name: str, make: Any, params: dict[str, Any], society: Society) -> None:
        self._name, self._society = name, society
        self._world = make(**params)
        self._actions: dict[str, Any] = dict(getattr(self._world, "actions", {}))
        self._observation: dict[str, str] = dict(getattr(self._world, "observation", {}))
        self._columns: dict[str, Any] = dict(getattr(self._world, "columns", {}))
        self._metrics: dict[str, str] = dict(getattr(self._world, "metrics", {}))
        self._reward: str | None = getattr(self._world, "reward", None)
        for method in ("init", "observe", "apply"):
            if not callable(getattr(self._world, method, None)):
                raise TypeError(f"the world `{name}` has no method {method}()")
        self._own = self._attributes()

    def _attributes(self) -> dict[str, int]:
        return {key: id(value) for key, value in getattr(self._world, "__dict__", {}).items()}

    def declared(self) -> str:
        def column(name: str, of: Any) -> tuple[str, str, Any]:
            return (name, of, None) if isinstance(of, str) else (name, of[0], [float(of[1]), float(of[2])])

        return json.dumps(
            {
                "observation": list(self._observation.items()),
                "actions": [(name, action.doc, action._form) for name, action in self._actions.items()],
                "columns": [column(name, of) for name, of in self._columns.items()],
                "reward": self._reward,
                "metrics": list(self._metrics.items()),
            }
        )

    def begin(self, agents: int, key: tuple[int, int]) -> tuple[bytes, list[bytes], str | None]:
        return self._shown(self._world.init(self._society, _arrays.generator(key)), None)

    def step(
        self,
        round: int,
        who: bytes,
        kinds: bytes,
        values: bytes,
        texts: list[str | None] | None,
        state: bytes,
        key: tuple[int, int],
    ) -> tuple[bytes, list[bytes], str | None]:
        kept = _arrays.unpacked(state)
        actions = Actions(list(self._actions), who, kinds, values, texts)
        ends = self._world.apply(round, kept, actions, _arrays.generator(key))
        if ends is not None and not isinstance(ends, str):
            raise TypeError(f"apply() must return None, or the reason why the run ends as a text, not {ends!r}; it changes `state` in place")
        return self._shown(kept, ends)

    def _shown(self, state: Any, ends: str | None) -> tuple[bytes, list[bytes], str | None]:
        kept, shown = _arrays.packed(state, f"the world `{self._name}`"), list[bytes]()
        parts: list[tuple[str, Any, list[str]]] = [
            ("observe", self._observation, list(self._observation)),
            ("measure", self._columns, [*self._columns, *(["reward"] if self._reward else [])]),
            ("summarise", self._metrics, list(self._metrics)),
        ]
        for method, _, names in parts:
            if not names:
                continue
            made = getattr(self._world, method)(state)
            for name in names:
                if name not in made:
                    raise KeyError(f"{method}() returned no `{name}`, which the world declares")
                shown.append(self._column(made[name], f"`{name}` of {method}()"))
        if self._attributes() != self._own:
            raise TypeError("a method changed an attribute of the world, which is not saved with the run: keep it in `state`")
        return kept, shown, ends

    def _column(self, values: Any, what: str) -> bytes:
        n = 1 if isinstance(values, (int, float)) or getattr(values, "ndim", 1) == 0 else self._society.agents
        return _arrays.doubles(values, n, what)


class World:
    """A world of a name. :func:`world` makes it; ``polity.run(..., worlds=[it])`` uses it."""

    def __init__(self, name: str, make: Any) -> None:
        self.name = name
        self.summary = (inspect.getdoc(make) or "A world in Python").splitlines()[0]
        self._make = make
        self.__doc__ = inspect.getdoc(make)

    def open(self, params: str, told: str, core: _polity.Setup) -> _Bound:
        return _Bound(self.name, self._make, json.loads(params), Society(json.loads(told), core))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The class itself, as it was written."""
        return self._make(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<polity.World {self.name}>"


def world(name: str) -> Callable[[Any], World]:
    """Makes a world of a class. Scenarios name it: ``world: {kind: NAME, ...}``.

    The class declares ``observation`` (name: meaning), ``actions`` (name: :class:`Number`, :class:`Choice`, :class:`Text` or
    :class:`Nothing`), and may declare ``columns`` (numbers of each agent, for metrics), ``metrics`` (numbers of the round) and ``reward``.
    Its methods: ``init(society, rng)`` returns the state; ``apply(round, state, actions, rng)`` changes it; ``observe(state)`` returns
    what agents see, ``measure(state)`` the columns and the reward, ``summarise(state)`` the metrics: dictionaries of one number for all, or
    an array with one for each agent. The state holds numbers, texts, lists, dictionaries and NumPy arrays, and is saved with the run.
    """
    _check(name)
    return lambda make: World(name, make)
