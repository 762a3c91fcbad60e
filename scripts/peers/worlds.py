"""Environments of the catalogue against the programs that they re-implement, step by step.

    worlds.py compare [WORLD...]  feeds both the same starting states and the same 10,000 actions, and compares what every seat sees and gets,
                                  the states, and the ends. Needs the packages of scripts/worlds-as-originals.sh and polity itself. The exit
                                  status is 1 if anything differs.
    worlds.py tape WORLD [EPISODES [STEPS]]  writes episodes of the original program as a tape for the test of the environment.
    worlds.py beach               writes a tape of MOMAland's beach, which a scenario plays (`systems/momaland/beach.yaml`).
    worlds.py foragers            prints what agents earn in lbforaging that follow the rule of the test of `lbf`, as a mean over 3,000 fields.

Grids are compared exactly. Numbers with a point are compared to 1e-9 (relative to the larger of 1 and the number): both sides compute in 64
bits, but a sine or an exponential may differ in its last bit, which contact between bodies amplifies. What the original shows in 32 bits is
compared to 1e-6.
"""
import json
import math
import os
import random
import sys
import warnings

import numpy as np

STEPS = 10_000


class Original:
    """An original program. A state is as the environment of the catalogue writes it; an action is the name of ours, `[name, number]`, or
    None."""

    exact = False
    # To what views are compared.
    views = 1e-9
    # The parameters of the environment; what chance did in the last step, as a part of the state before it; and the most steps that a
    # tape skips.
    params: dict = {}
    chance: dict = {}
    skips = 1
    # Whether that made a difference, and a part of the state after the step that a tape notes.
    matters = True
    noted: dict = {}

    def begin(self, draws):
        """Begins an episode at random."""
        raise NotImplementedError

    def state(self):
        raise NotImplementedError

    def choose(self, draws):
        """An action of each seat."""
        raise NotImplementedError

    def step(self, actions):
        """Rewards by seat, whether the episode has ended, and whether it was only cut off."""
        raise NotImplementedError

    def written(self, actions):
        """The actions as a tape has them."""
        return actions

    def seen(self):
        """For each seat what it sees, by the names of ours."""
        raise NotImplementedError

    def luck(self):
        """A chance that could be, to begin with."""
        return {}

    def differences(self):
        """What is known to be different and was compared with it undone, line by line."""
        return []


class Pendulum(Original):
    kind, seats, views = "pendulum", 1, 1e-6

    def __init__(self):
        import gymnasium

        self.env = gymnasium.make("Pendulum-v1").unwrapped

    def begin(self, draws):
        self.params = {"gravity": draws.choice([10.0, 9.81, 3.0])}
        self.env.g = self.params["gravity"]
        self.env.reset(seed=draws.randrange(2**31))
        self.steps = 0

    def state(self):
        angle, speed = self.env.state
        return {"angle": float(angle), "speed": float(speed), "steps": self.steps}

    def choose(self, draws):
        # Along the speed most of the time, so that it also swings up.
        torque = draws.uniform(-2, 2)
        return [["torque", math.copysign(torque, self.env.state[1]) if draws.random() < 0.6 else torque]]

    def step(self, actions):
        # In 64 bits: a torque of 32 bits would make the cost less exact.
        _, reward, _, _, _ = self.env.step(np.array([actions[0][1]], np.float64))
        self.steps += 1
        return [float(reward)], self.steps >= 200, self.steps >= 200

    def seen(self):
        return [dict(zip(["cosine", "sine", "speed"], map(float, self.env._get_obs())))]


PUSHES = ["stay", "left", "right", "down", "up"]


class Particles(Original):
    """An environment of mpe2."""

    def __init__(self, module):
        self.env = module.parallel_env(max_cycles=25)

    @property
    def world(self):
        return self.env.unwrapped.world

    def begin(self, draws):
        self.env.reset(seed=draws.randrange(2**31))
        self.steps = 0

    def scene(self):
        pair = lambda array: [float(x) for x in array]  # noqa: E731
        agents = [{"at": pair(a.state.p_pos), "velocity": pair(a.state.p_vel)} for a in self.world.agents]
        return {"agents": agents, "landmarks": [pair(mark.state.p_pos) for mark in self.world.landmarks], "steps": self.steps}

    def state(self):
        return self.scene()

    def towards(self, own, other):
        dx, dy = self.world.agents[other].state.p_pos - self.world.agents[own].state.p_pos
        if abs(dx) > abs(dy):
            return "right" if dx > 0 else "left"
        return "up" if dy > 0 else "down"

    def number(self, seat, action):
        return PUSHES.index(action)

    def step(self, actions):
        names = self.env.possible_agents
        moves = {name: self.number(seat, action) for seat, (name, action) in enumerate(zip(names, actions))}
        self.observed, rewards, _, cut, _ = self.env.step(moves)
        self.steps += 1
        return [float(rewards[name]) for name in names], self.steps >= 25, bool(cut[names[0]])

    def observations(self):
        env = self.env.unwrapped
        return [[float(x) for x in env.scenario.observation(agent, env.world)] for agent in env.world.agents]


def places(what, many):
    return [f"{what}-{i}-{axis}" for i in range(many) for axis in "xy"]


OWN = ["velocity-x", "velocity-y", "x", "y"]


class Spread(Particles):
    kind, seats = "spread", 3

    def __init__(self):
        from mpe2 import simple_spread_v3

        super().__init__(simple_spread_v3)

    def choose(self, draws):
        return [self.towards(seat, (seat + 1) % 3) if draws.random() < 0.4 else draws.choice(PUSHES) for seat in range(3)]

    def seen(self):
        # The last four numbers are messages, which are always 0.
        assert all(seen[14:] == [0.0] * 4 for seen in self.observations())
        return [dict(zip(OWN + places("landmark", 3) + places("other", 2), seen[:14])) for seen in self.observations()]


class Tag(Particles):
    kind, seats = "tag", 4

    def __init__(self):
        from mpe2 import simple_tag_v3

        super().__init__(simple_tag_v3)

    def choose(self, draws):
        chase = [self.towards(seat, 3) if draws.random() < 0.7 else draws.choice(PUSHES) for seat in range(3)]
        return [*chase, draws.choice(PUSHES)]

    def seen(self):
        names = OWN + places("landmark", 2) + places("other", 3)
        seen = self.observations()
        chasers = [dict(zip([*names, "runner-0-velocity-x", "runner-0-velocity-y"], one), chases=1.0) for one in seen[:3]]
        nobody = {"runner-0-velocity-x": 0.0, "runner-0-velocity-y": 0.0, "chases": 0.0}
        return [*chasers, {**dict(zip(names, seen[3])), **nobody}]


