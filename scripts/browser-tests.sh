#!/usr/bin/env bash
# The viewer in a real browser: whether web/dist is what web/src gives, then the journeys of web/tests against real runs, finished and
# under way. Needs the program at target/debug/polity (or POLITY). Installs Chromium (Debian) and the page's packages (npm) if they are
# missing. With a folder as argument, screenshots go there. Exit code 75: they cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
polity="$(realpath "${POLITY:-${CARGO_TARGET_DIR:-target}/debug/polity}")"
as_root=""
[ "$(id -u)" -eq 0 ] || as_root=sudo
missing=()
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || missing+=(chromium)
command -v npm >/dev/null || missing+=(nodejs npm)
if [ "${#missing[@]}" -gt 0 ]; then
    $as_root apt-get update && $as_root apt-get install -y --no-install-recommends "${missing[@]}" || {
        echo "${missing[*]} cannot be installed here" >&2
        exit 75
    }
fi
[ -d web/node_modules ] || (cd web && npm ci --no-audit --no-fund) || {
    echo "the page's packages cannot be installed here" >&2
    exit 75
}
(cd web && npm run --silent check)

runs="$(mktemp -d)"
viewer="" live=""
ended() {
    [ -z "$viewer" ] || kill "$viewer" 2>/dev/null || true
    [ -z "$live" ] || kill -9 "$live" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$runs"
}
trap ended EXIT
run() {
    "$polity" run "scenarios/$1.yaml" --out "$runs/$2" --no-report "${@:3}" 2>/dev/null
}
run guess-average guess -P 'record={messages: true}'
run voters opinion
run platform platform -P 'record={agents: true}'
run debate debate
run tools tools
run schelling grid
"$polity" sweep scenarios/sweep-guess.yaml --agents 100 --rounds 3 -P design.seeds=2 --out "$runs/sweep" 2>/dev/null
# Under way for as long as the journeys take.
"$polity" run scenarios/guess-average.yaml --rounds 1000000 --agents 100000 --threads 1 --out "$runs/live" --no-report \
    -P 'record={acts: false, agents: false}' -P 'snapshot={seconds: 5}' 2>"$runs/live.txt" &
live=$!
# The viewer remembers for two seconds which runs there are.
for _ in $(seq 300); do
    [ -f "$runs/live/manifest.json" ] && break
    sleep 0.1
done
"$polity" serve "$runs" --no-open >"$runs/url" 2>/dev/null &
viewer=$!
for _ in $(seq 300); do
    [ -s "$runs/url" ] && break
    sleep 0.1
done
ids='{"guess":"guess","opinion":"opinion","platform":"platform","debate":"debate","tools":"tools","grid":"grid","live":"live"}'
out=()
[ -z "${1:-}" ] || out=(--out "$1")
(cd web && node tests/journeys.mjs "$(cat "$runs/url")" "$ids" ${out[@]+"${out[@]}"})
