#!/usr/bin/env bash
# Builds `polity` as one static file for Linux, and checks that it needs nothing besides: it runs the main job with an empty
# environment where there is no other file than itself and the scenario.
#
#   bash scripts/static-binary.sh [musl|gnu]
#
# musl is what it builds first; it installs the target and a C compiler for it (zstd and the allocator are C). Where they cannot be
# had, it builds for glibc and links that statically. The first is complete. The second needs the glibc of the machine it runs on for one
# thing, to find model providers by the name of their host; simulated models and addresses of numbers work without.
set -euo pipefail
cd "$(dirname "$0")/.."
machine=$(uname -m)
wanted=${1:-musl}

as_root=""
[ "$(id -u)" -eq 0 ] || as_root=sudo

have_musl() {
    rustup target list --installed | grep -qx "$machine-unknown-linux-musl" ||
        rustup target add "$machine-unknown-linux-musl" || return 1
    command -v musl-gcc >/dev/null || {
        $as_root apt-get update && $as_root apt-get install -y --no-install-recommends musl-tools || return 1
    }
}

if [ "$wanted" = musl ] && ! have_musl; then
    echo "no target or C compiler for musl: building with a static glibc instead" >&2
    wanted=gnu
fi
target=$machine-unknown-linux-$wanted
case $wanted in
musl) export "CC_${machine}_unknown_linux_musl=musl-gcc" ;;
gnu) export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" ;;
*)
    echo "musl or gnu, not $wanted" >&2
    exit 2
    ;;
esac
# With --target, flags of RUSTFLAGS do not reach build scripts and macros, which cannot be static.
cargo build --release --locked --workspace --bin polity --target "$target"
built=$(cargo metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
binary=$built/$target/release/polity

if readelf --program-headers "$binary" | grep -q INTERP; then
    echo "$binary asks for a loader: it is not static" >&2
    exit 1
fi

# A root that holds the program and the scenario, nothing else.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$binary" scenarios/guess-average.yaml "$folder"
job=(run /guess-average.yaml --out /run --json)
if env -i "$(command -v unshare)" --map-root-user --root="$folder" /polity --version >/dev/null 2>&1; then
    how="an empty root (unshare)"
    said=$(env -i "$(command -v unshare)" --map-root-user --root="$folder" /polity "${job[@]}" 2>"$folder/notes")
elif [ "$(id -u)" -eq 0 ] && env -i "$(command -v chroot)" "$folder" /polity --version >/dev/null 2>&1; then
    how="an empty root (chroot)"
    said=$(env -i "$(command -v chroot)" "$folder" /polity "${job[@]}" 2>"$folder/notes")
else
    how="an empty environment (neither unshare nor chroot is permitted here)"
    said=$(cd "$folder" && env -i ./polity run guess-average.yaml --out run --json 2>notes)
fi
cat "$folder/notes"
test -s "$folder/run/report.html"
digest=$(sed 's/.*"digest":"\([^"]*\)".*/\1/' <<<"$said")
grep -q "$digest" README.md || {
    echo "the digest $digest is not the one in README.md: this binary computes something else" >&2
    exit 1
}

# Start: from the call to the end, of a call that does nothing else. The median of 21.
times=$(for _ in $(seq 21); do
    begun=$(date +%s%N)
    "$folder/polity" --version >/dev/null
    echo $((($(date +%s%N) - begun) / 1000))
done | sort -n | sed -n 11p)
strip -o "$folder/stripped" "$folder/polity"
echo "$binary"
echo "target $target; ran the main job in $how, digest as in README.md"
printf 'size %s MB, %s MB without symbols; starts and ends in %s.%s ms\n' \
    "$(($(stat -c %s "$binary") / 1000000))" "$(($(stat -c %s "$folder/stripped") / 1000000))" \
    "$((times / 1000))" "$((times % 1000 / 100))"
