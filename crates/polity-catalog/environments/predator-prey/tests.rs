//! The rules against those of the program of Böhmer and others, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_the_original() {
    let tape = include_str!("dcg.jsonl");
    let replayed = replay("predator-prey", tape, 0.0);
    assert!(replayed.steps == 60 && replayed.rewarded > 100.0, "{replayed:?}");
    assert!(tape.lines().any(|line| line.split("\"end\":").nth(1).unwrap().contains("\"there\":false")));
}

/// Two hunters on both sides of a prey, and one prey elsewhere.
fn begun() -> (polity_kernel::environment::Env, polity_kernel::environment::Episode) {
    let world = json!({"kind": "predator-prey", "hunters": 2, "prey": 2, "size": 5});
    let env = registry().make_env(&Node::from_json(&world)).unwrap();
    let mut episode = env.begin(&Item::default(), 1, 0);
    let animal = |x: u8, y: u8| json!({"at": {"x": x, "y": y}, "there": true});
    let state = json!({"hunters": [animal(1, 2), animal(3, 2)], "prey": [animal(2, 2), animal(4, 4)],
        "luck": {"hunters": [0, 1], "prey": [0, 1], "ways": [0, 0]}, "steps": 0});
    episode.begin_from(&state).unwrap();
    (env, episode)
}

/// Lets the seats that are named catch, and the others stay; returns what all get.
fn step(catching: &[u32]) -> (f64, bool, Value) {
    let (_, mut episode) = begun();
    let moves: Vec<_> = (0..2)
        .map(|seat| {
            let name = if catching.contains(&seat) { "catch" } else { "stay" };
            let offered = episode.offered(seat).unwrap();
            offered.iter().find(|offer| offer.name == name).unwrap().with(seat, Vec::new())
        })
        .collect();
    let result = episode.step(&moves).unwrap();
    assert_eq!(result.rewards[0], result.rewards[1]);
    (result.rewards[0], result.done, episode.state().unwrap())
}

#[test]
fn two_hunters_catch_and_one_is_punished() {
    let (got, done, state) = step(&[0, 1]);
    // Both hunters have left, so the episode ends.
    assert!(got == 10.0 && done && state["prey"][0]["there"] == false && state["prey"][1]["there"] == true);
    for alone in [0, 1] {
        let (got, done, state) = step(&[alone]);
        assert!(got == -2.0 && !done && state["prey"][0]["there"] == true, "{state}");
        // The ways to the right and to the left are taken, so the first free one is down.
        assert_eq!(state["prey"][0]["at"], json!({"x": 2, "y": 3}));
    }
    assert_eq!(step(&[]).0, 0.0);
}

#[test]
fn prey_takes_each_way_as_often() {
    let world = json!({"kind": "predator-prey", "hunters": 1, "prey": 1, "size": 5});
    let env = registry().make_env(&Node::from_json(&world)).unwrap();
    let mut counts = [0; 4];
    for index in 0..4_000 {
        let mut episode = env.begin(&Item::default(), 3, index);
        let mut state = episode.state().unwrap();
        state["hunters"][0]["at"] = json!({"x": 0, "y": 0});
        state["prey"][0]["at"] = json!({"x": 2, "y": 2});
        episode.begin_from(&state).unwrap();
        episode.step(&[]).unwrap();
        let at = &episode.state().unwrap()["prey"][0]["at"];
        let ways = [json!({"x": 3, "y": 2}), json!({"x": 2, "y": 3}), json!({"x": 1, "y": 2}), json!({"x": 2, "y": 1})];
        counts[ways.iter().position(|way| way == at).unwrap()] += 1;
    }
    assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
}

#[test]
fn states_that_cannot_be_are_refused() {
    let (_, mut episode) = begun();
    let mut state = episode.state().unwrap();
    state["luck"]["hunters"] = json!([0, 0]);
    assert!(episode.begin_from(&state).unwrap_err().contains("order"));
    state["luck"]["hunters"] = json!([1, 0]);
    state["prey"][0]["at"]["x"] = json!(5);
    assert!(episode.begin_from(&state).unwrap_err().contains("less than 5"));
}

fn scenario(catching: bool, world: &Value) -> Value {
    let may = if catching { "may_catch == 1" } else { "may_catch == 2" };
    json!({"seed": 1, "rounds": 100, "agents": 80, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "state": {"way": 0}, "update": {"way": "floor(uniform(0, 4))"},
            "actions": [{"act": "catch", "when": may},
                {"act": "right", "when": "way == 0 and may_right == 1"}, {"act": "down", "when": "way == 1 and may_down == 1"},
                {"act": "left", "when": "way == 2 and may_left == 1"}, {"act": "up", "when": "way == 3 and may_up == 1"},
                {"act": "stay"}]}}]})
}

#[test]
fn hunters_that_always_try_gain_without_a_penalty_and_lose_with_one() {
    let got = |catching, penalty: f64| {
        let played = play(&scenario(catching, &json!({"kind": "predator-prey", "penalty": penalty})));
        played.rounds.iter().map(|round| metric(round, "mean-reward")).sum::<f64>()
    };
    let (free, punished, idle) = (got(true, 0.0), got(true, 2.0), got(false, 2.0));
    assert!(free > 10.0 && punished < free - 10.0 && idle == 0.0, "{free} {punished} {idle}");
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in
        [("size", 3), ("hunters", 0), ("prey", 0), ("needed", 5), ("penalty", -1), ("sight", 0), ("steps", 0)]
    {
        let mut world = json!({"kind": "predator-prey"});
        world[key] = json!(value);
        let why = refused(&scenario(true, &world));
        assert!(why.contains(key), "{why}");
    }
    let why = refused(&scenario(true, &json!({"kind": "predator-prey", "size": 4})));
    assert!(why.contains("half of the cells"), "{why}");
}
