"""Learning curves of every learner on a standard task of it, over ten seeds, beside others'. Called by scripts/peers/learning.sh.

    learning.py table POLITY FOLDER [LEARNER...]   prints the tables; FOLDER holds the environments torch/ and jax/
    learning.py peer NAME SEED                     lets another's learner learn in this process, and prints its curve as JSON

A row has interquartile means over seeds of the mean return of an agent's last episodes, at a quarter, at half and at the end of a run, with
stratified bootstrap intervals (rliable's definitions). At the end they are those of `polity sweep`, which are compared with the ones made
here. POLITY_LEARNING_SEEDS and POLITY_LEARNING_PEER_SEEDS are the numbers of seeds (default 10).
"""

import csv
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import speeds

SEEDS = int(os.environ.get("POLITY_LEARNING_SEEDS", "10"))
PEER_SEEDS = int(os.environ.get("POLITY_LEARNING_PEER_SEEDS", "10"))
PARTS = [0.25, 0.5, 1.0]
RESAMPLES = 2_000

NON_MONOTONIC = """NFG 1 R "non-monotonic" { "1" "2" } { { "a" "b" "c" } { "a" "b" "c" } } ""
8 8 -12 -12 -12 -12 -12 -12 0 0 0 0 -12 -12 0 0 0 0
"""


class Task:
    """A world, and what is known of it. `window`: over how many last rounds the mean is taken."""

    def __init__(self, name, world, known, window=1):
        self.name, self.world, self.known, self.window = name, world, known, window


CART_POLE = Task("cart-pole", {"kind": "cart-pole"}, "solved from 475 on, at most 500")
PENDULUM = Task("pendulum", {"kind": "pendulum"}, "SAC of Stable-Baselines3's zoo about -176")
TWO_STEPS = Task("two-step game", {"kind": "two-step-game"}, "VDN 7, QMIX 8 (Rashid and others 2018)")
PAYOFFS = Task("matrix game of QTRAN", {"kind": "matrix-game", "game": NON_MONOTONIC}, "the best is 8; monotonic mixtures get 0 (Son and others 2019)")
SPREAD = Task("simple_spread", {"kind": "spread"}, "", window=100)

# All choices are at random until an agent stops learning, as in the paper on QMIX; so each point is the end of runs that stop there. The
# rounds after that are whole episodes of best choices.
MIXED = {"hidden": [32], "discount": 1, "epsilon_end": 1, "learning_rate": 0.003, "target_update": 50, "stop": 800}
# Task, agents, rounds, parameters.
LEARNERS = {
    "ppo": (CART_POLE, 64, 1_500, {"horizon": 32, "learning_rate": 0.002, "anneal": True, "entropy_weight": 0, "lambda": 0.9, "discount": 0.98}),
    "dqn": (CART_POLE, 16, 4_000, {
        "hidden": [64, 64], "minibatch": 64, "train_every": 16, "gradient_steps": 128, "target_update": 10, "learning_rate": 0.002,
        "epsilon_rounds": 500, "epsilon_end": 0.04, "buffer_rounds": 6_000, "stop": 3_400,
    }),
    "reinforce": (CART_POLE, 32, 24_000, {"hidden": [32], "stop": 23_400}),
    "es": (CART_POLE, 64, 12_000, {"hidden": [16], "stop": 11_400}),
    "sac": (CART_POLE, 16, 8_000, {"hidden": [64], "target_entropy": 0.1, "discount": 0.98, "gradient_steps": 4, "learning_rate": 0.0003, "stop": 7_400}),
    "ppo-continuous": (PENDULUM, 16, 4_001, {"discount": 0.9, "reward_scale": 0.1, "horizon": 200, "learning_rate": 0.001, "stop": 3_600}),
    "sac-continuous": (PENDULUM, 16, 3_000, {"discount": 0.97, "reward_scale": 0.1, "gradient_steps": 4, "stop": 2_600}),
    "vdn": (TWO_STEPS, 16, 806, MIXED),
    "qmix": (TWO_STEPS, 16, 806, MIXED),
    "concaveq": (PAYOFFS, 16, 806, MIXED),
    "mappo": (SPREAD, 48, 2_000, {"hidden": [32], "horizon": 25, "learning_rate": 0.003, "discount": 0.95, "reward_scale": 0.3}),
    "hasac": (SPREAD, 48, 2_000, {"hidden": [32], "reward_scale": 0.3, "alpha": 0.05, "stop": 1_700}),
    "maddpg": (SPREAD, 48, 2_000, {"hidden": [32], "reward_scale": 0.3, "stop": 1_700}),
}


# --- Others. ---


