//! The rules against those of the first Neural MMO, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::environment::Episode;
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_the_original() {
    let replayed = replay("neural-mmo", include_str!("original.jsonl"), 0.0);
    assert!(replayed.steps >= 9_900 && replayed.rewarded > 30_000.0, "{replayed:?}");
}

fn episode(world: &Value) -> Episode {
    let mut world = world.clone();
    world["kind"] = json!("neural-mmo");
    registry().make_env(&Node::from_json(&world)).unwrap().begin(&Item::default(), 1, 0)
}

/// Takes a step: a move of each seat by name.
fn take(episode: &mut Episode, moves: &[(u32, &str)]) {
    let made = moves.iter().map(|(seat, name)| {
        let offered = episode.offered(*seat).unwrap();
        offered.iter().find(|offer| offer.name == *name).unwrap().with(*seat, Vec::new())
    });
    let made: Vec<_> = made.collect();
    episode.step(&made).unwrap();
}

/// Returns how many of the cells have a tile.
fn many(state: &Value, tile: &str) -> usize {
    state["tiles"].as_array().unwrap().iter().filter(|found| *found == tile).count()
}

#[test]
fn drawn_maps_differ_and_have_the_same_shares_of_tiles() {
    let env = registry().make_env(&Node::from_json(&json!({"kind": "neural-mmo", "size": 24}))).unwrap();
    let maps: Vec<Value> = (0..4).map(|index| env.begin(&Item::default(), 1, index).state().unwrap()).collect();
    for map in &maps {
        // 20 times 20 cells inside the ring.
        assert_eq!(["x", "o", "w", ".", "f", "s"].map(|tile| many(map, tile)), [92, 84, 60, 180, 100, 60]);
    }
    assert!(maps.windows(2).all(|pair| pair[0]["tiles"] != pair[1]["tiles"]));
    // Tiles form patches: those beside each other are alike more often than the 30 % of tiles without order.
    let alike = |map: &Value| {
        let tiles = map["tiles"].as_array().unwrap();
        let inner = (2..22).flat_map(|y| (2..21).map(move |x| y * 24 + x));
        inner.filter(|i| tiles[*i] == tiles[i + 1]).count() as f64 / 380.0
    };
    assert!(maps.iter().all(|map| alike(map) > 0.5), "{:?}", maps.iter().map(alike).collect::<Vec<_>>());
}

#[test]
fn food_grows_again_after_40_steps_on_average_and_lives_begin_anywhere() {
    let world = json!({"kind": "neural-mmo", "map": ["ooo", "ooo", "ooo", "fff"], "players": 1});
    let env = registry().make_env(&Node::from_json(&world)).unwrap();
    let (mut grown, mut starts) = ([0; 3], [0; 9]);
    for index in 0..8_000 {
        let mut episode = env.begin(&Item::default(), 1, index);
        let mut state = episode.state().unwrap();
        starts[state["luck"][0][0][0].as_u64().unwrap() as usize] += 1;
        state["bare"] = json!([[9, 10, 11]]);
        episode.begin_from(&state).unwrap();
        take(&mut episode, &[(0, "stay")]);
        let bare = episode.state().unwrap()["bare"][0].clone();
        (0..3).filter(|i| !bare.as_array().unwrap().contains(&json!(9 + i))).for_each(|i| grown[i] += 1);
    }
    // 200 of 8,000, and 889 of 8,000, give or take four standard deviations.
    assert!(grown.iter().all(|n| i32::abs(n - 200) < 56), "{grown:?}");
    assert!(starts.iter().all(|n| i32::abs(n - 889) < 113), "{starts:?}");
}

