//! The dynamics against those of mpe2, episode by episode.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

#[test]
fn recorded_episodes_are_those_of_mpe2() {
    let replayed = replay("speaker-listener", include_str!("mpe2.jsonl"), 1e-9);
    assert!(replayed.steps == 150 && replayed.ends == 6 && replayed.rewarded > 100.0, "{replayed:?}");
}

/// Pairs whose listener goes to the landmark whose number, counted on by `shift`, it hears.
fn scenario(shift: usize, world: &Value) -> Value {
    let towards = |axis: &str| {
        let one = |word: usize| format!("heard_{word} * landmark_{}_{axis}", (word + shift) % 3);
        format!("{} + {} + {} - 0.4 * velocity_{axis}", one(0), one(1), one(2))
    };
    let (x, y) = (towards("x"), towards("y"));
    json!({"seed": 1, "rounds": 25, "agents": 400, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [
            {"act": "say-0", "when": "goal_red > 0.5"}, {"act": "say-1", "when": "goal_green > 0.5"},
            {"act": "say-2", "when": "goal_blue > 0.5"},
            {"act": "right", "when": format!("speaks == 0 and {x} > 0.1")},
            {"act": "left", "when": format!("speaks == 0 and {x} < -0.1")},
            {"act": "up", "when": format!("speaks == 0 and {y} > 0.1")},
            {"act": "down", "when": format!("speaks == 0 and {y} < -0.1")}]}}]})
}

#[test]
fn a_listener_that_knows_the_words_gets_there_and_one_that_mixes_them_up_does_not() {
    let reached = |shift| {
        let played = play(&scenario(shift, &json!({"kind": "speaker-listener"})));
        let last = played.rounds.last().unwrap();
        assert_eq!(metric(last, "refused"), 0.0);
        metric(last, "reached")
    };
    let (knows, mixed) = (reached(0), reached(1));
    assert!(knows > 0.5 && mixed < 0.1, "{knows} {mixed}");
}

#[test]
fn episodes_have_steps() {
    let why = refused(&scenario(0, &json!({"kind": "speaker-listener", "steps": 0})));
    assert!(why.contains("steps"), "{why}");
}
