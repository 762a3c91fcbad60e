//! Interference against all pairs, energy and messages against counts, refusals.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::{Played, metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn network(seed: u64, agents: u32, rounds: u32, world: &Value, actions: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("radio");
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": actions}}]})
}

fn column(played: &Played, name: &str) -> Vec<f64> {
    let place = played.society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
    played.society.column(place)
}

#[test]
fn ratios_are_those_of_all_pairs() {
    let random = json!([
        {"act": "power", "value": "uniform(0.1, 10)"},
        {"act": "channel", "value": "floor(uniform(0, 3))"}
    ]);
    for (agents, reach) in [(20, 5.0), (20, 1.5), (150, 5.0), (600, 2.0)] {
        let played = play(&network(7, agents, 4, &json!({"reach": reach}), &random));
        let side = (f64::from(agents) * 144.0 / 20.0).sqrt();
        let [x, y, ux, uy, channel, power, ratio] =
            ["x", "y", "user-x", "user-y", "channel", "power", "ratio"].map(|name| column(&played, name));
        let gain = |j: usize, i: usize| {
            let along =
                |a: f64, b: f64| [-side, 0.0, side].iter().map(|s| (a - b + s).abs()).fold(f64::INFINITY, f64::min);
            let d = along(x[j], ux[i]).hypot(along(y[j], uy[i]));
            if d > reach && i != j { 0.0 } else { d.max(0.5).powi(-3) }
        };
        let mut interfered = 0;
        for i in 0..agents as usize {
            let others = (0..agents as usize).filter(|j| *j != i && channel[*j] == channel[i]);
            let sum: f64 = others.map(|j| power[j] * gain(j, i)).sum();
            interfered += usize::from(sum > 0.0);
            let expected = power[i] * gain(i, i) / (0.001 + sum);
            assert!((ratio[i] / expected - 1.0).abs() < 1e-9, "{agents} {reach} {i}: {} and {expected}", ratio[i]);
        }
        assert!(interfered > 0, "{agents} {reach}");
        let kept = ratio.iter().filter(|ratio| **ratio >= 4.0).count() as f64 / f64::from(agents);
        assert_eq!(metric(played.rounds.last().unwrap(), "kept"), kept);
    }
}

#[test]
fn energy_is_that_of_signals_and_messages() {
    let acts = json!([{"act": "power", "value": 2}, {"act": "tell", "when": "round < 3"}]);
    let played = play(&network(1, 30, 10, &json!({"message_cost": 1.5}), &acts));
    let rounds: Vec<[f64; 4]> = played
        .rounds
        .iter()
        .map(|round| ["messages", "message-energy", "energy", "energy-share"].map(|name| metric(round, name)))
        .collect();
    let sent = rounds.last().unwrap()[0];
    assert!(sent == 60.0 || sent == 90.0, "{sent}");
    for (i, [messages, cost, energy, share]) in rounds.into_iter().enumerate() {
        assert_eq!(cost, 1.5 * messages);
        assert!((energy - cost - 60.0 * (i + 1) as f64).abs() < 1e-9);
        assert!((share - energy / (300.0 * (i + 1) as f64)).abs() < 1e-12);
    }
}

#[test]
fn every_message_counts_whoever_hears_it() {
    let heard = |loss: f64, reach: f64| {
        let world = json!({"loss": loss, "reach": reach});
        let scenario = network(2, 400, 6, &world, &json!([{"act": "tell"}, {"act": "power", "value": "1"}]));
        let mut society = open(&scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
        let mut rounds = 0;
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            rounds += 1;
            assert_eq!(metric(&report, "messages"), 400.0 * f64::from(rounds));
        }
        rounds
    };
    assert_eq!(heard(0.0, 2.0), 6);
    assert_eq!(heard(1.0, 5.0), 6);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"reach": 20}), "world.reach: must be at most half a side"),
        (json!({"density": 10, "reach": 0.5, "channels": 0}), "world.channels"),
        (json!({"loss": 2}), "world.loss"),
        (json!({"max_power": 0}), "world.max_power"),
    ] {
        let found = refused(&network(1, 20, 1, &world, &json!([{"act": "power", "value": 1}])));
        assert!(found.contains(says), "{found}");
    }
}
