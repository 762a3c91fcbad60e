#!/usr/bin/env bash
# Writes docs/book/src/gallery.md and its pictures: every world of the catalogue, as `polity view` draws a run of its scenario. Needs the
# program at target/debug/polity (or POLITY), Chromium and npm, which scripts/browser-tests.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."
polity="$(realpath "${POLITY:-${CARGO_TARGET_DIR:-target}/debug/polity}")"
page=docs/book/src/gallery.md
runs="$(mktemp -d)"
viewer=""
ended() {
    [ -z "$viewer" ] || kill "$viewer" 2>/dev/null || true
    rm -rf "$runs"
}
trap ended EXIT
mkdir -p docs/book/src/gallery
worlds=()
# The scenarios in the box are larger than those of the leaves' own folders.
for world in crates/polity-catalog/worlds/*/; do
    name="$(basename "$world")"
    [ -f "$world/scenario.yaml" ] || continue
    scenario="$(grep -lE "^  kind: $name|^world: \{kind: $name[,}]" scenarios/*.yaml | grep -v minds | head -1 || true)"
    case "$name" in opinion) scenario=scenarios/voters.yaml ;; esac
    [ -n "$scenario" ] || scenario="${world}scenario.yaml"
    "$polity" run "$scenario" --out "$runs/$name" --no-report -P 'record={agents: true}' 2>/dev/null
    worlds+=("$name $scenario")
done
"$polity" serve "$runs" --no-open >"$runs/url" 2>/dev/null &
viewer=$!
until [ -s "$runs/url" ]; do sleep 0.1; done
(cd web && node tests/gallery.mjs "$(cat "$runs/url")" ../docs/book/src/gallery "${worlds[@]%% *}")
{
    echo "# Gallery"
    echo
    echo "Every world of the catalogue, as \`polity view\` draws a run of it. \`bash scripts/gallery.sh\` makes this page."
    for entry in "${worlds[@]}"; do
        name="${entry%% *}" scenario="${entry#* }"
        summary="$("$polity" list worlds | sed -n "s/^$name  *//p")"
        printf '\n## %s\n\n%s.\n\n![A run of %s](gallery/%s.png)\n\n`polity run %s`\n' "$name" "$summary" "$name" "$name" "$scenario"
    done
} >"$page"
