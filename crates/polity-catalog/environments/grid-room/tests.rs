//! The rules and the view against those of MiniGrid, step by step.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::tape::replay;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde_json::{Value, json};

#[test]
fn recorded_steps_are_those_of_minigrid() {
    let replayed = replay("grid-room", include_str!("minigrid.jsonl"), 0.0);
    assert!(replayed.steps > 150 && replayed.ends >= 4 && replayed.rewarded > 3.0, "{replayed:?}");
}

#[test]
fn a_room_with_a_door_has_its_key_on_the_agents_side() {
    let env = registry().make_env(&Node::from_json(&json!({"kind": "grid-room", "size": 7}))).unwrap();
    let (mut walls, mut doors, mut facing) = ([0; 7], [0; 7], [0; 4]);
    for index in 0..3_000 {
        let state = env.begin(&Item::default(), 9, index).state().unwrap();
        let tiles = state["tiles"].as_array().unwrap();
        let place = |name: &str| tiles.iter().position(|tile| tile == name).unwrap();
        let (door, key) = (place("locked"), place("key"));
        let at = (state["at"]["x"].as_u64().unwrap() as usize, state["at"]["y"].as_u64().unwrap() as usize);
        assert!(key % 7 < door % 7 && at.0 < door % 7 && at != (key % 7, key / 7) && place("goal") == 5 * 7 + 5);
        walls[door % 7] += 1;
        doors[door / 7] += 1;
        facing[state["facing"].as_u64().unwrap() as usize] += 1;
    }
    // Walls in columns 2 to 4 and doors in rows 1 to 4, as MiniGrid draws them; all directions.
    assert!(walls[2..5].iter().all(|count| (900..1_100).contains(count)), "{walls:?}");
    assert!(doors[1..5].iter().all(|count| (650..850).contains(count)), "{doors:?}");
    assert!(facing.iter().all(|count| (650..850).contains(count)), "{facing:?}");
}

fn scenario(world: &Value) -> Value {
    // Along the upper wall, and then down.
    json!({"seed": 1, "rounds": 100, "agents": 1, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": [
            {"act": "forward", "when": "object_3_5 != 2"}, {"act": "right"}]}}],
        "metrics": [{"kind": "mean", "of": "reached"}]})
}

#[test]
fn an_agent_gets_to_the_goal_of_an_empty_room_and_not_through_a_locked_door() {
    let played = play(&scenario(&json!({"kind": "grid-room", "task": "empty", "size": 6})));
    // Three steps along each wall and a turn between them, out of at most 144.
    assert_eq!(metric(&played.rounds[6], "reached.mean"), 1.0);
    let got = metric(&played.rounds[6], "mean-reward");
    assert!((got - (1.0 - 0.9 * 7.0 / 144.0)).abs() < 1e-12, "{got}");
    let locked = play(&scenario(&json!({"kind": "grid-room", "size": 6})));
    assert_eq!(metric(locked.rounds.last().unwrap(), "episodes"), 0.0);
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in [("task", json!("maze")), ("size", json!(4)), ("steps", json!(1_000_001))] {
        let mut world = json!({"kind": "grid-room"});
        world[key] = value;
        let why = refused(&scenario(&world));
        assert!(why.contains(key), "{why}");
    }
}
