#!/usr/bin/env bash
# Learning curves of every learner on a standard task of it, with intervals over ten seeds, beside Stable-Baselines3 and JaxMARL on the same
# machine (`scripts/peers/learning.py`). Words are the learners and others to measure, all by default. Installs the others from PyPI into
# target/peers/speeds. POLITY names a program to measure instead of a release build.
#
#   bash scripts/peers/learning.sh [LEARNER...]
#   bash scripts/peers/learning.sh --page     writes docs/book/src/learners.md, with the tables of speeds.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/peers/environments.sh
peer_environments target/peers/speeds jax torch
if [ -z "${POLITY:-}" ]; then
    cargo build --quiet --release --locked -p polity --bins
    POLITY="${CARGO_TARGET_DIR:-$PWD/target}/release/polity"
fi
if [ "${1:-}" != --page ]; then
    exec python3 scripts/peers/learning.py table "$POLITY" target/peers/speeds "$@"
fi
page="$(mktemp)"
load() { cut -d' ' -f1 /proc/loadavg; }
{
    cat <<TEXT
# Learners beside others

Written by \`bash scripts/peers/learning.sh --page\` on $(date -I), for commit $(git rev-parse --short HEAD), on a machine with $(nproc) processors
($(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)). All programs ran on it, one after the other, with their usual numbers of threads. The load of the machine was $(load) before they
began; more than 0.5 means that other programs ran at the same time.

## Learning curves
TEXT
    python3 scripts/peers/learning.py table "$POLITY" target/peers/speeds || echo "some of the others could not be measured" >&2
    printf '\n## Speeds\n'
    POLITY="$POLITY" bash scripts/peers/speeds.sh || echo "some of the others could not be measured" >&2
} >"$page"
mv "$page" docs/book/src/learners.md
chmod 644 docs/book/src/learners.md
