"""How fast environments and learners are, beside others', in one run. Called by scripts/peers/speeds.sh, which installs what it needs.

    speeds.py table POLITY FOLDER       prints the tables; FOLDER holds the environments plain/, jax/, torch/ and the package cleanrl/
    speeds.py measure PROGRAM SIZE      measures one program in this process and prints a line of JSON

Only what repeats is measured: what a program does once (start, compilation, building a society) is left out, by a first call or by the
difference of a long and a short run. Beside wall time there is processor time, of all threads together, since this machine may have other
work. POLITY_SPEEDS_SIZE scales how much is done (default 1).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = float(os.environ.get("POLITY_SPEEDS_SIZE", "1"))
# Where the mean return of cart-pole counts as solved, and over how many last episodes that of others is taken.
SOLVED, LAST = 475.0, 20
FAILED = []


# --- What others do, each in a process of its own. ---


def timed(steps, first, rest):
    """`first` does what is done once. `rest` does the steps."""
    first()
    wall, processor = time.perf_counter(), time.process_time()
    rest()
    return {"steps": steps, "wall": time.perf_counter() - wall, "processor": time.process_time() - processor}


def mpe2(size):
    import random

    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(max_cycles=25)
    draws = random.Random(1)

    def play(steps):
        for step in range(steps):
            if step % 25 == 0:
                env.reset(seed=step)
            env.step({agent: draws.randrange(5) for agent in env.agents})

    steps = int(2_000 * size)
    return timed(3 * steps, lambda: play(25), lambda: play(steps))


def jax_steps(env, copies, steps, agents, choose):
    """Random actions in copies of an environment of JAX, with its resets."""
    import jax

    def one(carry, _):
        key, states = carry
        key, act, move = jax.random.split(key, 3)
        seen, states, rewards, *_ = jax.vmap(env)(jax.random.split(move, copies), states, choose(act, copies))
        # What a learner would use has to be computed.
        used = sum(part.sum() for part in jax.tree.leaves((seen, rewards)))
        return (key, states), used

    @jax.jit
    def play(carry):
        return jax.lax.scan(one, carry, None, steps)

    def run(states):
        carry = (jax.random.PRNGKey(0), states)
        return timed(agents * copies * steps, lambda: jax.block_until_ready(play(carry)), lambda: jax.block_until_ready(play(carry)))

    return run


def jaxmarl(size, copies):
    import jax
    from jaxmarl.environments.mpe import SimpleSpreadMPE

    env = SimpleSpreadMPE()

    def choose(key, copies):
        return {agent: jax.random.randint(jax.random.fold_in(key, i), (copies,), 0, 5) for i, agent in enumerate(env.agents)}

    _, states = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(1), copies))
    return jax_steps(env.step, copies, max(2, int(400_000 * size / copies)), 3, choose)(states)


def gymnax(size, copies):
    import jax
    import gymnax

    env, params = gymnax.make("CartPole-v1")
    _, states = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(jax.random.PRNGKey(1), copies), params)
    step = lambda key, state, action: env.step(key, state, action, params)  # noqa: E731
    choose = lambda key, copies: jax.random.randint(key, (copies,), 0, 2)  # noqa: E731
    return jax_steps(step, copies, max(2, int(4_000_000 * size / copies)), 1, choose)(states)


def vmas(size, copies):
    import torch
    import vmas as package

    torch.set_num_threads(1)
    env = package.make_env("simple_spread", num_envs=copies, device="cpu", continuous_actions=False, max_steps=25, seed=1)
    env.reset()
    steps = max(2, int(200_000 * size / copies))

    def play(steps):
        for step in range(steps):
            if step % 25 == 24:
                env.reset()
            env.step([torch.randint(0, 5, (copies, 1)) for _ in env.agents])

    return timed(len(env.agents) * copies * steps, lambda: play(2), lambda: play(steps))


def gymnasium(size, copies, how):
    import gymnasium as package

    env = package.make_vec("CartPole-v1", num_envs=copies, vectorization_mode=how)
    env.reset(seed=1)
    steps = max(10, int((1_000_000 if how == "vector_entry_point" else 100_000) * size / copies))

    def play(steps):
        for _ in range(steps):
            env.step(env.action_space.sample())

    return timed(copies * steps, lambda: play(5), lambda: play(steps))


def pufferlib(size, copies):
    import gymnasium as package
    import numpy as np
    import pufferlib.emulation
    import pufferlib.vector

    make = lambda buf=None, seed=0: pufferlib.emulation.GymnasiumPufferEnv(env=package.make("CartPole-v1"), buf=buf, seed=seed)  # noqa: E731
    env = pufferlib.vector.make(make, num_envs=copies, backend=pufferlib.vector.Serial)
    env.reset()
    steps, draws = max(10, int(100_000 * size / copies)), np.random.default_rng(1)

    def play(steps):
        for _ in range(steps):
            env.step(draws.integers(0, 2, copies))

    return timed(copies * steps, lambda: play(5), lambda: play(steps))


def ippo(updates, seeds=1, seed=1):
    """IPPO of JaxMARL on simple_spread with the settings of its repository: 16 copies, 128 steps, 64 units. What it only logs with is a
    stand-in. Its program is the file POLITY_JAXMARL_IPPO. Returns are those of an agent: for each seed, of each update."""
    import importlib.util
    import types

    import jax

    for name, members in [
        ("wandb", {"log": lambda metric: None}),
        ("hydra", {"main": lambda **_: lambda function: function}),
        ("omegaconf", {"OmegaConf": None}),
        ("distrax", {"Categorical": categorical()}),
    ]:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(members)
    spec = importlib.util.spec_from_file_location("ippo", os.environ["POLITY_JAXMARL_IPPO"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = {
        "LR": 2.5e-4, "NUM_ENVS": 16, "NUM_STEPS": 128, "TOTAL_TIMESTEPS": 16 * 128 * updates, "UPDATE_EPOCHS": 4, "NUM_MINIBATCHES": 4,
        "GAMMA": 0.99, "GAE_LAMBDA": 0.95, "CLIP_EPS": 0.2, "ENT_COEF": 0.01, "VF_COEF": 0.5, "MAX_GRAD_NORM": 0.5, "ACTIVATION": "tanh",
        "ENV_NAME": "MPE_simple_spread_v3", "ENV_KWARGS": {}, "ANNEAL_LR": True,
    }
    began = time.perf_counter()
    keys = jax.random.split(jax.random.PRNGKey(seed), seeds)
    train = jax.jit(jax.vmap(module.make_train(config))).lower(keys).compile()
    once, found = time.perf_counter() - began, {}

    def play():
        found.update(jax.block_until_ready(train(keys))["metrics"])

    measured = timed(3 * config["TOTAL_TIMESTEPS"], lambda: None, play)
    # Its wrapper multiplies rewards by the number of agents, to have sums over them.
    return {**measured, "once": once, "returns": (found["returned_episode_returns"] / 3).tolist()}


def jaxmarl_ippo(size, updates):
    found = ippo(max(2, int(updates * size)))
    last = found.pop("returns")[0][-5:]
    return {**found, "return": sum(last) / len(last)}


def categorical():
    """The parts of distrax.Categorical that JaxMARL's learners use, whose package does not install beside a current JAX."""
    import jax
    import jax.numpy as jnp

    class Categorical:
        def __init__(self, logits):
            self.log = jax.nn.log_softmax(logits)

        def sample(self, seed):
            return jax.random.categorical(seed, self.log)

        def log_prob(self, value):
            return jnp.take_along_axis(self.log, value[..., None].astype(int), -1)[..., 0]

        def entropy(self):
            return -(jnp.exp(self.log) * self.log).sum(-1)

    return Categorical


