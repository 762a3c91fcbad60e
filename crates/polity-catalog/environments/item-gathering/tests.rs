//! The rules against those of MOMAland, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::environment::Episode;
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_momaland() {
    let replayed = replay("item-gathering", include_str!("momaland.jsonl"), 0.0);
    assert!(replayed.steps >= 10_000 && replayed.ends > 200 && replayed.rewarded > 1_000.0, "{replayed:?}");
}

fn episode(world: &Value) -> Episode {
    let mut world = world.clone();
    world["kind"] = json!("item-gathering");
    registry().make_env(&Node::from_json(&world)).unwrap().begin(&Item::default(), 1, 0)
}

/// Takes a step, with a letter for each agent: u(p), d(own), l(eft), r(ight), s(tay), or - for no move. Returns whether the episode has
/// ended.
fn take(episode: &mut Episode, letters: &str) -> bool {
    let mut moves = Vec::new();
    for (seat, letter) in (0..).zip(letters.chars()).filter(|(_, letter)| *letter != '-') {
        let offered = episode.offered(seat).unwrap();
        moves.push(offered.iter().find(|offer| offer.name.starts_with(letter)).unwrap().with(seat, Vec::new()));
    }
    episode.step(&moves).unwrap().done
}

/// Returns the column and the row of each agent.
fn places(episode: &Episode) -> Vec<(u64, u64)> {
    let state = episode.state().unwrap();
    let place = |at: &Value| (at["x"].as_u64().unwrap(), at["y"].as_u64().unwrap());
    state["agents"].as_array().unwrap().iter().map(place).collect()
}

/// Takes a step from the start of a map, with luck. Returns where the agents are then.
fn step(map: &Value, luck: &[f64], letters: &str) -> Vec<(u64, u64)> {
    let mut episode = episode(&json!({"map": map}));
    let mut state = episode.state().unwrap();
    state["luck"] = luck.iter().map(|first| json!([first, 0.0])).collect();
    episode.begin_from(&state).unwrap();
    take(&mut episode, letters);
    places(&episode)
}

