//! Groups that contribute in turn: rewards, advice, what learners find.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn game(rounds: u32, agents: u32, world: &Value, policy: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("public-goods");
    json!({"seed": 3, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}]})
}

/// Three levels: nothing, a half, all.
#[test]
fn rewards_are_those_of_the_formula_and_come_at_the_end() {
    let by_lot = json!({"kind": "rule", "actions": [{"act": "contribute", "when": "active == 1", "value": "floor(uniform(0, 3))"}]});
    let world = json!({"players": 4, "threshold": 2.0, "penalty": 0.7, "bonus": 0.3, "factor": 1.6, "cost": 0.9});
    let mut society = open(&game(80, 12, &world, &by_lot), &Inputs::default(), 1).unwrap();
    let (mut given, mut round, mut missed): (Vec<Vec<f64>>, usize, u32) = (vec![Vec::new(); 3], 0, 0);
    while let Then::Round(_) = society.poll(Vec::new()).unwrap().then {
        for act in society.acts().flat_map(|acts| acts.rows.to_vec()) {
            assert_eq!(act.who as usize % 4, round % 4, "in turn");
            given[act.who as usize / 4].push(act.value / 2.0);
        }
        let place = |name: &str| society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
        let rewards = society.column(place("reward"));
        for (group, given) in given.iter_mut().enumerate() {
            let expected: Vec<f64> = if given.len() < 4 {
                vec![0.0; 4]
            } else {
                let sum: f64 = given.iter().sum();
                let short = if sum < 2.0 { 0.7 } else { 0.0 };
                missed += u32::from(sum < 2.0);
                let before = |i: usize| given[..i].iter().sum::<f64>();
                (0..4).map(|i| 1.6 * sum / 4.0 - 0.9 * given[i] + 0.3 * given[i] * before(i) - short).collect()
            };
            for (found, expected) in rewards[group * 4..].iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
            if given.len() == 4 {
                given.clear();
            }
        }
        round += 1;
    }
    assert!(missed > 5 && missed < 55, "{missed}");
}

#[test]
fn who_follows_backward_induction_plays_the_equilibrium_and_learners_come_to_it() {
    let advised = json!({"kind": "rule", "actions": [{"act": "contribute", "when": "active == 1", "value": "best"}]});
    let learner =
        json!({"kind": "q-learner", "state": ["before"], "explore": 1.0, "decay": 0.985, "rate": 0.2, "stop": 1470});
    for (world, effort) in [(json!({}), 1.0), (json!({"bonus": 0.0, "penalty": 0.0}), 0.0)] {
        let last = play(&game(9, 6, &world, &advised));
        let round = last.rounds.last().unwrap();
        let names = ["effort", "equilibrium-effort", "equilibrium-unique"];
        assert_eq!(names.map(|name| metric(round, name)), [effort, effort, 1.0]);
        let learned = metric(play(&game(1500, 30, &world, &learner)).rounds.last().unwrap(), "effort");
        println!("equilibrium {effort}, learners {learned}");
        assert!((learned - effort).abs() < 0.15, "{learned}");
    }
}

#[test]
fn games_that_do_not_fit_are_refused() {
    let policy = json!({"kind": "q-learner"});
    let why = refused(&game(1, 16, &json!({"players": 16, "levels": 4}), &policy));
    assert!(why.contains("16 players with 4 levels"), "{why}");
    let why = refused(&game(1, 3, &json!({"factor": -1.0}), &policy));
    assert!(why.contains("factor"), "{why}");
}
