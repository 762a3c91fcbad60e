# Sourced by commands that change the source tree: makes a temporary worktree of the last commit and goes there. It is removed at the end.
# Dependencies come from the checkout's target folder; the workspace's own crates are built again.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
tree=$(mktemp -d)/polity
git -C "$root" worktree add --detach --quiet "$tree" HEAD
trap 'git -C "$root" worktree remove --force "$tree"' EXIT
cd "$tree"
