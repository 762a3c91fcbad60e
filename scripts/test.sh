#!/usr/bin/env bash
# Everything that must be green, in one command: lints, tests, tidiness, licences. Installs what it needs, if it is missing.
# Needs Rust (rustup brings the toolchain that rust-toolchain.toml names) and a C compiler and linker.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install Rust, https://rustup.rs" >&2
    exit 1
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root=sudo
missing=()
# zstd is compiled from C, and Rust links with cc.
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# The sandbox for programs, and the Python that it runs.
command -v bwrap >/dev/null || missing+=(bubblewrap)
[ -x /usr/bin/python3 ] || missing+=(python3)
if [ "${#missing[@]}" -gt 0 ]; then
    $as_root apt-get update
    $as_root apt-get install -y --no-install-recommends "${missing[@]}"
fi
# A toolchain that did not come from rustup, or came without them, may lack these two.
if ! cargo clippy --version >/dev/null 2>&1 || ! rustfmt --version >/dev/null 2>&1; then
    rustup component add clippy rustfmt
fi

step() {
    printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

step "format"
# By file and not `cargo fmt`: leaves are collected by a build script, where `cargo fmt` does not look.
git ls-files '*.rs' | xargs rustfmt --check --edition 2024

# All in the dev profile: one set of dependencies for lints' build scripts and for tests, no release build. See
# docs/decisions/profile-of-tests.md.
step "lints"
cargo clippy --locked --workspace --all-targets --features polity/local -- -D warnings

# What a program gets that embeds the library, and whether all links of its documentation lead somewhere.
step "library"
cargo check --locked -p polity --lib --no-default-features
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p polity-base -p polity-games -p polity-kernel -p polity-learn -p polity-nn -p polity-peers -p polity-stats -p polity-store -p polity-models -p polity-mcp -p polity-driver -p polity-arena -p polity-view -p polity-cli -p polity

# The tests skip what needs it where it cannot be had.
step "python clients"
bash scripts/python-clients.sh || [ $? -eq 75 ]
bash scripts/python-clients.sh mcp || [ $? -eq 75 ]

# With models inside the process: a feature adds code and changes none, so the tests need no second set of dependencies.
step "tests"
# candle looks the processors up at every product, unless it is told how many there are.
RAYON_NUM_THREADS="$(nproc)"
export RAYON_NUM_THREADS
if cargo nextest --version >/dev/null 2>&1; then
    # Of the examples only what a test starts: the others are checked by the lints, and linking them takes 5 GB.
    cargo build --locked --workspace --features polity/local --example served
    cargo nextest run --locked --workspace --features polity/local --lib --bins --tests --no-fail-fast
    cargo test --locked --workspace --features polity/local --doc
else
    cargo test --locked --workspace --features polity/local
fi

# The package as a user of Python sees it.
step "python package"
bash scripts/python-tests.sh || [ $? -eq 75 ]

# The viewer as its user sees it.
step "browser"
bash scripts/browser-tests.sh || [ $? -eq 75 ]

# Published systems: what is plainly otherwise than their entries say.
step "recorded answers"
(cd data/recorded && sha256sum --check --quiet SHA256SUMS)
(cd data/simulated && sha256sum --check --quiet SHA256SUMS)
python3 scripts/recorded-figures.py --check

step "claims of systems"
claims="$(mktemp -d)"
trap 'rm -rf "$claims"' EXIT
# Left out are the thousands of learners of HASAC, the long lessons of ALP-GMM and Poppy, other learners whose runs take eight seconds and
# more, and most entries that need the sandbox.
# scripts/campaigns.sh checks all.
polity="${CARGO_TARGET_DIR:-target}/debug/polity"
without=(tool/python policies/hasac policies/alp-gmm environments/tsp clam commformer flickerfusion mansa meta-communication parco same)
"$polity" systems check --all "${without[@]/#/--without=}" --quick --out "$claims"
"$polity" systems check agentcoder codecor xlam chase-sql --quick --out "$claims/sandbox"

step "licences, bans, sources"
if cargo deny --version >/dev/null 2>&1; then
    bash scripts/deny.sh
else
    echo "skipped: cargo-deny is not installed; \`bash scripts/deny.sh\` installs it, which takes some minutes"
fi

step "all green"
