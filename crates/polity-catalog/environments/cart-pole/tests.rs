//! The dynamics against Gymnasium's, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Cart, CartPole};
use crate::testing::{metric, play, refused};
use polity_kernel::ask::Value;
use polity_kernel::environment::{Environment, Move};
use polity_kernel::rng::{Draws, Stream};
use serde::Deserialize;
use serde_json::json;

/// Consecutive steps of an episode of Gymnasium 1.4.0: the state before, its step, the pushes (1: right), the state after.
#[derive(Deserialize)]
struct Stretch {
    before: [f64; 4],
    steps: u32,
    pushes: String,
    after: [f64; 4],
    ended: bool,
}

fn push(action: u16) -> [Move; 1] {
    [Move { seat: 0, action, argument: Value::Record(Vec::new()) }]
}

#[test]
fn ten_thousand_steps_are_those_of_gymnasium() {
    let (environment, mut draws) = (CartPole { steps: 500 }, Draws::new(1, Stream::Episode, 0, 0));
    let (mut steps, mut ends) = (0, 0);
    for line in include_str!("gymnasium.jsonl").lines() {
        let Stretch { before: [x, speed, angle, turn], steps: so_far, pushes, after, ended } =
            serde_json::from_str(line).unwrap();
        let mut cart = Cart { x, speed, angle, turn, steps: so_far };
        for (i, action) in pushes.bytes().map(|byte| u16::from(byte == b'1')).enumerate() {
            let result = environment.step(&mut cart, &push(action), &mut draws);
            assert_eq!(result.rewards, [1.0]);
            assert_eq!(result.done, ended && i + 1 == pushes.len(), "step {i} of {line}");
            steps += 1;
        }
        ends += u32::from(ended);
        // The pole is unstable: what a sine differs by in the last bit grows by a factor of about 50 a stretch.
        for (found, expected) in [cart.x, cart.speed, cart.angle, cart.turn].iter().zip(after) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}: {line}");
        }
    }
    assert_eq!((steps, ends), (10_000, 31));
}

#[test]
fn carts_begin_near_the_middle_and_roll_on_without_a_move() {
    let (environment, mut draws) = (CartPole { steps: 500 }, Draws::new(1, Stream::Episode, 0, 0));
    let starts: Vec<Cart> = (0..1_000).map(|_| environment.reset(&Default::default(), &mut draws)).collect();
    let mean = starts.iter().map(|cart| cart.angle).sum::<f64>() / 1_000.0;
    assert!(starts.iter().all(|cart| cart.x.abs() <= 0.05 && cart.turn.abs() <= 0.05) && mean.abs() < 0.005);
    let mut cart = Cart { x: 0.0, speed: 1.0, angle: 0.0, turn: 0.0, steps: 0 };
    environment.step(&mut cart, &[], &mut draws);
    assert_eq!((cart.x, cart.speed, cart.angle), (0.02, 1.0, 0.0));
}

#[test]
fn a_rule_that_steers_against_the_fall_keeps_the_pole_up() {
    let scenario = |rule: &str| {
        json!({"seed": 1, "rounds": 400, "agents": 20, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
            "cohorts": [{"policy": {"kind": "rule", "actions": [
                {"act": "right", "when": format!("{rule} > 0")}, {"act": "left", "when": format!("{rule} <= 0")}]}}]})
    };
    let ended = |rule: &str| metric(play(&scenario(rule)).rounds.last().unwrap(), "episodes");
    assert_eq!(ended("angle + 0.4 * turn + 0.01 * position + 0.03 * speed"), 0.0);
    assert!(ended("-angle") > 500.0);
}

#[test]
fn episodes_have_steps() {
    let scenario = json!({"seed": 1, "rounds": 1, "agents": 1, "topology": {"kind": "none"},
        "world": {"kind": "cart-pole", "steps": 0}, "cohorts": [{"policy": {"kind": "noise"}}]});
    let why = refused(&scenario);
    assert!(why.contains("steps"), "{why}");
}
