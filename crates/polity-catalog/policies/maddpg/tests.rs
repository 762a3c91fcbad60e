//! Draws against their probabilities, and a game whose best choices are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::gumbels;
use crate::learning::{best, one_hot};
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::Array;
use serde_json::{Value, json};

fn spreading(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "maddpg", "hidden": [32], "reward_scale": 0.3});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 24, "topology": {"kind": "none"}, "world": {"kind": "spread"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

#[test]
fn the_greatest_moved_logit_is_that_of_a_draw() {
    let p = [0.6f64, 0.3, 0.1];
    let logs = Array::new(20_000, 3, (0..60_000).map(|i| p[i % 3].ln() as f32).collect());
    let moved = logs.zip(&gumbels(&logs, &mut Draws::new(1, Stream::Learner, 0, 0)), |x, y| x + y);
    let drawn = one_hot((0..logs.rows()).map(|row| usize::from(best(moved.row(row)))), 3).column_sums();
    for (drawn, p) in drawn.data().iter().zip(p) {
        // Three standard errors are at most 0.0104.
        assert!((f64::from(*drawn) / 20_000.0 - p).abs() < 0.0104, "{drawn} of 20000, {p}");
    }
}

#[test]
fn pairs_agree_on_what_is_best() {
    let mut scenario = spreading(602, &json!({"stop": 600}));
    scenario["world"] = json!({"kind": "two-step-game"});
    assert_eq!(metric(play(&scenario).rounds.last().unwrap(), "mean-reward"), 8.0);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [(json!({"tau": 2}), "tau"), (json!({"temperature": 0}), "temperature")] {
        let why = refused(&spreading(1, &more));
        assert!(why.contains(key), "{why}");
    }
}
