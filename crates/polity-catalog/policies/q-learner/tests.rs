//! Learners in worlds whose values are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Choice, Learned, Params, QLearner};
use crate::testing::{metric, play, refused};
use polity_kernel::interface::NumberSlot;
use serde_json::{Value, json};

fn learners(seed: u64, rounds: u32, agents: u32, world: &Value, policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["kind"] = json!("q-learner");
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}]})
}

#[test]
fn they_find_the_best_reply_where_there_is_a_dominant_one() {
    // In a prisoner's dilemma defection pays whatever the other does; in a game of common interest the same move is best for both.
    let dilemma = json!({"kind": "matrix-game"});
    let mut scenario = learners(3, 600, 40, &dilemma, &json!({"explore": 0.5, "decay": 0.99, "stop": 590}));
    scenario["metrics"] = json!([{"kind": "mean", "of": "played-cooperate"}]);
    assert_eq!(metric(play(&scenario).rounds.last().unwrap(), "played-cooperate.mean"), 0.0);
    let common = "NFG 1 R \"common\" { \"a\" \"b\" } { { \"x\" \"y\" } { \"x\" \"y\" } } \"\" 2 2 1 1 1 1 0 0";
    let mut scenario = learners(
        3,
        600,
        40,
        &json!({"kind": "matrix-game", "game": common}),
        &json!({"explore": 0.5, "decay": 0.99, "stop": 590}),
    );
    scenario["metrics"] = json!([{"kind": "mean", "of": "played-x"}]);
    assert_eq!(metric(play(&scenario).rounds.last().unwrap(), "played-x.mean"), 1.0);
}

/// Values of a plain learner in two states: in state 0 choice 0 gives 1 and choice 1 leads to state 1, in which both give `late` and lead back.
fn plainly(rate: f64, discount: f64, late: f64, choices: &[usize]) -> [[f64; 2]; 2] {
    let (mut values, mut state) = ([[0.0f64; 2]; 2], 0);
    for choice in choices {
        let (gain, next) = match (state, choice) {
            (0, 0) => (1.0, 0),
            (0, _) => (0.0, 1),
            _ => (late, 0),
        };
        let then = values[next][0].max(values[next][1]);
        values[state][*choice] += rate * (gain + discount * then - values[state][*choice]);
        state = next;
    }
    values
}

#[test]
fn values_are_those_of_a_plain_learner_and_of_bellmans_equation() {
    let (rate, discount, late) = (0.2, 0.5, 4.0);
    let params = Params { rate, discount, ..Params::default() };
    let choice = |value| Choice { act: 0, value, offered: None };
    let learner = QLearner {
        params,
        state: Vec::new(),
        reward: NumberSlot(0),
        active: None,
        pause: None,
        choices: vec![choice(0.0), choice(1.0)],
    };
    let choices: Vec<usize> = (0..4_000).map(|i| usize::from((i / 3 + i / 7) % 2 == 1)).collect();
    let (mut learned, mut state) = (Learned::default(), 0usize);
    for choice in &choices {
        learned.last = Some((vec![state as i32], *choice as u16));
        let next;
        (learned.gain, next) = match (state, choice) {
            (0, 0) => (1.0, 0),
            (0, _) => (0.0, 1),
            _ => (late, 0),
        };
        let then = learned.table.get(&vec![next]).map_or(0.0, |values| values[0].max(values[1]));
        learner.learn(&mut learned, then);
        state = next as usize;
    }
    let plain = plainly(rate, discount, late, &choices);
    let found: Vec<Vec<f64>> = learned.table.values().cloned().collect();
    assert_eq!(found, plain.map(|values| values.to_vec()));
    // V(0) = max(1 + V(0) / 2, V(1) / 2), V(1) = 4 + V(0) / 2: going to state 1 and back is worth 8 / 3.
    for (found, expected) in plain.concat().into_iter().zip([7.0 / 3.0, 8.0 / 3.0, 16.0 / 3.0, 16.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-6, "{plain:?}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&learners(1, 1, 2, &json!({"kind": "matrix-game"}), &json!({"state": ["weather"]})));
    assert!(why.contains("weather") && why.contains("state"), "{why}");
    let why = refused(&learners(1, 1, 2, &json!({"kind": "matrix-game"}), &json!({"rate": 0.0})));
    assert!(why.contains("rate"), "{why}");
}
