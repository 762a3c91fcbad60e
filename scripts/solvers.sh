#!/usr/bin/env bash
# Compares the solvers of games with others on random games: nashpy (all equilibria, Lemke-Howson), SciPy's HiGHS (values of zero-sum
# games, correlated and Stackelberg equilibria), a plain fixed point (quantal responses) and NumPy (pure equilibria). Prints a table of
# agreement, and fails if something disagrees. Installs nashpy and SciPy from PyPI into a folder of its own, target/peers/solvers.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python-environment.sh
environment=target/peers/solvers
python_environment --exact "$environment" nashpy==0.0.43 scipy==1.17.1
games=$(mktemp -d)
trap 'rm -rf "$games"' EXIT
"$environment/bin/python" scripts/peers/solvers.py write "$games"
cargo build --quiet --locked -p polity-games --example solve-files
target=${CARGO_TARGET_DIR:-target}
"$target/debug/examples/solve-files" "$games"/*.nfg >"$games/solved.jsonl"
"$environment/bin/python" scripts/peers/solvers.py compare "$games/solved.jsonl"
