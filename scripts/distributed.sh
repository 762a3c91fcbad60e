#!/usr/bin/env bash
# The recipes of docs/book/src/many-runs.md on this machine, with the commands of that page, each with something killed in its middle: the
# tables must be the same bytes as those of `polity sweep` in one process.
#
#   bash scripts/distributed.sh [disk|slurm|ray|kubernetes|all] [BINARY]    # without BINARY, a release build
#
# disk        workers on a shared folder
# slurm       a job array on two nodes, and one society over both by srun; installs Slurm from Debian
# ray         two machines without a shared disk, as namespaces; installs Ray from PyPI into target/venv-ray
# kubernetes  the manifests against the schemas of Kubernetes, and their commands as processes; no cluster
#
# slurm and ray need root. Nothing that they start outlives the script. Exit code 75: something cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
. scripts/python-environment.sh
which=${1:-all}
case "$which" in
disk | slurm | ray | kubernetes | all) ;;
*) echo "usage: $0 [disk|slurm|ray|kubernetes|all] [BINARY]" >&2 && exit 2 ;;
esac
if [ -n "${2:-}" ]; then
    polity=$(realpath "$2")
else
    cargo build --quiet --release --locked -p polity --bin polity
    polity=$(realpath "${CARGO_TARGET_DIR:-target}/release/polity")
fi

work=$(mktemp -d /tmp/polity-XXXXXX)
started=()
ended() {
    local code=$?
    case "$code" in
    0 | 75 | 130) ;;
    *) tail -n 20 "$work/log" >&2 || true ;;
    esac
    # The end of the first process of a namespace is that of all others there.
    for process in "${started[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work" 2>/dev/null || { sleep 2 && rm -rf "$work"; }
}
trap ended EXIT
trap 'exit 130' INT TERM
cp "$polity" "$work/polity"
export PATH=$work:$PATH

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
say() { printf '%-12s%s\n' "$part:" "$*"; }
wait_for() { # seconds, command...: until the command succeeds
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || fail "$part: waited in vain for: $*"
        sleep 0.1
    done
}
kill_hard() { # process
    kill -9 "$1"
    { wait "$1"; } 2>/dev/null || true
}

