"""What Gymnasium and PettingZoo share: an environment's spaces and episodes."""

from __future__ import annotations

import json
import string
from typing import Any

from . import _polity


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("environments need NumPy: pip install numpy") from error
    return numpy


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError("environments need Gymnasium: pip install gymnasium") from error
    return gymnasium


class Game:
    """An environment of the box with the spaces of a seat.

    An observation is a vector of the numbers that a seat sees; texts and tables are in ``info``. An action is a whole number if all actions
    with their arguments can be listed, a vector if there is one action with a number or with a list of so many numbers, else a dictionary of
    the action's number (``action``) and the arguments of all actions (``NAME.ARGUMENT``).
    """

    def __init__(self, name: str, params: dict[str, Any]) -> None:
        self.np, gymnasium = _numpy(), _gymnasium()
        self.name = name
        self.core = _polity.Environment(name, json.dumps(params))
        self.about: dict[str, Any] = json.loads(self.core.about())
        self.seats: int = self.about["seats"]
        self.actions: list[dict[str, Any]] = self.about["actions"]
        spaces = gymnasium.spaces
        # Without any number it is one that is always 0.
        size = max(1, len(self.about["numbers"]))
        self.observation_space = spaces.Box(-self.np.inf, self.np.inf, (size,), self.np.float64)
        self.flat = self._flat()
        self.vector = self._vector()
        if self.flat is not None:
            self.action_space: Any = spaces.Discrete(len(self.flat))
        elif self.vector is not None:
            self.action_space = self._space(spaces, self.vector)
        else:
            of_kind = {"action": spaces.Discrete(len(self.actions))}
            for action in self.actions:
                for argument, schema in _arguments(action):
                    of_kind[f"{action['name']}.{argument}"] = self._space(spaces, schema)
            self.action_space = spaces.Dict(of_kind)

    def begin(self, seed: int, task: tuple[str, str | None], options: dict[str, Any] | None) -> _polity.Episode:
        """Begins an episode; from ``options["state"]``, if there is one, as ``state`` returned it."""
        episode = self.core.begin(seed, 0, *task)
        if options and options.get("state") is not None:
            episode.begin_from(json.dumps(options["state"]))
        return episode

    def state(self, episode: _polity.Episode | None) -> dict[str, Any]:
        """The state of an episode, from which another can begin."""
        if episode is None:
            raise RuntimeError("call reset() before state()")
        state: dict[str, Any] = json.loads(episode.state())
        return state

    def _flat(self) -> list[tuple[int, list[Any]]] | None:
        """All actions with their arguments, if they can be listed."""
        made: list[tuple[int, list[Any]]] = []
        for number, action in enumerate(self.actions):
            if action["form"] == "nothing":
                made.append((number, []))
            elif action["form"] == "choice":
                made.extend((number, [option]) for option in action["of"]["options"])
            else:
                return None
        return made

    def _vector(self) -> dict[str, Any] | None:
        """The JSON Schema of the only argument of the only action, if it consists of so many numbers."""
        arguments = [schema for action in self.actions for _, schema in _arguments(action)]
        one = len(self.actions) == len(arguments) == 1
        return arguments[0] if one and _numbers(arguments[0]) else None

    def _space(self, spaces: Any, schema: dict[str, Any]) -> Any:
        if "enum" in schema:
            return spaces.Discrete(len(schema["enum"]))
        if size := _numbers(schema):
            each = schema.get("items", schema)
            low, high = each.get("minimum", -self.np.inf), each.get("maximum", self.np.inf)
            return spaces.Box(low, high, (size,), self.np.float64)
        return spaces.Text(max_length=1000, min_length=0, charset=string.printable)

    def move(self, episode: _polity.Episode, seat: int, action: Any) -> tuple[int, int, str]:
        """A move of a seat, from an element of the action space."""
        if self.flat is not None:
            number, arguments = self.flat[int(action)]
        elif self.vector is not None:
            number, arguments = 0, [self._of_numbers(action, self.vector)]
        else:
            number = int(action["action"])
            chosen = self.actions[number]
            arguments = []
            for argument, schema in _arguments(chosen):
                value = action[f"{chosen['name']}.{argument}"]
                if "enum" in schema:
                    value = schema["enum"][int(value)]
                elif not isinstance(value, str):
                    value = self._of_numbers(value, schema)
                arguments.append(value)
        return seat, number, json.dumps(arguments)

    def _of_numbers(self, value: Any, schema: dict[str, Any]) -> Any:
        """A number or a list of numbers, from an element of its space."""
        whole = schema.get("items", schema).get("type") == "integer"
        numbers = [int(x) if whole else float(x) for x in self.np.asarray(value).reshape(-1)]
        return numbers if schema.get("type") == "array" else numbers[0]

    def seen(self, episode: _polity.Episode, seat: int) -> tuple[Any, dict[str, Any]]:
        """The observation of a seat, and what else it sees: texts, tables, which actions it is offered, and what it got of each objective."""
        numbers, texts, tables = episode.observe(seat)
        observation = self.np.zeros(self.observation_space.shape, self.np.float64)
        observation[: len(numbers)] = numbers
        offered = episode.offered(seat)
        info: dict[str, Any] = {
            "texts": {field["name"]: text for field, text in zip(self.about["texts"], texts)},
            "tables": {field["name"]: table for field, table in zip(self.about["tables"], tables)},
            "offered": [self.actions[number]["name"] for number in offered],
        }
        objectives = episode.objectives(seat)
        if objectives:
            info["objectives"] = objectives
        if self.flat is not None:
            mask = [number in offered for number, _ in self.flat]
            info["action_mask"] = self.np.array(mask, self.np.int8)
        return observation, info


def _numbers(schema: dict[str, Any]) -> int:
    """How many numbers an argument consists of; 0 if it is something else, or if their number is not fixed."""
    if schema.get("type") in ("number", "integer"):
        return 1
    items, least = schema.get("items", {}), schema.get("minItems", 0)
    of_numbers = schema.get("type") == "array" and items.get("type") in ("number", "integer")
    return int(least) if of_numbers and least == schema.get("maxItems") else 0


def _arguments(action: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The arguments of an action, with their JSON Schemas."""
    form, of = action["form"], action["of"]
    if form == "record":
        schema = of["schema"]
        if schema.get("type") == "object":
            return list(schema["properties"].items())
        return [(action["name"], schema)]
    if form == "number":
        return [(action["name"], {"type": "number", "minimum": of["low"], "maximum": of["high"]})]
    if form == "choice":
        return [(action["name"], {"enum": of["options"]})]
    if form == "text":
        return [(action["name"], {"type": "string"})]
    return []
