#!/usr/bin/env bash
# Builds the wheel of the Python package into target/wheels, and prints its path as the last line. Installs maturin and zig (as packages
# from PyPI) into target/venv-wheel; zig links against an old glibc, so that the wheel runs on any Linux from manylinux2014 on.
# With --dev the build is the unoptimised one of the tests, for this machine alone. Needs Rust, a C compiler, and Python with venv.
set -euo pipefail
cd "$(dirname "$0")/.."
repository="$PWD"
mode="${1:-release}"
case "$mode" in
release | --dev) ;;
*) echo "usage: $0 [--dev]" >&2 && exit 2 ;;
esac
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$repository/target}"
venv="target/venv-wheel"
mkdir -p target/wheels
. scripts/python-environment.sh
python_environment "$venv" maturin==1.16.0 ziglang==0.17.1
# maturin looks for zig as a module of the Python that is first in the path.
export PATH="$repository/$venv/bin:$PATH"
export VIRTUAL_ENV="$repository/$venv"
out="$(mktemp -d target/wheels/new.XXXXXX)"
trap 'rm -rf "$out"' EXIT
build=(maturin build --locked --manifest-path crates/polity-python/Cargo.toml --out "$out")
if [ "$mode" = --dev ]; then
    # Without debug information it is small enough to be packed quickly.
    "${build[@]}" --profile dev --strip --compatibility linux --skip-auditwheel >&2
else
    "${build[@]}" --release --strip --zig --compatibility manylinux2014 >&2
fi
wheel="$(ls "$out"/*.whl)"
mv -f "$wheel" target/wheels/
bytes="$(stat -c %s "target/wheels/$(basename "$wheel")")"
if [ "$mode" = release ] && [ "$bytes" -gt $((25 * 1000 * 1000)) ]; then
    echo "the wheel has $bytes bytes, and at most 25 MB are allowed" >&2
    exit 1
fi
echo "$((bytes / 1000)) kB" >&2
echo "$repository/target/wheels/$(basename "$wheel")"
