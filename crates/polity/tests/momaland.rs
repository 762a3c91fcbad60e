//! The beach of `systems/momaland` against steps that MOMAland has recorded (`scripts/peers/worlds.py beach`).

use crate::harness::registry;
use crate::mock_server::root;
use polity_kernel::ask::Value;
use polity_kernel::items::Item;
use polity_kernel::tree::Node;
use polity_store::files::read_file;
use serde::Deserialize;
use serde_json::json;
use std::fs;

/// An episode. People's types, sections and actions are digits, in order of seat.
#[derive(Deserialize)]
struct Recorded {
    steps: u32,
    sections: usize,
    capacity: u32,
    team: u32,
    types: String,
    from: String,
    moves: Vec<String>,
    /// Where they are after each step.
    at: Vec<String>,
    /// What those in each section got for its capacity and its mixture, after the last step; nothing for an empty section.
    got: Vec<Option<[f64; 2]>>,
    /// How many people each saw in its section, and which share of them is of its type.
    seen: Vec<[f64; 2]>,
}

/// The original has numbers of 32 bits.
fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

fn digits(text: &str) -> Vec<usize> {
    text.bytes().map(|digit| usize::from(digit - b'0')).collect()
}

#[test]
fn the_beach_is_that_of_momaland() {
    let folder = root().join("systems/momaland");
    let (_, scenario) = read_file(&folder.join("beach.yaml")).unwrap();
    let (mut steps, mut paid) = (0, 0);
    for line in fs::read_to_string(folder.join("beach.jsonl")).unwrap().lines() {
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        let (players, last_section) = (recorded.types.len(), (recorded.sections - 1) as f64);
        // Each finds its own digit.
        let given = |digits: &str| {
            let number: u64 = digits.chars().rev().collect::<String>().parse().unwrap();
            json!(format!("floor({number} / 10 ^ (seat - 1)) % 10"))
        };
        let mut world = scenario.get("world").unwrap().clone();
        let edits = [
            ("players", json!(players)),
            ("constants.steps", json!(recorded.steps)),
            ("constants.sections", json!(recorded.sections)),
            ("constants.capacity", json!(recorded.capacity)),
            ("constants.team", json!(recorded.team)),
            ("variables.sort.initial", given(&recorded.types)),
            ("variables.section.initial", given(&recorded.from)),
        ];
        edits.iter().for_each(|(key, value)| world.edit(key, Node::from_json(value)).unwrap());
        let env = registry().make_env(&world).unwrap();
        assert_eq!(env.objectives(), ["capacity", "mixture"]);
        let mut episode = env.begin(&Item::default(), 1, 0);
        let names = ["type", "where", "people", "alike"];
        let slots = names.map(|name| env.interface().number("beach", name).unwrap());
        for (step, (moves, at)) in recorded.moves.iter().zip(&recorded.at).enumerate() {
            let chosen = |(seat, choice): (u32, usize)| {
                episode.offered(seat).unwrap()[0].with(seat, vec![Value::Choice(choice as u32)])
            };
            let taken: Vec<_> = (0..).zip(digits(moves)).map(chosen).collect();
            let result = episode.step(&taken).unwrap();
            let last = step + 1 == recorded.moves.len();
            assert_eq!(result.done, last, "{line}");
            for (seat, section) in digits(at).into_iter().enumerate() {
                let got = recorded.got[section].filter(|_| last).unwrap_or_default();
                let found = episode.gained(seat as u32).unwrap();
                assert!(near(found[0], got[0]) && near(found[1], got[1]), "seat {seat} got {found:?}: {line}");
                assert!(near(result.rewards[seat], got[0] + got[1]));
                let [kind, place, people, alike] =
                    episode.observe(seat as u32, |seen| slots.map(|slot| seen.number(slot))).unwrap();
                assert_eq!(kind, digits(&recorded.types)[seat] as f64);
                assert!(near(place * last_section, section as f64), "step {step}: {line}");
                if last {
                    let [crowd, share] = recorded.seen[seat];
                    assert!(near(people * players as f64, crowd) && near(alike, share), "{people} {alike}: {line}");
                    paid += usize::from(got[0] > 0.0);
                }
            }
            steps += 1;
        }
    }
    assert!(steps >= 10_000 && paid > 1_000, "{steps} {paid}");
}
