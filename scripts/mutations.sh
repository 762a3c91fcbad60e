#!/usr/bin/env bash
# Shows that `polity replay` proves the state of a world and not a log of it: records a run of every world, changes how each world keeps its
# state by one number in a temporary worktree of the last commit, builds, and replays. Every replay must differ. A command of its own and not
# a test, because it builds the command twice. Flags are handed to cargo (--release).
set -euo pipefail
source "$(dirname "$0")/worktree.sh"
case " $* " in *" --release "*) built=release ;; *) built=debug ;; esac
polity=$CARGO_TARGET_DIR/$built/polity
runs=$(mktemp -d)

# World, file below crates/polity-catalog, what stands there once, what stands there instead. None of these numbers is an action or a message.
mutations='
agentsnet      worlds/agentsnet/mod.rs            network.round += 1;                     network.round += 2;
asymmetry      worlds/asymmetry/mod.rs            exam.round += 1;                        exam.round += 2;
auction        worlds/auction/mod.rs              market.earned[by as usize] += value - price;  market.earned[by as usize] += 7.0 * (value - price);
epidemic       worlds/epidemic/mod.rs             common.new = infected;                  common.new = 7 * infected;
flock          worlds/flock/mod.rs                self.params.speed * v                   self.params.speed * v + 1e-9
guess-average  worlds/guess-average/mod.rs        common.played += 1;                     common.played += 7;
matrix-game    environments/matrix-game/mod.rs    play.rounds += 1;                       play.rounds += u32::from(play.rounds == 0) + 1;
opinion        worlds/opinion/mod.rs              common.rounds += 1;                     common.rounds += 7;
platform       worlds/platform/store.rs           |attention| *attention += 1             |attention| *attention += 7
reference-game  worlds/reference-game/mod.rs      game.due += 1;                          game.due += 7;
schelling      worlds/src/spaces/grid.rs          *free = from;                           *free = from; self.vacant.swap(0, pick);
shop-tools     environments/shop-tools/mod.rs     desk.calls += 1;                        desk.calls += 7;
swarm          worlds/swarm/mod.rs                state.round += 1;                       state.round += 2;
town           worlds/town/mod.rs                 state.last = std::mem::take(&mut state.counts);  state.last = std::mem::take(&mut state.counts); state.last.talks += 1;
'
each() { # calls a function with the parts of every line, which two or more spaces keep apart
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        IFS=$'\t' read -r world file before after <<<"$(sed -E 's/ {2,}/\t/g' <<<"$line")"
        "$1" "$world" "$file" "$before" "$after"
    done <<<"$mutations"
}
record() {
    local kind=${2%%/*} scenario=crates/polity-catalog/worlds/$1/scenario.yaml
    [ "$kind" = worlds ] || scenario=crates/polity-catalog/environments/$1/scenario.yaml
    "$polity" run "$scenario" --out "$runs/$1" --no-report </dev/null >/dev/null 2>&1
    "$polity" replay "$runs/$1" </dev/null >/dev/null 2>&1 || { echo "$1: the unchanged program does not replay its own run" >&2; exit 1; }
}
mutate() {
    FROM=$3 TO=$4 perl -0pi -e '1 == s/\Q$ENV{FROM}\E/$ENV{TO}/g or die "not there once: $ENV{FROM}\n"' "crates/polity-catalog/$2"
}
failed=0
replay() {
    local said code=0
    said=$("$polity" replay "$runs/$1" </dev/null 2>&1) || code=$?
    # 5: the run differs from its record. Any other failure shows nothing.
    if [ "$code" -eq 5 ]; then
        echo "$1: found ($(grep -o 'round [0-9]* is the first.*' <<<"$said" | head -1))"
    else
        echo "$1: NOT FOUND (exit code $code)"
        failed=1
    fi
}

cargo build --quiet --locked "$@" -p polity
each record
each mutate
cargo build --quiet --locked "$@" -p polity
each replay
rm -rf "$runs"
exit "$failed"