MEASURES = {
    "mpe2": mpe2, "jaxmarl": jaxmarl, "gymnax": gymnax, "vmas": vmas, "gymnasium": gymnasium, "pufferlib": pufferlib, "jaxmarl-ippo": jaxmarl_ippo,
}


# --- The tables. ---


def child(command, env=None, until=None, where=None):
    """Runs a command to its end, or until a function of its lines says so. Returns its lines, wall seconds and processor seconds."""
    began = time.perf_counter()
    # Where OpenBLAS is told which kernels to take, that is against crashes, and costs time.
    env = {**{key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}, **(env or {})}
    lines, stopped = [], False
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env, cwd=where) as process:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if until is not None and until(line):
                process.kill()
                stopped = True
                break
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        errors.seek(0)
        told = [line for line in errors.read().splitlines() if line.strip()]
    if not stopped and process.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:4])} ended with {process.returncode}: {' '.join(told[-1:])}")
    return lines, wall, usage.ru_utime + usage.ru_stime


class Speeds:
    def __init__(self, polity, folder):
        self.polity, self.folder = polity, folder
        self.work = folder / "work"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def other(self, where, name, *words):
        python = self.folder / where / "bin" / "python"
        lines, _, _ = child([str(python), __file__, "measure", name, *map(str, words)], {"JAX_PLATFORMS": "cpu"})
        return json.loads(lines[-1])

    def ours(self, name, scenario, *words):
        """Runs a scenario, which is written as JSON. Returns what it prints, wall seconds and processor seconds."""
        file, out = self.work / f"{name}.yaml", self.work / "run"
        file.write_text(json.dumps(scenario))
        shutil.rmtree(out, ignore_errors=True)
        _, wall, processor = child([self.polity, "run", str(file), "--out", str(out), "--no-report", *map(str, words)])
        return out, wall, processor

    def last_return(self, run):
        """The last value of the metric of a run."""
        lines, _, _ = child([self.polity, "export", str(run), "--table", "metrics"])
        return [float(line.split(",")[2]) for line in lines if line.split(",")[1] == "episode-return.mean"][-1]

    def per_step(self, name, scenario, short, long):
        """Of the rounds beyond the first ones."""
        _, *before = self.ours(name, scenario, "--rounds", short)
        _, *after = self.ours(name, scenario, "--rounds", long)
        return {"steps": scenario["agents"] * (long - short), "wall": after[0] - before[0], "processor": after[1] - before[1]}


