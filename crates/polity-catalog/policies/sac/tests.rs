//! Learners of tasks whose solutions are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn balancing(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "sac"});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

#[test]
fn poles_are_balanced_by_those_who_look_ahead() {
    let reached = |more| metric(play(&balancing(1_000, &more)).rounds.last().unwrap(), "episode-return.mean");
    let learned = reached(json!({}));
    assert!(learned > 100.0, "{learned}");
    let blind = reached(json!({"discount": 0.0}));
    assert!(blind < 45.0, "{blind}");
}

#[test]
fn entropy_is_adjusted_to_the_one_aimed_at() {
    // `a` gives 1 and `b` gives 0, so the policy that is best for α plays `a` with probability 1 / (1 + exp(-1 / α)).
    let world = json!({"kind": "matrix-game", "game":
        "NFG 1 R \"more\" { \"1\" \"2\" } { { \"a\" \"b\" } { \"a\" \"b\" } } \"\" 1 1 0 1 1 0 0 0"});
    let share = |part: f64| {
        let mut scenario = balancing(800, &json!({"alpha": 1, "target_entropy": part, "learning_rate": 0.003}));
        scenario["world"] = world.clone();
        scenario["agents"] = json!(40);
        scenario["metrics"] = json!([{"kind": "mean", "of": "played-a"}]);
        let rounds = play(&scenario).rounds;
        rounds.iter().rev().take(200).map(|round| metric(round, "played-a.mean")).sum::<f64>() / 200.0
    };
    // The entropy of 0.9 and 0.1 is 0.469 of the greatest, that of 0.7 and 0.3 is 0.881.
    for (part, expected) in [(0.469, 0.9), (0.881, 0.7)] {
        let found = share(part);
        assert!((found - expected).abs() < 0.06, "{found}, not {expected}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [(json!({"alpha": 0}), "alpha"), (json!({"target_entropy": 2}), "target_entropy")] {
        let why = refused(&balancing(1, &more));
        assert!(why.contains(key), "{why}");
    }
}
