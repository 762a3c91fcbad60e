#!/usr/bin/env bash
# The readers of what comes from outside (scenarios and edits of them, populations, edges, journals, replies of models) under random
# and damaged input, for longer than the test suite does. The budget is the number of cases a property (256 in the suite, four times
# as many for scenarios) and the memory that a test process may map:
#
#   bash scripts/fuzz.sh [CASES, 20000] [MEGABYTES, 3000]
set -euo pipefail
cd "$(dirname "$0")/.."
export PROPTEST_CASES="${1:-20000}"
megabytes="${2:-3000}"

cargo test --locked --workspace --no-run
ulimit -v $((megabytes * 1024))
cargo test --locked --workspace --lib -- tree:: journal:: files:: people::
cargo test --locked -p polity-models --test all read_reply::
echo "$PROPTEST_CASES cases a property, at most $megabytes MB a process: no panic, no refusal without words ($SECONDS s)"
