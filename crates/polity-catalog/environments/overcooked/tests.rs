//! The rules against those of overcooked_ai, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{refused, registry};
use polity_kernel::environment::Episode;
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_overcooked_ai() {
    let tape = include_str!("overcooked-ai.jsonl");
    let replayed = replay("overcooked", tape, 0.0);
    assert!(replayed.steps == 400 && replayed.rewarded > 200.0, "{replayed:?}");
}

/// Directions and places at the start are JaxMARL's, and so is a pot that cooks by itself.
#[test]
fn recorded_steps_are_those_of_jaxmarl() {
    let replayed = replay("overcooked", include_str!("jaxmarl.jsonl"), 0.0);
    assert!(replayed.steps == 400 && replayed.rewarded > 100.0, "{replayed:?}");
}

#[test]
fn a_pot_cooks_by_itself_once_it_is_full() {
    let mut episode = episode(&json!({"kind": "overcooked", "cooking": 5, "self_cooking": true}));
    take(&mut episode, "-s n- w- i- e- n- i- w- w- i- e- n- i-");
    // Two onions cannot be cooked.
    take(&mut episode, "i- i-");
    let pot = |episode: &Episode| episode.state().unwrap()["things"][2]["Soup"].clone();
    assert_eq!(pot(&episode), json!({"onions": 2, "cooked": null}));
    take(&mut episode, "w- w- i- e- n- i-");
    assert_eq!(pot(&episode), json!({"onions": 3, "cooked": 1}));
    take(&mut episode, "-- -- -- -- --");
    assert_eq!(pot(&episode), json!({"onions": 3, "cooked": 5}));
}

fn episode(world: &Value) -> Episode {
    registry().make_env(&Node::from_json(world)).unwrap().begin(&Item::default(), 1, 0)
}

/// Takes steps, given as two letters each: n, s, e, w, i (interact) and - (nothing), of both cooks. Returns the rewards of all steps.
fn take(episode: &mut Episode, steps: &str) -> [f64; 2] {
    let mut got = [0.0; 2];
    for pair in steps.split_whitespace() {
        let mut moves = Vec::new();
        for (seat, letter) in (0u32..).zip(pair.chars()).filter(|(_, letter)| *letter != '-') {
            let offered = episode.offered(seat).unwrap();
            let offer = offered.iter().find(|offer| offer.name.starts_with(letter)).unwrap();
            moves.push(offer.with(seat, Vec::new()));
        }
        let rewards = episode.step(&moves).unwrap().rewards;
        got.iter_mut().zip(rewards).for_each(|(sum, reward)| *sum += reward);
    }
    got
}

#[test]
fn a_soup_of_three_onions_pays_and_one_of_less_does_not() {
    // Cook 0 begins at (1, 2), the onions are at (0, 1), the pot at (2, 0), dishes at (1, 3), the window at (3, 3).
    for (onions, pays) in [(3, 20.0), (2, 0.0)] {
        let mut episode = episode(&json!({"kind": "overcooked", "cooking": 5, "shaping": 1}));
        // The other cook makes room.
        take(&mut episode, "-s n-");
        let mut shaped = 0.0;
        for _ in 0..onions {
            shaped += take(&mut episode, "w- i- e- n- i- w-")[0];
        }
        assert_eq!(shaped, 3.0 * f64::from(onions));
        // It lets the pot cook, and takes a dish while it does: 3.
        assert_eq!(take(&mut episode, "e- n- i- w- s- s- i-"), [3.0, 0.0]);
        // It takes the soup: 5. Then it goes to the window, with the other cook out of its way.
        assert_eq!(take(&mut episode, "n- e- n- i-"), [5.0, 0.0]);
        assert_eq!(take(&mut episode, "-n s- e- s- i-"), [pays, pays], "{}", episode.state().unwrap());
        assert_eq!(episode.state().unwrap()["served"], json!(u32::from(pays > 0.0)));
    }
}

#[test]
fn cooks_who_would_meet_or_change_places_only_turn() {
    let cook = |x: u8, facing: u8| json!({"at": {"x": x, "y": 1}, "facing": facing, "holds": null});
    let state = |a: u8, b: u8| json!({"cooks": [cook(a, 0), cook(b, 0)], "things": vec![Value::Null; 20], "served": 0, "steps": 0});
    for (a, b, steps, expected) in
        [(1, 3, "ew", (1, 3)), (1, 2, "ew", (1, 2)), (1, 2, "ee", (2, 3)), (2, 3, "e-", (2, 3))]
    {
        let mut episode = episode(&json!({"kind": "overcooked"}));
        episode.begin_from(&state(a, b)).unwrap();
        take(&mut episode, steps);
        let now = episode.state().unwrap();
        assert_eq!(
            (&now["cooks"][0]["at"]["x"], &now["cooks"][1]["at"]["x"]),
            (&json!(expected.0), &json!(expected.1))
        );
        assert_eq!(now["cooks"][0]["facing"], 2);
    }
    let mut episode = episode(&json!({"kind": "overcooked"}));
    assert!(episode.begin_from(&state(0, 2)).unwrap_err().contains("floor"));
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in
        [("layout", json!("large-room")), ("steps", json!(0)), ("cooking", json!(0)), ("shaping", json!(-1))]
    {
        let mut world = json!({"kind": "overcooked"});
        world[key] = value;
        let why = refused(&json!({"seed": 1, "rounds": 1, "agents": 2, "topology": {"kind": "none"}, "world": world,
            "cohorts": [{"policy": {"kind": "noise"}}]}));
        assert!(why.contains(key), "{why}");
    }
}
