#!/usr/bin/env bash
# Checks licences, bans and sources of all dependencies (deny.toml). Installs cargo-deny if it is missing, which compiles it.
# The database of security advisories is a git repository and not a package; `cargo deny check advisories` fetches it, this does not.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
cargo deny --locked check licenses bans sources
