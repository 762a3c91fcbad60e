//! The two-step game of the paper, and one that no monotonic mixer can hold.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::mixed::testing::{self, NON_MONOTONIC, reached};
use crate::testing::refused;
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
