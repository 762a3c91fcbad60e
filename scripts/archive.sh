#!/usr/bin/env bash
# Packs the static program with its completions, manual pages and licences: target/dist/polity-VERSION-MACHINE-linux.tar.gz, whose path is
# the last line. Then unpacks it in an empty folder and runs a scenario with it.
#
#   bash scripts/archive.sh [BINARY]    # without BINARY, scripts/static-binary.sh builds one
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${1:-}" ]; then
    binary="$(realpath "$1")"
else
    bash scripts/static-binary.sh
    binary="$(ls -t target/*-unknown-linux-*/release/polity | head -1)"
fi
version="$("$binary" --version | cut -d' ' -f2)"
name="polity-$version-$(uname -m)-linux"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/$name/completions" "$folder/$name/man/man1" target/dist
strip -o "$folder/$name/polity" "$binary"
for shell in bash zsh fish; do
    "$binary" completions "$shell" >"$folder/$name/completions/polity.$shell"
done
"$binary" man "$folder/$name/man/man1" >/dev/null
cp README.md LICENSE-APACHE LICENSE-MIT "$folder/$name"
cp -r scenarios data examples "$folder/$name"
archive="target/dist/$name.tar.gz"
tar --sort=name --owner=0 --group=0 --mtime='2026-01-01' -C "$folder" -czf "$archive" "$name"

begun=$(date +%s%N)
mkdir "$folder/user"
tar -C "$folder/user" -xzf "$archive"
(cd "$folder/user/$name" && env -i ./polity run scenarios/guess-average.yaml >/dev/null 2>../notes && test -s runs/guess-average-1/report.html)
echo "from the archive to the first result: $((($(date +%s%N) - begun) / 1000000)) ms; $(du -h "$archive" | cut -f1)"
echo "$archive"
