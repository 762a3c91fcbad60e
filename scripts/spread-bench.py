"""What one society costs in several processes, and a model of it. Called by scripts/spread.sh bench.

    spread-bench.py BINARY FOLDER

Processor time is the figure on a machine with other work: the time of a round in one process, divided by that of all processes together, is
the efficiency that idle cores would show. Building is left out: each figure is the difference of a long and a short run.
"""

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

POLITY, FOLDER = sys.argv[1], Path(sys.argv[2])
SHORT, LONG = 2, 42
SIZE = float(os.environ.get("POLITY_SPREAD_SIZE", "1"))

CASES = {
    "no messages": (
        8_000_000,
        {"world": {"kind": "guess-average"}, "cohorts": [{"policy": {"kind": "level-k"}}]},
    ),
    "ring of 10, 2 % long ties": (
        1_000_000,
        {
            "world": {"kind": "opinion"},
            "topology": {"kind": "watts-strogatz", "neighbours": 10, "rewire": 0.02},
            "cohorts": [{"policy": {"kind": "degroot"}}],
        },
    ),
    "random graph, 10 ties": (
        1_000_000,
        {
            "world": {"kind": "opinion"},
            "topology": {"kind": "erdos-renyi", "mean_degree": 10},
            "cohorts": [{"policy": {"kind": "degroot"}}],
        },
    ),
    "Barabási-Albert, 10 ties": (
        1_000_000,
        {
            "world": {"kind": "opinion"},
            "topology": {"kind": "barabasi-albert", "links": 5},
            "cohorts": [{"policy": {"kind": "degroot"}}],
        },
    ),
}
# Processes, and threads of each.
SETTINGS = ((1, 1), (1, 2), (2, 1), (3, 1))


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run(scenario, processes, rounds, threads):
    """Returns processor seconds of all processes, wall seconds, bytes given to others and the digest."""
    out = FOLDER / "bench-run"
    subprocess.run(["rm", "-rf", str(out)], check=True)
    fixed = [POLITY, "run", str(scenario), "--out", str(out), "--json", "--no-report", "--rounds", str(rounds), "--threads", str(threads)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if processes == 1:
        started = [subprocess.Popen(fixed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)]
    else:
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(processes))
        started = [
            subprocess.Popen(
                fixed + ["--spread", addresses, "--spread-index", str(index)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            for index in range(processes)
        ]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit(f"{fixed}: exit codes {[process.returncode for process in started]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summaries = [json.loads(output.splitlines()[-1]) for output in outputs]
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = max(summary.get("peak_memory_mb") or 0 for summary in summaries)
    return processor, summaries[0]["round_ms"], memory, summaries[0]["digest"]


def per_round(scenario, processes, threads):
    short, long = run(scenario, processes, SHORT, threads), run(scenario, processes, LONG, threads)
    return (long[0] - short[0]) / (LONG - SHORT) * 1e3, long[1], long[2], long[3]


print("## One society")
print()
print("| society | processes | threads of each | processor time a round, ms | efficiency | median round, ms | memory a process, MB |")
print("|---|---|---|---|---|---|---|")
measured = {}
for name, (agents, parts) in CASES.items():
    scenario = FOLDER / "bench.yaml"
    agents = int(agents * SIZE)
    # Nothing is recorded of agents and no state is saved: these costs are process 0's alone.
    record = {"agents": False, "acts": False}
    scenario.write_text(json.dumps({"name": "bench", "seed": 1, "agents": agents, "rounds": LONG, "record": record, **parts}))
    base = None
    for processes, threads in SETTINGS:
        cpu, wall, memory, digest = per_round(scenario, processes, threads)
        base = base or (cpu, digest)
        if digest != base[1]:
            sys.exit(f"{name}: another digest with {processes} processes of {threads} threads")
        measured[name, processes, threads] = cpu
        row = [f"{name}, {agents:,} agents", processes, threads, f"{cpu:.0f}", f"{base[0] / cpu:.0%}", f"{wall:.0f}", f"{memory:.0f}"]
        print(f"| {' | '.join(map(str, row))} |", flush=True)

ties = 10
agents = int(1_000_000 * SIZE)
letters = agents * ties
random_1, random_2, random_3 = (measured["random graph, 10 ties", processes, 1] for processes in (1, 2, 3))
local = random_1 / letters * 1e6
# With n processes a share of 1 - 1/n of a random graph's ties crosses.
crossing = (random_2 - random_1) / (letters / 2) * 1e6
predicted_3 = random_1 + letters * (2 / 3) * crossing / 1e6
print()
print("## A model of the cost")
print()
print(f"Processor time of a round: {local:.1f} ns for each message, and {crossing:.1f} ns more for one that crosses.")
print(f"The random graph in 3 processes: {predicted_3:.0f} ms by the model, {random_3:.0f} ms measured.")
print()
print("A billion messages a round on machines of 16 cores with 10 Gbit/s, 16 bytes a message, by the model (nobody has measured this):")
print()
print("| machines | random graph | 5 % of the messages cross |")
print("|---|---|---|")
for machines in (1, 4, 16, 100):
    cells = []
    for share in (1 - 1 / machines, 0.05 if machines > 1 else 0.0):
        work = 1e9 * (local + share * crossing) * 1e-9 / (16 * machines)
        wire = 1e9 * share * 16 / (machines * 1.25e9)
        cells.append(f"{work + wire + 0.0003 * (machines > 1):.2f} s")
    print(f"| {machines} | {cells[0]} | {cells[1]} |")
