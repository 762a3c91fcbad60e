//! Returns by hand, and a task whose solution is known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Episodes, Played};
use crate::learning::{NONE, Seen, Step};
use crate::testing::{metric, play, refused};
use polity_nn::Array;
use serde_json::{Value, json};

fn seen(rewards: [f32; 2], ended: [bool; 2]) -> Seen {
    Seen {
        agents: vec![4, 9],
        inputs: Array::column(rewards.to_vec()),
        rewards: rewards.to_vec(),
        ended: ended.to_vec(),
        cut: vec![false; 2],
        active: vec![true; 2],
        mask: Array::zeros(2, 2),
    }
}

#[test]
fn returns_are_those_of_the_first_whole_episode_of_each_agent() {
    let mut episodes = Episodes::default();
    // Agent 4 is in an episode that began before; its first whole one has the rounds 1 and 2. That of agent 9 has the rounds 0 to 2, and it
    // has no turn in round 1.
    let rounds = [
        (seen([9.0, 9.0], [false, true]), [0, 1]),
        (seen([9.0, 1.0], [true, false]), [1, NONE]),
        (seen([2.0, 4.0], [false, false]), [0, 0]),
    ];
    for (seen, choices) in rounds {
        assert!(!episodes.note(&seen, 1));
        episodes.rollout.push(Step { seen, choices: choices.to_vec(), ..Step::default() });
    }
    let last = seen([8.0, 16.0], [true, true]);
    assert!(episodes.note(&last, 1));
    assert_eq!(episodes.parts.played().collect::<Vec<_>>(), [(4, 1, 3), (9, 0, 3)]);
    let played = Played::gather(&episodes.rollout, &episodes.parts, &last, 0.5);
    assert_eq!(played.choices, [0, 1, 0, 1]);
    assert_eq!(played.returns, [8.0, 2.0 + 0.5 * 8.0, 16.0, 1.0 + 4.0 + 0.5 * 16.0]);
}

fn balancing(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "reinforce"});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 32, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

#[test]
fn poles_are_balanced_by_those_who_look_ahead() {
    let reached = |more| metric(play(&balancing(4_000, &more)).rounds.last().unwrap(), "episode-return.mean");
    let learned = reached(json!({}));
    assert!(learned > 100.0, "{learned}");
    let blind = reached(json!({"discount": 0.0}));
    assert!(blind < 45.0, "{blind}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&balancing(1, &json!({"learning_rate": 0.0})));
    assert!(why.contains("learning_rate"), "{why}");
    let mut scenario = balancing(1, &json!({"reward": "own-score"}));
    scenario["world"] = json!({"kind": "dilemma"});
    let why = refused(&scenario);
    assert!(why.contains("dilemma"), "{why}");
}
