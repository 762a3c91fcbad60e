//! The dynamics against Gymnasium's, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::folded;
use crate::tape::replay;
use crate::testing::{metric, play, refused};
use serde_json::{Value, json};
use std::f64::consts::PI;

#[test]
fn recorded_swings_are_those_of_gymnasium() {
    let replayed = replay("pendulum", include_str!("gymnasium.jsonl"), 1e-9);
    assert!(replayed.steps == 240 && replayed.rewarded > 500.0, "{replayed:?}");
}

#[test]
fn angles_are_folded_to_a_half_turn_either_way() {
    for (angle, expected) in [(0.5, 0.5), (PI + 0.5, 0.5 - PI), (-7.0 * PI + 0.25, 0.25 - PI), (4.0 * PI, 0.0)] {
        assert!((folded(angle) - expected).abs() < 1e-12, "{angle}");
    }
}

fn scenario(actions: &Value, world: &Value) -> Value {
    json!({"seed": 1, "rounds": 401, "agents": 20, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": actions}}],
        "metrics": [{"kind": "mean", "of": "lean"}, {"kind": "mean", "of": "return"}]})
}

#[test]
fn a_rule_that_pumps_energy_swings_it_up_and_holds_it_and_full_torque_does_not() {
    let world = json!({"kind": "pendulum"});
    let pump = json!([
        {"act": "torque", "value": "max(-2, min(2, -10 * sine - 2 * speed))", "when": "cosine > 0.9"},
        {"act": "torque", "value": "2 if speed > 0 else -2", "when": "cosine <= 0.9 and speed * speed < 30 * (1 - cosine)"},
        {"act": "torque", "value": "-2 if speed > 0 else 2", "when": "cosine <= 0.9"}]);
    let played = play(&scenario(&pump, &world));
    let last = &played.rounds[199];
    assert!(metric(last, "lean.mean") < 0.1 && metric(last, "return.mean") > -400.0, "{:?}", last.metrics);
    assert_eq!(metric(&played.rounds[400], "episodes"), 40.0);
    let full = play(&scenario(&json!([{"act": "torque", "value": 2}]), &world));
    assert!(metric(&full.rounds[199], "return.mean") < -1_000.0, "{:?}", full.rounds[199].metrics);
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in [("steps", json!(0)), ("gravity", json!(-1.0))] {
        let mut world = json!({"kind": "pendulum"});
        world[key] = value;
        let why = refused(&scenario(&json!([{"act": "torque", "value": 0}]), &world));
        assert!(why.contains(key), "{why}");
    }
}
