#!/usr/bin/env bash
# Makes web pages of the book, in target/book. Installs mdBook if it is missing, which compiles it for some minutes. What the book says is
# tested without it, by crates/polity/tests/book.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
mdbook --version >/dev/null 2>&1 || cargo install --locked --no-default-features mdbook
mdbook build docs/book
echo "target/book/index.html"