def society(world, agents, actions, policy=None):
    """Without a policy, agents choose at random."""
    chances = [{"act": action, "when": f"chance({1 / (len(actions) - i)})"} for i, action in enumerate(actions[:-1])]
    return {
        "name": "speeds", "seed": 1, "rounds": 100, "agents": agents, "topology": {"kind": "none"}, "world": {"kind": world},
        "record": {"acts": False, "agents": False},
        "cohorts": [{"policy": policy or {"kind": "rule", "actions": [*chances, {"act": actions[-1]}]}}],
    }


def amount(number):
    if number >= 1e6:
        return f"{number / 1e6:.2f} M"
    return f"{number / 1e3:.1f} k" if number >= 1e3 else f"{number:.0f}"


def row(what, copies, measure):
    """Prints a row, or what went wrong; the others are measured all the same."""
    try:
        found = measure()
    except (RuntimeError, OSError, ValueError, LookupError) as error:
        print(f"| {what} | {copies} | not measured | {str(error).replace('|', ' ')[:160]} |", flush=True)
        FAILED.append(what)
        return
    print(f"| {what} | {copies} | {amount(found['steps'] / found['wall'])} | {amount(found['steps'] / found['processor'])} |", flush=True)


def alone(speeds):
    print("\n### Environments alone\n\nRandom actions. In Polity, rules draw them in a whole society, with its digests.")
    print("\n| simple_spread, 3 agents | copies | agent-steps/s | of processor time |\n|---|---|---|---|")
    pushes = ["left", "right", "down", "up", "stay"]
    for copies, rounds in [(1_024, 200), (10_000, 40)]:
        rounds = max(2, int(rounds * SIZE))
        scenario = society("spread", 3 * copies, pushes)
        row("Polity", copies, lambda: speeds.per_step("spread", scenario, 2, 2 + rounds))
    row("mpe2 1.1.1", 1, lambda: speeds.other("plain", "mpe2"))
    for copies in [1_024, 10_000]:
        row("JaxMARL 0.2.0, compiled", copies, lambda: speeds.other("jax", "jaxmarl", copies))
    for copies in [1_024, 32_768]:
        row("VMAS 1.5.2, one thread", copies, lambda: speeds.other("torch", "vmas", copies))
    print("\n| cart-pole | copies | steps/s | of processor time |\n|---|---|---|---|")
    for copies, rounds in [(1_024, 500), (30_000, 50)]:
        rounds = max(2, int(rounds * SIZE))
        scenario = society("cart-pole", copies, ["left", "right"])
        row("Polity", copies, lambda: speeds.per_step("cart-pole", scenario, 2, 2 + rounds))
    row("Gymnasium 1.4.0, one after the other", 64, lambda: speeds.other("plain", "gymnasium", 64, "sync"))
    row("Gymnasium 1.4.0, NumPy", 1_024, lambda: speeds.other("plain", "gymnasium", 1_024, "vector_entry_point"))
    row("pufferlib-core 3.0.23, serial, of Gymnasium's", 64, lambda: speeds.other("torch", "pufferlib", 64))
    row("gymnax 1.0.1, compiled", 1_024, lambda: speeds.other("jax", "gymnax", 1_024))


