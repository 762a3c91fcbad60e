//! The rules against those of lbforaging, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_episodes_are_those_of_lbforaging() {
    let replayed = replay("lbf", include_str!("lbforaging.jsonl"), 0.0);
    assert!(replayed.steps > 150 && replayed.ends >= 2 && replayed.rewarded > 10.0, "{replayed:?}");
}

/// The levels of players, and the place and the level of each piece of food.
type Drawn = (Vec<u64>, Vec<(usize, u64)>);

/// Draws a thousand fields.
fn fields(world: &Value) -> Vec<Drawn> {
    let env = registry().make_env(&Node::from_json(world)).unwrap();
    let one = |index| {
        let state = env.begin(&Item::default(), 5, index).state().unwrap();
        let players = state["players"].as_array().unwrap().iter().map(|one| one["level"].as_u64().unwrap()).collect();
        let food = state["food"].as_array().unwrap().iter().map(|level| level.as_u64().unwrap()).enumerate();
        (players, food.filter(|(_, level)| *level > 0).collect())
    };
    (0..1_000).map(one).collect()
}

#[test]
fn levels_are_drawn_evenly_and_food_has_room() {
    let (mut high, mut food) = (0, 0);
    for (players, pieces) in fields(&json!({"kind": "lbf"})) {
        assert!(players.len() == 2 && pieces.len() == 3);
        high += players.iter().filter(|level| **level == 2).count();
        let most = players.iter().sum::<u64>();
        for (i, (cell, level)) in pieces.iter().enumerate() {
            let (x, y) = (cell % 8, cell / 8);
            assert!((1..7).contains(&x) && (1..7).contains(&y) && *level <= most);
            food += usize::from(*level == most);
            for (other, _) in &pieces[i + 1..] {
                assert!((other % 8).abs_diff(x) + (other / 8).abs_diff(y) > 2);
            }
        }
    }
    // Half of the levels are 2. Of food a half, a third or a quarter is as heavy as it can be, by the levels of the two.
    assert!((900..1_100).contains(&high), "{high}");
    let expected = 3_000.0 * (0.25 / 2.0 + 0.5 / 3.0 + 0.25 / 4.0);
    assert!((food as f64 / expected - 1.0).abs() < 0.1, "{food}, not {expected}");
    let together = fields(&json!({"kind": "lbf", "cooperative": true, "players": 4}));
    for (mut players, pieces) in together {
        players.sort_unstable();
        assert!(pieces.iter().all(|(_, level)| *level == players[..3].iter().sum::<u64>()));
    }
}

fn scenario(load: &str, world: &Value) -> Value {
    json!({"seed": 1, "rounds": 50, "agents": 6_000, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [
            {"act": load, "when": "abs(food_0_x - player_0_x) + abs(food_0_y - player_0_y) == 1"},
            {"act": "south", "when": "food_0_y > player_0_y + 1"}, {"act": "north", "when": "food_0_y < player_0_y - 1"},
            {"act": "east", "when": "food_0_x > player_0_x"}, {"act": "west", "when": "food_0_x < player_0_x"},
            {"act": "south", "when": "food_0_y > player_0_y"}, {"act": "north", "when": "food_0_y < player_0_y"}]}}],
        "metrics": [{"kind": "mean", "of": "return"}]})
}

/// The mean return of 50 steps is that of lbforaging with the same rule, which is measured on as many fields: 0.2515, with a standard error
/// of 0.006 (`scripts/peers/worlds.py foragers`).
#[test]
fn a_rule_that_walks_to_food_earns_what_it_earns_in_lbforaging() {
    let got = |load| {
        let played = play(&scenario(load, &json!({"kind": "lbf"})));
        played.rounds.iter().map(|round| metric(round, "mean-reward")).sum::<f64>()
    };
    let (loading, idle) = (got("load"), got("none"));
    assert!((loading - 0.2515).abs() < 4.0 * 0.006 * 2f64.sqrt() && idle == 0.0, "{loading} {idle}");
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in [("size", 4), ("players", 0), ("food", 0), ("top_level", 0), ("steps", 0), ("penalty", -1)] {
        let mut world = json!({"kind": "lbf"});
        world[key] = json!(value);
        let why = refused(&scenario("load", &world));
        assert!(why.contains(&key.replace('_', "-")) || why.contains(key), "{why}");
    }
}
