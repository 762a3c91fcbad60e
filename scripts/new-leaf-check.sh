#!/usr/bin/env bash
# Shows that a new world and a new method each touch one folder: adds both in a temporary worktree of the last commit, runs conformance,
# tidiness and the book on them, lists them, and prints what git sees. A command of its own and not a test, because it builds.
# Flags are handed to cargo (--release).
set -euo pipefail
source "$(dirname "$0")/worktree.sh"
cd crates/polity-catalog
mkdir -p worlds/empty-example methods/empty-example

cat >worlds/empty-example/mod.rs <<'RUST'
//! A world in which nothing can be seen or done.

use polity_kernel::prelude::*;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Empty>(files);
}

/// Nothing.
pub struct Empty;

impl World for Empty {
    const NAME: &'static str = "empty-example";
    const SUMMARY: &'static str = "Nothing to see, nothing to do";
    type Params = NoParams;
    type State = ();

    fn open(_: NoParams, _: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        declare.action("guess", ActionArgument::Number { low: 0.0, high: 1.0 }, "a number that changes nothing");
        Ok(Empty)
    }
    fn init_state(&self, _: &WorldSetup<'_>, _: &mut Draws) {}
    fn apply(&self, _: &mut (), _: &AgentActions<'_>, _: &mut Future) {}
    fn end_round(&self, _: &mut (), _: &mut Draws) -> Option<String> {
        None
    }
}
RUST
cat >methods/empty-example/mod.rs <<'RUST'
//! A method that does nothing and has no answer.

use polity_kernel::prelude::*;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Empty>(files);
}

/// Nothing.
pub struct Empty;

impl Method for Empty {
    const NAME: &'static str = "empty-example";
    const SUMMARY: &'static str = "Does nothing";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "never recorded" }];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Empty)
    }
    async fn run(&self, _: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        Ok(Verdict::default())
    }
}
RUST
for leaf in worlds/empty-example methods/empty-example; do
    echo "# empty-example" >"$leaf/README.md"
done
cat >worlds/empty-example/scenario.yaml <<'YAML'
rounds: 1
agents: 1
world: {kind: empty-example}
cohorts:
  - policy: {kind: noise}
YAML
cat >methods/empty-example/scenario.yaml <<'YAML'
rounds: 1
agents: 1
model: sim/medium
method: {kind: empty-example}
items: {file: ../../../../data/gsm8k-200.jsonl, count: 1}
YAML

cd "$tree"
# The first run writes what is made: the golden results and the keys in the READMEs. The second must find everything as it should be.
tests='test(/empty-example/) or test(/^tidy::/) or test(/^book::the/)'
POLITY_BLESS=1 cargo nextest run --locked "$@" -p polity -E "$tests" --no-fail-fast || true
cargo nextest run --locked "$@" -p polity -E "$tests"
case " $* " in *" --release "*) built=release ;; *) built=debug ;; esac
for kind in worlds methods; do
    listed=$("$CARGO_TARGET_DIR/$built/polity" list "$kind" --json)
    case $listed in
    *'"name":"empty-example"'*) echo "polity list $kind --json: empty-example is listed" ;;
    *)
        echo "polity list $kind --json: empty-example is missing" >&2
        exit 1
        ;;
    esac
done
touched=$(git status --short)
echo "git status --short:"
echo "$touched"
expected="?? crates/polity-catalog/methods/empty-example/
?? crates/polity-catalog/worlds/empty-example/"
[ "$touched" = "$expected" ] || {
    echo "more than two folders were touched" >&2
    exit 1
}