def stable_baselines(seed, kind):
    """PPO and DQN of Stable-Baselines3 on CartPole-v1, and PPO and SAC on Pendulum-v1, with the settings of its zoo."""
    import stable_baselines3 as package
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    falling = lambda start: lambda left: left * start  # noqa: E731
    if kind == "ppo":
        env, steps = make_vec_env("CartPole-v1", 8, seed=seed), 100_000
        learner = package.PPO(
            "MlpPolicy", env, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
            learning_rate=falling(0.001), clip_range=falling(0.2), seed=seed, device="cpu",
        )
    elif kind == "ppo-pendulum":
        env, steps = make_vec_env("Pendulum-v1", 4, seed=seed), 100_000
        learner = package.PPO(
            "MlpPolicy", env, n_steps=1024, gae_lambda=0.95, gamma=0.9, n_epochs=10, ent_coef=0.0, learning_rate=0.001, clip_range=0.2,
            use_sde=True, sde_sample_freq=4, seed=seed, device="cpu",
        )
    elif kind == "sac":
        env, steps = make_vec_env("Pendulum-v1", 1, seed=seed), 20_000
        learner = package.SAC("MlpPolicy", env, learning_rate=0.001, seed=seed, device="cpu")
    else:
        env, steps = make_vec_env("CartPole-v1", 1, seed=seed), 50_000
        learner = package.DQN(
            "MlpPolicy", env, learning_rate=0.0023, batch_size=64, buffer_size=100_000, learning_starts=1_000, gamma=0.99,
            target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16, exploration_final_eps=0.04,
            policy_kwargs={"net_arch": [256, 256]}, seed=seed, device="cpu",
        )
    curve, processor = [], time.process_time()

    class Watch(package.common.callbacks.BaseCallback):
        """At each part of the steps, the mean return of the last episodes."""

        def _on_step(self):
            if self.num_timesteps >= PARTS[len(curve)] * steps:
                ends = list(self.model.ep_info_buffer)[-speeds.LAST :]
                curve.append(sum(end["r"] for end in ends) / len(ends))
            return len(curve) < len(PARTS)

    learner.learn(steps, callback=Watch())
    return [{"curve": curve, "steps": steps, "processor": time.process_time() - processor}]


