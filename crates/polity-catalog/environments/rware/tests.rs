//! The rules against those of rware, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{refused, registry};
use polity_kernel::environment::Episode;
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_rware() {
    let replayed = replay("rware", include_str!("rware.jsonl"), 0.0);
    assert!(replayed.steps > 150 && replayed.rewarded >= 2.0, "{replayed:?}");
}

fn episode(rewards: &str) -> Episode {
    let world = json!({"kind": "rware", "rewards": rewards, "robots": 2, "requests": 1});
    registry().make_env(&Node::from_json(&world)).unwrap().begin(&Item::default(), 1, 0)
}

/// Takes steps of the first robot, given as letters: f(orward), l(eft), r(ight), t(oggle), w(ait). Returns what both got.
fn take(episode: &mut Episode, steps: &str) -> [f64; 2] {
    let mut got = [0.0; 2];
    for letter in steps.chars() {
        let offered = episode.offered(0).unwrap();
        let offer = offered.iter().find(|offer| offer.name.starts_with(letter)).unwrap();
        let rewards = episode.step(&[offer.with(0, Vec::new())]).unwrap().rewards;
        got.iter_mut().zip(rewards).for_each(|(sum, reward)| *sum += reward);
    }
    got
}

#[test]
fn a_shelf_that_is_asked_for_is_brought_to_the_station_and_back() {
    for (rewards, delivered, returned) in
        [("individual", [1.0, 0.0], [0.0; 2]), ("global", [1.0; 2], [0.0; 2]), ("two-stage", [0.5, 0.0], [0.5, 0.0])]
    {
        let mut episode = episode(rewards);
        let mut state = episode.state().unwrap();
        // Under the shelf at the lower end of the block beside the lane to the stations, which are in row 10 (the last one), columns 4 and 5.
        let shelf = state["shelves"].as_array().unwrap().iter().position(|at| *at == json!({"x": 2, "y": 8})).unwrap();
        state["robots"] = json!([
            {"at": {"x": 2, "y": 8}, "facing": 1, "carries": null, "delivered": false},
            {"at": {"x": 9, "y": 0}, "facing": 0, "carries": null, "delivered": false}]);
        state["requests"] = json!([shelf]);
        episode.begin_from(&state).unwrap();
        assert_eq!(take(&mut episode, "tfflff"), delivered, "{rewards} {}", episode.state().unwrap());
        let now = episode.state().unwrap();
        assert!(now["requests"] != json!([shelf]) && now["robots"][0]["carries"] == json!(shelf));
        // A lane is no place for a shelf.
        assert_eq!(take(&mut episode, "t"), [0.0; 2]);
        assert_eq!(take(&mut episode, "llffrfft"), returned, "{rewards} {}", episode.state().unwrap());
        assert_eq!(episode.state().unwrap()["robots"][0]["carries"], Value::Null);
    }
}

#[test]
fn a_robot_passes_under_shelves_only_without_one() {
    let mut episode = episode("individual");
    let mut state = episode.state().unwrap();
    state["robots"][0] = json!({"at": {"x": 1, "y": 1}, "facing": 3, "carries": null, "delivered": false});
    state["robots"][1]["at"] = json!({"x": 9, "y": 10});
    episode.begin_from(&state).unwrap();
    take(&mut episode, "f");
    assert_eq!(episode.state().unwrap()["robots"][0]["at"]["x"], 2);
    take(&mut episode, "rrtf");
    assert_eq!(episode.state().unwrap()["robots"][0]["at"]["x"], 2);
    state["robots"][1]["at"] = json!({"x": 1, "y": 1});
    assert!(episode.begin_from(&state).unwrap_err().contains("of their own"));
}

#[test]
fn wrong_parameters_are_refused() {
    let cases = [
        ("shelf_rows", 0),
        ("shelf_columns", 2),
        ("column_height", 0),
        ("robots", 0),
        ("requests", 0),
        ("sight", 0),
        ("steps", 0),
    ];
    for (key, value) in cases {
        let mut world = json!({"kind": "rware"});
        world[key] = json!(value);
        let why = refused(&json!({"seed": 1, "rounds": 1, "agents": 2, "topology": {"kind": "none"}, "world": world,
            "cohorts": [{"policy": {"kind": "noise"}}]}));
        assert!(why.contains(&key.replace('_', "-")) || why.contains(key), "{why}");
    }
}
