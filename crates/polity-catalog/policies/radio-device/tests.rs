//! Devices in the world `radio`: what cooperation, talk and its price change.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn network(seed: u64, world: &Value, policy: &Value) -> Value {
    let (mut world, mut policy) = (world.clone(), policy.clone());
    world["kind"] = json!("radio");
    policy["kind"] = json!("radio-device");
    json!({"seed": seed, "rounds": 60, "agents": 20, "topology": {"kind": "none"}, "world": world, "cohorts": [{"policy": policy}]})
}

/// Means over seeds of the last round.
fn mean(world: &Value, policy: &Value) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for seed in 0..20 {
        let played = play(&network(seed, world, policy));
        let last = played.rounds.last().unwrap();
        for (sum, name) in sums.iter_mut().zip(["intent", "kept", "energy", "messages"]) {
            *sum += metric(last, name) / 20.0;
        }
    }
    sums
}

#[test]
fn devices_that_talk_meet_the_intent_and_others_do_not() {
    let talk = mean(&json!({}), &json!({}));
    let silent = mean(&json!({}), &json!({"repeats": 0}));
    let random = mean(&json!({"content": "random"}), &json!({}));
    let greedy = mean(&json!({}), &json!({"plan": "greedy"}));
    println!("intent, kept, energy, messages: talk {talk:?}, silent {silent:?}, random {random:?}, greedy {greedy:?}");
    assert!(talk[0] > 0.6 && random[0] < 0.3 && greedy[0] < 0.1);
    assert!(talk[2] < silent[2]);
    assert_eq!((silent[3], greedy[3]), (0.0, 0.0));
}

#[test]
fn a_budget_bounds_messages() {
    let played = play(&network(3, &json!({"content": "random"}), &json!({"budget": 3})));
    assert_eq!(metric(played.rounds.last().unwrap(), "messages"), 60.0);
}

#[test]
fn alone_on_a_channel_a_device_needs_no_more_than_the_noise_asks_for() {
    // Nobody is in reach of anybody else: power times gain is the target with its margin, times the noise.
    let world = json!({"density": 0.01, "reach": 1.2});
    let played = play(&network(5, &world, &json!({})));
    let place = played.society.interface().columns.iter().position(|column| &*column.name == "ratio").unwrap();
    for ratio in played.society.column(place) {
        assert!((ratio / (4.0 * 1.07) - 1.0).abs() < 1e-9, "{ratio}");
    }
    assert_eq!(metric(played.rounds.last().unwrap(), "kept"), 1.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (policy, says) in [(json!({"margin": 0.5}), "margin"), (json!({"moves": 2}), "moves")] {
        let found = refused(&network(1, &json!({}), &policy));
        assert!(found.contains(says), "{found}");
    }
}
