#!/usr/bin/env bash
# Compares the evaluation of learners (interquartile means, optimality gaps, probabilities of improvement, performance profiles, with their
# intervals) with the package rliable from PyPI, which it installs in an environment of its own. The exit code is 1 if a figure differs.
#
#   bash scripts/rliable.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python-environment.sh
environment=target/peers/rliable
# Its dependency arch does not work with pandas 3.
python_environment --exact "$environment" rliable==1.2.0 pandas==2.3.3
cargo build --quiet --release --locked --offline -j"${JOBS:-1}" -p polity-stats --example evaluation
"$environment/bin/python" scripts/compare-rliable.py "${CARGO_TARGET_DIR:-target}/release/examples/evaluation"
