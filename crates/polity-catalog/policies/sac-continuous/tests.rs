//! A pendulum, densities of actions against a plain computation, games whose best policies are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::gaussians::{Gaussians, normals};
use crate::learning::testing;
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Mlp, Weights, outputs};
use serde_json::{Value, json};

fn learning(world: &Value, agents: u32, rounds: u32, more: &Value) -> Value {
    testing::learning("sac-continuous", world, [agents, rounds], more)
}

#[test]
fn pendulums_are_swung_up_by_those_who_look_ahead() {
    let reached = |discount: f64| {
        let more = json!({"discount": discount, "reward_scale": 0.1, "gradient_steps": 4});
        let scenario = learning(&json!({"kind": "pendulum"}), 16, 1_601, &more);
        metric(play(&scenario).rounds.last().unwrap(), "episode-return.mean")
    };
    let (learned, blind) = (reached(0.97), reached(0.0));
    assert!(learned > -300.0 && blind < -700.0, "{learned} {blind}");
}

/// The density of tanh u at a is the normal density of u, divided by 1 - a².
#[test]
fn densities_are_those_of_a_plain_computation() {
    let mut draws = Draws::new(7, Stream::Learner, 0, 0);
    let mut weights = Weights::default();
    let (numbers, components) = (2, 3);
    let sizes = [4, 5, Gaussians::outputs(numbers, components)];
    let net = Mlp::new(&mut weights, "policy", &sizes, Activation::Tanh, 1.0, &mut draws);
    let policy = Gaussians { net, numbers, components };
    let (inputs, noise) = (normals(6, 4, &mut draws), normals(6, 2, &mut draws));
    let mixtures = policy.of(&weights, &inputs);
    let density = |row: usize, k: usize, actions: &[f32]| {
        let of = |i: usize| {
            let (mean, deviation) = (mixtures.means.row(row)[k * 2 + i], mixtures.deviations.row(row)[k * 2 + i]);
            let a = f64::from(actions[i]);
            let z = (a.atanh() - f64::from(mean)) / f64::from(deviation);
            let normal = (-z * z / 2.0).exp() / (f64::from(deviation) * (2.0 * std::f64::consts::PI).sqrt());
            (normal / (1.0 - a * a)).ln()
        };
        of(0) + of(1)
    };
    for k in 0..components {
        let [actions, densities] = outputs(&weights, 6, |tape, rows| {
            let x = tape.input(inputs.part(rows.clone()));
            let of = policy.net.on(tape, x);
            let drawn = policy.draw(tape, of, k, noise.part(rows));
            [drawn.action, drawn.log]
        });
        for row in 0..6 {
            let log = density(row, k, actions.row(row));
            assert!((log - f64::from(densities.data()[row])).abs() < 1e-3, "{log} {}", densities.data()[row]);
        }
    }
    for row in 0..6 {
        let weights = mixtures.log_weights.row(row);
        assert!((weights.iter().map(|log| log.exp()).sum::<f32>() - 1.0).abs() < 1e-5);
        // The density of what is drawn is that in one of the components.
        let (action, log) = mixtures.sample(row, &mut draws);
        let nearest =
            (0..components).map(|k| (density(row, k, &action) - f64::from(log)).abs()).fold(f64::MAX, f64::min);
        assert!(nearest < 1e-3, "{nearest}");
    }
}

/// A game of one player and one step: it names a number, and two numbers are good.
fn two_goals() -> Value {
    json!({"kind": "formula-game", "players": 1, "rounds": 1, "actions": {"go": {"low": -1, "high": 1}},
        "phases": [{"actions": ["go"]}], "payoff": "exp(-((go - 0.6) / 0.2) ^ 2) + exp(-((go + 0.6) / 0.2) ^ 2)"})
}

#[test]
fn a_mixture_reaches_both_goals_and_one_gaussian_reaches_one() {
    let reached = |components: u32| {
        let more = json!({"observe": ["phase"], "components": components, "alpha": 0.03, "target_entropy": null,
            "gradient_steps": 4, "discount": 0});
        let mut scenario = learning(&two_goals(), 64, 400, &more);
        scenario["metrics"] = json!([{"kind": "mean", "of": "reward"}, {"kind": "variance", "of": "go"}]);
        let rounds = play(&scenario).rounds;
        let last = |name: &str| rounds.iter().rev().take(50).map(|round| metric(round, name)).sum::<f64>() / 50.0;
        (last("reward.mean"), last("go.variance"))
    };
    let ((mixed, both), (single, one)) = (reached(12), reached(1));
    assert!(mixed > 0.8 && both > 0.25, "{mixed} {both}");
    assert!(single > 0.8 && one < 0.05, "{single} {one}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let pendulum = json!({"kind": "pendulum"});
    for (more, key) in
        [(json!({"alpha": 0}), "alpha"), (json!({"components": 0}), "components"), (json!({"tau": 0}), "tau")]
    {
        let why = refused(&learning(&pendulum, 2, 1, &more));
        assert!(why.contains(key), "{why}");
    }
    let why = refused(&learning(&json!({"kind": "cart-pole"}), 2, 1, &json!({})));
    assert!(why.contains("takes a number"), "{why}");
    let mut scenario = learning(&pendulum, 2, 1, &json!({}));
    scenario["cohorts"][0]["policy"] = json!({"kind": "sac"});
    let why = refused(&scenario);
    assert!(why.contains("take numbers"), "{why}");
}
