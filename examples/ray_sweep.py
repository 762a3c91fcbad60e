"""Makes the runs of a sweep on a Ray cluster.

    polity sweep study.yaml --out study --plan
    python ray_sweep.py study
    polity resume study

The machines need Ray, but no shared disk and no Polity. The program and the planned sweep travel to them, and the runs come back as archives,
a few in each. Ray gives what a lost machine has not sent back to another one. After a crash of this script, run it again: the archives are kept
in a folder beside the sweep (study.parts-...), and only what is missing there is made.

The program must be one that starts on all machines; the static one does (scripts/static-binary.sh). The command of the Python package is a
script and cannot travel. Keys of model providers must be in the environment of `ray start` on every machine.
"""

import argparse
import hashlib
import io
import json
import math
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import ray


def pack(folder):
    """Returns a folder as an archive."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(folder, arcname=".")
    return archive.getvalue()


def unpack(archive, folder):
    """Writes the files of an archive into a folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


# A machine may be lost any number of times. A part that fails is not repeated: it would fail again.
@ray.remote(num_cpus=1, max_retries=-1)
def make(part, program, planned):
    """Makes a part of the runs in a folder of its own. Returns the name of the machine, and the runs as an archive."""
    with tempfile.TemporaryDirectory() as folder:
        polity, sweep = Path(folder, "polity"), Path(folder, "sweep")
        polity.write_bytes(program)
        polity.chmod(0o700)
        unpack(planned, sweep)
        command = [polity, "work", sweep, "--part", part, "--jobs", "1", "--threads", "1", "--no-report"]
        worked = subprocess.run(command, capture_output=True, text=True)
        if worked.returncode != 0:
            raise RuntimeError(worked.stderr)
        return ray.get_runtime_context().get_node_id()[:8], pack(sweep / "runs")


def main():
    parser = argparse.ArgumentParser(description="Makes the runs of a planned sweep on a Ray cluster.")
    parser.add_argument("sweep", type=Path, help="folder that `polity sweep ... --plan` wrote")
    parser.add_argument("--program", default=shutil.which("polity"), help="the program (default: `polity` in the path)")
    parser.add_argument("--at-once", type=int, default=4, help="number of runs in a task (default: 4)")
    args = parser.parse_args()
    if args.program is None:
        parser.error("there is no `polity` in the path: name the program with --program")

    ray.init()
    plan = (args.sweep / "sweep.json").read_bytes()
    parts = math.ceil(sum(len(arm["seeds"]) for arm in json.loads(plan)["design"]["arms"]) / args.at_once)
    # Another plan in the same folder gets a folder of its own.
    back = args.sweep.with_name(f"{args.sweep.name}.parts-{hashlib.sha256(plan).hexdigest()[:8]}")
    back.mkdir(exist_ok=True)
    archives = {f"{part}/{parts}": back / f"{part}-of-{parts}.tar.gz" for part in range(parts)}

    program = ray.put(Path(args.program).read_bytes())
    sweep = ray.put(pack(args.sweep))
    tasks = {make.remote(part, program, sweep): part for part, file in archives.items() if not file.exists()}
    print(f"{len(tasks)} of {parts} parts are left", flush=True)
    failed = False
    while tasks:
        (task,), _ = ray.wait(list(tasks))
        part = tasks.pop(task)
        try:
            machine, archive = ray.get(task)
        except ray.exceptions.RayError as error:
            print(f"part {part} failed: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        written = archives[part].with_suffix(".tmp")
        written.write_bytes(archive)
        written.rename(archives[part])
        print(f"part {part} came back from {machine}", flush=True)
    for file in archives.values():
        if file.exists():
            unpack(file.read_bytes(), args.sweep / "runs")
    if failed:
        sys.exit("parts failed: see above, and repeat the command")
    print(f"all parts are back: polity resume {args.sweep}")


if __name__ == "__main__":
    main()