class SpeakerListener(Particles):
    kind, seats = "speaker-listener", 2

    def __init__(self):
        from mpe2 import simple_speaker_listener_v4

        super().__init__(simple_speaker_listener_v4)

    def begin(self, draws):
        super().begin(draws)
        self.said = None

    def state(self):
        goal = self.world.landmarks.index(self.world.agents[0].goal_b)
        return {"scene": self.scene(), "goal": goal, "said": self.said}

    def choose(self, draws):
        return [f"say-{draws.randrange(3)}", draws.choice(PUSHES)]

    def number(self, seat, action):
        return int(action[-1]) if seat == 0 else PUSHES.index(action)

    def step(self, actions):
        self.said = int(actions[0][-1])
        return super().step(actions)

    def seen(self):
        speaker, listener = self.observations()
        goal = ["goal-red", "goal-green", "goal-blue"]
        ears = ["velocity-x", "velocity-y", *places("landmark", 3), "heard-0", "heard-1", "heard-2"]
        nothing = dict.fromkeys(goal + ears, 0.0)
        return [{**nothing, **dict(zip(goal, speaker)), "speaks": 1.0}, {**nothing, **dict(zip(ears, listener)), "speaks": 0.0}]


FORAGING = ["none", "north", "south", "west", "east", "load"]


class Foraging(Original):
    """lbforaging, on fields of several kinds."""

    kind, exact, skips = "lbf", True, 30

    def begin(self, draws):
        from lbforaging.foraging import ForagingEnv

        kinds = [(8, 2, 3, 0, False, 0.0), (8, 2, 3, 2, True, 0.0), (6, 4, 4, 0, False, 0.25), (10, 3, 3, 3, True, 0.5), (5, 5, 2, 1, False, 0.0)]
        size, self.seats, food, sight, coop, penalty = draws.choice(kinds)
        self.params = {"size": size, "players": self.seats, "food": food, "sight": sight, "cooperative": coop, "penalty": penalty, "top_level": 3}
        self.food = food
        self.env = ForagingEnv(
            players=self.seats, min_player_level=1, max_player_level=3, min_food_level=1, max_food_level=None, field_size=(size, size),
            max_num_food=food, sight=sight or size, max_episode_steps=50, force_coop=coop, penalty=penalty,
        )
        self.observed, _ = self.env.reset(seed=draws.randrange(2**31))

    def state(self):
        players = [{"at": {"x": int(p.position[1]), "y": int(p.position[0])}, "level": int(p.level)} for p in self.env.players]
        food = [int(level) for level in self.env.field.flatten()]
        return {"players": players, "food": food, "spawned": int(self.env._food_spawned), "steps": self.env.current_step}

    def choose(self, draws):
        chosen = []
        for player in self.env.players:
            action = draws.randrange(6)
            foods = list(zip(*self.env.field.nonzero()))
            if foods and draws.random() < 0.8:
                row, column = min(foods, key=lambda at: abs(at[0] - player.position[0]) + abs(at[1] - player.position[1]))
                down, right = row - player.position[0], column - player.position[1]
                if abs(down) + abs(right) == 1:
                    action = 5
                elif down and (abs(down) > 1 or not right):
                    action = 2 if down > 0 else 1
                else:
                    action = 4 if right > 0 else 3
            chosen.append(FORAGING[action])
        return chosen

    def step(self, actions):
        self.observed, rewards, over, _, _ = self.env.step([FORAGING.index(action) for action in actions])
        return [float(reward) for reward in rewards], bool(over), bool(over) and bool(self.env.field.any())

    def seen(self):
        names = [f"{what}-{i}-{of}" for what, many in [("food", self.food), ("player", self.seats)] for i in range(many) for of in ["y", "x", "level"]]
        return [dict(zip(names, map(float, seen))) for seen in self.observed]


class PredatorPrey(Original):
    """stag_hunt of wendelinboehmer/dcg, as in its rel_overgen.yaml. Its file is that of the environment variable POLITY_STAG_HUNT."""

    kind, exact, seats, skips = "predator-prey", True, 8, 25
    WAYS = ["right", "down", "left", "up", "stay", "catch"]

    def __init__(self):
        import importlib.util
        import os
        import types

        # What the file imports beside NumPy: a base class without anything, named arguments, and two libraries that it does not use here.
        class Base:
            pass

        def stand_in(name, **members):
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(members)

        for name in ["envs", "utils", "torch", "pygame"]:
            stand_in(name)
        stand_in("envs.multiagentenv", MultiAgentEnv=Base)
        stand_in("utils.dict2namedtuple", convert=lambda args: types.SimpleNamespace(**args))
        # NumPy no longer has it.
        np.random.random_integers = lambda low, high, size: np.random.randint(low, high + 1, size)
        spec = importlib.util.spec_from_file_location("stag_hunt", os.environ["POLITY_STAG_HUNT"])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.make = lambda limit: module.StagHunt(
            agent_obs=[2, 2], agent_move_block=[0, 1, 2], capture_action=True, capture_conditions=[0, 1],
            capture_action_conditions=[2, 1], capture_freezes=True, capture_terminal=False, directed_observations=False,
            episode_limit=limit, miscapture_punishment=-2, mountain_slope=0.0, mountain_spawn=False, mountain_agent_row=-1,
            n_agents=8, n_hare=0, n_stags=8, observe_state=False, observe_walls=False, observe_ids=False, observe_one_hot=False,
            p_stags_rest=0.0, p_hare_rest=0.0, prevent_cannibalism=True, random_ghosts=False, remove_frozen=True, reward_hare=1,
            reward_stag=10, reward_collision=0, reward_time=0, toroidal=False, world_shape=[10, 10],
        )

    def begin(self, draws):
        self.draws = draws
        np.random.seed(draws.randrange(2**31))
        limit = draws.choice([200, 40])
        self.params = {"steps": limit}
        self.env = self.make(limit)
        self.env.reset()

    def state(self):
        def animals(places, there):
            return [{"at": {"x": int(x), "y": int(y)}, "there": bool(is_there)} for (y, x), is_there in zip(places[:, 0], there[:, 0])]

        hunters = animals(self.env.agents, self.env.agents_not_frozen)
        return {"hunters": hunters, "prey": animals(self.env.prey, self.env.prey_alive), "steps": self.env.steps}

    def luck(self):
        return {"luck": {"hunters": list(range(8)), "prey": list(range(8)), "ways": [0] * 8}}

    def choose(self, draws):
        chosen = []
        for seat in range(8):
            offered = [way for way, can in zip(self.WAYS, self.env.get_avail_agent_actions(seat)) if can]
            chosen.append("catch" if "catch" in offered and draws.random() < 0.5 else draws.choice(offered))
        return chosen

    def step(self, actions):
        orders, ways, last = [], [0] * 8, [None]

        def permutation(n):
            order = list(range(n))
            self.draws.shuffle(order)
            orders.append(order)
            for one in order:
                last[0] = one
                yield one

        def randint(n):
            ways[last[0]] = self.draws.randrange(n)
            return ways[last[0]]

        class Tensor:
            def cpu(self):
                return [self_actions.index(action) for action in actions]

        self_actions, kept = self.WAYS, (np.random.permutation, np.random.randint)
        np.random.permutation, np.random.randint = permutation, randint
        reward, ended, _ = self.env.step(Tensor())
        np.random.permutation, np.random.randint = kept
        self.chance = {"luck": {"hunters": orders[0], "prey": orders[1], "ways": ways}}
        left = bool(self.env.prey_alive.any()) and bool(self.env.agents_not_frozen.any())
        return [float(reward)] * 8, bool(ended), bool(ended) and left

    def seen(self):
        seen = []
        for seat in range(8):
            cells = np.asarray(self.env.get_obs_agent(seat)).reshape(5, 5, 3)
            assert not cells[:, :, 2].any()
            names = {"hunter": 0, "prey": 1}
            seen.append({f"{name}-{x}-{y}": float(cells[y, x, of]) for name, of in names.items() for y in range(5) for x in range(5)})
        return seen


