#!/usr/bin/env bash
# Measures this machine and writes the page of benchmarks, docs/book/src/benchmarks.md. Takes some fifteen minutes; nothing else should run.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --locked -p polity --bins --examples
page="$(mktemp)"
measured() { # title, what it shows, example
    echo "$1" >&2
    printf '\n## %s\n\n%s `cargo run --release -p polity --example %s` prints:\n\n' "$1" "$2" "$3"
    "target/release/examples/$3" </dev/null
}
{
    cat <<TEXT
# Benchmarks

Written by \`bash scripts/benchmarks.sh\` on $(date -I), for commit $(git rev-parse --short HEAD), on a machine with $(nproc) processors
($(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)). [Earlier measurements](measurements.md) has figures that were taken by hand, targets, and other programs.
TEXT
    measured "Rounds" "An agent-round is one turn of one agent, with its digest. A row is the median of three processes." bench
    measured "A social platform" "Feeds of 20 out of at most 200 candidates, actions, the store of posts, and the tables of acts and posts." platform
    measured "Archetypes" "One question to a model stands for a group of alike people. The simulated model answers at once." archetypes
    measured "Populations" "A million people are made from a survey, with a graph." population
} >"$page"
mv "$page" docs/book/src/benchmarks.md
chmod 644 docs/book/src/benchmarks.md
