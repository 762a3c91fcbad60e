"""Environments of the box for Gymnasium: ``polity.gym.make("shop-tools")``."""

from __future__ import annotations

import copy
from typing import Any

from ._spaces import Game, _gymnasium

gymnasium = _gymnasium()


class Environment(gymnasium.Env):  # type: ignore[misc,name-defined]
    """An environment with one seat, or one seat of an environment whose other seats act at random."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        name: str,
        *,
        render_mode: str | None = None,
        max_steps: int | None = None,
        question: str = "",
        answer: str | None = None,
        **params: Any,
    ) -> None:
        self.game = Game(name, params)
        self.observation_space = self.game.observation_space
        self.action_space = self.game.action_space
        # The other seats draw from a space of their own: the user seeds and samples `action_space`, and an episode repeats all the same.
        self._space_of_others = copy.deepcopy(self.game.action_space)
        self.render_mode = render_mode
        made = {"max_steps": max_steps, "question": question, "answer": answer, **params}
        kwargs = {"name": name, **{key: value for key, value in made.items() if value not in (None, "")}}
        self.spec = gymnasium.envs.registration.EnvSpec(
            id=f"polity/{name}-v0", entry_point="polity.gym:Environment", kwargs=kwargs, order_enforce=False, disable_env_checker=True
        )
        self._task = (question, answer)
        self._max_steps = max_steps
        self._episode: Any = None
        self._steps = 0
        self._results: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode = self.game.begin(int(self.np_random.integers(0, 2**63)), self._task, options)
        if self.game.flat is None and self.game.seats > 1:
            self._space_of_others.seed(int(self.np_random.integers(0, 2**32)))
        self._steps, self._results = 0, []
        return self.game.seen(self._episode, 0)

    def state(self) -> dict[str, Any]:
        """The state of the episode. ``reset(options={"state": state})`` begins from it."""
        return self.game.state(self._episode)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        moves = []
        for seat in range(self.game.seats):
            offered = self._episode.offered(seat)
            chosen = action
            if seat > 0:
                chosen = self._of_others(offered)
            if offered and chosen is not None:
                moves.append(self.game.move(self._episode, seat, chosen))
        # An action that is not offered now is no move; `info["offered"]` names those that are.
        moves = [move for move in moves if move[1] in self._episode.offered(move[0])]
        rewards, done, self._results = self._episode.step(moves)
        self._steps += 1
        observation, info = self.game.seen(self._episode, 0)
        info["results"] = self._results
        cut = self._episode.is_cut()
        truncated = cut or self._max_steps is not None and self._steps >= self._max_steps and not done
        return observation, float(rewards[0]) if rewards else 0.0, done and not cut, truncated, info

    def _of_others(self, offered: list[int]) -> Any:
        flat = self.game.flat
        if flat is None:
            return self._space_of_others.sample() if offered else None
        allowed = [i for i, (number, _) in enumerate(flat) if number in offered]
        return allowed[int(self.np_random.integers(len(allowed)))] if allowed else None

    def render(self) -> Any:
        if self.render_mode != "ansi" or self._episode is None:
            return None
        _, info = self.game.seen(self._episode, 0)
        return "\n".join([*info["texts"].values(), *self._results])


def make(name: str, **params: Any) -> Environment:
    """Makes an environment. ``params`` are the parameters of the scenario's ``{kind: NAME, ...}``; ``max_steps`` truncates episodes."""
    return Environment(name, **params)
