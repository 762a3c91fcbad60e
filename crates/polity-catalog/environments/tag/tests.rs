//! The dynamics against those of mpe2, episode by episode.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{CHASER, RUNNER, beyond};
use crate::tape::replay;
use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

#[test]
fn recorded_episodes_are_those_of_mpe2() {
    let replayed = replay("tag", include_str!("mpe2.jsonl"), 1e-9);
    assert!(replayed.steps == 150 && replayed.ends == 6 && replayed.rewarded > 200.0, "{replayed:?}");
}

#[test]
fn runners_are_faster_and_lose_beyond_the_field() {
    assert!(RUNNER.top_speed > CHASER.top_speed && RUNNER.radius < CHASER.radius);
    assert_eq!((beyond(0.5), beyond(-0.5)), (0.0, 0.0));
    assert!((beyond(-0.95) - 0.5).abs() < 1e-12 && (beyond(1.0) - 1.0).abs() < 1e-12);
    assert_eq!(beyond(9.0), 10.0);
}

fn scenario(actions: &Value, world: &Value) -> Value {
    json!({"seed": 1, "rounds": 25, "agents": 400, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": actions}}]})
}

#[test]
fn chasers_that_push_towards_a_runner_that_stays_catch_it() {
    let hunt = json!([
        {"act": "right", "when": "chases == 1 and other_2_x > abs(other_2_y)"},
        {"act": "left", "when": "chases == 1 and -other_2_x > abs(other_2_y)"},
        {"act": "up", "when": "chases == 1 and other_2_y > abs(other_2_x)"},
        {"act": "down", "when": "chases == 1 and -other_2_y > abs(other_2_x)"}]);
    let caught = |actions: &Value| {
        let played = play(&scenario(actions, &json!({"kind": "tag"})));
        played.rounds.iter().map(|round| metric(round, "catches")).sum::<f64>()
    };
    let (hunting, idle) = (caught(&hunt), caught(&json!([{"act": "stay"}])));
    assert!(hunting > 5.0 && idle < 1.5, "{hunting} {idle}");
}

#[test]
fn wrong_parameters_are_refused() {
    for key in ["chasers", "runners", "steps"] {
        let mut world = json!({"kind": "tag"});
        world[key] = json!(0);
        let why = refused(&scenario(&json!([{"act": "stay"}]), &world));
        assert!(why.contains(key), "{why}");
    }
    let why = refused(&scenario(&json!([{"act": "stay"}]), &json!({"kind": "tag", "obstacles": 21})));
    assert!(why.contains("obstacles"), "{why}");
}
