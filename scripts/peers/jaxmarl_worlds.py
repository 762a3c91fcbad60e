"""Environments of the catalogue against JaxMARL's, step by step, in the way of worlds.py:

    jaxmarl_worlds.py compare [WORLD...]  both begin alike and get the same 10,000 actions. Needs JaxMARL and polity itself.
    jaxmarl_worlds.py tape WORLD [EPISODES [STEPS]]

JaxMARL is told to compute in 64 bits, so that what differs is a rule and not a rounding. Where a rule is known to differ, the difference is
undone before the comparison, and counted.
"""
import contextlib
import io
import os
import sys

os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import worlds

# It says on standard output that some of its environments are not there.
with contextlib.redirect_stdout(io.StringIO()):
    import jaxmarl  # noqa: F401


class Particles(worlds.Particles):
    """An environment of JaxMARL's MPE."""

    def __init__(self, make):
        self.env = make()
        self.move = jax.jit(self.env.step_env)
        self.look = jax.jit(self.env.get_obs)
        self.late, self.episodes = set(), 0

    def begin(self, draws):
        self.episodes += 1
        _, self.now = self.env.reset(jax.random.PRNGKey(draws.randrange(2**31)))
        self.steps = 0

    def scene(self):
        at, velocity = np.asarray(self.now.p_pos), np.asarray(self.now.p_vel)
        agents = [{"at": at[i].tolist(), "velocity": velocity[i].tolist()} for i in range(self.seats)]
        return {"agents": agents, "landmarks": at[self.seats :].tolist(), "steps": self.steps}

    def towards(self, own, other):
        dx, dy = np.asarray(self.now.p_pos)[other] - np.asarray(self.now.p_pos)[own]
        if abs(dx) > abs(dy):
            return "right" if dx > 0 else "left"
        return "up" if dy > 0 else "down"

    def step(self, actions):
        moves = {name: jnp.array(self.number(seat, action)) for seat, (name, action) in enumerate(zip(self.env.agents, actions))}
        key = jax.random.PRNGKey(0)
        _, self.now, rewards, over, _ = self.move(key, self.now, moves)
        self.steps += 1
        ended = self.steps >= 25
        if ended:
            # How many steps it would have had there.
            steps, now = self.steps, self.now
            while not over["__all__"]:
                _, now, _, over, _ = self.move(key, now, moves)
                steps += 1
            self.late.add(steps)
        return [float(rewards[name]) for name in self.env.agents], ended, ended

    def observations(self):
        seen = self.look(self.now)
        return [np.asarray(seen[name]).tolist() for name in self.env.agents]

    def differences(self):
        steps = ", ".join(map(str, sorted(self.late)))
        return [f"with max_steps {self.env.max_steps}, JaxMARL's {self.episodes} episodes have {steps} steps, those of mpe2 and ours 25"]


class Spread(Particles):
    kind, seats = "spread", 3
    choose, seen = worlds.Spread.choose, worlds.Spread.seen

    def __init__(self):
        from jaxmarl.environments.mpe import SimpleSpreadMPE

        super().__init__(SimpleSpreadMPE)


class Tag(Particles):
    kind, seats = "tag", 4
    choose, seen = worlds.Tag.choose, worlds.Tag.seen

    def __init__(self):
        from jaxmarl.environments.mpe import SimpleTagMPE

        super().__init__(SimpleTagMPE)

    def begin(self, draws):
        super().begin(draws)
        self.beyond = max(getattr(self, "beyond", 0.0), float(np.abs(np.asarray(self.now.p_pos)[self.seats :]).max()))

    def differences(self):
        return [*super().differences(), f"JaxMARL's obstacles begin up to {self.beyond:.3f} from the axes, those of mpe2 and ours up to 0.9"]


class SpeakerListener(Particles):
    kind, seats = "speaker-listener", 2
    choose, seen, number = worlds.SpeakerListener.choose, worlds.SpeakerListener.seen, worlds.SpeakerListener.number

    def __init__(self):
        from jaxmarl.environments.mpe import SimpleSpeakerListenerMPE

        super().__init__(SimpleSpeakerListenerMPE)

    def begin(self, draws):
        super().begin(draws)
        self.said = None

    def state(self):
        return {"scene": self.scene(), "goal": int(self.now.goal), "said": self.said}

    def step(self, actions):
        self.said = int(actions[0][-1])
        return super().step(actions)


