//! Episodes: how they begin, end and are cut. The steps themselves are compared with Gymnasium's in `polity_learn::mountain_car`.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn drive(world: &Value, value: &Value, rounds: u32) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("mountain-car");
    json!({"seed": 4, "rounds": rounds, "agents": 40, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [{"act": "push", "value": value}]}}],
        "metrics": [{"kind": "mean", "of": "position"}, {"kind": "mean", "of": "reached"},
            {"kind": "mean", "of": "return"}, {"kind": "mean", "of": "reward"}]})
}

#[test]
fn an_episode_is_cut_at_the_limit_and_costs_1_a_step() {
    let played = play(&drive(&json!({"limit": 50}), &json!(2), 101));
    for (i, round) in played.rounds.iter().enumerate() {
        assert_eq!(metric(round, "reward.mean"), -1.0);
        assert_eq!(metric(round, "return.mean"), -((i % 50 + 1) as f64), "round {i}");
        assert_eq!(metric(round, "reached.mean"), 0.0);
        let ended = if i + 1 >= 100 {
            80.0
        } else if i + 1 >= 50 {
            40.0
        } else {
            0.0
        };
        assert_eq!(metric(round, "episodes"), ended, "round {i}");
    }
}

#[test]
fn a_car_that_pushes_along_its_velocity_gets_there_and_one_that_rolls_does_not() {
    let swinging = play(&drive(&json!({}), &json!("0 if velocity < 0 else 2"), 199));
    // All reach the goal before the limit of 200 steps.
    assert!(metric(swinging.rounds.last().unwrap(), "episodes") >= 40.0);
    assert!(swinging.rounds.iter().any(|round| metric(round, "reached.mean") > 0.0));
    for idle in [json!(1), json!(2)] {
        let played = play(&drive(&json!({}), &idle, 199));
        assert_eq!(metric(played.rounds.last().unwrap(), "episodes"), 0.0);
    }
}

#[test]
fn cars_begin_evenly_between_their_bounds() {
    let rolling = play(&drive(&json!({"limit": 1}), &json!(1), 400));
    let positions: Vec<f64> = rolling.rounds.iter().map(|round| metric(round, "position.mean")).collect();
    // One step from rest moves a car by less than 0.001.
    let mean = positions.iter().sum::<f64>() / positions.len() as f64;
    assert!((mean + 0.5).abs() < 0.003, "{mean}");
    let spread = positions.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / positions.len() as f64;
    // Of a mean of 40 uniform positions over 0.2.
    let expected = 0.2 * 0.2 / 12.0 / 40.0;
    assert!((spread / expected - 1.0).abs() < 0.35, "{spread} {expected}");
}

#[test]
fn what_cannot_be_driven_is_refused() {
    let why = refused(&drive(&json!({"limit": 0}), &json!(1), 1));
    assert!(why.contains("limit"), "{why}");
    let why = refused(&drive(&json!({"goal_velocity": 1.0}), &json!(1), 1));
    assert!(why.contains("goal"), "{why}");
}
