#!/usr/bin/env bash
# The long forms of tests, one after the other: `bash scripts/campaigns.sh [NAME...]`; `--list` prints the names. All take some hours.
set -euo pipefail
cd "$(dirname "$0")/.."

# Name, variables, test binary, filter of its tests. The test command runs the same tests with less.
campaigns='
hostile     POLITY_HOSTILE=20             hostile_provider limits_hold_by_the_books
outages     POLITY_OUTAGES=2,6,20,60      hostile_provider an_outage_changes
caps        POLITY_CAP_KILLS=11           hostile_provider what_is_sent_is_counted
damage      POLITY_DAMAGE=1000            damage           .
kills       POLITY_KILLS=100              kill             .
sweep-kills POLITY_KILLS=50               sweep            kill
power-loss  POLITY_CUTS=20                power_loss       .
batch-kills POLITY_BATCH_KILLS=40         batch            killed
minds-kills POLITY_STANDIN_KILLS=40       minds            kill
walls       POLITY_WALLS=20,POLITY_WALL_CENTS=50 minds     wall
malformed   POLITY_MALFORMED=10000        ladder           every_answer
estimates   POLITY_ESTIMATES=100          estimate         interval_covers
items       POLITY_ITEMS=20000            arena            many_items
compared    POLITY_COMPARED=100           arena            comparison_of_all_methods
platform    POLITY_PLATFORM=100000        platform         .
'
# Commands of their own.
others='
systems     target/release/polity systems check --all --out target/campaigns/systems
memory      target/release/examples/memory
fuzz        bash scripts/fuzz.sh
'

if [ "${1:-}" = --list ]; then
    printf '%s%s' "$campaigns" "$others" | awk 'NF { print $1 }'
    exit
fi
wanted() {
    [ "$#" -gt 1 ] || return 0
    local name=$1
    shift
    printf '%s\n' "$@" | grep -qx -- "$name"
}
for name in "$@"; do
    printf '%s%s' "$campaigns" "$others" | awk 'NF { print $1 }' | grep -qx -- "$name" || {
        echo "there is no campaign \`$name\`; \`bash scripts/campaigns.sh --list\` prints their names" >&2
        exit 2
    }
done

failed=()
logs=target/campaigns
mkdir -p "$logs"
one() { # name, command...
    local name=$1 began=$SECONDS
    shift
    if "$@" >"$logs/$name.log" 2>&1; then
        echo "$name: passed ($((SECONDS - began)) s)"
    else
        echo "$name: FAILED ($((SECONDS - began)) s), see $logs/$name.log"
        failed+=("$name")
    fi
}

while read -r name variables binary filter; do
    [ -n "$name" ] && wanted "$name" "$@" || continue
    one "$name" env ${variables//,POLITY/ POLITY} RUST_BACKTRACE=0 cargo nextest run --locked --workspace --no-fail-fast --success-output immediate \
        -E "binary(=$binary) and test(/$filter/)"
done <<<"$campaigns"
while read -r name command; do
    [ -n "$name" ] && wanted "$name" "$@" || continue
    cargo build --quiet --release --locked --workspace --bins --examples
    read -ra words <<<"$command"
    one "$name" "${words[@]}"
done <<<"$others"
if [ "${#failed[@]}" -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
