//! The two-step game of the paper, and one that no monotonic mixer can hold.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::mixed::testing::{self, NON_MONOTONIC, reached};
use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    let mut all = json!({"mixer": {"embedding": 8, "hypernet": [16]}});
    more.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
    testing::playing("qmix", world, rounds, &all)
}

#[test]
fn a_monotonic_mixer_holds_what_needs_both() {
    assert_eq!(reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({}))), 8.0);
    // Mixed with strangers, it does not.
    let strangers = reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({"together": "strangers"})));
    assert!(strangers < 8.0, "{strangers}");
}

#[test]
fn teams_that_expect_long_returns_stay_near_what_they_want() {
    let policy =
        json!({"kind": "qmix", "hidden": [64], "discount": 0.9, "epsilon_rounds": 700, "learning_rate": 0.0005});
    let scenario = json!({"seed": 1, "rounds": 1_500, "agents": 24, "topology": {"kind": "none"},
        "world": {"kind": "spread", "own": 0}, "cohorts": [{"policy": policy}]});
    // At random about 0.7. With values that grow without bound the agents run away, to 2 and more.
    let gap = metric(play(&scenario).rounds.last().unwrap(), "gap");
    assert!(gap < 0.7, "{gap}");
}

#[test]
fn a_monotonic_mixer_does_not_hold_what_depends_on_the_other() {
    let world = json!({"kind": "matrix-game", "game": NON_MONOTONIC});
    assert_eq!(reached(&playing(&world, 402, &json!({}))), 0.0);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&playing(&json!({"kind": "two-step-game"}), 5, &json!({"mixer": {"embedding": 0}})));
    assert!(why.contains("mixer.embedding"), "{why}");
    let why = refused(&playing(&json!({"kind": "two-step-game"}), 5, &json!({"mixer": {"hypernet": [4096]}})));
    assert!(why.contains("mixer.hypernet"), "{why}");
}
