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

#[test]
fn cohorts_can_take_seats_of_every_episode() {
    let chase = json!([
        {"act": "right", "when": "other_2_x > abs(other_2_y)"},
        {"act": "left", "when": "-other_2_x > abs(other_2_y)"},
        {"act": "up", "when": "other_2_y > abs(other_2_x)"},
        {"act": "down", "when": "-other_2_y > abs(other_2_x)"}]);
    let flee = json!([{"act": "left", "when": "x > 0"}, {"act": "right"}]);
    let together: Vec<Value> = [("== 1", &chase), ("== 0", &flee)]
        .iter()
        .flat_map(|(role, acts)| acts.as_array().unwrap().iter().map(move |act| (role, act)))
        .map(|(role, act)| {
            let when = act["when"].as_str().unwrap_or("true");
            json!({"act": act["act"], "when": format!("chases {role} and {when}")})
        })
        .collect();
    let one = scenario(&json!(together), &json!({"kind": "tag"}));
    let mut two = one.clone();
    two["cohorts"] = json!([
        {"seats": 3, "policy": {"kind": "rule", "actions": chase}},
        {"seats": 1, "policy": {"kind": "rule", "actions": flee}}]);
    let (one, two) = (play(&one), play(&two));
    for (one, two) in one.rounds.iter().zip(&two.rounds) {
        assert_eq!(metric(one, "catches").to_bits(), metric(two, "catches").to_bits());
    }
    assert!(two.rounds.iter().map(|round| metric(round, "catches")).sum::<f64>() > 1.0);

    let mut wrong = scenario(&json!([{"act": "stay"}]), &json!({"kind": "tag"}));
    let policy = json!({"kind": "noise"});
    for (cohorts, why) in [
        (json!([{"seats": 3, "policy": policy}]), "has 4 seats, and the cohorts take 3"),
        (json!([{"seats": 3, "policy": policy}, {"policy": policy}]), "each takes 1 to"),
        (json!([{"seats": 3, "policy": policy}, {"seats": 1, "share": 0.5, "policy": policy}]), "its seats decide"),
        (json!([{"seats": 3, "policy": policy}, {"seats": 2, "policy": policy}]), "do not fill a whole number"),
    ] {
        wrong["agents"] = json!(24);
        wrong["cohorts"] = cohorts;
        let message = refused(&wrong);
        assert!(message.contains(why), "{message}");
    }
    let mut no_episodes = wrong;
    no_episodes["world"] = json!({"kind": "opinion"});
    no_episodes["cohorts"] = json!([{"seats": 1, "policy": policy}]);
    let message = refused(&no_episodes);
    assert!(message.contains("no episodes with seats"), "{message}");
}
