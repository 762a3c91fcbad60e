//! Games whose logit equilibria are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use polity_games::{normal, quantal};
use serde_json::{Value, json};

const COMMON: &str =
    "NFG 1 R \"both get the same\" { \"1\" \"2\" } { { \"a\" \"b\" } { \"c\" \"d\" } } \"\" 3 3 0 0 1 1 2 2";
const MIXED: &str = "NFG 1 R \"they want different things\" { \"1\" \"2\" } { { \"a\" \"b\" } { \"c\" \"d\" } } \"\" 2 -2 -1 1 -1 1 1 -1";

fn pairs(game: &str, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "hasac", "hidden": [16], "alpha": 1, "learning_rate": 0.002, "buffer_rounds": 50});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 200, "topology": {"kind": "none"},
        "world": {"kind": "matrix-game", "game": game}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "played-a"}, {"kind": "mean", "of": "played-c"}]})
}

#[test]
fn pairs_reach_the_logit_equilibrium() {
    for game in [COMMON, MIXED] {
        let equilibrium = quantal::logit(&normal::read(game).unwrap(), 1.0).unwrap();
        let expected: Vec<f64> = equilibrium.equilibrium.strategies().iter().map(|of| of[0]).collect();
        let rounds = play(&pairs(game, 1_000, &json!({}))).rounds;
        for (name, expected) in ["played-a.mean", "played-c.mean"].iter().zip(expected) {
            // Half of the agents have this choice.
            let found = rounds.iter().rev().take(300).map(|round| 2.0 * metric(round, name)).sum::<f64>() / 300.0;
            assert!((found - expected).abs() < 0.03, "{name}: {found}, not {expected}");
        }
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [(json!({"alpha": 0}), "alpha"), (json!({"tau": 2}), "tau")] {
        let why = refused(&pairs(COMMON, 1, &more));
        assert!(why.contains(key), "{why}");
    }
}