# A command of the book's page: a line of the block below a heading.
recipe() { # heading, number of the line
    awk -v heading="## $1" -v line="$2" '
        /^## / { under = $0 == heading }
        under && /^```/ { inside = !inside; next }
        under && inside && ++number == line { sub(/ *#.*/, ""); print; found = 1 }
        END { exit !found }' "$root/docs/book/src/many-runs.md" || fail "the book has no line $2 below: $1"
}
# Runs a command in the folder of a part, where the scenario is.
run_in() { # folder, command
    (cd "$1" && eval "$2") >>"$work/log" 2>&1
}
# The scenario: 64 runs in four arms.
with_scenario() { # folder
    mkdir -p "$1"
    sed -e 's/^agents: .*/agents: 10000/' -e 's/^rounds: .*/rounds: 200/' -e 's/values: \[1, 1.5, 2\]/values: [1, 2]/' -e 's/^  seeds: .*/  seeds: 16/' \
        "$root/scenarios/sweep-guess.yaml" >"$1/study.yaml"
}
# Figures of `polity status`: ended runs, and begun ones that nobody works on.
made() { polity status "$1" --json 2>/dev/null | grep -o '"done":[0-9]*' | head -n 1 | cut -d: -f2; }
torn() { polity status "$1" --json 2>/dev/null | { grep -o '"state":"stopped","rounds"' || true; } | wc -l; }
made_at_least() { [ "$(made "$1")" -ge "$2" ]; }
files() { (cd "$1" && find . -type f ! -path './runs/*' ! -name lock ! -name digests.json ! -name report.html | sort); }
# All runs must be there before the tables are asked for, since `polity resume` would make what is missing.
all_made() { [ "$(made "$1")" -eq 64 ] || fail "$part: $(made "$1") of 64 runs were made"; }
same_tables() { # folder
    local alone=$work/alone/study count=0 file
    if [ ! -d "$alone" ]; then
        with_scenario "$work/alone"
        run_in "$work/alone" 'polity sweep study.yaml --out study'
        [ "$(made "$alone")" -eq 64 ] || fail "the scenario has $(made "$alone") runs"
    fi
    diff <(files "$alone") <(files "$1") >&2 || fail "$part: other files"
    while read -r file; do
        cmp "$alone/$file" "$1/$file" >&2 || fail "$part: $file differs"
        count=$((count + 1))
    done < <(files "$alone")
    polity verify "$1" >"$work/verified" 2>&1 || fail "$part: polity verify $1: $(tail -n 3 "$work/verified")"
    say "$(made "$1") of 64 runs; $count files of tables, each the same bytes as from one process; polity verify: $(grep -c '^sound' "$work/verified") sound"
}
needs_root() { [ "$(id -u)" -eq 0 ] || fail "$part needs root"; }
# Starts a machine: a namespace of processes whose end is theirs. `started` has its first process last.
machine() { # log, options of unshare, --, command...
    local log=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    unshare --pid --fork --kill-child --mount-proc "${options[@]}" "$@" >"$log" 2>&1 &
    started+=($!)
}
background() { # log, command...
    local log=$1
    shift
    "$@" >>"$log" 2>&1 &
    started+=($!)
}

seconds() { # command...: wall seconds
    local begun
    begun=$(date +%s%N)
    "$@"
    awk -v ns=$(($(date +%s%N) - begun)) 'BEGIN { printf "%.2f", ns / 1e9 }'
}
two_workers() { # folder, part of the first, part of the second
    polity sweep "$timed/study.yaml" --out "$1" --plan >>"$work/log" 2>&1
    polity work "$1" --jobs 1 --no-report ${2:+--part "$2"} >>"$work/log" 2>&1 &
    local first=$!
    polity work "$1" --jobs 1 --no-report ${3:+--part "$3"} >>"$work/log" 2>&1
    wait $first
    polity resume "$1" --no-report >>"$work/log" 2>&1
}
one_process() { # folder
    polity sweep "$timed/study.yaml" --out "$1" --jobs 2 --no-report >>"$work/log" 2>&1
}
disk() {
    local moment first second left shared plan worker sum
    # Kills a worker if it is in the middle of a run.
    killed_in_a_run() { # process
        local run
        kill -STOP "$1"
        run=$(find "/proc/$1/fd" -lname '*/runs/*/lock' -printf '%l\n' | head -n 1)
        if [ -n "$run" ] && polity status "${run%/lock}" --json | grep -q '"state":"running"'; then
            kill_hard "$1"
        else
            kill -CONT "$1" && return 1
        fi
    }
    for moment in 4 12 20 28; do
        shared=$work/disk-$moment
        with_scenario "$shared"
        plan=$(recipe 'Two machines with a shared disk' 1) worker=$(recipe 'Two machines with a shared disk' 2)
        sum=$(recipe 'Two machines with a shared disk' 3)
        run_in "$shared" "${plan//\/shared/$shared}"
        # Of each only one run at once, since both are on this machine.
        worker=${worker//\/shared/$shared}
        background "$work/log" env POLITY_JOBS=1 POLITY_THREADS=1 $worker
        first=$!
        background "$work/log" env POLITY_JOBS=1 POLITY_THREADS=1 $worker
        second=$!
        wait_for 120 made_at_least "$shared/study" "$moment"
        wait_for 60 killed_in_a_run "$first"
        # At every other moment the second is killed too, and a third heals the sweep.
        if [ "$moment" -eq 4 ] || [ "$moment" -eq 20 ]; then
            wait "$second" || fail "the other worker ended with $?"
            say "one of two workers killed in the middle of a run: the other ended with $(made "$shared/study") of 64"
        else
            wait_for 60 killed_in_a_run "$second"
            left=$(torn "$shared/study")
            [ "$left" -gt 0 ] || fail "disk: no run was in the middle"
            say "both workers killed after $(made "$shared/study") of 64 runs, in the middle of $left; a third one heals the sweep"
        fi
        run_in "$shared" "$worker" || fail "$worker ended with $?"
        all_made "$shared/study"
        run_in "$shared" "${sum//\/shared/$shared}"
        same_tables "$shared/study"
    done
    local timed=$work/timed
    with_scenario "$timed"
    sed -i -e 's/^agents: .*/agents: 300/' -e 's/^rounds: .*/rounds: 10/' "$timed/study.yaml"
    # By turns, since other work on the machine comes and goes.
    local round alone=() two=() parts=()
    for round in 1 2 3; do
        alone+=("$(seconds one_process "$timed/alone-$round")")
        two+=("$(seconds two_workers "$timed/two-$round")")
        parts+=("$(seconds two_workers "$timed/parts-$round" 0/2 1/2)")
        for sum in alone two parts; do [ "$(made "$timed/$sum-$round")" -eq 64 ] || fail "disk: $sum-$round has no 64 runs"; done
    done
    median() { printf '%s\n' "$@" | sort -n | sed -n 2p; }
    say "64 short runs (300 agents, 10 rounds), median of 3: $(awk -v alone="$(median "${alone[@]}")" -v two="$(median "${two[@]}")" \
        -v parts="$(median "${parts[@]}")" 'BEGIN {
            printf "polity sweep with two jobs %.2f s; with planning and tables two workers %.2f s, ratio %.2f; with a part each %.2f s, ratio %.2f",
                alone, two, two / alone, parts, parts / alone
        }')"
}

slurm() {
    needs_root
    local missing=()
    for command in slurmctld slurmd munged; do command -v $command >/dev/null || missing+=($command); done
    if [ "${#missing[@]}" -gt 0 ]; then
        { apt-get update && apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge; } >>"$work/log" 2>&1 || {
            echo "Slurm cannot be installed here" >&2
            exit 75
        }
    fi
    local at=$work/slurm dir=$work/slurm/study host array
    host=$(hostname -s)
    mkdir -p "$at/state" "$at/n1" "$at/n2"
    chmod 755 "$work" "$at"
    export SLURM_CONF=$at/slurm.conf
    cat >"$SLURM_CONF" <<CONF
ClusterName=polity
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$at/munge.socket
StateSaveLocation=$at/state
SlurmdSpoolDir=$at/%n
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/%n/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=10
SlurmdParameters=config_overrides
JobCompType=jobcomp/filetxt
JobCompLoc=$at/jobs
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17818 CPUs=1
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17819 CPUs=1
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
    (umask 077 && head -c 1024 /dev/urandom >"$at/munge.key")
    background "$at/munged.log" munged --foreground --force --socket="$at/munge.socket" --key-file="$at/munge.key" \
        --pid-file="$at/munged.pid" --log-file="$at/munged.log" --seed-file="$at/munged.seed"
    wait_for 20 test -S "$at/munge.socket"
    background "$at/slurmctld.log" slurmctld -D
    # slurmd must not be the first process of its namespace: that one has to collect the dead. Its tasks see the names of both nodes.
    printf '127.0.0.1 localhost\n127.0.0.1 n1\n127.0.0.2 n2\n' >"$at/hosts"
    local node
    for node in n1 n2; do
        machine "$at/$node.log" --mount -- bash -c "mount --bind $at/hosts /etc/hosts && { slurmd -D -N $node & wait; }"
    done
    local lost=${started[-1]}
    idle() { [ "$(sinfo -h -t idle -o %D)" = "$1" ]; }
    wait_for 60 idle 2
    say "$(sinfo --version), nodes $(sinfo -h -N -o %N | paste -sd ' ')"

    spread_by_srun

    with_scenario "$at"
    run_in "$at" "$(recipe 'A Slurm array' 1)"
    # Of eight tasks instead of a hundred, each with one run at once, since both nodes are this machine.
    array=$(recipe 'A Slurm array' 2 | sed -e 's/0-99/0-7/' -e 's/100/8/')
    submit() { POLITY_JOBS=1 POLITY_THREADS=1 run_in "$at" "$array"; }
    state() { awk -v state="JobState=$1" '$0 ~ state' "$at/jobs" 2>/dev/null | wc -l; }
    state_at_least() { [ "$(state "$1")" -ge "$2" ]; }
    of_node() { # process of `polity work` on a node
        local process
        for process in $(pgrep -f '^polity work study --part'); do
            if tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "SLURMD_NODENAME=$1"; then echo "$process" && return; fi
        done
        return 1
    }
    submit
    wait_for 120 made_at_least "$dir" 8
    killed_on() { kill -9 "$(of_node "$1")"; }
    wait_for 60 killed_on n1
    wait_for 120 made_at_least "$dir" 20
    # Held, so that it is in the middle of its task.
    held_on() { kill -STOP "$(of_node "$1")"; }
    wait_for 60 held_on n2
    kill_hard "$lost"
    say "one task killed, later node n2 with all its processes, after $(made "$dir") of 64 runs"
    wait_for 120 state_at_least NODE_FAIL 1
    nothing_runs() { [ -z "$(squeue -h -t running,completing)" ] && [ "$(squeue -h -r -t pending | wc -l)" -le 1 ]; }
    wait_for 120 nothing_runs
    say "the array: $(state COMPLETED) tasks done, $(state FAILED) failed and not repeated, $(state NODE_FAIL) lost with its node and queued again;" \
        "$(made "$dir") of 64 runs"
    [ "$(made "$dir")" -lt 64 ] || fail "slurm: nothing was left to heal"
    # The task that Slurm repeats waits for two minutes.
    scancel -t pending -u root
    submit
    none() { [ -z "$(squeue -h)" ]; }
    wait_for 120 none
    say "the same array again, on the node that is left: $(made "$dir") of 64 runs"
    all_made "$dir"
    run_in "$at" "$(recipe 'A Slurm array' 3)"
    same_tables "$dir"
}

# One society on both nodes: one process is killed, and the same command goes on.
spread_by_srun() {
    local command digest=() run
    cat >"$at/city.yaml" <<'YAML'
name: city
seed: 3
agents: 60000
rounds: 60
world: {kind: opinion}
topology: {kind: erdos-renyi, mean_degree: 8}
cohorts: [{policy: {kind: degroot}}]
snapshot: {rounds: 5}
YAML
    run_in "$at" 'polity run city.yaml --out alone --no-report --json >alone.json'
    command=$(grep -o '`srun [^`]*`' "$root/docs/book/src/many-runs.md" | head -n 1 | tr -d '`' | sed -e 's/-N4 -n4/-N2 -n2/')
    [ -n "$command" ] || fail "slurm: the book has no line with srun"
    export POLITY_SPREAD_TOKEN=a-secret-of-the-script
    background "$work/log" sh -c "cd $at && exec $command --no-report"
    at_round() { [ "$(polity status "$at/city" --json | grep -o '"rounds":[0-9]*' | head -n 1 | cut -d: -f2)" -ge 12 ]; }
    wait_for 120 at_round
    kill -9 "$(pgrep -f '^[^ ]*polity run city.yaml --out city' | tail -n 1)"
    ! wait "${started[-1]}" || fail "slurm: a step with a killed process ended well"
    run_in "$at" "$command --no-report --json >city.json"
    for run in alone city; do digest+=("$(grep -o '"digest":"[^"]*"' "$at/$run.json" | head -n 1)"); done
    [ -n "${digest[0]}" ] && [ "${digest[0]}" = "${digest[1]}" ] || fail "slurm: digests ${digest[*]}"
    run_in "$at" 'polity verify city'
    say "one society by srun on both nodes, one process killed, started again: ${digest[0]}, as in one process"
}

ray() {
    needs_root
    python_environment target/venv-ray ray==2.60.0 || exit $?
    local at=$work/ray dir=$work/ray/study python=$root/target/venv-ray/bin page='Ray, without a shared disk'
    with_scenario "$at"
    cp examples/ray_sweep.py "$at"
    run_in "$at" "$(recipe "$page" 4)"
    export RAY_USAGE_STATS_ENABLED=0 RAY_ADDRESS=10.99.0.1:6379 PYTHONDONTWRITEBYTECODE=1 PATH=$python:$PATH
    local first second secret
    secret=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
    eval "$(recipe "$page" 1 | sed "s/SECRET/$secret/")"
    first=$(recipe "$page" 2) second=$(recipe "$page" 3 | sed 's/FIRST/10.99.0.1/')
    # Two machines: processes, network and the temporary folder of their own, joined by a cable. The second sees nothing of $work.
    local setup='until ip link show cable >/dev/null 2>&1; do sleep 0.05; done
        ip link set lo up && ip addr add $0/32 dev lo && ip link set cable up && ip route add 10.99.0.0/24 dev cable src $0'
    local limits="--num-cpus=1 --object-store-memory=800000000"
    machine "$at/head.log" --net -- bash -c "$setup
        $first --node-ip-address=\$0 $limits --include-dashboard=false --temp-dir=$at/ray --block" 10.99.0.1
    local head=${started[-1]}
    machine "$work/worker.log" --net --mount -- bash -c "mount -t tmpfs none $work
        $setup
        $second --node-ip-address=\$0 $limits --block" 10.99.0.2
    local lost=${started[-1]}
    wait_for 20 pgrep -P "$head"
    wait_for 20 pgrep -P "$lost"
    ip link add polity-a type veth peer name polity-b
    ip link set polity-a netns "$head" name cable
    ip link set polity-b netns "$lost" name cable
    inside() { nsenter --target "$(pgrep -P "$head")" --all "$@"; }
    inside timeout 120 "$python/python" - >"$at/nodes.log" 2>&1 <<'PYTHON' || fail "ray: the cluster does not start: $(tail -n 5 "$at/nodes.log" "$work/worker.log")"
import ray, time

while True:
    try:
        ray.init(log_to_driver=False)
        break
    except ConnectionError:
        time.sleep(0.5)
while sum(node["Alive"] for node in ray.nodes()) < 2:
    time.sleep(0.2)
print("lost", *[node["NodeID"][:8] for node in ray.nodes() if node["NodeManagerAddress"] == "10.99.0.2"])
PYTHON
    local name
    name=$(awk '$1 == "lost" { print $2 }' "$at/nodes.log")
    say "$("$python/ray" --version | tail -n 1), two machines of one processor, the second without the disk of the first"

    back() { cat "$at"/driver*.log 2>/dev/null | grep -c 'came back' || true; }
    back_at_least() { [ "$(back)" -ge "$1" ]; }
    # Holds the second machine in the middle of a part.
    held() { kill -STOP "$(pgrep -f --ns "$(pgrep -P "$lost")" --nslist pid '^[^ ]*/polity work')"; }
    drive() { background "$at/driver-$1.log" inside sh -c "cd $at && exec $(recipe "$page" 5)"; }
    drive 1
    wait_for 120 back_at_least 3
    local driver
    driver=$(inside pgrep -f ray_sweep.py)
    inside kill -9 "$driver"
    wait "${started[-1]}" 2>/dev/null || true
    say "the script killed after $(back) of 16 parts"
    drive 2
    wait_for 120 back_at_least 7
    wait_for 60 held
    kill_hard "$lost"
    local before
    before=$(cat "$at"/driver*.log | grep -c "came back from $name" || true)
    say "one of two machines lost after $(back) of 16 parts, of which it had made $before, in the middle of another"
    wait "${started[-1]}" || fail "ray: the script ended with $?: $(tail -n 5 "$at/driver-2.log")"
    [ "$(cat "$at"/driver*.log | grep -c "came back from $name")" -eq "$before" ] || fail "ray: a part came back from the lost machine"
    [ "$before" -gt 0 ] || fail "ray: the lost machine had made nothing"
    say "the script again: $(head -n 20 "$at/driver-2.log" | grep 'are left'); parts that Ray gave to the other machine: $(grep -c 'infinite retries' "$at/driver-2.log" || true)"
    all_made "$dir"
    run_in "$at" "$(recipe "$page" 6)"
    same_tables "$dir"
}

kubernetes() {
    python_environment target/venv-kubernetes kubernetes-validate==1.37.0 || exit $?
    local python=target/venv-kubernetes/bin dir=$work/kubernetes
    with_scenario "$dir"
    "$python/kubernetes-validate" --strict examples/kubernetes/*.yaml >"$dir/schema.log" 2>&1 || fail "kubernetes: $(cat "$dir/schema.log")"
    sed 's/backoffLimitPerIndex/backoffLimitPerindex/' examples/kubernetes/work.yaml >"$dir/wrong.yaml"
    ! "$python/kubernetes-validate" --strict "$dir/wrong.yaml" >/dev/null 2>&1 || fail "kubernetes: the check of schemas sees nothing"
    say "$(grep -c passed "$dir/schema.log") manifests pass the schemas of Kubernetes $(grep -o 'version [0-9.]*' "$dir/schema.log" | head -n 1 | cut -d' ' -f2)"
    # The commands of the manifests; only their folders are others.
    "$python/python" - "$dir" <<'PYTHON' >>"$work/log" 2>&1 || fail "kubernetes: $(tail -n 3 "$work/log")"
import subprocess, sys, yaml

folder = sys.argv[1]
for name in ["plan", "work", "tables"]:
    with open(f"examples/kubernetes/{name}.yaml") as file:
        spec = yaml.safe_load(file)["spec"]
    for index in range(spec.get("completions", 1)):
        words = spec["template"]["spec"]["containers"][0]["args"]
        changed = [("/shared/", ""), ("/scenario/", ""), ("$(PART)", str(index))]
        for old, new in changed:
            words = [word.replace(old, new) for word in words]
        print(words, flush=True)
        subprocess.run(["polity", *words], cwd=folder, check=True)
PYTHON
    say "their commands as plain processes (no cluster was tried):"
    same_tables "$dir/study"
}

for part in disk slurm ray kubernetes; do
    if [ "$which" = all ] || [ "$which" = "$part" ]; then
        begun=$SECONDS
        "$part"
        say "passed in $((SECONDS - begun)) s"
    fi
done
