//! The two-step game of the paper on QMIX, and a game whose solution is a sum.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, play_with, refused};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "vdn", "hidden": [32], "epsilon_end": 1, "stop": rounds - 2,
        "target_update": 50, "discount": 1, "learning_rate": 0.003});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

fn reached(scenario: &Value) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), "mean-reward")
}

#[test]
fn a_sum_cannot_hold_what_needs_both() {
    // Fitted to all payoffs, the sum says that 6.5 is to be had after `b`, and 7 after `a`.
    assert_eq!(reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({}))), 7.0);
    // These payoffs are sums.
    let world = json!({"kind": "two-step-game", "after_b": [[0, 4], [4, 8]]});
    assert_eq!(reached(&playing(&world, 802, &json!({}))), 8.0);
}

#[test]
fn weights_are_the_same_for_any_number_of_shards() {
    let mut scenario = playing(&json!({"kind": "spread"}), 80, &json!({}));
    scenario["agents"] = json!(18);
    let [one, two] = [1, 2].map(|shards| play_with(&scenario, &Inputs::default(), shards));
    assert_eq!(one.outcome.digest, two.outcome.digest);
    assert_eq!(one.society.weights().unwrap(), two.society.weights().unwrap());
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let game = json!({"kind": "two-step-game"});
    for (more, key) in [
        (json!({"buffer_rounds": 1}), "buffer_rounds"),
        (json!({"mixer": {"embedding": 8}}), "embedding"),
        (json!({"together": "friends"}), "together"),
        (json!({"observe": ["seat-2"]}), "seat-2"),
    ] {
        let why = refused(&playing(&game, 5, &more));
        assert!(why.contains(key), "{why}");
    }
}
