//! The dynamics against those of mpe2, episode by episode.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{COVER, Params, Spread, collisions, gaps};
use crate::particles::{Body, Scene};
use crate::testing::{metric, play, refused};
use polity_kernel::ask::Value;
use polity_kernel::environment::{Environment, Move};
use polity_kernel::interface::TableSlot;
use polity_kernel::rng::{Draws, Stream};
use serde::Deserialize;
use serde_json::json;

/// An episode of mpe2 1.1.1 (simple_spread_v3): where three agents and three landmarks begin, the moves of the agents in turn, where the
/// agents end with which velocities, and what each got.
#[derive(Deserialize)]
struct Recorded {
    start: [[f64; 2]; 6],
    moves: String,
    end: [[f64; 4]; 3],
    got: [f64; 3],
}

#[test]
fn ten_thousand_moves_are_those_of_mpe2() {
    let environment = Spread { params: Params::default(), landmarks: TableSlot(0, 2), others: TableSlot(1, 2) };
    let mut draws = Draws::new(1, Stream::Episode, 0, 0);
    let (mut moved, mut touched) = (0, 0.0);
    for line in include_str!("mpe2.jsonl").lines() {
        let Recorded { start, moves, end, got } = serde_json::from_str(line).unwrap();
        let body = |at: &[f64; 2]| Body { at: *at, velocity: [0.0; 2] };
        let mut scene =
            Scene { agents: start[..3].iter().map(body).collect(), landmarks: start[3..].to_vec(), steps: 0 };
        let mut sums = [0.0; 3];
        for (step, actions) in moves.as_bytes().chunks(3).enumerate() {
            let moves: Vec<Move> = (0u32..)
                .zip(actions)
                .map(|(seat, action)| Move {
                    seat,
                    action: u16::from(action - b'0'),
                    argument: Value::Record(Vec::new()),
                })
                .collect();
            let result = environment.step(&mut scene, &moves, &mut draws);
            assert_eq!(result.done, step == 24);
            sums.iter_mut().zip(&result.rewards).for_each(|(sum, reward)| *sum += reward);
            touched += (0..3).map(|seat| collisions(&scene, seat)).sum::<f64>();
            moved += 3;
        }
        for (body, expected) in scene.agents.iter().zip(end) {
            let found = [body.at[0], body.at[1], body.velocity[0], body.velocity[1]];
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{found}, not {expected}: {line}");
            }
        }
        for (found, expected) in sums.iter().zip(got) {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}: {line}");
        }
    }
    assert_eq!(moved, 10_050);
    assert!(touched > 100.0, "{touched}");
}

#[test]
fn what_agents_see_and_what_counts_is_as_stated() {
    let scene = Scene {
        agents: vec![Body { at: [0.0, 0.0], ..Body::default() }, Body { at: [0.2, 0.0], ..Body::default() }],
        landmarks: vec![[0.0, 0.05], [1.0, 0.0]],
        steps: 0,
    };
    assert_eq!((collisions(&scene, 0), collisions(&scene, 1)), (1.0, 1.0));
    let gaps: Vec<f64> = gaps(&scene).collect();
    assert!((gaps[0] - 0.05).abs() < 1e-12 && (gaps[1] - 0.8).abs() < 1e-12 && gaps[0] < COVER);
}

#[test]
fn agents_that_stay_cover_little() {
    let scenario = json!({"seed": 1, "rounds": 50, "agents": 300, "topology": {"kind": "none"},
        "world": {"kind": "spread"}, "cohorts": [{"policy": {"kind": "rule", "actions": [{"act": "stay"}]}}]});
    let played = play(&scenario);
    let covered = metric(&played.rounds[20], "covered");
    assert!(covered < 0.1, "{covered}");
    assert_eq!(metric(played.rounds.last().unwrap(), "episodes"), 200.0);
}

#[test]
fn wrong_parameters_are_refused() {
    for (key, value) in [("players", json!(0)), ("steps", json!(0)), ("own", json!(2.0))] {
        let mut scenario = json!({"seed": 1, "rounds": 1, "agents": 3, "topology": {"kind": "none"},
            "world": {"kind": "spread"}, "cohorts": [{"policy": {"kind": "noise"}}]});
        scenario["world"][key] = value;
        let why = refused(&scenario);
        assert!(why.contains(key), "{why}");
    }
}

#[test]
fn places_are_turned_at_the_start() {
    let scene = |turned| {
        let params = Params { turned, ..Params::default() };
        let environment = Spread { params, landmarks: TableSlot(0, 2), others: TableSlot(1, 2) };
        environment.reset(&Default::default(), &mut Draws::new(4, Stream::Episode, 0, 0))
    };
    let (upright, left, upside_down) = (scene(0), scene(1), scene(2));
    for (at, [turned, over]) in
        upright.landmarks.iter().zip(left.landmarks.iter().zip(&upside_down.landmarks).map(|(a, b)| [a, b]))
    {
        assert_eq!((*turned, *over), ([-at[1], at[0]], [-at[0], -at[1]]));
    }
    assert_eq!(left.agents[2].at, [-upright.agents[2].at[1], upright.agents[2].at[0]]);
}
