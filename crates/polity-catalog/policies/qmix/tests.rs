//! The two-step game of the paper, and one that no monotonic mixer can hold.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, play_with, refused};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "qmix", "hidden": [32], "mixer": {"embedding": 8, "hypernet": [16]}, "epsilon_end": 1,
        "stop": rounds - 2, "target_update": 50, "discount": 1, "learning_rate": 0.003});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

fn reached(scenario: &Value) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), "mean-reward")
}

/// A game of common interest in which one player is better off with `a` only beside an `a` of the other.
const NON_MONOTONIC: &str = "NFG 1 R \"non-monotonic\" { \"1\" \"2\" } { { \"a\" \"b\" \"c\" } { \"a\" \"b\" \"c\" } } \"\" \
    8 8 -12 -12 -12 -12 -12 -12 0 0 0 0 -12 -12 0 0 0 0";

#[test]
fn a_monotonic_mixer_holds_what_needs_both() {
    assert_eq!(reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({}))), 8.0);
    // Mixed with strangers, it does not.
    let strangers = reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({"together": "strangers"})));
    assert!(strangers < 8.0, "{strangers}");
}

#[test]
fn a_monotonic_mixer_does_not_hold_what_depends_on_the_other() {
    let world = json!({"kind": "matrix-game", "game": NON_MONOTONIC});
    assert_eq!(reached(&playing(&world, 402, &json!({}))), 0.0);
}

#[test]
fn weights_are_the_same_for_any_number_of_shards() {
    let [one, two] = [1, 2].map(|shards| {
        play_with(&playing(&json!({"kind": "two-step-game"}), 80, &json!({})), &Inputs::default(), shards)
    });
    assert_eq!(one.outcome.digest, two.outcome.digest);
    assert_eq!(one.society.weights().unwrap(), two.society.weights().unwrap());
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&playing(&json!({"kind": "two-step-game"}), 5, &json!({"mixer": {"embedding": 0}})));
    assert!(why.contains("mixer.embedding"), "{why}");
    let why = refused(&playing(&json!({"kind": "two-step-game"}), 5, &json!({"mixer": {"hypernet": [4096]}})));
    assert!(why.contains("mixer.hypernet"), "{why}");
}
