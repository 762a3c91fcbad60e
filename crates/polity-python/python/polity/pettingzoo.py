"""Environments of the box for PettingZoo: ``polity.pettingzoo.parallel_env("matrix-game", repeat=10)``."""

from __future__ import annotations

import functools
from typing import Any

try:
    from pettingzoo.utils.env import ParallelEnv  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError("polity.pettingzoo needs PettingZoo: pip install pettingzoo") from error

from ._spaces import Game


class Environment(ParallelEnv):  # type: ignore[misc]
    """An environment with an agent for each seat, ``seat_0``, ``seat_1`` and so on.

    An agent whose turn it is not, and one whose action is not offered, makes no move; ``info["offered"]`` names the actions that are.
    """

    metadata: dict[str, Any] = {"name": "polity", "render_modes": [], "is_parallelizable": True}

    def __init__(self, name: str, *, max_steps: int | None = None, question: str = "", answer: str | None = None, **params: Any) -> None:
        self.game = Game(name, params)
        self.metadata = {**self.metadata, "name": f"polity/{name}"}
        self.possible_agents = [f"seat_{seat}" for seat in range(self.game.seats)]
        self.agents: list[str] = []
        self.render_mode = None
        self._max_steps, self._task = max_steps, (question, answer)
        self._episode: Any = None
        self._steps = 0
        self._draws = self.game.np.random.default_rng(0)

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def observation_space(self, agent: str) -> Any:
        """The same object for the same agent, so that its seed stays."""
        return type(self.game.observation_space)(
            self.game.observation_space.low, self.game.observation_space.high, dtype=self.game.observation_space.dtype
        )

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def action_space(self, agent: str) -> Any:
        """The same object for the same agent, so that its seed stays."""
        import copy

        return copy.deepcopy(self.game.action_space)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self._draws = self.game.np.random.default_rng(seed)
        self._episode = self.game.begin(int(self._draws.integers(0, 2**63)), self._task, options)
        self.agents = list(self.possible_agents)
        self._steps = 0
        return self._seen()

    def episode_state(self) -> dict[str, Any]:
        """The state of the episode. ``reset(options={"state": state})`` begins from it."""
        return self.game.state(self._episode)

    def _seen(self) -> tuple[dict[str, Any], dict[str, Any]]:
        seen = {agent: self.game.seen(self._episode, self.possible_agents.index(agent)) for agent in self.agents}
        return {agent: of[0] for agent, of in seen.items()}, {agent: of[1] for agent, of in seen.items()}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        if not self.agents:
            return {}, {}, {}, {}, {}
        moves = []
        for seat, agent in enumerate(self.possible_agents):
            offered = self._episode.offered(seat)
            if agent in actions and offered:
                move = self.game.move(self._episode, seat, actions[agent])
                if move[1] in offered:
                    moves.append(move)
        rewards, done, results = self._episode.step(moves)
        self._steps += 1
        observations, infos = self._seen()
        for (seat, _, _), result in zip(moves, results):
            infos[f"seat_{seat}"]["result"] = result
        is_cut = self._episode.is_cut()
        truncated = is_cut or self._max_steps is not None and self._steps >= self._max_steps and not done
        got = {agent: float(reward) for agent, reward in zip(self.agents, rewards or [0.0] * len(self.agents))}
        ended = {agent: done and not is_cut for agent in self.agents}
        cut = {agent: truncated for agent in self.agents}
        if done or truncated:
            self.agents = []
        return observations, got, ended, cut, infos

    def render(self) -> None:
        return None


def parallel_env(name: str, **params: Any) -> Environment:
    """Makes an environment in which all seats act at once. ``params`` are those of the scenario's ``{kind: NAME, ...}``."""
    return Environment(name, **params)