#[test]
fn one_agent_wins_a_cell_that_several_want() {
    // The second challenges the first, and the third who has won.
    let map = json!(["@.@", ".@1"]);
    assert_eq!(step(&map, &[0.5, 0.5, 0.5], "rlu"), [(1, 0), (2, 0), (1, 1)]);
    assert_eq!(step(&map, &[0.5, 0.0, 0.5], "rlu"), [(0, 0), (1, 0), (1, 1)]);
    assert_eq!(step(&map, &[0.0, 0.5, 0.0], "rlu"), [(0, 0), (2, 0), (1, 0)]);
    // An agent cannot enter the cell of an agent who stays. Those behind go back as well.
    assert_eq!(step(&json!(["@@@.1"]), &[0.0, 0.0, 0.0], "rrs"), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(step(&json!(["@@@.1"]), &[0.0, 0.0, 0.0], "rr-"), [(0, 0), (1, 0), (2, 0)]);
    // The loser of a fight takes its own cell back.
    assert_eq!(step(&json!(["@@.@1"]), &[0.5, 0.5, 0.0], "rrl"), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(step(&json!(["@@.@1"]), &[0.5, 0.5, 0.5], "rrl"), [(1, 0), (2, 0), (3, 0)]);
    // Agents in a row can move in the same step, two can swap places, and agents cannot leave the field.
    assert_eq!(step(&json!(["@@@.1"]), &[0.0, 0.0, 0.0], "rrr"), [(1, 0), (2, 0), (3, 0)]);
    assert_eq!(step(&json!(["@@1"]), &[0.0, 0.0], "rl"), [(1, 0), (0, 0)]);
    assert_eq!(step(&json!(["@@1"]), &[0.0, 0.0], "ud"), [(0, 0), (1, 0)]);
}

#[test]
fn items_are_gathered_by_one_agent_or_for_the_team() {
    for (team, got) in [(false, json!([0, 1, 1, 0])), (true, json!([1, 1, 1, 1]))] {
        let mut episode = episode(&json!({"map": ["@2.1@", "..1.."], "team": team, "steps": 3}));
        assert!(!take(&mut episode, "rl"));
        assert_eq!(episode.state().unwrap()["got"], got);
        assert_eq!(episode.total_reward(0), if team { 2.0 } else { 1.0 });
        assert!(!take(&mut episode, "dl") && take(&mut episode, "r-"), "{:?}", places(&episode));
        assert!(!episode.is_cut().unwrap());
    }
    let mut late = episode(&json!({"map": ["@.1"], "steps": 1}));
    assert!(take(&mut late, "r") && late.is_cut().unwrap());
}

#[test]
fn an_item_may_be_missed() {
    let world = json!({"map": ["@.1", "..2"], "pickup": [0.5, 1]});
    for (number, left) in [(0.4, 1), (0.5, 2)] {
        let mut episode = episode(&world);
        take(&mut episode, "r");
        let mut state = episode.state().unwrap();
        state["luck"] = json!([[0.0, number]]);
        episode.begin_from(&state).unwrap();
        take(&mut episode, "r");
        let items = episode.state().unwrap()["items"].as_array().unwrap().iter().filter(|item| **item != 0).count();
        assert_eq!(items, left);
    }
}

#[test]
fn only_the_inner_rows_and_columns_are_shuffled() {
    let map = ["2....1", ".@....", "..12..", "..3.@.", "......", "1....2"];
    let env = registry().make_env(&Node::from_json(&json!({"kind": "item-gathering", "map": map, "shuffle": true})));
    let env = env.unwrap();
    let mut seen = Vec::new();
    for index in 0..200 {
        let state = env.begin(&Item::default(), 3, index).state().unwrap();
        let item = |x: usize, y: usize| state["items"][y * 6 + x].as_u64().unwrap();
        assert_eq!([item(0, 0), item(5, 0), item(0, 5), item(5, 5)], [2, 1, 1, 2]);
        assert_eq!(state["agents"][0], json!({"x": 1, "y": 1}));
        let inner = [item(2, 2), item(3, 2), item(2, 3), item(3, 3)];
        assert_eq!(inner.iter().sum::<u64>(), 6);
        // The two of the same row stay in the same row.
        assert!([[1, 2], [2, 1]].contains(&[inner[0], inner[1]]) || [[1, 2], [2, 1]].contains(&[inner[2], inner[3]]));
        if !seen.contains(&inner) {
            seen.push(inner);
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

fn scenario(world: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("item-gathering");
    json!({"seed": 1, "rounds": 40, "agents": 200, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [
            {"act": "up", "when": "chance(0.25)"}, {"act": "down", "when": "chance(0.33)"},
            {"act": "left", "when": "chance(0.5)"}, {"act": "right"}]}}],
        "metrics": [{"kind": "mean", "of": "return-item-1"}, {"kind": "mean", "of": "return"}]})
}

#[test]
fn wrong_parameters_and_states_are_refused() {
    let cases = [
        (json!({"map": []}), "rows"),
        (json!({"map": ["@1", "."]}), "lengths"),
        (json!({"map": ["@1x"]}), "`x`"),
        (json!({"map": ["..1"]}), "agents"),
        (json!({"map": ["@@@@@@@@@@@@@@@@@@@@@1"]}), "21 agents"),
        (json!({"map": ["@.."]}), "no items"),
        (json!({"map": ["@.13"]}), "types before"),
        (json!({"pickup": [1]}), "pickup"),
        (json!({"pickup": [1, 1, 2]}), "pickup"),
        (json!({"steps": 0}), "steps"),
        (json!({"width": 3}), "width"),
    ];
    for (world, expected) in cases {
        let why = refused(&scenario(&world));
        assert!(why.contains(expected), "{expected}: {why}");
    }
    let mut episode = episode(&json!({"map": ["@.1@"]}));
    let state = episode.state().unwrap();
    let cases = [
        ("agents", json!([{"x": 0, "y": 0}]), "lengths"),
        ("agents", json!([{"x": 0, "y": 0}, {"x": 0, "y": 0}]), "of its own"),
        ("agents", json!([{"x": 0, "y": 0}, {"x": 4, "y": 0}]), "on the field"),
        ("items", json!([0, 1, 1, 0]), "as many"),
        ("items", json!([0, 0, 2, 0]), "as many"),
        ("luck", json!([[0, 1], [0, 0]]), "luck"),
        ("steps", json!(10), "steps"),
    ];
    for (key, value, expected) in cases {
        let mut wrong = state.clone();
        wrong[key] = value;
        let why = episode.begin_from(&wrong).unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
    }
}

/// The world adds up objectives over an episode.
#[test]
fn the_return_of_an_objective_counts_its_items() {
    let played = play(&scenario(&json!({"map": ["@1.1.", "...1@"], "steps": 5})));
    let pairs = played.rounds.iter().map(|round| (metric(round, "return-item-1.mean"), metric(round, "return.mean")));
    let (ones, all): (Vec<f64>, Vec<f64>) = pairs.unzip();
    assert!(ones == all && all.iter().any(|mean| *mean > 0.3), "{all:?}");
}
