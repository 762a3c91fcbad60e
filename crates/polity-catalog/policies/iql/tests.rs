//! Good choices are found in data of mixed quality; the gradient is that of a plain computation.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Iql, Params};
use crate::learning::testing::{batch, check_slopes, finds_good_choices, learners, plain, plain_logs};
use crate::learning::{Data, Learner, Twin};
use crate::testing::refused;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Mlp, Weights};
use serde_json::json;

#[test]
fn the_gradient_is_that_of_a_plain_computation() {
    let mut draws = Draws::new(2, Stream::Learner, 0, 0);
    let mut make = || {
        let mut weights = Weights::default();
        let mut net =
            |name: &str, to: usize| Mlp::new(&mut weights, name, &[2, 4, to], Activation::Tanh, 1.0, &mut draws);
        let nets = (net("policy", 3), Twin([net("value-0", 3), net("value-1", 3)]), net("value", 1));
        (weights, nets)
    };
    let ((weights, (policy, q, value)), (target, _)) = (make(), make());
    let params = Params { reward_scale: 0.5, ..Params::default() };
    let (gamma, beta, tau) = (params.discount, params.temperature, params.expectile);
    let learner = Iql { params, policy, q, value, data: Data::default() };
    let batch = batch(90, 2);
    let found = learner.slope(&weights, &target, &batch).unwrap();
    let v = |weights: &Weights, row: &[f32]| plain(weights, "value", row)[0];
    let q =
        |weights: &Weights, name: &str, i: usize| plain(weights, name, batch.inputs.row(i))[batch.choices[i] as usize];
    let worth = |i: usize| q(&target, "value-0", i).min(q(&target, "value-1", i));
    let loss = |moved: &Weights| {
        let one = |i: usize| {
            let ahead = worth(i) - v(&weights, batch.inputs.row(i));
            let side = if ahead < 0.0 { 1.0 - tau } else { tau };
            let error = worth(i) - v(moved, batch.inputs.row(i));
            let then = if batch.ended[i] { 0.0 } else { v(&weights, batch.then.row(i)) };
            let goal = 0.5 * f64::from(batch.rewards[i]) + gamma * then;
            let square = |x: f64| x * x;
            let errors = square(q(moved, "value-0", i) - goal) + square(q(moved, "value-1", i) - goal);
            let logits = plain(moved, "policy", batch.inputs.row(i));
            let log = plain_logs(&logits, batch.masks.row(i))[batch.choices[i] as usize];
            side * square(error) + errors - libm::exp(beta * ahead).min(100.0) * log
        };
        (0..90).map(one).sum::<f64>() / 90.0
    };
    assert!((loss(&weights) - found.losses[0]).abs() < 1e-3 * found.losses[0].abs());
    check_slopes(&weights, &found.of, loss);
}

#[test]
fn good_choices_are_found_among_bad_ones_if_outcomes_are_known() {
    finds_good_choices(Iql::NAME, &json!({"temperature": 10, "reward_scale": 0.1}));
}

#[test]
fn keys_out_of_range_are_refused() {
    for (key, value) in [("expectile", 1.5), ("temperature", -1.0), ("tau", 2.0)] {
        let mut scenario = learners(Iql::NAME, 1, 1, &json!({key: value}));
        scenario["cohorts"][0]["policy"].as_object_mut().unwrap().remove("data");
        let why = refused(&scenario);
        assert!(why.contains(key), "{why}");
    }
}
