//! Weights that earn more are moved to; ranks, pairs and noise; ranks by lot teach nothing.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Es, Generation, Params, centred_ranks};
use crate::learning::testing::plain;
use crate::learning::{Learner, Model, Seen};
use crate::testing::{metric, play, play_with, refused};
use polity_kernel::policy::Seating;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_nn::{Activation, Array, Mlp, Weights};
use serde_json::{Value, json};

fn balancing(agents: u32, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": Es::NAME, "hidden": [8]});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": agents, "topology": {"kind": "none"},
        "world": {"kind": "cart-pole", "steps": 100}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

fn learner(seats: u32, params: Params) -> (Es, Weights) {
    let (mut weights, mut draws) = (Weights::default(), Draws::new(2, Stream::Learner, 0, 0));
    let policy = Mlp::new(&mut weights, "policy", &[2, 3, 2], Activation::Tanh, 1.0, &mut draws);
    (Es { params, policy, seating: Seating { first: 0, seats }, seed: 5 }, weights)
}

fn seen(agents: u32, ended: bool, rewards: impl Fn(u32) -> f32) -> Seen {
    let n = agents as usize;
    Seen {
        agents: (0..agents).collect(),
        inputs: Array::new(n, 2, (0..2 * n).map(|i| (i as f32).sin()).collect()),
        rewards: (0..agents).map(rewards).collect(),
        ended: vec![ended; n],
        cut: vec![false; n],
        active: vec![true; n],
        mask: Array::zeros(n, 2),
    }
}

#[test]
fn equal_scores_have_equal_ranks() {
    assert_eq!(centred_ranks(&[3.0, 1.0, 2.0]), [0.5, -0.5, 0.0]);
    assert_eq!(centred_ranks(&[4.0, 1.0, 4.0, 9.0]), [0.0, -0.5, 0.0, 0.5]);
    assert_eq!(centred_ranks(&[7.0; 4]), [0.0; 4]);
}

#[test]
fn members_of_a_pair_play_weights_with_opposite_noise() {
    let (es, weights) = learner(2, Params { noise: 0.3, ..Params::default() });
    let seen = seen(8, false, |_| 0.0);
    let found = es.logs(&weights, 4, &seen);
    for who in 0..8u32 {
        let (member, sign) = (who / 2, if who / 2 % 2 == 0 { 1.0f32 } else { -1.0 });
        let mut own = weights.clone();
        for (array, noise) in own.arrays_mut().zip(es.noise(&weights, 4, member / 2)) {
            array.data_mut().iter_mut().zip(noise.data()).for_each(|(w, noise)| *w += sign * 0.3 * noise);
        }
        let logits = plain(&own, "policy", seen.inputs.row(who as usize));
        let difference = f64::from(found.row(who as usize)[0] - found.row(who as usize)[1]);
        assert!((logits[0] - logits[1] - difference).abs() < 1e-4, "agent {who}");
    }
    assert_ne!(es.noise(&weights, 4, 0), es.noise(&weights, 4, 1));
    assert_ne!(es.noise(&weights, 4, 0), es.noise(&weights, 5, 0));
}

#[test]
fn an_update_is_the_plain_sum_over_members() {
    let (es, weights) = learner(1, Params { weight_decay: 0.0, learning_rate: 0.01, ..Params::default() });
    let mut generation = Generation::default();
    generation.parts.note(&seen(6, false, |_| 0.0), 0, true);
    generation.parts.note(&seen(6, true, |_| 0.0), 1, false);
    let scores = [3.0f32, 1.0, 4.0, 1.5, 9.0, 2.0];
    generation.scores = (0..6).zip(scores).collect();
    let model = Model::new(&weights);
    let mut draws = Draws::new(1, Stream::Learner, 0, 0);
    let moved = es.update(&model, &generation, 7, &mut draws).unwrap();
    let ranks = [0.1f32, -0.5, 0.3, -0.3, 0.5, -0.1];
    for (i, (old, new)) in weights.iter().zip(moved.weights.iter()).enumerate() {
        for j in 0..old.array.data().len() {
            // The first step of Adam has nearly the size of the rate.
            let along: f32 = (0..6u32)
                .map(|member| {
                    let noise = es.noise(&weights, 7, member / 2)[i].data()[j];
                    ranks[member as usize] * if member % 2 == 0 { noise } else { -noise }
                })
                .sum();
            let (step, slope) = (new.array.data()[j] - old.array.data()[j], along / 6.0);
            assert!((step - 0.01 * slope / (slope.abs() + 1e-5)).abs() < 1e-5, "{i} {j}: {step}, {slope}");
        }
    }
    generation.scores.insert(3, f32::NAN);
    assert!(es.update(&model, &generation, 7, &mut draws).unwrap_err().to_string().contains("return"));
}

#[test]
fn poles_are_balanced_if_ranks_are_earned() {
    let reached = |ranks: &str| {
        let scenario = balancing(32, 3_500, &json!({"ranks": ranks, "stop": 3_300}));
        metric(play(&scenario).rounds.last().unwrap(), "episode-return.mean")
    };
    let (learned, placebo) = (reached("own"), reached("shuffled"));
    assert!(learned > 80.0 && placebo < 50.0, "{learned} {placebo}");
}

#[test]
fn weights_are_the_same_for_any_number_of_shards() {
    let scenario = balancing(8, 60, &json!({}));
    let digest = |shards| play_with(&scenario, &Inputs::default(), shards).outcome.digest;
    assert_eq!(digest(1), digest(2));
}

#[test]
fn cohorts_without_pairs_and_worlds_without_episodes_are_refused() {
    let why = refused(&balancing(7, 1, &json!({})));
    assert!(why.contains("multiple of 2"), "{why}");
    let why = refused(&balancing(8, 1, &json!({"noise": 0})));
    assert!(why.contains("noise"), "{why}");
}