class Kitchen(Original):
    """The kitchens of Overcooked. `rows` has their tiles: counters X, boxes O and D, pots P, windows S, floor."""

    kind, exact, seats, skips = "overcooked", True, 2, 300
    # The names of the program's layouts, by those of ours.
    LAYOUTS: dict = {}
    ACTIONS = ["north", "south", "east", "west", "stay", "interact"]
    WAYS = [(0, -1), (0, 1), (1, 0), (-1, 0)]
    CHANNELS = [
        "own", "other", "own-north", "own-south", "own-east", "own-west", "other-north", "other-south", "other-east", "other-west", "pot",
        "counter", "onion-box", None, "dish-box", "window", "onions-in-pot", None, "onions-in-soup", None, "time-left", "done", "dish",
        "onion", None, "urgent",
    ]
    rows: list = []

    def next_layout(self):
        """One kitchen after the other."""
        self.kitchens = getattr(self, "kitchens", -1) + 1
        return list(self.LAYOUTS)[self.kitchens % len(self.LAYOUTS)]

    def tiles(self, tile):
        return [(x, y) for y, row in enumerate(self.rows) for x, one in enumerate(row) if one == tile]

    def wish(self, held, things, draws):
        """Cells on which a cook could act next, with what it holds. `things`: what lies on cells, as in the state."""
        soups = {at: thing["Soup"] for at in self.tiles("P") if (thing := things.get(at))}
        cooking = [at for at, soup in soups.items() if soup["cooked"] is not None]
        counters = self.tiles("X")
        if draws.random() < 0.15:
            return counters
        if held == "Onion":
            filling = [at for at, soup in soups.items() if soup["cooked"] is None and soup["onions"] < 3]
            return filling + [at for at in self.tiles("P") if at not in soups] or counters
        if held == "Dish":
            return cooking or counters
        if held is not None:
            return self.tiles("S")
        full = [at for at, soup in soups.items() if soup["cooked"] is None and soup["onions"] == 3]
        if full or cooking:
            return full or [at for at, lies in things.items() if lies != "Onion" and at not in soups] + self.tiles("D")
        return [at for at, lies in things.items() if lies == "Onion"] + self.tiles("O")

    def choose(self, draws):
        state = self.state()
        width = len(self.rows[0])
        things = {(i % width, i // width): thing for i, thing in enumerate(state["things"]) if thing is not None}
        floor, chosen = set(self.tiles(" ")), []
        for cook in state["cooks"]:
            if draws.random() < 0.15:
                chosen.append(draws.choice(self.ACTIONS))
                continue
            # The first step of a shortest way to a cell beside one of the wishes; counters if there is no way.
            found, start = None, (cook["at"]["x"], cook["at"]["y"])
            for wishes in [set(self.wish(cook["holds"], things, draws)), set(self.tiles("X"))]:
                queue, seen = [(start, None)], {start}
                while queue and found is None:
                    at, first = queue.pop(0)
                    ways = list(enumerate(self.WAYS))
                    draws.shuffle(ways)
                    for number, (dx, dy) in ways:
                        to = (at[0] + dx, at[1] + dy)
                        if to in wishes:
                            acts = first is None and cook["facing"] == number
                            found = 5 if acts else number if first is None else first
                            break
                        if to not in seen and to in floor:
                            seen.add(to)
                            queue.append((to, number if first is None else first))
                if found is not None:
                    break
            chosen.append(self.ACTIONS[4 if found is None else found])
        return chosen

    def named(self, cells):
        """What a cook sees, from the encoding by column, row and channel."""
        seen = {}
        for channel, name in enumerate(self.CHANNELS):
            if name is None:
                assert not cells[:, :, channel].any()
                continue
            for x in range(cells.shape[0]):
                for y in range(cells.shape[1]):
                    seen[f"{name}-{x}-{y}"] = float(cells[x, y, channel])
        return seen


class Overcooked(Kitchen):
    """overcooked_ai."""

    LAYOUTS = {
        "cramped-room": "cramped_room", "asymmetric-advantages": "asymmetric_advantages", "coordination-ring": "coordination_ring",
        "forced-coordination": "forced_coordination", "counter-circuit": "counter_circuit_o_1order",
    }

    def begin(self, draws):
        from overcooked_ai_py.mdp.overcooked_mdp import OvercookedGridworld

        layout = self.next_layout()
        self.params = {"layout": layout, "shaping": 1.0}
        self.world = OvercookedGridworld.from_layout_name(self.LAYOUTS[layout])
        self.rows = self.world.terrain_mtx
        self.now = self.world.get_standard_start_state()
        self.served = 0

    def thing(self, thing):
        if thing is None or thing.name != "soup":
            return thing and thing.name.capitalize()
        return {"Soup": {"onions": len(thing.ingredients), "cooked": None if thing.is_idle else thing._cooking_tick}}

    def state(self):
        cell = lambda at: {"x": at[0], "y": at[1]}  # noqa: E731
        cooks = [
            {"at": cell(p.position), "facing": self.WAYS.index(p.orientation), "holds": self.thing(p.held_object)}
            for p in self.now.players
        ]
        cells = [(x, y) for y in range(self.world.height) for x in range(self.world.width)]
        things = [self.thing(self.now.objects.get(at)) for at in cells]
        return {"cooks": cooks, "things": things, "served": self.served, "steps": self.now.timestep}

    def step(self, actions):
        from overcooked_ai_py.mdp.actions import Action

        joint = [Action.INDEX_TO_ACTION[self.ACTIONS.index(action)] for action in actions]
        self.now, infos = self.world.get_state_transition(self.now, joint)
        shared = sum(infos["sparse_reward_by_agent"])
        self.served += shared // 20
        ended = self.now.timestep >= 400
        return [float(shared + own) for own in infos["shaped_reward_by_agent"]], ended, ended

    def seen(self):
        return [self.named(cells) for cells in self.world.lossless_state_encoding(self.now, horizon=400)]


class GridRoom(Original):
    kind, exact, seats, skips = "grid-room", True, 1, 15
    ACTIONS = ["left", "right", "forward", "pickup", "drop", "toggle", "done"]

    def begin(self, draws):
        from minigrid.envs import DoorKeyEnv, EmptyEnv

        size, task = draws.choice([5, 6, 6, 8, 16]), draws.choice(["door-key", "door-key", "door-key", "empty", "empty-random"])
        self.params = {"size": size, "task": task}
        if task == "door-key":
            self.env = DoorKeyEnv(size=size)
        else:
            self.env = EmptyEnv(size=size) if task == "empty" else EmptyEnv(size=size, agent_start_pos=None)
        self.observed, _ = self.env.reset(seed=draws.randrange(2**31))

    def state(self):
        def tile(thing):
            if thing is None:
                return "nothing"
            if thing.type == "door":
                return "locked" if thing.is_locked else "open" if thing.is_open else "closed"
            return thing.type

        x, y = self.env.agent_pos
        tiles = [tile(thing) for thing in self.env.grid.grid]
        return {
            "tiles": tiles, "at": {"x": int(x), "y": int(y)}, "facing": int(self.env.agent_dir), "carries": self.env.carrying is not None,
            "steps": self.env.step_count,
        }

    def choose(self, draws):
        if draws.random() < 0.3:
            return draws.choices(self.ACTIONS, [20, 20, 50, 2, 4, 6, 3])
        # The first step of a shortest way to the key, then to the door, then to the goal.
        grid, at = self.env.grid, tuple(map(int, self.env.agent_pos))
        things = {thing.type: (i % grid.width, i // grid.width) for i, thing in enumerate(grid.grid) if thing is not None}
        locked = "door" in things and grid.get(*things["door"]).is_locked
        aim = things["goal"] if not locked else things["door"] if self.env.carrying else things["key"]
        queue, seen = [(at, None)], {at}
        while queue:
            cell, first = queue.pop(0)
            for way, (dx, dy) in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)]):
                to = (cell[0] + dx, cell[1] + dy)
                way = way if first is None else first
                thing = grid.get(*to)
                if to == aim:
                    if way != self.env.agent_dir:
                        return [draws.choice(["left", "right"])]
                    if to == (at[0] + dx, at[1] + dy) and thing.type in ["key", "door"]:
                        return ["pickup" if thing.type == "key" else "toggle"]
                    return ["forward"]
                if to not in seen and (thing is None or thing.type in ["goal", "door"] and not locked):
                    seen.add(to)
                    queue.append((to, way))
        return [draws.choice(self.ACTIONS)]

    def step(self, actions):
        self.observed, reward, over, cut, _ = self.env.step(self.ACTIONS.index(actions[0]))
        return [float(reward)], bool(over or cut), bool(cut and not over)

    def seen(self):
        image, channels = self.observed["image"], ["object", "colour", "state"]
        seen = {f"{name}-{x}-{y}": float(image[x, y, i]) for i, name in enumerate(channels) for x in range(7) for y in range(7)}
        return [{**seen, "direction": float(self.observed["direction"])}]


class Warehouse(Original):
    """rware, on warehouses of several kinds. Joint actions that bring lines of equal length to the same cell are not chosen: which line goes
    depends on the order of a Python set there."""

    kind, exact, skips = "rware", True, 150
    ACTIONS = ["wait", "forward", "left", "right", "toggle-load"]
    WAYS = [(0, -1), (0, 1), (-1, 0), (1, 0)]

    def begin(self, draws):
        from rware.warehouse import RewardType, Warehouse as Original

        rewards = draws.choice(["individual", "global", "two-stage"])
        kind = {"global": RewardType.GLOBAL, "individual": RewardType.INDIVIDUAL, "two-stage": RewardType.TWO_STAGE}[rewards]
        rows, columns, height, self.seats, requests, sight = draws.choice([(1, 3, 8, 2, 2, 1), (1, 3, 3, 4, 6, 1), (2, 3, 2, 6, 8, 2), (2, 1, 2, 3, 1, 1)])
        self.params = {
            "shelf_rows": rows, "shelf_columns": columns, "column_height": height, "robots": self.seats, "requests": requests, "sight": sight,
            "rewards": rewards, "steps": 500,
        }
        self.env = Original(columns, height, rows, self.seats, 0, sight, requests, None, 500, kind)
        self.observed, _ = self.env.reset(seed=draws.randrange(2**31))
        self.draws = draws

    def number(self, shelf):
        return shelf.id - 1

    def state(self):
        cell = lambda one: {"x": int(one.x), "y": int(one.y)}  # noqa: E731
        robots = [
            {
                "at": cell(a), "facing": a.dir.value, "carries": self.number(a.carrying_shelf) if a.carrying_shelf else None,
                # The program remembers deliveries for two-stage rewards alone.
                "delivered": bool(a.has_delivered),
            }
            for a in self.env.agents
        ]
        requests = [self.number(shelf) for shelf in self.env.request_queue]
        return {"robots": robots, "shelves": [cell(shelf) for shelf in self.env.shelfs], "requests": requests, "steps": self.env._cur_steps}

    def luck(self):
        return {"luck": [0, 0]}

    def heading(self, robot, aims, draws):
        """The next action on a shortest way to one of some cells; with a shelf, only where no other shelf is."""
        shelves = {(shelf.x, shelf.y) for shelf in self.env.shelfs} if robot.carrying_shelf else set()
        start = (robot.x, robot.y)
        queue, seen = [(start, None)], {start}
        while queue:
            at, first = queue.pop(0)
            if at in aims:
                if first is None:
                    return "toggle-load"
                if first == robot.dir.value:
                    return "forward"
                order = [0, 3, 1, 2]
                turn = (order.index(first) - order.index(robot.dir.value)) % 4
                return "left" if turn == 3 else "right"
            for way, (dx, dy) in draws.sample(list(enumerate(self.WAYS)), 4):
                to = (at[0] + dx, at[1] + dy)
                inside = 0 <= to[0] < self.env.grid_size[1] and 0 <= to[1] < self.env.grid_size[0]
                if inside and to not in seen and to not in shelves:
                    seen.add(to)
                    queue.append((to, way if first is None else first))
        return draws.choice(self.ACTIONS)

    def one(self, robot, draws):
        if draws.random() < 0.25:
            return draws.choices(self.ACTIONS, [1, 5, 1, 1, 1])[0]
        asked = {(shelf.x, shelf.y) for shelf in self.env.request_queue}
        if robot.carrying_shelf is None:
            carried = {(a.x, a.y) for a in self.env.agents if a.carrying_shelf}
            return self.heading(robot, asked - carried, draws)
        if robot.carrying_shelf in self.env.request_queue:
            return self.heading(robot, set(self.env.goals), draws)
        shelves = {(shelf.x, shelf.y) for shelf in self.env.shelfs}
        h, w = self.env.grid_size
        return self.heading(robot, {(x, y) for x in range(w) for y in range(h) if not self.env._is_highway(x, y)} - shelves, draws)

    def decided(self, actions):
        """Whether no two lines of equal length want to go to the same free cell."""
        at = {(a.x, a.y): i for i, a in enumerate(self.env.agents)}
        wanted = {}
        for i, (a, action) in enumerate(zip(self.env.agents, actions)):
            dx, dy = self.WAYS[a.dir.value] if action == "forward" else (0, 0)
            wanted[i] = (min(max(a.x + dx, 0), self.env.grid_size[1] - 1), min(max(a.y + dy, 0), self.env.grid_size[0] - 1))
        lines = {}
        for i in wanted:
            cell, length, passed = wanted[i], 1, {i}
            while cell in at and at[cell] not in passed:
                passed.add(at[cell])
                cell, length = wanted[at[cell]], length + 1
            if cell not in at:
                # The last cells of a line are its own; where lines meet, only their lengths up to there count.
                lines.setdefault(cell, []).append(length)
        return all(lengths.count(max(lengths)) == 1 for lengths in lines.values())

    def choose(self, draws):
        while True:
            actions = [self.one(robot, draws) for robot in self.env.agents]
            if self.decided(actions):
                return actions

    def step(self, actions):
        # The places among the shelves that are not asked for that the program draws.
        drawn, generator = [], self.env.np_random

        class Generator:
            def choice(inner, candidates):
                drawn.append(self.draws.randrange(len(candidates)))
                return candidates[drawn[-1]]

        self.env._np_random = Generator()
        self.observed, rewards, over, _, _ = self.env.step([self.ACTIONS.index(action) for action in actions])
        self.env._np_random = generator
        self.chance = {"luck": [*drawn, 0, 0][:2]}
        return [float(reward) for reward in rewards], bool(over), bool(over)

    def seen(self):
        side = 2 * self.env.sensor_range + 1
        faces = ["up", "down", "left", "right"]
        names = ["x", "y", "carries", *[f"faces-{name}" for name in faces], "on-lane"]
        for y in range(side):
            for x in range(side):
                names += [f"robot-{x}-{y}", *[f"robot-{name}-{x}-{y}" for name in faces], f"shelf-{x}-{y}", f"asked-{x}-{y}"]
        return [dict(zip(names, map(float, seen), strict=True)) for seen in self.observed]


class ItemGathering(Original):
    """MOMAland's item gathering, on maps of several kinds. What its program draws is given to ours as luck: who wins a cell that two agents want
    who both come from elsewhere (its other draws between two agents change nothing in the end), and whether an agent gathers."""

    kind, exact = "item-gathering", True
    ACTIONS = ["stay", "up", "down", "left", "right"]
    WAYS = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]
    DEFAULT = [".......@", "........", ".....2..", "..2.23..", "...1....", "..11.3..", "........", "@......."]
    MAPS = [
        (DEFAULT, None, False), (DEFAULT, None, True), (["@@@@@", "1.2.1", ".3@4.", "1.2.1"], None, False),
        (["@2@", "1.1", "@2@"], [0.05, 0.1], True), (["@1......", ".2@..1..", "...2..@.", "......1.", "2......@"], [1.0, 0.1], False),
    ]

    def begin(self, draws):
        from momaland.envs.item_gathering import item_gathering as module

        rows, pickup, team = draws.choices(self.MAPS, [4, 3, 1, 1, 2])[0]
        steps, shuffle = draws.choice([10, 50, 200]), draws.random() < 0.3
        # For the program, an agent is 1 and an item is 2 or more.
        tiles = np.array([[".@123456789".index(mark) for mark in row] for row in rows])
        self.env = module.MOItemGathering(
            num_timesteps=steps, initial_map=tiles, randomise=shuffle, reward_mode="team" if team else "individual", pickup_probabilities=pickup,
        )
        self.seats, self.types = len(self.env.possible_agents), self.env.num_objectives
        self.params = {"map": rows, "shuffle": shuffle, "team": team, "pickup": pickup or [], "steps": steps}
        self.draws, self.got = draws, [0] * self.seats * self.types
        self.env.reset(seed=draws.randrange(2**31))
        verify = self.env._verify_positions

        def verified(i, j, positions, collisions):
            self.contest = j if all((positions[one] != self.env.agent_positions[one]).any() for one in [i, j]) else None
            return verify(i, j, positions, collisions)

        self.env._verify_positions = verified
        module.random = self

    def at(self):
        return [(int(column), int(row)) for row, column in self.env.agent_positions]

    # What the program asks for: one of two agents goes back, and whether an agent gathers.
    def choice(self, pair):
        back = self.draws.choice(pair)
        if self.contest is not None:
            self.luck_now[self.contest][0], self.matters = 0.5 if back == self.contest else 0, True
        return back

    def random(self):
        if self.gathering is None:
            self.gathering = [i for i, (x, y) in enumerate(self.at()) if self.env.env_map[y, x] > 0]
        number = self.draws.randrange(20) / 20
        self.luck_now[self.gathering.pop(0)][1] = number
        self.matters |= bool(self.params["pickup"])
        return number

    def seed(self, seed):
        pass

    def state(self):
        agents = [{"x": x, "y": y} for x, y in self.at()]
        return {"agents": agents, "items": [int(item) for item in self.env.env_map.flatten()], "got": self.got, "steps": self.env.time_num}

    def luck(self):
        return {"luck": [[0.5, 0]] * self.seats}

    def choose(self, draws):
        """Each goes to an item or an agent near it, or anywhere."""
        chosen, at = [], self.at()
        items = [(int(x), int(y)) for y, x in zip(*self.env.env_map.nonzero())]
        for own in at:
            aims = items if draws.random() < 0.3 else [other for other in at if other != own]
            if not aims or draws.random() < 0.6:
                chosen.append(draws.choice(self.ACTIONS))
                continue
            x, y = min(aims, key=lambda cell: abs(cell[0] - own[0]) + abs(cell[1] - own[1]))
            ways = [(x > own[0], "right"), (x < own[0], "left"), (y > own[1], "down"), (y < own[1], "up")]
            chosen.append(draws.choice([name for holds, name in ways if holds] or ["stay"]))
        return chosen

    def step(self, actions):
        self.luck_now, self.gathering, self.matters = [[0.5, 0] for _ in actions], None, False
        moves = {agent: self.ACTIONS.index(action) for agent, action in zip(self.env.possible_agents, actions)}
        _, rewards, _, _, _ = self.env.step(moves)
        self.chance = {"luck": self.luck_now}
        got = [rewards[agent] for agent in self.env.possible_agents]
        self.got = [int(items) for vector in got for items in vector]
        self.noted = {"got": self.got} if any(self.got) else {}
        # The program returns the two kinds of ends in the other order.
        over, cut = (of["agent_0"] for of in [self.env.terminations, self.env.truncations])
        return [float(sum(vector)) for vector in got], over or cut, cut and not over

    def written(self, actions):
        return "".join(action[0] for action in actions)

    def seen(self):
        cells, seen = self.env.state(), []
        for own in range(self.seats):
            shown = {"place": own / max(self.seats - 1, 1)}
            names = {-own - 1: "own"} | {kind + 1: f"item-{kind + 1}" for kind in range(self.types)}
            names |= {-other - 1: f"other-{other - (other > own)}" for other in range(self.seats) if other != own}
            for (y, x), tile in np.ndenumerate(cells):
                shown |= {f"{name}-{x}-{y}": float(tile == number) for number, name in names.items()}
            seen.append(shown)
        return seen