#[test]
fn servers_are_apart_until_they_merge() {
    let map = ["oooo", "offo", "oooo"];
    let world = json!({"map": map, "players": 4, "populations": 2, "servers": [1, 3], "merge": 6, "sight": 3});
    let mut episode = episode(&world);
    // A life begins on each server in each step, of the seat that has waited longest.
    let order = |episode: &Episode| episode.state().unwrap()["order"].clone();
    let mut state = episode.state().unwrap();
    let first = state["players"][0].clone();
    (state["players"], state["lives"]) = (json!([first, first, null, null]), json!([1, 1, 0, 0]));
    (state["order"], state["waiting"]) = (json!([0, 1]), json!([2, 3]));
    episode.begin_from(&state).unwrap();
    take(&mut episode, &[]);
    assert_eq!(order(&episode), json!([0, 1, 2]));
    take(&mut episode, &[]);
    assert_eq!(order(&episode), json!([0, 1, 2, 3]));
    // They stand in the same forest. Each server has food of its own, and agents see and attack those on their own server.
    let mut state = episode.state().unwrap();
    for seat in 0..4 {
        state["players"][seat]["at"] = json!({"x": 1, "y": 1});
    }
    state["luck"] = json!([[[0], []], [[0], []]]);
    episode.begin_from(&state).unwrap();
    let names = |episode: &Episode, seat| {
        episode.offered(seat).unwrap().into_iter().map(|offer| offer.name).collect::<Vec<_>>()
    };
    assert!(!names(&episode, 0).contains(&"melee".to_owned()) && names(&episode, 1).contains(&"melee".to_owned()));
    take(&mut episode, &[]);
    let state = episode.state().unwrap();
    assert_eq!(state["bare"], json!([[5], [5]]));
    let food: Vec<_> = (0..4).map(|seat| state["players"][seat]["food"].clone()).collect();
    assert_eq!(food, [31, 31, 30, 31].map(|food| json!(food)));
    take(&mut episode, &[]);
    assert_eq!(episode.state().unwrap()["lives"], json!([1, 1, 1, 1]));
    take(&mut episode, &[]);
    take(&mut episode, &[]);
    let state = episode.state().unwrap();
    assert_eq!((&state["order"], &state["lives"]), (&json!([]), &json!([0, 0, 0, 0])));
    assert_eq!((&state["died"], &state["bare"]), (&json!([true, true, true, true]), &json!([[], []])));
    let waiting = state["waiting"].as_array().unwrap().clone();
    for alive in 1..=3 {
        take(&mut episode, &[]);
        assert_eq!(order(&episode), json!(waiting[..alive]));
    }
    let mut state = episode.state().unwrap();
    let alive: Vec<usize> = (0..4).filter(|seat| !state["players"][*seat].is_null()).collect();
    for seat in &alive {
        state["players"][seat]["at"] = json!({"x": 1, "y": 1});
    }
    episode.begin_from(&state).unwrap();
    assert!(alive.iter().all(|seat| names(&episode, *seat as u32).contains(&"melee".to_owned())));
}

fn scenario(world: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("neural-mmo");
    json!({"seed": 1, "rounds": 60, "agents": 32, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [
            {"act": "up", "when": "chance(0.25)"}, {"act": "down", "when": "chance(0.33)"},
            {"act": "left", "when": "chance(0.5)"}, {"act": "right"}]}}],
        "metrics": [{"kind": "mean", "of": "lifetime"}, {"kind": "mean", "of": "alive"}, {"kind": "mean", "of": "region"}]})
}

#[test]
fn lifetimes_count_all_lives() {
    let played = play(&scenario(&json!({"size": 8, "players": 8})));
    let last = played.rounds.last().unwrap();
    let (lifetime, alive) = (metric(last, "lifetime.mean"), metric(last, "alive.mean"));
    assert!(lifetime > 3.0 && lifetime < 40.0 && alive > 0.2 && alive <= 1.0, "{lifetime} {alive}");
    assert!(metric(last, "region.mean") > 0.0 && metric(last, "region.mean") <= 16.0);
}

#[test]
fn wrong_parameters_and_states_are_refused() {
    let cases = [
        (json!({"map": ["o"]}), "3 to 64 rows"),
        (json!({"map": ["o", "o", "o"]}), "3 to 64 columns"),
        (json!({"map": ["ooo", "oo", "ooo"]}), "lengths"),
        (json!({"map": ["ooo", "o?o", "ooo"]}), "`?`"),
        (json!({"map": ["...", "...", "..."]}), "`o`"),
        (json!({"size": 7}), "size"),
        (json!({"players": 0}), "players"),
        (json!({"players": 16, "populations": 3}), "16 players"),
        (json!({"players": 16, "populations": 0}), "populations"),
        (json!({"players": 16, "servers": [8, 4]}), "servers"),
        (json!({"players": 16, "servers": [16, 0]}), "servers"),
        (json!({"sight": 8}), "sight"),
        (json!({"births": 0}), "births"),
        (json!({"steps": 0}), "steps"),
        (json!({"width": 3}), "width"),
    ];
    for (world, expected) in cases {
        let why = refused(&scenario(&world));
        assert!(why.contains(expected), "{expected}: {why}");
    }
    let mut episode = episode(&json!({"map": ["ooo", "ofw", "ooo"], "players": 2, "steps": 10}));
    let state = episode.state().unwrap();
    let first = &state["order"][0];
    let (at, food) = (format!("/players/{first}/at"), format!("/players/{first}/food"));
    let cases = [
        ("/bare", json!([[], []]), "servers"),
        ("/tiles/0", json!("f"), "the map"),
        ("/order", json!([]), "`order`"),
        ("/waiting", json!([]), "`order`"),
        ("/bare/0", json!([5]), "forests"),
        ("/luck/0/1", json!([4, 4]), "forests"),
        ("/luck/0/0", json!([9]), "passable"),
        ("/luck/0/0", json!([0, 0]), "passable"),
        (at.as_str(), json!({"x": 2, "y": 1}), "passable"),
        (food.as_str(), json!(33), "food"),
        ("/steps", json!(10), "steps"),
    ];
    for (path, value, expected) in cases {
        let mut wrong = state.clone();
        *wrong.pointer_mut(path).unwrap() = value;
        let why = episode.begin_from(&wrong).unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
    }
}
