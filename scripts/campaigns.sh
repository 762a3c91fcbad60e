#!/usr/bin/env bash
# The long forms of tests, one after the other: `bash scripts/campaigns.sh [NAME...]`; `--list` prints the names. Each takes up to some
# twenty minutes on two cores, all together some hours.
set -euo pipefail
cd "$(dirname "$0")/.."

# Name, variables, module of tests, filter of its tests. The test command runs the same tests, in the same build, with less. Three of eight
# damages are flips of a bit, so 2,800 damages hold more than 1,000 flips.
campaigns='
hostile       POLITY_HOSTILE=20             hostile_provider limits_hold_by_the_books
outages       POLITY_OUTAGES=2,6,20,60      hostile_provider an_outage_changes
caps          POLITY_CAP_KILLS=100          hostile_provider what_is_sent_is_counted
damage        POLITY_DAMAGE=2800            damage           .
kills         POLITY_KILLS=100              kill             .
sweep-kills   POLITY_KILLS=50               sweep            kill
power-loss    POLITY_CUTS=20                power_loss       .
spread-kills   POLITY_SPREAD_KILLS=25         spread           survive
batch-kills   POLITY_BATCH_KILLS=20         batch            killed
minds-kills   POLITY_MOCK_KILLS=20       minds            kill
cohort-kills  POLITY_COHORT_KILLS=20       archetypes       killed
walls         POLITY_WALLS=20,POLITY_WALL_CENTS=50 minds     wall
malformed     POLITY_MALFORMED=10000        ladder           every_answer
estimates     POLITY_ESTIMATES=100,POLITY_ESTIMATE_SEED=900001 estimate interval_covers
items         POLITY_ITEMS=10000            arena            many_items
compared      POLITY_COMPARED=100           arena            comparison_of_all_methods
platform      POLITY_PLATFORM=100000        platform         .
'
# Commands of their own, on what a release build makes.
others='
attack        python3 scripts/attack.py target/release/polity .
systems       target/release/polity systems check --all --out target/campaigns/systems
memory        target/release/examples/memory
distributed   bash scripts/distributed.sh all target/release/polity
spread        bash scripts/spread.sh all target/release/polity
fuzz          bash scripts/fuzz.sh
mutations     bash scripts/mutations.sh --release
mcp           bash scripts/mcp-conformance.sh
learners      bash scripts/rliable.sh
rules         cargo test --locked --release -p polity-policies cost_of_a_million -- --ignored --nocapture
networks      cargo test --locked --release -p polity-nn --lib speed -- --ignored --nocapture
worlds        bash scripts/worlds-as-originals.sh
market        cargo test --locked --release -p polity-worlds --lib sessions_a_second -- --ignored --nocapture
'

names="$(printf '%s%s' "$campaigns" "$others" | awk 'NF { print $1 }')"
if [ "${1:-}" = --list ]; then
    echo "$names"
    exit
fi
for name in "$@"; do
    grep -qxF -- "$name" <<<"$names" || {
        echo "there is no campaign \`$name\`; \`bash scripts/campaigns.sh --list\` prints their names" >&2
        exit 2
    }
done
if ! cargo nextest --version >/dev/null 2>&1; then
    echo "cargo-nextest is missing: cargo install --locked cargo-nextest" >&2
    exit 1
fi
chosen="$names"
[ "$#" -eq 0 ] || chosen="$(printf '%s\n' "$@")"

failed=()
logs=target/campaigns
mkdir -p "$logs"
one() { # name, command...
    local name=$1 began=$SECONDS
    shift
    # The loops below read from standard input what is left to do.
    if "$@" </dev/null >"$logs/$name.log" 2>&1; then
        echo "$name: passed ($((SECONDS - began)) s)"
    else
        echo "$name: FAILED ($((SECONDS - began)) s), see $logs/$name.log"
        failed+=("$name")
        return 1
    fi
}
wanted() { # of these lines those whose first word was chosen
    awk 'NR == FNR { chosen[$1] = 1; next } NF && $1 in chosen' <(echo "$chosen") <(echo "$1")
}

while read -r name variables module filter; do
    one "$name" env ${variables//,POLITY/ POLITY} RUST_BACKTRACE=0 cargo nextest run --locked --workspace --features polity/local --no-fail-fast --success-output immediate \
        -E "test(/^$module::.*$filter/)" || true
done < <(wanted "$campaigns")
others="$(wanted "$others")"
if [ -n "$others" ] && one build cargo build --release --locked --workspace --bins --examples; then
    while read -r name command; do
        read -ra words <<<"$command"
        one "$name" "${words[@]}" || true
    done <<<"$others"
fi
if [ "${#failed[@]}" -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
