"""Runs the authors' program on their toy space, a part of which cannot be learned, and prints which share students have mastered.

    git clone https://github.com/flowersteam/teachDeepRL FOLDER    # commit 747cda2b903f57859e64e1c9225afcfa1bf07bbd
    pip install numpy scipy scikit-learn treelib
    python3 systems/alp-gmm/official.py FOLDER [TASKS [SEEDS]]
    python3 systems/alp-gmm/official.py FOLDER --tape > crates/polity-catalog/environments/task-space/official.jsonl

Packages for pictures are replaced by empty ones, as the program imports them but does not need them here. The part that cannot be learned is
not in their program: tasks there give 0 and change nothing. With --tape it prints tasks with the competences that their space returns.
"""

import json
import sys
import types

import numpy as np

CELLS, LEARNABLE = 10, 0.2


class Box:
    """Draws points of a box uniformly, like gym's."""

    def __init__(self, low, high, dtype):
        self.low, self.high, self.dtype = low, high, dtype

    def sample(self):
        return np.random.uniform(self.low, self.high).astype(self.dtype)


def pretend(name, **parts):
    module = types.ModuleType(name)
    module.__dict__.update(parts)
    sys.modules[name] = module


def nothing(*_, **__):
    pass


def mastered(space, teacher, tasks):
    """Returns the share of the learnable kinds that a student has mastered after this number of tasks."""
    for _ in range(tasks):
        task = teacher.sample_task() if teacher else np.random.uniform(size=2)
        reward = space.episode(task) if task[0] < LEARNABLE else 0.0
        if teacher:
            teacher.update(np.array(task), reward)
    return space.get_score() / 100 / LEARNABLE


def main():
    folder, more = sys.argv[1], sys.argv[2:]
    pretend("matplotlib")
    pretend("matplotlib.pyplot")
    pretend("seaborn", set=nothing)
    pretend("gym")
    pretend("gym.spaces", Box=Box)
    pictures = ["region_plot_gif", "gmm_plot_gif", "random_plot_gif"]
    pretend("teachDRL.teachers.utils.plot_utils", **{name: nothing for name in pictures})
    sys.path.insert(0, folder)
    from teachDRL.teachers.algos.alp_gmm import ALPGMM
    from teachDRL.toy_env.toy_env import ToyEnv

    if more == ["--tape"]:
        space, draws = ToyEnv(nb_cubes=4, nb_dims=2), np.random.default_rng(1)
        for _ in range(1500):
            task = [round(float(x), 3) for x in draws.uniform(size=2) * draws.uniform(size=2)]
            print(json.dumps([task, round(float(space.episode(np.array(task))), 2)]))
        return
    tasks, seeds = (int(more[0]) if more else 10_000), (int(more[1]) if len(more) > 1 else 10)
    for name, teach in [("ALP-GMM", True), ("random", False)]:
        found = []
        for seed in range(1, seeds + 1):
            np.random.seed(seed)
            space = ToyEnv(nb_cubes=CELLS, nb_dims=2)
            found.append(mastered(space, ALPGMM([0, 0], [1, 1], seed=seed) if teach else None, tasks))
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"{name}: {np.mean(found):.3f} of the learnable kinds mastered after {tasks} tasks, standard error {error:.3f}, {seeds} seeds")


main()