class Overcooked(worlds.Kitchen):
    LAYOUTS = {
        "cramped-room": "cramped_room", "asymmetric-advantages": "asymm_advantages", "coordination-ring": "coord_ring",
        "forced-coordination": "forced_coord", "counter-circuit": "counter_circuit",
    }
    # Its numbers of things, and of what a pot holds: below 20 it cooks, and 0 is done.
    THINGS = {1: None, 2: None, 3: "Onion", 5: "Dish", 9: {"Soup": {"onions": 3, "cooked": 20}}}
    POT, EMPTY, FULL = 8, 23, 20

    def __init__(self):
        from jaxmarl.environments.overcooked import Overcooked as Original
        from jaxmarl.environments.overcooked import overcooked_layouts

        self.layouts = {name: overcooked_layouts[other] for name, other in self.LAYOUTS.items()}
        self.envs = {name: Original(layout=layout) for name, layout in self.layouts.items()}
        self.compiled, self.covered, self.steps = {}, 0, 0

    def begin(self, draws):
        layout = self.next_layout()
        self.params = {"layout": layout, "shaping": 1.0, "self_cooking": True}
        self.env, plan = self.envs[layout], self.layouts[layout]
        if layout not in self.compiled:
            self.compiled[layout] = jax.jit(self.env.step_env)
        self.move = self.compiled[layout]
        marks = {"wall_idx": "X", "onion_pile_idx": "O", "plate_pile_idx": "D", "pot_idx": "P", "goal_idx": "S"}
        tiles = [" "] * (plan["width"] * plan["height"])
        for key, mark in marks.items():
            for cell in np.asarray(plan[key]).tolist():
                tiles[cell] = mark
        self.rows = ["".join(tiles[y * plan["width"] :][: plan["width"]]) for y in range(plan["height"])]
        self.observed, self.now = self.env.reset(jax.random.PRNGKey(draws.randrange(2**31)))
        self.served = 0

    def state(self):
        cooks = [
            {"at": {"x": at[0], "y": at[1]}, "facing": facing, "holds": self.THINGS[holds]}
            for at, facing, holds in zip(
                np.asarray(self.now.agent_pos).tolist(), np.asarray(self.now.agent_dir_idx).tolist(), np.asarray(self.now.agent_inv).tolist()
            )
        ]
        grid = np.asarray(self.now.maze_map)
        edge = (grid.shape[0] - len(self.rows)) // 2
        things = []
        for thing, _, status in grid[edge:-edge, edge:-edge].reshape(-1, 3).tolist():
            if thing == self.POT and status < self.EMPTY:
                cooked = None if status >= self.FULL else self.FULL - status
                things.append({"Soup": {"onions": min(self.EMPTY - status, 3), "cooked": cooked}})
            else:
                things.append(self.THINGS.get(thing))
        return {"cooks": cooks, "things": things, "served": self.served, "steps": int(self.now.step)}

    def step(self, actions):
        numbers = {f"agent_{i}": jnp.array(self.ACTIONS.index(action), jnp.uint32) for i, action in enumerate(actions)}
        self.observed, self.now, rewards, over, infos = self.move(jax.random.PRNGKey(0), self.now, numbers)
        shared = float(rewards["agent_0"])
        self.served += int(shared) // 20
        self.steps += 1
        ended = bool(over["__all__"])
        return [shared + float(infos["shaped_reward"][f"agent_{i}"]) for i in range(2)], ended, ended

    def seen(self):
        seen, counter = [], self.CHANNELS.index("counter")
        width = len(self.rows[0])
        covered = [
            (i % width, i // width)
            for i, thing in enumerate(self.state()["things"])
            if thing is not None and self.rows[i // width][i % width] == "X"
        ]
        self.covered += bool(covered)
        for i in range(2):
            # By column and row, and with the counters on which something lies.
            cells = np.asarray(self.observed[f"agent_{i}"]).transpose(1, 0, 2).copy()
            for x, y in covered:
                assert cells[x, y, counter] == 0
                cells[x, y, counter] = 1
            seen.append(self.named(cells))
        return seen

    def differences(self):
        import polity.pettingzoo

        lines = [
            f"in {self.covered} of {self.steps} steps something lay on a counter, and JaxMARL did not show the counter itself; overcooked_ai does",
            "cooks begin with a direction at random in JaxMARL, facing up in overcooked_ai",
        ]
        for layout, plan in self.layouts.items():
            env = polity.pettingzoo.parallel_env("overcooked", layout=layout)
            env.reset()
            ours = [(cook["at"]["x"], cook["at"]["y"]) for cook in env.episode_state()["cooks"]]
            theirs = [(cell % plan["width"], cell // plan["width"]) for cell in np.asarray(plan["agent_idx"]).tolist()]
            if ours != theirs:
                lines.append(f"in {layout} cooks begin at {theirs[0]} and {theirs[1]} in JaxMARL, at {ours[0]} and {ours[1]} in overcooked_ai")
        return lines


worlds.WORLDS = {f"JaxMARL {world.kind}": world for world in [Spread, Tag, SpeakerListener, Overcooked]}

if __name__ == "__main__":
    worlds.main(*sys.argv[1:])