def ippo(seed):
    """IPPO of JaxMARL on simple_spread with the settings of its repository, all seeds at once, in a tenth of its steps."""
    found = speeds.ippo(491, PEER_SEEDS, seed)
    curves = [[float(returns[int(len(returns) * part) - 1]) for part in PARTS] for returns in found["returns"]]
    shared = {"steps": found["steps"] // 3, "processor": found["processor"] / PEER_SEEDS}
    return [{"curve": curve, **shared} for curve in curves]


# Where they run, in how many processes, and what they are. JAX has all seeds in one process. A run of SAC takes five minutes.
PEERS = {
    "sb3-ppo": ("torch", PEER_SEEDS, CART_POLE, "Stable-Baselines3 2.9.0, PPO", lambda seed: stable_baselines(seed, "ppo")),
    "sb3-dqn": ("torch", PEER_SEEDS, CART_POLE, "Stable-Baselines3 2.9.0, DQN", lambda seed: stable_baselines(seed, "dqn")),
    "sb3-ppo-pendulum": ("torch", PEER_SEEDS, PENDULUM, "Stable-Baselines3 2.9.0, PPO", lambda seed: stable_baselines(seed, "ppo-pendulum")),
    "sb3-sac": ("torch", min(3, PEER_SEEDS), PENDULUM, "Stable-Baselines3 2.9.0, SAC", lambda seed: stable_baselines(seed, "sac")),
    "jaxmarl-ippo": ("jax", 1, SPREAD, "JaxMARL 0.2.0, IPPO", ippo),
}


# --- The tables. ---


def middle(scores):
    """The interquartile mean."""
    cut = len(scores) // 4
    kept = sorted(scores)[cut : len(scores) - cut]
    return sum(kept) / len(kept)


def interval(scores):
    draws = random.Random(1)
    means = sorted(middle(draws.choices(scores, k=len(scores))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def shown(point, low, high):
    digits = 1 if abs(point) >= 5 else 2
    return f"{point:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def sweep(polity, work, name, rounds, params):
    """Sweeps a learner. Returns for each seed the metric of every round, the evaluation of the sweep, and processor seconds."""
    task, agents, *_ = LEARNERS[name]
    made = speeds.society(task.world["kind"], agents, ["none"], {"kind": name, **params})
    scenario = {
        **made, "name": f"learning-{name}", "rounds": rounds, "world": task.world, "metrics": [{"kind": "mean", "of": "episode-return"}],
        "design": {"seeds": SEEDS, "metrics": ["episode-return.mean"], "read": {"mean_of_last": task.window} if task.window > 1 else "last"},
    }
    file, out = work / f"{name}.yaml", work / name
    file.write_text(json.dumps(scenario, indent=1))
    shutil.rmtree(out, ignore_errors=True)
    lines, _, processor = speeds.child([polity, "sweep", str(file), "--out", str(out), "--no-report", "--json"])
    table = subprocess.run([polity, "export", str(out), "--table", "metrics"], capture_output=True, text=True, check=True).stdout
    curves = {}
    for row in csv.DictReader(io.StringIO(table)):
        if row["name"] == "episode-return.mean":
            curves.setdefault(row["seed"], []).append(float(row["value"]))
    assert len(curves) == SEEDS and all(len(curve) == rounds for curve in curves.values()), "a run is not whole"
    return list(curves.values()), json.loads(lines[-1])["evaluation"][0], processor


def ours(polity, work, name):
    """Prints the row of a learner."""
    task, agents, rounds, params = LEARNERS[name]
    at = lambda curve, round: sum(curve[round - task.window : round]) / task.window  # noqa: E731
    curves, end, processor = sweep(polity, work, name, rounds, params)
    last = [at(curve, rounds) for curve in curves]
    assert abs(middle(last) - end["iqm"]) < 1e-9, f"the interquartile mean is {middle(last)} here and {end['iqm']} in the sweep"
    cells = []
    for part in PARTS[:-1]:
        if params.get("epsilon_end") == 1:
            stop = int(part * params["stop"])
            _, ended, _ = sweep(polity, work, name, stop + rounds - params["stop"], {**params, "stop": stop})
            cells.append(shown(ended["iqm"], ended["iqm_low"], ended["iqm_high"]))
        else:
            scores = [at(curve, int(rounds * part)) for curve in curves]
            cells.append(shown(middle(scores), *interval(scores)))
    cells.append(shown(end["iqm"], end["iqm_low"], end["iqm_high"]) + solved(task, last))
    print(f"| {task.name} | Polity, `{name}` | {SEEDS} | {agents} × {rounds:,} | {' | '.join(cells)} | {processor / SEEDS:.1f} |", flush=True)


def solved(task, scores):
    return f"; {sum(score >= speeds.SOLVED for score in scores)} of {len(scores)} solved" if task is CART_POLE else ""


def theirs(folder, name):
    where, processes, task, what, _ = PEERS[name]
    found = []
    try:
        for seed in range(1, processes + 1):
            command = [str(folder / where / "bin" / "python"), __file__, "peer", name, str(seed)]
            lines, _, _ = speeds.child(command, {"JAX_PLATFORMS": "cpu"})
            found += json.loads(lines[-1])
    except (RuntimeError, OSError, ValueError, LookupError) as error:
        print(f"| {task.name} | {what} | | | not measured: {str(error).replace('|', ' ')[:160]} | | | |", flush=True)
        speeds.FAILED.append(what)
        return
    parts = [[one["curve"][i] for one in found] for i in range(len(PARTS))]
    cells = [shown(middle(scores), *interval(scores)) for scores in parts]
    cells[-1] += solved(task, parts[-1])
    processor = sum(one["processor"] for one in found) / len(found)
    print(f"| {task.name} | {what} | {len(found)} | {found[0]['steps']:,} | {' | '.join(cells)} | {processor:.1f} |", flush=True)


def table(polity, folder, *learners):
    folder = Path(folder).absolute()
    work = folder / "learning"
    work.mkdir(parents=True, exist_ok=True)
    print("\nInterquartile means over seeds, with 95 % intervals, of the mean return of an agent.")
    print("\n| task | learner | seeds | agents × steps | after a quarter | half | the end | processor s a run |\n|---|---|---|---|---|---|---|---|")
    wanted = learners or [*LEARNERS, *PEERS]
    for task in [CART_POLE, PENDULUM, TWO_STEPS, PAYOFFS, SPREAD]:
        for name, (of, *_) in LEARNERS.items():
            if of is task and name in wanted:
                ours(polity, work, name)
        for name, (_, _, of, *_) in PEERS.items():
            if of is task and name in wanted:
                theirs(folder, name)
    print()
    for task in [CART_POLE, PENDULUM, TWO_STEPS, PAYOFFS]:
        print(f"- {task.name}: {task.known}")
    if speeds.FAILED:
        sys.exit(f"not measured: {', '.join(speeds.FAILED)}")


if __name__ == "__main__":
    do, *words = sys.argv[1:]
    if do == "peer":
        print(json.dumps(PEERS[words[0]][-1](int(words[1]))))
    else:
        table(*words)
