#!/usr/bin/env bash
# CFR and CFR+ of polity-games beside OpenSpiel's solvers in C++, on Kuhn poker (two and three players) and Leduc poker: NashConv of the
# average strategies after N iterations, and iterations a second. Fails where they differ. Installs open_spiel from PyPI into a folder of
# its own, target/peers/openspiel.
set -euo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/target/peers/openspiel
mkdir -p "$peers"
if ! "$peers/venv/bin/python" -c "import pyspiel" 2>/dev/null; then
    python3 -m venv "$peers/venv"
    "$peers/venv/bin/python" -m pip install --quiet --disable-pip-version-check open_spiel==2.0.2
fi
cargo build --quiet --release --locked -p polity-games --example cfr
"$peers/venv/bin/python" scripts/peers/openspiel.py "${CARGO_TARGET_DIR:-target}/release/examples/cfr"