def to_solved(speeds):
    print(f"""
### PPO on cart-pole to {SOLVED:g}

Whole processes, with their start. Polity runs the scenario of the book, and its mean return is over 64 agents at the end. CleanRL's `ppo.py`
has its own settings and is stopped when the mean of its last {LAST} episodes is {SOLVED:g} or more.

| program | seed | seconds | of processor time | steps | return |
|---|---|---|---|---|---|""")
    poles = society("cart-pole", 64, ["left", "right"], {
        "kind": "ppo", "horizon": 32, "learning_rate": 0.002, "anneal": True, "entropy_weight": 0, "lambda": 0.9, "discount": 0.98,
    })
    poles["metrics"] = [{"kind": "mean", "of": "episode-return"}]
    for seed in range(1, max(1, int(10 * SIZE)) + 1):
        run, wall, processor = speeds.ours("poles", poles, "--rounds", 1_500, "--seed", seed)
        print(f"| Polity | {seed} | {wall:.2f} | {processor:.2f} | {64 * 1_500} | {speeds.last_return(run):.0f} |", flush=True)
    program = speeds.folder / "cleanrl" / "cleanrl" / "ppo.py"
    for seed in range(1, max(1, int(3 * SIZE)) + 1):
        returns, steps = [], [0]

        def enough(line):
            if "episodic_return=" in line:
                steps[0] = int(line.split("global_step=")[1].split(",")[0])
                returns.append(float(line.split("episodic_return=")[1].split(",")[0].strip("[]\n ")))
            return len(returns) >= LAST and sum(returns[-LAST:]) / LAST >= SOLVED

        command = [str(speeds.folder / "torch" / "bin" / "python"), "-u", str(program), "--seed", str(seed), "--cuda", "False"]
        # Its logs go there.
        where = speeds.work / "cleanrl"
        where.mkdir(exist_ok=True)
        try:
            _, wall, processor = child(command, {"PYTHONPATH": str(speeds.folder / "cleanrl")}, enough, where)
        except RuntimeError as error:
            print(f"| CleanRL 1.2.0 | {seed} | not measured | {str(error).replace('|', ' ')[:160]} | | |", flush=True)
            FAILED.append("CleanRL")
            continue
        reached = sum(returns[-LAST:]) / len(returns[-LAST:])
        print(f"| CleanRL 1.2.0 | {seed} | {wall:.2f} | {processor:.2f} | {steps[0]} | {reached:.0f} |", flush=True)


def learning(speeds):
    updates = 60
    print(f"""
### Learning on simple_spread

16 copies of 3 agents, updates after 128 steps with 4 epochs of 4 minibatches, networks of 64 and 64 units, Adam's step size falling from
0.00025: the settings of JaxMARL's IPPO. Its compilation is left out, and so is the start of both. Returns are those of an agent, at the end;
an episode of JaxMARL has 26 steps.

| program | updates | agent-steps/s | of processor time | return | compilation, s |
|---|---|---|---|---|---|""")
    for name, kind in [("Polity, `ppo`", "ppo"), ("Polity, `mappo`", "mappo")]:
        policy = {"kind": kind, "horizon": 128, "minibatch": 1_536, "anneal": True}
        scenario = society("spread", 48, ["stay"], policy)
        scenario["metrics"] = [{"kind": "mean", "of": "episode-return"}]
        rounds = 128 * max(2, int(updates * SIZE))
        # What is done once is that of a run without an update.
        _, *before = speeds.ours(kind, scenario, "--rounds", 2)
        run, *after = speeds.ours(kind, scenario, "--rounds", rounds)
        wall, processor = after[0] - before[0], after[1] - before[1]
        steps = 48 * (rounds - 2)
        print(f"| {name} | {rounds // 128} | {amount(steps / wall)} | {amount(steps / processor)} | {speeds.last_return(run):.1f} | |", flush=True)
    try:
        found = speeds.other("jax", "jaxmarl-ippo", updates)
        speed = f"{amount(found['steps'] / found['wall'])} | {amount(found['steps'] / found['processor'])}"
        print(f"| JaxMARL 0.2.0, IPPO | {found['steps'] // 6144} | {speed} | {found['return']:.1f} | {found['once']:.0f} |", flush=True)
    except (RuntimeError, OSError, ValueError, LookupError) as error:
        print(f"| JaxMARL 0.2.0, IPPO | | not measured | {str(error).replace('|', ' ')[:160]} | | |", flush=True)
        FAILED.append("JaxMARL, IPPO")


def main(do, *words):
    if do == "measure":
        name, *rest = words
        numbers = [int(word) if word.isdigit() else word for word in rest]
        print(json.dumps(MEASURES[name](SIZE, *numbers)))
        return
    speeds = Speeds(words[0], Path(words[1]).absolute())
    alone(speeds)
    to_solved(speeds)
    learning(speeds)
    if FAILED:
        sys.exit(f"not measured: {', '.join(FAILED)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
