//! Oscillators: order and rewards by hand, the density of infinitely many, scrambled views.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Kuramoto, Params, Phases};
use crate::testing::{mean, metric, play, refused};
use polity_kernel::ask::Value as Argument;
use polity_kernel::environment::{Environment, Move};
use polity_kernel::items::Item;
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};
use std::f64::consts::TAU;

/// A society whose agents shift their phases towards the peers that they see.
fn towards(seed: u64, agents: u32, rounds: u32, world: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("kuramoto");
    let policy = json!({"kind": "rule", "actions": [{"act": "shift", "value": "2 if sine > 0 else 0"}]});
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "order"}, {"kind": "mean", "of": "reward"}]})
}

fn episode(params: Params) -> (Kuramoto, Phases, Draws) {
    let environment = Kuramoto { params };
    let mut draws = Draws::new(5, Stream::World, 0, 0);
    let state = environment.reset(&Item::default(), &mut draws);
    (environment, state, draws)
}

#[test]
fn order_and_rewards_are_plain_sums() {
    let (environment, mut state, mut draws) = episode(Params { players: 7, peers: 3, noise: 0.0, ..Params::default() });
    let before = state.phases.clone();
    let moves: Vec<Move> = (0..6).map(|seat| Move { seat, action: 0, argument: Argument::Choice(seat % 3) }).collect();
    let step = environment.step(&mut state, &moves, &mut draws);
    for (seat, (now, before)) in state.phases.iter().zip(&before).enumerate() {
        let way = [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0][seat];
        let moved = (now - before - 0.2 * way).rem_euclid(TAU);
        assert!(moved.min(TAU - moved) < 1e-12 && (0.0..TAU).contains(now), "{now} {before}");
        let agreement = mean(&state.phases.iter().map(|other| (other - now).cos()).collect::<Vec<f64>>());
        assert!((step.rewards[seat] - agreement).abs() < 1e-12);
    }
    assert!((mean(&step.rewards) - state.order() * state.order()).abs() < 1e-12);
}

#[test]
fn one_sees_others_and_not_oneself() {
    let (_, state, _) = episode(Params { players: 2, peers: 5, ..Params::default() });
    let ahead = state.phases[1] - state.phases[0];
    for (seat, sign) in [(0, 1.0), (1, -1.0)] {
        let [cosine, sine] = state.seen[seat];
        assert!((cosine - ahead.cos()).abs() < 1e-12 && (sine - sign * ahead.sin()).abs() < 1e-12);
    }
}

/// Returns the order parameter of infinitely many who shift towards the one that they see, after each step. The density of phases is kept at
/// equally spaced points of the circle.
fn mean_field(steps: usize, Params { shift, noise, arc, .. }: Params) -> Vec<f64> {
    const N: usize = 1_440;
    let angle = |i: usize| TAU * (i as f64 + 0.5) / N as f64;
    let mut density: Vec<f64> = (0..N).map(|i| if angle(i) < TAU * arc { 1.0 } else { 0.0 }).collect();
    let all: f64 = density.iter().sum();
    density.iter_mut().for_each(|share| *share /= all);
    let kernel: Vec<f64> = (0..N)
        .map(|i| {
            let near = |winds: i32| {
                let z = (TAU * i as f64 / N as f64 + TAU * f64::from(winds)) / noise;
                (-z * z / 2.0).exp()
            };
            (-3..=3).map(near).sum()
        })
        .collect();
    let all: f64 = kernel.iter().sum();
    let points = (shift / TAU * N as f64).round() as usize;
    let order = |density: &[f64]| {
        let part = |of: fn(f64) -> f64| density.iter().enumerate().map(|(i, share)| share * of(angle(i))).sum::<f64>();
        part(f64::cos).hypot(part(f64::sin))
    };
    let step = |density: &[f64]| {
        let mut moved = vec![0.0; N];
        for (i, share) in density.iter().enumerate() {
            // The share of all others that is ahead by less than half of the circle.
            let ahead: f64 =
                (1..N / 2).map(|by| density[(i + by) % N]).sum::<f64>() + (density[i] + density[(i + N / 2) % N]) / 2.0;
            moved[(i + points) % N] += share * ahead;
            moved[(i + N - points) % N] += share * (1.0 - ahead);
        }
        (0..N).map(|i| (0..N).map(|j| moved[j] * kernel[(i + N - j) % N]).sum::<f64>() / all).collect::<Vec<f64>>()
    };
    let mut orders = Vec::new();
    for _ in 0..steps {
        density = step(&density);
        orders.push(order(&density));
    }
    orders
}

#[test]
fn many_agents_follow_the_density_of_infinitely_many() {
    // A shift by a whole number of points.
    let world = json!({"players": 20_000, "shift": TAU * 46.0 / 1_440.0});
    let exact = mean_field(30, Params { shift: TAU * 46.0 / 1_440.0, ..Params::default() });
    let played = play(&towards(1, 20_000, 30, &world));
    let orders: Vec<f64> = played.rounds.iter().map(|round| metric(round, "order.mean")).collect();
    for (round, (found, exact)) in orders.iter().zip(&exact).enumerate() {
        assert!((found - exact).abs() < 0.02, "round {round}: {found} {exact}");
    }
    assert!(exact[0] < 0.35 && exact[29] > 0.8, "{exact:?}");
}

#[test]
fn scrambled_views_say_nothing() {
    let reached = |world: &Value| metric(play(&towards(2, 2_000, 40, world)).rounds.last().unwrap(), "order.mean");
    let (seen, scrambled) =
        (reached(&json!({"players": 1_000})), reached(&json!({"players": 1_000, "scrambled": true})));
    assert!(seen > 0.8 && scrambled < 0.15, "{seen} {scrambled}");
}

#[test]
fn episodes_end_after_their_steps() {
    let (environment, mut state, mut draws) = episode(Params { players: 2, steps: 3, ..Params::default() });
    let done: Vec<bool> = (0..3).map(|_| environment.step(&mut state, &[], &mut draws).done).collect();
    assert!(done == [false, false, true] && environment.cut(&state));
}

#[test]
fn what_does_not_fit_is_refused() {
    for (key, value) in [
        ("players", json!(1)),
        ("steps", json!(0)),
        ("peers", json!(0)),
        ("shift", json!(4.0)),
        ("noise", json!(-1.0)),
        ("arc", json!(1.5)),
    ] {
        let why = refused(&towards(1, 4, 1, &json!({key: value})));
        assert!(why.contains(key), "{why}");
    }
}
