//! Learners of tasks whose solutions are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::{Experience, NONE, Replay, Seen};
use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::Machine;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_nn::Array;
use serde_json::{Value, json};

fn balancing(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "dqn", "epsilon_rounds": 300, "target_update": 100});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 3, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

#[test]
fn poles_are_balanced_by_those_who_look_ahead() {
    let reached = |more| metric(play(&balancing(2_000, &more)).rounds.last().unwrap(), "episode-return.mean");
    let learned = reached(json!({}));
    assert!(learned > 100.0, "{learned}");
    let blind = reached(json!({"discount": 0.0}));
    assert!(blind < 45.0, "{blind}");
}

#[test]
fn patches_and_their_experts_learn_too() {
    for experts in [json!(null), json!({"count": 2, "size": 32})] {
        let patches = json!({"hidden": [32], "patches": {"count": 2, "size": 16, "experts": experts}});
        let reached = metric(play(&balancing(1_500, &patches)).rounds.last().unwrap(), "episode-return.mean");
        assert!(reached > 80.0, "{reached}");
    }
    for (patches, told) in [
        (json!({"count": 3, "size": 4}), "4 numbers are seen"),
        (json!({"count": 0, "size": 4}), "patches.count"),
        (json!({"count": 2, "size": 0}), "patches.size"),
        (json!({"count": 2, "size": 4, "experts": {"count": 65, "size": 4}}), "patches.experts.count"),
        (json!({"count": 2, "size": 4, "experts": {"count": 2, "size": 0}}), "patches.experts.size"),
    ] {
        let error = refused(&balancing(10, &json!({"patches": patches})));
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_batch_is_drawn_from_rounds_and_what_came_after() {
    // In round t, agent a sees 10 t + a and chooses (t + a) mod 3; agent 7 has no turn in even rounds.
    let mut replay = Replay::default();
    for t in 0..6u32 {
        let agents = vec![2, 7];
        let number = |who: &u32| (10 * t + who) as f32;
        let seen = Seen {
            inputs: Array::column(agents.iter().map(number).collect()),
            rewards: agents.iter().map(|who| number(who) / 100.0).collect(),
            ended: vec![t == 3 || t == 5, false],
            cut: vec![t == 5, false],
            active: vec![true, t % 2 == 1],
            mask: Array::zeros(2, 3),
            agents,
        };
        let choice = |who: u32| if who == 7 && t % 2 == 0 { NONE } else { ((t + who) % 3) as u16 };
        replay.push(seen, vec![choice(2), choice(7)], true, 5);
    }
    assert_eq!((replay.decided(2), replay.decided(7), replay.decided(3)), (Some(1), Some(0), None));
    let batch = replay.batch(1_000, &mut Draws::new(1, Stream::Learner, 0, 0));
    assert!(batch.choices.len() > 300);
    for i in 0..batch.choices.len() {
        let (seen, then) = (batch.inputs.row(i)[0] as u32, batch.then.row(i)[0] as u32);
        let (t, who) = (seen / 10, seen % 10);
        assert!((1..4).contains(&t) && who == 2 && then == seen + 10, "{seen} {then}");
        assert_eq!((batch.choices[i], batch.ended[i]), ((t + who) % 3, t == 2));
        assert_eq!(batch.rewards[i], then as f32 / 100.0);
    }
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_is_named() {
    let mut society = open(&balancing(100, &json!({"learning_rate": 1e38})), &Inputs::default(), 1).unwrap();
    let error = loop {
        match society.poll(Vec::new()) {
            Ok(_) => assert!(society.next_round() < 99),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("of `dqn`") && error.contains("is not a finite number"), "{error}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [(json!({"observe": ["weather"]}), "observe"), (json!({"buffer_rounds": 1}), "buffer_rounds")] {
        let why = refused(&balancing(1, &more));
        assert!(why.contains(key), "{why}");
    }
}
