#!/usr/bin/env bash
# Runs the official conformance suite of the Model Context Protocol against both ends of crates/polity-mcp, with what the revisions
# 2025-11-25 and 2026-07-28 require, and prints the counts. Fails if a required scenario fails that crates/polity-mcp/conformance.yaml does
# not list, or if one that it lists passes. Installs the suite, and the Node that it needs, from npm into ~/.cache/polity (or
# $POLITY_CACHE). Exit code 75: they cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "npm is missing: install nodejs and npm" >&2; exit 75; }
cache="${POLITY_CACHE:-$HOME/.cache/polity}/mcp-conformance"
suite="$cache/node_modules/@modelcontextprotocol/conformance/dist/index.js"
node="$cache/node_modules/node/bin/node"
if [ ! -f "$suite" ] || ! "$node" --version >/dev/null 2>&1; then
    mkdir -p "$cache"
    npm install --prefix "$cache" --no-audit --no-fund --loglevel=error node@24 @modelcontextprotocol/conformance@0.2.0-alpha.12 >&2 || {
        echo "the suite cannot be installed here" >&2
        exit 75
    }
fi
cargo build --locked --quiet -p polity-mcp --examples
examples="$(realpath "${CARGO_TARGET_DIR:-target}")/debug/examples"
expected="$(realpath crates/polity-mcp/conformance.yaml)"
results="$(mktemp -d)"
server=""
ended() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$results"
}
trap ended EXIT
"$examples/conformance_server" >"$results/url" &
server=$!
for _ in $(seq 100); do
    [ -s "$results/url" ] && break
    sleep 0.1
done
url="$(cat "$results/url")"
failed=0
tested() {
    local end="$1" revision="$2"
    shift 2
    # Scenarios of the login wait for time-outs on a busy machine.
    if (cd "$results" && "$node" "$suite" "$end" "$@" --requirements "$revision" --timeout 60000 --expected-failures "$expected") \
        >"$results/log" 2>&1; then
        verdict="as expected"
    else
        verdict="NOT as expected" failed=1
        cat "$results/log" >&2
    fi
    required="$("$node" "$suite" list --requirements "$revision" | sed '/^Run and reported/,$d' |
        awk -v end="$end" 'tolower($0) ~ "^" end " scenarios" {on = 1; next} /scenarios/ {on = 0} on && /^  - / {print $2}')"
    passed="$(sed -n 's/^✓ \([^:]*\): .*/\1/p' "$results/log" | sort -u | grep -cxF "$required" || true)"
    echo "$end, $revision: $passed of $(wc -l <<<"$required") required scenarios pass; $(sed -n 's/^Total: //p' "$results/log") of all checks; $verdict"
}
for revision in 2025-11-25 2026-07-28; do
    tested server "$revision" --url "$url"
    tested client "$revision" --command "$examples/conformance_client"
done
exit "$failed"