class NeuralMmo(Original):
    """The first Neural MMO (openai/neural-mmo), from a folder that POLITY_NEURAL_MMO names. Its rules run as they are. Three things are replaced:
    its map files, its rule of who is born next and where, and Ray, which runs realms in processes of their own."""

    kind, exact = "neural-mmo", True
    WAYS = {"stay": (0, 0), "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    REACH = {"melee": 1, "throw": 2, "freeze": 3}
    MARKS = {".": "GRASS", "o": "GRASS", "f": "FOREST", "w": "WATER", "s": "STONE", "x": "LAVA"}
    MAPS = [
        ["xxxxxxxxxx", "xoooooooox", "xo.ffww.ox", "xoff.ws.ox", "xo.ss.f.ox", "xof.ff.wox", "xowf.sf.ox", "xoooooooox", "xxxxxxxxxx"],
        ["xxxxxxx", "xooooox", "xof.wox", "xofsfox", "xow.fox", "xooooox", "xxxxxxx"],
        ["xxxxxxxx", "xffoffwx", "xwffoffx", "xfwf.ffx", "xxxxxxxx"],
        ["xxxxxx", "xofwox", "xo.fox", "xxxxxx"],
        ["xxxxxxxxxxxxxxxx", "xoooooooooooooox", "xo.f.w..s.f.w.ox", "xof.ff.w..ff.wox", "xos.f.ww.s.f..ox", "xo..w..f.f..s.ox", "xoooooooooooooox", "xxxxxxxxxxxxxxxx"],
    ]

    def __init__(self):
        import types

        sys.path.insert(0, os.environ["POLITY_NEURAL_MMO"])
        ray = types.ModuleType("ray")
        ray.remote, ray.init, ray.get, ray.put = (lambda of: of), None, None, None
        sys.modules["ray"] = ray
        # It makes networks and draws pictures with these, which no rule needs.
        for name in ["forge.trinity", "forge.trinity.god"]:
            sys.modules[name] = types.ModuleType(name)
        sys.modules["forge.trinity"].God = lambda config, args: None
        import configs
        from forge.blade.action import v2
        from forge.blade.core import map as maps
        from forge.blade.core import realm, tile
        from forge.blade.lib.enums import Material

        self.configs, self.actions, self.maps, self.realms, self.tile, self.material = configs, v2, maps, realm, tile, Material
        self.moves = {"melee": v2.Melee, "throw": v2.Range, "freeze": v2.Mage}

    def begin(self, draws):
        rows = draws.choice(self.MAPS)
        # The program's maps have a wide border of lava. In it agents cannot enter the first row and the first column.
        edge = "x" * (len(rows[0]) + 2)
        self.draws, self.rows = draws, [edge, *[f"x{row}x" for row in rows], edge]
        self.seats, populations = draws.choice([(1, 1), (3, 1), (4, 2), (9, 3), (16, 2)])
        config = self.configs.Chaos(NENT=self.seats, NPOP=populations)
        config.SPAWN = self.place
        self.size = (len(self.rows), len(self.rows[0]))
        self.params = {"map": self.rows, "players": self.seats, "populations": populations, "sight": draws.choice([1, 2, 3, 5]), "steps": 1000}
        self.starts = [(r, c) for r, row in enumerate(self.rows) for c, mark in enumerate(row) if mark == "o"]

        def load(path, tiles, counts):
            made = np.zeros(self.size, dtype=object)
            for r, row in enumerate(self.rows):
                for c, mark in enumerate(row):
                    made[r, c] = self.tile.Tile(self.material[self.MARKS[mark]].value, r, c, counts, mark)
            return made

        self.maps.loadTiled = load
        self.realm = self.realms.VecEnvRealm(config, None, 0)
        self.realm.god = self
        cull = self.realm.cullDead

        def culled(dead):
            self.dead = list(dead)
            self.waiting += dead
            cull(dead)

        self.realm.cullDead = culled
        self.tile.np = np
        np.random.seed(draws.randrange(2**31))
        self.waiting, self.steps = list(range(self.seats)), 0
        self.died, self.lives, self.lived, self.start = [False] * self.seats, [0] * self.seats, [0] * self.seats, None
        self.realm.spawn()
        self.realm.stepEnv()

    # What the program asks for: where a life begins, and whose it is.
    def place(self):
        self.start = self.draws.choice(self.starts)
        return self.start

    def spawn(self):
        seat = self.waiting.pop(0)
        self.lives[seat] += 1
        population = seat // (self.seats // self.params["populations"])
        return seat, (population, None)

    def cull(self, population):
        pass

    def index(self, cell):
        return cell[0] * self.size[1] + cell[1]

    def tiles(self):
        return [tile for row in self.realm.world.env.tiles for tile in row]

    def bare(self):
        return [i for i, tile in enumerate(self.tiles()) if tile.tex == "f" and tile.capacity == 0]

    def state(self):
        players = [None] * self.seats
        for seat, it in self.realm.desciples.items():
            at = {"x": int(it.pos[1]), "y": int(it.pos[0])}
            needs = {"food": it.food.val, "water": it.water.val, "health": it.health.val}
            players[seat] = {"at": at, **needs, "age": it.timeAlive, "frozen": it.freeze}
        return {
            "tiles": [mark for row in self.rows for mark in row], "bare": [self.bare()], "players": players,
            "order": list(self.realm.desciples), "waiting": list(self.waiting), "died": list(self.died), "lives": list(self.lives),
            "lived": list(self.lived), "steps": self.steps,
        }

    def luck(self):
        return {"luck": [[[self.index(self.starts[0])], []]]}

    def target(self, own, reach):
        """The nearest other within reach, or the oldest of several that are equally near."""
        far = lambda it: max(abs(own.pos[0] - it.pos[0]), abs(own.pos[1] - it.pos[1]))  # noqa: E731
        near = [it for it in self.realm.desciples.values() if it is not own and far(it) <= reach]
        return min(near, key=far) if near else None

    def choose(self, draws):
        """Each attacks, or goes to something that it needs, or anywhere."""
        chosen = [None] * self.seats
        for seat, own in self.realm.desciples.items():
            possible = [name for name, reach in self.REACH.items() if self.target(own, reach)]
            if possible and draws.random() < 0.25:
                chosen[seat] = draws.choice(possible)
                continue
            wanted = "w" if own.water.val < own.food.val else "f"
            cells = [(r, c) for r, row in enumerate(self.rows) for c, mark in enumerate(row) if mark == wanted]
            if not cells or draws.random() < 0.3:
                chosen[seat] = draws.choice(list(self.WAYS))
                continue
            r, c = min(cells, key=lambda cell: abs(cell[0] - own.pos[0]) + abs(cell[1] - own.pos[1]) + draws.random() / 2)
            ways = [(c > own.pos[1], "right"), (c < own.pos[1], "left"), (r > own.pos[0], "down"), (r < own.pos[0], "up")]
            chosen[seat] = draws.choice([name for holds, name in ways if holds] or ["stay"])
        return chosen

    def step(self, actions):
        decisions, before = [], list(self.realm.desciples)
        for seat, own in self.realm.desciples.items():
            action = actions[seat] or "stay"
            target = self.target(own, self.REACH[action]) if action in self.REACH else own
            attack = self.moves.get(action, self.actions.Melee)
            decisions.append((seat, (self.actions.Move, attack), (self.WAYS.get(action, (0, 0)), (target,)), None))
        self.dead, self.start = [], None
        self.realm.stepEnts(decisions)
        self.realm.spawn()
        bare = self.bare()
        self.realm.stepEnv()
        self.steps += 1
        left, start = self.bare(), self.start or self.starts[0]
        self.chance = {"luck": [[[self.index(start)], [i for i in bare if i not in left]]]}
        self.died = [seat in self.dead for seat in range(self.seats)]
        rewards = [0.0] * self.seats
        for seat in before:
            rewards[seat] = -1.0 if seat in self.dead else 1.0
            self.lived[seat] += seat not in self.dead
        over = self.steps >= 1000
        return rewards, over, over

    def written(self, actions):
        return "".join(action[0] if action else "-" for action in actions)

    def seen(self):
        sight, width = self.params["sight"], 2 * self.params["sight"] + 1
        seen = []
        for seat in range(self.seats):
            own = ["died", "food", "water", "health", "frozen", "immune", "age", "x", "y"]
            channels = ["food", "water", "stone", "lava", "agents"] + ["kin"] * (self.params["populations"] > 1)
            cells = [f"{channel}-{x}-{y}" for channel in channels for x in range(width) for y in range(width)]
            numbers = {**dict.fromkeys(own + cells, 0.0), "died": float(self.died[seat])}
            it = self.realm.desciples.get(seat)
            if it is not None:
                r, c = it.pos
                numbers.update({"food": it.food.val / 32, "water": it.water.val / 32, "health": it.health.val / 10, "age": it.timeAlive / 100})
                # It cannot move in the next step, at whose start the program counts one down.
                numbers.update({"frozen": float(it.freeze > 1), "immune": float(it.immune)})
                numbers.update({"x": c / (self.size[1] - 1), "y": r / (self.size[0] - 1)})
                for x in range(width):
                    for y in range(width):
                        cell = (r + y - sight, c + x - sight)
                        inside = 0 <= cell[0] < self.size[0] and 0 <= cell[1] < self.size[1]
                        tile = self.realm.world.env.tiles[cell] if inside else None
                        index = tile.state.index if inside else 0
                        # Scrub is what the program shows for a forest without food.
                        for name, of in [("food", 4), ("water", 1), ("stone", 5), ("lava", 0)]:
                            numbers[f"{name}-{x}-{y}"] = float(index == of)
                        others = [other for other in tile.ents.values() if other is not it] if inside else []
                        numbers[f"agents-{x}-{y}"] = float(len(others))
                        if self.params["populations"] > 1:
                            numbers[f"kin-{x}-{y}"] = float(sum(other.colorInd == it.colorInd for other in others))
            seen.append(numbers)
        return seen


ALL = [Pendulum, Spread, Tag, SpeakerListener, Foraging, PredatorPrey, Overcooked, GridRoom, Warehouse, ItemGathering, NeuralMmo]
WORLDS = {world.kind: world for world in ALL}


def near(found, expected, tolerance):
    return abs(found - expected) <= tolerance * max(1.0, abs(expected))


def same(found, expected, tolerance):
    """Whether two states are the same, numbers to a tolerance."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key], tolerance) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(same(a, b, tolerance) for a, b in zip(found, expected))
    if isinstance(expected, float):
        return isinstance(found, (int, float)) and near(found, expected, tolerance)
    return found == expected


def compare(name):
    import polity.pettingzoo

    original, draws = WORLDS[name](), random.Random(1)
    ours = {}
    steps, episodes, rewarded, largest = 0, 0, 0, 0.0
    tolerance = 0.0 if original.exact else 1e-9

    def check(what, found, expected, tolerance):
        nonlocal largest
        if isinstance(expected, float) and found != expected:
            largest = max(largest, abs(found - expected) / max(1.0, abs(expected)))
        if not same(found, expected, tolerance):
            sys.exit(f"{name}: after {steps} steps, {what} is {found}, not {expected}\n{json.dumps(original.state())}")

    while steps < STEPS:
        original.begin(draws)
        key = json.dumps(original.params, sort_keys=True)
        if key not in ours:
            ours[key] = polity.pettingzoo.parallel_env(original.kind, **original.params)
        env = ours[key]
        numbers = [field["name"] for field in env.game.about["numbers"]]
        kinds = [action["name"] for action in env.game.actions]
        env.reset(options={"state": {**original.state(), **original.luck()}})
        episodes, ended = episodes + 1, False

        def look():
            for seat, expected in enumerate(original.seen()):
                assert set(expected) <= set(numbers), set(expected) - set(numbers)
                missing = set(numbers) - set(expected)
                assert not missing, f"not compared: {missing}"
                found = dict(zip(numbers, observed[f"seat_{seat}"].tolist()))
                for number, value in expected.items():
                    check(f"the number {number} of seat {seat}", found[number], value, 0.0 if original.exact else original.views)

        while not ended and steps < STEPS:
            actions = original.choose(draws)
            expected, ended, was_cut = original.step(actions)
            if original.chance:
                env.reset(options={"state": {**env.episode_state(), **original.chance}})
            moves = {}
            for seat, action in enumerate(actions):
                if isinstance(action, list):
                    moves[f"seat_{seat}"] = np.array([action[1]])
                elif action is not None:
                    moves[f"seat_{seat}"] = kinds.index(action)
            observed, rewards, over, cut, _ = env.step(moves)
            steps += 1
            check("the reward", [rewards[f"seat_{seat}"] for seat in range(original.seats)], expected, tolerance)
            check("the end", [over["seat_0"], cut["seat_0"]], [ended and not was_cut, was_cut], 0)
            state = {key: value for key, value in env.episode_state().items() if key not in original.chance}
            check("the state", state, original.state(), tolerance)
            look()
            rewarded += any(expected)
    how = "exactly" if original.exact else f"states and rewards to {tolerance:g}, views to {original.views:g}; the largest difference is {largest:.1e}"
    print(f"{name}: {steps} steps of {episodes} episodes are those of the original ({how}); {rewarded} steps with rewards")
    for line in original.differences():
        print(f"{name}: apart from this: {line}")


def tape(name, episodes=12, most=25):
    """Stretches of at most so many steps, from somewhere in an episode on. Of what is seen, they name the numbers that are not 0."""
    original, draws = WORLDS[name](), random.Random(2)
    for _ in range(int(episodes)):
        original.begin(draws)
        line = {"params": original.params} if original.params else {}
        for _ in range(draws.randrange(original.skips)):
            if original.step(original.choose(draws))[1]:
                original.begin(draws)
        line.update(begin={**original.state(), **original.luck()}, moves=[], got=[0.0] * original.seats, ended=False, cut=False)
        while len(line["moves"]) < int(most) and not line["ended"]:
            actions = original.choose(draws)
            rewards, line["ended"], line["cut"] = original.step(actions)
            line["moves"].append(original.written(actions))
            if original.chance:
                matters = original.matters or len(line["moves"]) == 1
                line.setdefault("chance", []).append(original.chance if matters else {})
            if original.noted:
                line.setdefault("after", {})[len(line["moves"]) - 1] = original.noted
            line["got"] = [a + b for a, b in zip(line["got"], rewards)]
        seen = [{name: int(value) if value % 1 == 0 else value for name, value in one.items() if value != 0} for one in original.seen()]
        line.update(end=original.state(), seen=seen)
        print(json.dumps(line, separators=(",", ":")))


def beach(steps=STEPS):
    """Episodes of MOMAland's beach: the type and the section of each agent before, step by step the number of its action and its section after, what
    an agent in each section gets in the end, and how many agents each sees in its section, and which share of them is of its type."""
    from momaland.envs.beach.beach import MOBeachDomain

    draws, taken = random.Random(3), 0
    digits = lambda numbers: "".join(map(str, numbers))  # noqa: E731
    while taken < int(steps):
        sections, capacity, agents = draws.choice([(6, 7, 12), (5, 3, 10), (3, 2, 6), (2, 2, 4)])
        length, team = draws.choice([1, 5, 100]), draws.randrange(2)
        env = MOBeachDomain(num_timesteps=length, num_agents=agents, reward_mode=["individual", "team"][team], sections=sections, capacity=capacity)
        names = env.possible_agents
        env.reset(seed=draws.randrange(2**31))
        line = {"steps": length, "sections": sections, "capacity": capacity, "team": team, "types": digits(env._types), "from": digits(env._state)}
        line.update(moves=[], at=[])
        for step in range(length):
            moves = [draws.randrange(3) for _ in names]
            observed, rewards, _, ends, _ = env.step(dict(zip(names, moves)))
            assert all(ends.values()) == (step + 1 == length) and (step + 1 == length or not any(rewards[name].any() for name in names))
            line["moves"].append(digits(moves))
            line["at"].append(digits(env._state))
        got = {at: [round(float(reward), 8) for reward in rewards[name]] for at, name in zip(env._state, names)}
        seen = [[int(observed[name][3]), round(float(observed[name][4]), 8)] for name in names]
        assert all(list(observed[name][:2]) == [kind, at] for name, kind, at in zip(names, env._types, env._state))
        print(json.dumps({**line, "got": [got.get(section) for section in range(sections)], "seen": seen}, separators=(",", ":")))
        taken += length


def foragers(fields=3_000, food=3, steps=50):
    """The return of an agent in so many steps, over episodes that follow one another. The rule walks to the first food that it sees."""
    from lbforaging.foraging import ForagingEnv

    def rule(seen):
        (y, x), (own_y, own_x) = seen[0:2], seen[3 * food : 3 * food + 2]
        cases = [
            (abs(x - own_x) + abs(y - own_y) == 1, "load"),
            (y > own_y + 1, "south"),
            (y < own_y - 1, "north"),
            (x > own_x, "east"),
            (x < own_x, "west"),
            (y > own_y, "south"),
            (y < own_y, "north"),
        ]
        return FORAGING.index(next((act for holds, act in cases if holds), "none"))

    env = ForagingEnv(
        players=2, min_player_level=1, max_player_level=2, min_food_level=1, max_food_level=None, field_size=(8, 8),
        max_num_food=food, sight=8, max_episode_steps=steps, force_coop=False, penalty=0.0,
    )
    returns = []
    for field in range(fields):
        seen, _ = env.reset(seed=field)
        total = 0.0
        for step in range(steps):
            seen, rewards, over, cut, _ = env.step([rule(one) for one in seen])
            total += sum(rewards) / 2
            if over or cut:
                seen, _ = env.reset(seed=fields + field * steps + step)
        returns.append(total)
    print(f"mean return {np.mean(returns):.4f}, standard error {np.std(returns, ddof=1) / math.sqrt(fields):.4f}, {fields} fields")


def main(do, *words):
    warnings.simplefilter("ignore")
    if do == "tape":
        tape(*words)
    elif do == "beach":
        beach()
    elif do == "foragers":
        foragers()
    else:
        for world in words or WORLDS:
            compare(world)


if __name__ == "__main__":
    main(*sys.argv[1:])
