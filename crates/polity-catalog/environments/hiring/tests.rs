//! Tests of `hiring`: what agents who do what is best for them make of each mechanism.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn scenario(world: &Value, rounds: u32) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("hiring");
    let rule = json!({"kind": "rule", "actions": [{"act": "depart", "when": "gain > 0"}, {"act": "obey", "when": "gain <= 0"}]});
    json!({"seed": 1, "rounds": rounds, "agents": 4, "world": world, "cohorts": [{"policy": rule}]})
}

fn last(world: &Value, rounds: u32, name: &str) -> f64 {
    metric(play(&scenario(world, rounds)).rounds.last().unwrap(), name)
}

#[test]
fn agents_obey_the_optimal_mechanism_and_shirk_with_a_flat_one() {
    let with = |mechanism: &str, name: &str| last(&json!({"mechanism": mechanism, "common": 1}), 9, name);
    assert!(with("optimal", "shortfall").abs() < 1e-7);
    assert_eq!(with("optimal", "departures"), 0.0);
    // Both are paid 0.03 whenever they are told to work, and the decision is a guess.
    assert!(with("flat", "value") < 0.5 && with("flat", "departures") == 1.0);
    let (optimal, apart) = (with("optimal", "value"), with("uncorrelated", "value"));
    assert!(optimal > apart + 1e-3 && apart > 0.5, "{optimal} {apart}");
    assert_eq!(with("uncorrelated", "departures"), 0.0);
}

#[test]
fn a_learner_regrets_less_and_less_in_a_round() {
    let world = json!({"mechanism": "learner", "first": 16_000, "horizons": 6});
    let played = play(&scenario(&world, 30));
    // Horizons of 1, 2, 4 ... 32 times as many rounds: 63 times as many in all, and 63^(2/3) is 16.
    let regret = |step: usize| metric(&played.rounds[step], "regret");
    assert!(regret(29) > regret(4) && regret(29) < 25.0 * regret(4), "{} {}", regret(29), regret(4));
    let slope = metric(played.rounds.last().unwrap(), "slope");
    assert!((0.5..0.85).contains(&slope), "{slope}");
    // Episodes end after the last horizon: five steps each.
    assert_eq!(metric(played.rounds.last().unwrap(), "episodes"), 2.0);
    assert_eq!(metric(&played.rounds[28], "episodes"), 0.0);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"accuracy": 0.2}), "accuracy"),
        (json!({"costs": [2, 0]}), "costs[0]"),
        (json!({"cap": 0}), "cap"),
        (json!({"horizons": 1}), "horizons"),
        (json!({"mechanism": "learner", "costs": [0.9, 0.9]}), "cannot be enforced"),
    ] {
        let found = refused(&scenario(&world, 3));
        assert!(found.contains(says), "{found}");
    }
}
