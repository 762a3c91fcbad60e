"""Prints the order parameter that infinitely many oscillators with the learned policy reach, from the equation of their density.

Each of them sees one other, drawn from the density, and takes the most probable choice of its policy. The density of phases is kept at equally
spaced points of the circle. This is a second, plain computation that shares nothing with Polity but the file of weights.

    python3 systems/dec-pomfc/mean_field.py [FILE OF WEIGHTS]
"""

import json
import math
import pathlib
import struct
import sys

POINTS, STEPS = 720, 45
SHIFT, NOISE, ARC = 0.2, 0.2, 0.75


def tensors(path):
    """Reads a safetensors file. Returns the shape and the numbers of each tensor by its name."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    about, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    found = {}
    for name, of in about.items():
        if name != "__metadata__":
            start, end = of["data_offsets"]
            found[name] = of["shape"], struct.unpack(f"<{(end - start) // 4}f", body[start:end])
    return found


def way(weights, angle):
    """Returns the most probable choice (-1, 0 or 1) of an agent that sees another one ahead by this angle."""
    numbers, layer = [math.cos(angle), math.sin(angle)], 0
    while f"policy.{layer}.weight" in weights:
        (inputs, outputs), weight = weights[f"policy.{layer}.weight"]
        _, bias = weights[f"policy.{layer}.bias"]
        if layer > 0:
            numbers = [math.tanh(x) for x in numbers]
        numbers = [bias[j] + sum(numbers[i] * weight[i * outputs + j] for i in range(inputs)) for j in range(outputs)]
        layer += 1
    return max(range(3), key=lambda choice: numbers[choice]) - 1


def order(density):
    angles = [math.tau * (i + 0.5) / POINTS for i in range(POINTS)]
    return abs(sum(share * complex(math.cos(x), math.sin(x)) for share, x in zip(density, angles)))


def chance(move):
    """Returns the probability of each point ahead, after a shift and the noise."""
    near = [
        sum(math.exp(-(((math.tau * (i / POINTS + winds) - move) / NOISE) ** 2) / 2) for winds in range(-2, 3))
        for i in range(POINTS)
    ]
    total = sum(near)
    return [(i, share / total) for i, share in enumerate(near) if share / total > 1e-15]


def main():
    file = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("policy.safetensors")
    weights = tensors(file)
    ways = [way(weights, math.tau * by / POINTS) for by in range(POINTS)]
    chances = {move: chance(move * SHIFT) for move in (-1, 0, 1)}
    begin = [1.0 if (i + 0.5) / POINTS < ARC else 0.0 for i in range(POINTS)]
    density = [share / sum(begin) for share in begin]
    for _ in range(STEPS):
        after = [0.0] * POINTS
        for i, share in enumerate(density):
            moves = {-1: 0.0, 0: 0.0, 1: 0.0}
            for by, move in enumerate(ways):
                moves[move] += density[(i + by) % POINTS]
            for move, part in moves.items():
                if share * part > 0:
                    for by, likely in chances[move]:
                        after[(i + by) % POINTS] += share * part * likely
        total = sum(after)
        density = [share / total for share in after]
    print(f"{order(density):.4f}")


main()
