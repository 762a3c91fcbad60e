#!/usr/bin/env bash
# CFR and CFR+ of polity-games beside OpenSpiel's solvers in C++, on Kuhn poker (two and three players) and Leduc poker: NashConv of the
# average strategies after N iterations, and iterations a second. Fails where they differ. Installs open_spiel from PyPI into a folder of
# its own, target/peers/openspiel.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python-environment.sh
environment=target/peers/openspiel/venv
python_environment --exact "$environment" open_spiel==2.0.2
cargo build --quiet --release --locked -p polity-games --example cfr
"$environment/bin/python" scripts/peers/openspiel.py "${CARGO_TARGET_DIR:-target}/release/examples/cfr"
