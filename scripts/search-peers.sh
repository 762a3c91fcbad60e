#!/usr/bin/env bash
# BM25 of polity-recall beside the Python packages rank-bm25 and bm25s, on the same documents: the largest difference of a score, and times.
# Fails where scores differ. Installs both from PyPI into a folder of their own, target/peers/search. Argument: the number of documents.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python-environment.sh
environment=target/peers/search/venv
python_environment --exact "$environment" rank-bm25==0.2.2 bm25s==0.3.16
cargo build --quiet --release --locked -p polity-recall --example search
"$environment/bin/python" scripts/peers/search.py "${CARGO_TARGET_DIR:-target}/release/examples/search" "${1:-20000}"
