"""Flocking and segregation on Mesa, written against its public interface: agents in random order, spaces of Mesa's own.

mesa_models.py flock|schelling AGENTS STEPS prints the milliseconds of a step.
"""

import math
import sys
import time

import mesa
import numpy as np
from mesa.discrete_space import CellAgent, OrthogonalMooreGrid
from mesa.space import ContinuousSpace


class Bird(mesa.Agent):
    def __init__(self, model, heading):
        super().__init__(model)
        self.heading = heading

    def step(self):
        space = self.model.space
        neighbours = [n for n in space.get_neighbors(self.pos, 15.0, include_center=True) if n is not self]
        if neighbours:
            ways = np.array([space.get_heading(self.pos, n.pos) for n in neighbours])
            near = ways[(ways**2).sum(axis=1) < 16.0]
            wish = 0.03 * ways.sum(axis=0) + 0.05 * np.sum([n.heading for n in neighbours], axis=0) - 0.015 * near.sum(axis=0)
            heading = self.heading + wish / len(neighbours)
            self.heading = heading / np.linalg.norm(heading)
        space.move_agent(self, np.asarray(self.pos) + self.heading)


class Flock(mesa.Model):
    def __init__(self, agents, seed=1):
        super().__init__(seed=seed)
        side = math.sqrt(agents * 150.0 * 150.0 / 400.0)
        self.space = ContinuousSpace(side, side, torus=True)
        for _ in range(agents):
            angle = self.random.random() * math.tau
            bird = Bird(self, np.array([math.cos(angle), math.sin(angle)]))
            self.space.place_agent(bird, (self.random.random() * side, self.random.random() * side))

    def step(self):
        self.agents.shuffle_do("step")


class Person(CellAgent):
    def __init__(self, model, group, cell):
        super().__init__(model)
        self.group = group
        self.cell = cell

    def step(self):
        like = sum(1 for other in self.cell.get_neighborhood(radius=2).agents if other.group == self.group)
        if like < 8:
            self.cell = self.model.grid.select_random_empty_cell()


class Town(mesa.Model):
    def __init__(self, agents, seed=1):
        super().__init__(seed=seed)
        side = math.ceil(math.sqrt(agents / 0.8))
        self.grid = OrthogonalMooreGrid((side, side), torus=True, capacity=1, random=self.random)
        cells = self.random.sample(list(self.grid.all_cells), agents)
        for i, cell in enumerate(cells):
            Person(self, i % 2, cell)

    def step(self):
        self.agents.shuffle_do("step")


def main():
    which, agents, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    model = Flock(agents) if which == "flock" else Town(agents)
    began = time.perf_counter()
    for _ in range(steps):
        model.step()
    print(f"{(time.perf_counter() - began) * 1000 / steps:.1f}")


main()
