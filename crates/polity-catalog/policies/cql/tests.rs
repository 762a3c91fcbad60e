//! Good choices are found in data of mixed quality; the gradient is that of a plain computation.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Cql, Params};
use crate::learning::testing::{batch, check_slopes, finds_good_choices, learners, plain, plain_logs};
use crate::learning::{Data, Learner};
use crate::testing::refused;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Mlp, Weights};
use serde_json::json;

#[test]
fn the_gradient_is_that_of_a_plain_computation() {
    let mut draws = Draws::new(2, Stream::Learner, 0, 0);
    let mut make = || {
        let mut weights = Weights::default();
        let q = Mlp::new(&mut weights, "policy", &[2, 4, 3], Activation::Tanh, 1.0, &mut draws);
        (weights, q)
    };
    let ((weights, q), (target, _)) = (make(), make());
    let params = Params { alpha: 0.7, reward_scale: 0.5, ..Params::default() };
    let (gamma, alpha) = (params.discount, params.alpha);
    let learner = Cql { params, q, data: Data::default() };
    let batch = batch(90, 2);
    let found = learner.slope(&weights, &target, &batch).unwrap();
    let loss = |moved: &Weights| {
        let one = |i: usize| {
            let masked = |weights: &Weights| -> Vec<f64> {
                let values = plain(weights, "policy", batch.then.row(i));
                values.iter().zip(batch.then_masks.row(i)).map(|(q, mask)| q + f64::from(*mask)).collect()
            };
            let judged = masked(&weights);
            let best = (0..3).fold(0, |best, choice| if judged[choice] > judged[best] { choice } else { best });
            let then = if batch.ended[i] { 0.0 } else { masked(&target)[best] };
            let goal = 0.5 * f64::from(batch.rewards[i]) + gamma * then;
            let values = plain(moved, "policy", batch.inputs.row(i));
            let choice = batch.choices[i] as usize;
            let error = values[choice] - goal;
            error * error / 2.0 - alpha * plain_logs(&values, batch.masks.row(i))[choice]
        };
        (0..90).map(one).sum::<f64>() / 90.0
    };
    assert!((loss(&weights) - found.losses[0]).abs() < 1e-3 * found.losses[0].abs());
    check_slopes(&weights, &found.of, loss);
}

#[test]
fn good_choices_are_found_among_bad_ones_if_outcomes_are_known() {
    finds_good_choices(Cql::NAME, &json!({"alpha": 0.1, "reward_scale": 0.1}));
}

#[test]
fn keys_out_of_range_are_refused() {
    for (key, value) in [("alpha", -1.0), ("reward_scale", 0.0), ("discount", 2.0)] {
        let mut scenario = learners(Cql::NAME, 1, 1, &json!({key: value}));
        scenario["cohorts"][0]["policy"].as_object_mut().unwrap().remove("data");
        let why = refused(&scenario);
        assert!(why.contains(key), "{why}");
    }
}
