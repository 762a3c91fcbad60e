//! Searches against all choices, and a game that no monotonic mixer can hold.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::mixed::testing::{self, NON_MONOTONIC, reached};
use crate::testing::refused;
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    let mut all = json!({"mixer": {"embedding": 8, "hypernet": [16]}});
    more.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
    testing::playing("concaveq", world, rounds, &all)
}

#[test]
fn a_concave_mixer_holds_what_depends_on_the_other_and_agents_act_alone() {
    let world = json!({"kind": "matrix-game", "game": NON_MONOTONIC});
    assert_eq!(reached(&playing(&world, 802, &json!({}))), 8.0);
    let strangers = reached(&playing(&world, 402, &json!({"together": "strangers"})));
    assert!(strangers < 8.0, "{strangers}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&playing(&json!({"kind": "two-step-game"}), 5, &json!({"mixer": {"starts": 0}})));
    assert!(why.contains("mixer.starts"), "{why}");
}
