//! Games of two that tests of mixers play.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::{metric, play};
use serde_json::{Value, json};

/// A game of common interest in which one player is better off with `a` only beside an `a` of the other.
pub const NON_MONOTONIC: &str = "NFG 1 R \"non-monotonic\" { \"1\" \"2\" } { { \"a\" \"b\" \"c\" } { \"a\" \"b\" \"c\" } } \"\" \
    8 8 -12 -12 -12 -12 -12 -12 0 0 0 0 -12 -12 0 0 0 0";

/// Returns a scenario in which eight pairs play at random, learn from it, and take the best choices in the last two rounds. `more`: further
/// keys of the policy.
pub fn playing(kind: &str, world: &Value, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": kind, "hidden": [32], "epsilon_end": 1, "stop": rounds - 2, "target_update": 50,
        "discount": 1, "learning_rate": 0.003});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

/// Returns the mean reward of the last round.
pub fn reached(scenario: &Value) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), "mean-reward")
}
