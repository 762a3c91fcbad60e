#!/usr/bin/env bash
# The figures of the gateway in the book, by one command: traffic and its limits, failover, AIOS's schedules, connections of an
# evaluation, and archetypes in a city of 8,400,000. Some six minutes on two cores once it is built, which it does first. Flags are handed to cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --workspace --bins --example traffic --example archetypes "$@"
built="${CARGO_TARGET_DIR:-target}/release/examples"
"$built/traffic"
"$built/archetypes"
