#!/usr/bin/env bash
# Shows that a new world and a new method each touch one folder: adds both in a temporary worktree of the last commit, builds,
# lists them, and prints what git sees. A command of its own and not a test, because it builds. Flags are handed to cargo (--release).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# Dependencies are taken from the checkout's target folder; the workspace's own crates are built again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
tree=$(mktemp -d)/polity
git -C "$root" worktree add --detach --quiet "$tree" HEAD
trap 'git -C "$root" worktree remove --force "$tree"' EXIT
cd "$tree/crates/polity-catalog"
mkdir -p worlds/empty-example methods/empty-example

cat >worlds/empty-example/mod.rs <<'RUST'
//! A world in which nothing can be seen or done.

use polity_kernel::Invalid;
use polity_kernel::declare::DeclareWorld;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{Deeds, Future, Setup, World};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Empty>(files);
}

/// There is nothing to set.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// Nothing.
pub struct Empty;

impl World for Empty {
    const NAME: &'static str = "empty-example";
    const SUMMARY: &'static str = "Nothing to see, nothing to do";
    type Params = Params;
    type State = ();

    fn open(_: Params, _: &Setup<'_>, _: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        Ok(Empty)
    }

    fn begin(&self, _: &Setup<'_>, _: &mut Draws) {}

    fn apply(&self, _: &mut (), _: &Deeds<'_>, _: &mut Future) {}

    fn settle(&self, _: &mut (), _: &mut Draws) -> Option<String> {
        None
    }
}
RUST
cat >methods/empty-example/mod.rs <<'RUST'
//! A method that does nothing and has no answer.

use polity_kernel::Invalid;
use polity_kernel::method::{Desk, Method, Records, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Empty>(files);
}

/// There is nothing to set.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// Nothing.
pub struct Empty;

impl Method for Empty {
    const NAME: &'static str = "empty-example";
    const SUMMARY: &'static str = "Does nothing";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "never recorded" }];
    type Params = Params;

    fn open(_: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Empty)
    }

    async fn run(&self, _: &mut Desk<'_>) -> Result<Verdict, Fault> {
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
items: {file: ../../../../data/gsm8k-20.jsonl, count: 1}
YAML

cd "$tree"
# With an example, as for tests: without one, or with one package alone, the dependencies have other features, and all are built again.
cargo build --quiet --locked "$@" --workspace --bins --example traffic
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
