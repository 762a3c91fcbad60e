#!/usr/bin/env bash
# Environments alone and learners, beside mpe2, JaxMARL, VMAS, Gymnasium, gymnax, PufferLib and CleanRL, in one run on this machine: agent-steps
# a second of wall time and of processor time (`scripts/peers/speeds.py` says how). Prints the tables of the page "Learners beside others"
# (`scripts/peers/learning.sh` writes it). Installs the others from PyPI into target/peers/speeds. POLITY names a program to measure instead
# of a release build; POLITY_SPEEDS_SIZE scales how much is done.
#
#   bash scripts/peers/speeds.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/peers/environments.sh
peer_environments target/peers/speeds plain jax torch cleanrl
if [ -z "${POLITY:-}" ]; then
    cargo build --quiet --release --locked -p polity --bins
    POLITY="${CARGO_TARGET_DIR:-$PWD/target}/release/polity"
fi
python3 scripts/peers/speeds.py table "$POLITY" target/peers/speeds
