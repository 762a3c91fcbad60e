#!/usr/bin/env bash
# The same two models on Polity, krABMaga and Mesa, one after the other on this machine: milliseconds a step, and ratios.
# Installs Mesa from PyPI into a folder of its own and builds krABMaga from crates.io; both are left in target/peers.
set -euo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/target/peers
mkdir -p "$peers"
. scripts/python-environment.sh
python_environment --exact "$peers/venv" mesa==3.3.1
cargo build --quiet --release --manifest-path scripts/peers/krabmaga/Cargo.toml --target-dir "$peers/krabmaga"
cargo build --quiet --release --locked --workspace --examples
polity=target/release/examples/bench
krabmaga=$peers/krabmaga/release/peer-krabmaga

polity_ms() { # model agents steps
    local world policy folder
    folder=$(mktemp -d)
    if [ "$1" = flock ]; then
        world='{kind: flock}' policy='{kind: boid}'
    else
        world='{kind: schelling, density: 0.8, radius: 2}' policy='{kind: relocate, least_count: 8}'
    fi
    printf 'rounds: %s\nagents: %s\nworld: %s\ncohorts: [{policy: %s}]\nrecord: {acts: false, agents: false}\n' \
        "$3" "$2" "$world" "$policy" >"$folder/s.yaml"
    "$polity" run "$folder/s.yaml" --out "$folder/run" --no-report --json 2>/dev/null | tail -n 1 |
        grep -o '"round_ms":[0-9.]*' | cut -d: -f2
    rm -rf "$folder"
}

echo "| model | agents | Polity, ms a step | krABMaga 0.6.2 | Mesa 3.3.1 | krABMaga / Polity | Mesa / Polity |"
echo "|---|---|---|---|---|---|---|"
row() { # model agents steps steps-of-krabmaga steps-of-mesa (0: not run)
    local ours theirs mesa="" ratio="not run"
    ours=$(polity_ms "$1" "$2" "$3")
    theirs=$("$krabmaga" "$1" "$2" "$4" 2>/dev/null)
    if [ "$5" -gt 0 ]; then
        mesa=$("$peers/venv/bin/python" scripts/peers/mesa_models.py "$1" "$2" "$5")
        ratio=$(echo "$mesa $ours" | awk '{printf "%.0f", $1 / $2}')
    fi
    echo "$ours $theirs" | awk -v m="$1" -v n="$2" -v mesa="${mesa:-not run}" -v ratio="$ratio" \
        '{printf "| %s | %s | %.2f | %.1f | %s | %.0f | %s |\n", m, n, $1, $2, mesa, $2 / $1, ratio}'
}
row flock 400 50 50 50
row flock 10000 50 20 1
row flock 100000 20 5 0
row schelling 10000 20 20 10
row schelling 100000 20 5 3
