//! Recorded episodes of an original program, played again here. `scripts/peers/worlds.py tape WORLD` records them.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::registry;
use polity_kernel::ask::Value;
use polity_kernel::environment::Offered;
use polity_kernel::interface::{FieldKind, NumberSlot};
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A recorded stretch of an episode.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stretch {
    /// Parameters of the world.
    #[serde(default)]
    params: serde_json::Map<String, Json>,
    /// The state before, and after.
    begin: Json,
    end: Json,
    moves: Vec<Moves>,
    /// Step by step, what chance does in it: a part of the state before it. Empty if chance does nothing.
    #[serde(default)]
    chance: Vec<serde_json::Map<String, Json>>,
    /// A part of the state after some of the steps, by number of the step.
    #[serde(default)]
    after: BTreeMap<usize, Json>,
    /// What each seat got in all.
    got: Vec<f64>,
    /// The numbers that each seat sees after it, without those that are 0.
    seen: Vec<BTreeMap<String, f64>>,
    /// Whether the episode has ended, and whether it was only cut off.
    ended: bool,
    cut: bool,
}

/// The moves of a step, by seat.
#[derive(Deserialize)]
#[serde(untagged)]
enum Moves {
    /// The first letters of the names of the actions, `-` for no move.
    Letters(String),
    /// The name of the action, or its name and its argument; nothing for no move.
    Named(Vec<Json>),
}

impl Moves {
    /// Returns for each move the name of the action, or how it begins, and the argument.
    fn read(&self) -> Vec<(u32, String, Vec<Value>)> {
        let named = |(seat, made): (u32, &Json)| match made {
            Json::Null => None,
            Json::Array(both) => {
                Some((seat, both[0].as_str().unwrap().to_owned(), vec![Value::Number(both[1].as_f64().unwrap())]))
            }
            other => Some((seat, other.as_str().unwrap().to_owned(), Vec::new())),
        };
        match self {
            Moves::Letters(letters) => (0..)
                .zip(letters.chars())
                .filter(|(_, letter)| *letter != '-')
                .map(|(seat, letter)| (seat, letter.to_string(), Vec::new()))
                .collect(),
            Moves::Named(moves) => (0..).zip(moves).filter_map(named).collect(),
        }
    }
}

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// Compares two states: numbers to a tolerance, everything else exactly.
fn same(found: &Json, expected: &Json, tolerance: f64) -> bool {
    match (found, expected) {
        (Json::Number(a), Json::Number(b)) => near(a.as_f64().unwrap(), b.as_f64().unwrap(), tolerance),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b, tolerance)))
        }
        _ => found == expected,
    }
}

/// What a tape held.
#[derive(Debug, Default, PartialEq)]
pub struct Replayed {
    pub steps: usize,
    pub ends: usize,
    /// Sum of the absolute rewards of all stretches and seats.
    pub rewarded: f64,
}

/// Plays the stretches of a tape, and compares states, rewards, ends (to a tolerance, 0 for grids) and what is seen (to 1e-6, because
/// originals show 32-bit numbers).
pub fn replay(kind: &str, tape: &str, tolerance: f64) -> Replayed {
    let (registry, mut all) = (registry(), Replayed::default());
    for (i, line) in tape.lines().enumerate() {
        let stretch: Stretch = serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", i + 1));
        let mut world = stretch.params.clone();
        world.insert("kind".into(), kind.into());
        let env = registry.make_env(&Node::from_json(&Json::Object(world))).unwrap_or_else(|error| panic!("{error}"));
        let mut episode = env.begin(&Item::default(), 1, 0);
        episode.begin_from(&stretch.begin).unwrap_or_else(|error| panic!("line {}: {error}", i + 1));
        let mut got = vec![0.0; stretch.got.len()];
        for (step, moves) in stretch.moves.iter().enumerate() {
            if let Some(chance) = stretch.chance.get(step) {
                let mut state = episode.state().unwrap();
                state.as_object_mut().unwrap().extend(chance.clone());
                episode.begin_from(&state).unwrap();
            }
            let mut taken = Vec::new();
            for (seat, name, argument) in moves.read() {
                let offered = episode.offered(seat).unwrap();
                let is_meant = |offer: &&Offered| match moves {
                    Moves::Letters(_) => offer.name.starts_with(&name),
                    Moves::Named(_) => offer.name == name,
                };
                let offer = offered.iter().find(is_meant);
                let offer = offer.unwrap_or_else(|| panic!("line {}, step {step}: `{name}` is not offered", i + 1));
                taken.push(offer.with(seat, argument));
            }
            let result = episode.step(&taken).unwrap();
            got.iter_mut().zip(&result.rewards).for_each(|(sum, reward)| *sum += reward);
            let last = step + 1 == stretch.moves.len();
            assert_eq!(result.done, last && stretch.ended, "line {}, step {step}", i + 1);
            if let Some(after) = stretch.after.get(&step) {
                let state = episode.state().unwrap();
                for (key, expected) in after.as_object().unwrap() {
                    let found = &state[key];
                    let why = format!("line {}, step {step}: {key} {found}, not {expected}", i + 1);
                    assert!(same(found, expected, tolerance), "{why}");
                }
            }
            all.steps += 1;
        }
        assert_eq!(episode.is_cut().unwrap(), stretch.cut, "line {}", i + 1);
        for (seat, (found, expected)) in got.iter().zip(&stretch.got).enumerate() {
            assert!(near(*found, *expected, tolerance), "line {}: seat {seat} got {found}, not {expected}", i + 1);
            all.rewarded += expected.abs();
        }
        let mut end = episode.state().unwrap();
        // What chance will do after the tape nobody knows.
        let drawn: Vec<&String> = stretch.chance.iter().flat_map(serde_json::Map::keys).collect();
        end.as_object_mut().unwrap().retain(|key, _| !drawn.contains(&key));
        assert!(same(&end, &stretch.end, tolerance), "line {}: {end}, not {}", i + 1, stretch.end);
        for (seat, seen) in (0u32..).zip(&stretch.seen) {
            let numbers = env.interface().observation.iter().filter(|field| field.kind == FieldKind::Number);
            let names: Vec<_> = numbers.map(|field| field.name.to_string()).collect();
            let found: Vec<f64> = episode
                .observe(seat, |observed| (0..names.len()).map(|slot| observed.number(NumberSlot(slot))).collect())
                .unwrap();
            let known = seen.keys().all(|name| names.contains(name));
            assert!(known, "line {}: not all of {seen:?} are shown", i + 1);
            for (name, found) in names.iter().zip(found) {
                let expected = seen.get(name).copied().unwrap_or_default();
                assert!(near(found, expected, 1e-6), "line {}: seat {seat} sees {name} {found}, not {expected}", i + 1);
            }
        }
        all.ends += usize::from(stretch.ended);
    }
    all
}
