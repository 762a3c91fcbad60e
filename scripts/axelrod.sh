#!/usr/bin/env bash
# Compares the strategies of repeated games with the library Axelrod (PyPI): those without draws move by move, the others by their mean
# scores. It installs the library in an environment of its own, target/peers/axelrod. Ends with 1 if any pair differs.
#
#   bash scripts/axelrod.sh [TURNS]    # 200 turns by default
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target"
. scripts/python-environment.sh
environment=target/peers/axelrod
# Later versions need PyTorch.
python_environment --exact "$environment" axelrod==4.13.1
for what in json scores; do
    cargo run --quiet --release --offline -j"${JOBS:-1}" -p polity-games --example tournament -- "--$what" "${1:-200}" >"$target/axelrod-$what.json"
done
"$environment/bin/python" scripts/compare-axelrod.py "$target/axelrod-json.json" "$target/axelrod-scores.json"
