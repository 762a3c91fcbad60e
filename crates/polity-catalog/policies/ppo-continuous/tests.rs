//! A pendulum, and densities of actions against a plain computation.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::params::Params;
use super::{PpoContinuous, log_density};
use crate::learning::testing::{self, weights_are_the_same_again};
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Mlp, Weights, outputs};
use serde_json::{Value, json};

fn learning(world: &Value, agents: u32, rounds: u32, more: &Value) -> Value {
    testing::learning("ppo-continuous", world, [agents, rounds], more)
}

#[test]
fn pendulums_are_swung_up_by_those_who_look_ahead() {
    let reached = |discount: f64| {
        let more = json!({"discount": discount, "reward_scale": 0.1, "horizon": 200, "learning_rate": 0.001});
        let scenario = learning(&json!({"kind": "pendulum"}), 16, 4_001, &more);
        metric(play(&scenario).rounds.last().unwrap(), "episode-return.mean")
    };
    let (learned, blind) = (reached(0.9), reached(0.0));
    assert!(learned > -300.0 && blind < -700.0, "{learned} {blind}");
}

/// The logarithm of a Gaussian's density at a is -((a - mean) / deviation)^2 / 2 - log deviation, less a constant.
#[test]
fn densities_are_those_of_a_plain_computation() {
    let mut draws = Draws::new(7, Stream::Learner, 0, 0);
    let mut weights = Weights::default();
    let mut net = |name: &str, to: usize| Mlp::new(&mut weights, name, &[3, 4, to], Activation::Tanh, 1.0, &mut draws);
    let (policy, value) = (net("policy", 2), net("value", 1));
    let deviations = weights.push("log-deviations", Array::new(1, 2, vec![-0.5, 0.25]));
    let learner = PpoContinuous { params: Params::default(), policy, value, deviations, numbers: 2 };
    let mut random = |rows: usize, columns: usize| {
        Array::new(rows, columns, (0..rows * columns).map(|_| draws.normal() as f32).collect())
    };
    let (inputs, actions) = (random(300, 3), random(300, 2));
    let [means, _, _] = learner.outlook(&weights, &inputs);
    let [found] = outputs(&weights, 300, |tape, rows| {
        let (mean, action) = (tape.input(means.part(rows.clone())), tape.input(actions.part(rows.clone())));
        let log_deviations = learner.log_deviations(tape, rows.len());
        [learner.log_densities(tape, [mean, log_deviations], action)]
    });
    for row in 0..300 {
        let density = |(i, log): (usize, f64)| {
            let z = (f64::from(actions.row(row)[i]) - f64::from(means.row(row)[i])) / libm::exp(log);
            -0.5 * z * z - log
        };
        let expected: f64 = [-0.5, 0.25].into_iter().enumerate().map(density).sum();
        let plain = log_density(means.row(row), &[-0.5, 0.25], actions.row(row));
        for found in [found.row(row)[0], plain] {
            assert!((expected - f64::from(found)).abs() < 1e-4, "{row}: {found}, not {expected}");
        }
    }
}

#[test]
fn weights_are_the_same_for_any_number_of_shards_and_after_a_snapshot() {
    let more = json!({"horizon": 8, "minibatch": 16, "hidden": [8]});
    let scenario = learning(&json!({"kind": "pendulum", "steps": 20}), 12, 60, &more);
    weights_are_the_same_again(&scenario, [29, 60]);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let pendulum = json!({"kind": "pendulum"});
    let cases = [
        (json!({"deviation": 0}), "deviation"),
        (json!({"clip": 0}), "clip"),
        (json!({"horizon": 0}), "horizon"),
        (json!({"lambda": 2}), "lambda"),
        (json!({"value_weight": -1}), "value_weight"),
    ];
    for (more, key) in cases {
        let why = refused(&learning(&pendulum, 2, 1, &more));
        assert!(why.contains(key), "{why}");
    }
    let why = refused(&learning(&json!({"kind": "cart-pole"}), 2, 1, &json!({})));
    assert!(why.contains("takes a number"), "{why}");
    let mut scenario = learning(&pendulum, 2, 1, &json!({}));
    scenario["cohorts"][0]["policy"] = json!({"kind": "ppo"});
    let why = refused(&scenario);
    assert!(why.contains("take numbers"), "{why}");
}
