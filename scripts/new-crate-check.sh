#!/usr/bin/env bash
# Shows that what `polity new` writes builds, conforms and runs outside of this repository: makes a crate of each kind, with names that
# are not the templates', tests them, runs the world, and builds one that was made for another version. A command of its own and not a
# test, because it builds Polity again for crates that are not of its workspace: minutes the first time, seconds afterwards.
# Needs no network: a new crate gets this repository's Cargo.lock.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
cd "$root"
cargo build --quiet --locked --workspace --bin polity
polity=$(realpath "$CARGO_TARGET_DIR")/debug/polity

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CARGO_NET_OFFLINE=true
for kind in world policy method; do
    cd "$folder"
    "$polity" new "$kind" "rock-pool-$kind"
    cd "rock-pool-$kind"
    cargo test
    rustfmt --check --edition 2024 src/*.rs tests/*.rs
done

cd "$folder/rock-pool-world"
cargo run -- run scenario.yaml
cargo run -- list worlds
cargo run --quiet -- list worlds | grep -q '^rock-pool-world ' || {
    echo "rock-pool-world is not among the worlds" >&2
    exit 1
}

# Another version of the library.
sed -i 's/made_for!("0.1")/made_for!("0.0")/' src/lib.rs
if cargo build 2>build.log; then
    echo "a crate made for version 0.0 was built with another version" >&2
    exit 1
fi
grep -m 1 -A 3 '^error' build.log
grep -q 'this crate was made for version 0.0 of the library polity' build.log
echo "new crates build, conform and run ($SECONDS s)"
