//! Workers against the theory of `polity_games::taxation`, in the world `tax`.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_games::taxation::{Economy, Schedule};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn society(seed: u64, world: &Value, policy: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("tax");
    json!({"seed": seed, "rounds": 200, "agents": 40, "topology": {"kind": "none"}, "world": world, "cohorts": [{"policy": policy}]})
}

/// The place of a column.
fn column(played: &crate::testing::Played, name: &str) -> Vec<f64> {
    let place = played.society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
    played.society.column(place)
}

#[test]
fn the_world_and_the_theory_agree() {
    let (thresholds, rates) = (vec![0.0, 30_000.0, 90_000.0, 400_000.0], vec![0.3, 0.1, 0.5, 0.7]);
    for (seed, elasticity, aversion) in [(1, 0.25, 1.0), (2, 0.8, 0.0), (3, 0.5, 2.5)] {
        let world = json!({"planners": 0, "years": 1, "thresholds": thresholds, "rates": rates, "elasticity": elasticity, "aversion": aversion});
        let played = play(&society(seed, &world, &json!("worker")));
        let economy = Economy { elasticity, aversion };
        let skills = column(&played, "skill");
        let outcome = economy.outcome(&skills, &Schedule::new(thresholds.clone(), rates.clone()).unwrap());
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} and {b}");
        column(&played, "income").iter().zip(&outcome.incomes).for_each(|(a, b)| near(*a, *b));
        column(&played, "utility").iter().zip(&outcome.utilities).for_each(|(a, b)| near(*a, *b));
        let last = played.rounds.last().unwrap();
        near(metric(last, "rebate"), outcome.rebate);
        near(metric(last, "welfare"), outcome.welfare);
        let untaxed = economy.outcome(&skills, &Schedule::new(vec![0.0], vec![0.0]).unwrap());
        near(metric(last, "gain") + 1.0, outcome.welfare / untaxed.welfare);
    }
}

#[test]
fn who_adjusts_slowly_arrives_at_the_same() {
    let world = json!({"planners": 0, "years": 1, "steps": 120});
    let of = |policy: Value| {
        let played = play(&society(4, &world, &policy));
        metric(played.rounds.last().unwrap(), "welfare")
    };
    assert!((of(json!({"kind": "worker", "adjust": 0.2})) / of(json!("worker")) - 1.0).abs() < 1e-9);
    assert!(of(json!({"kind": "worker", "error": 0.3})) < of(json!("worker")));
}

#[test]
fn votes_go_to_the_schedule_that_is_better_for_the_voter() {
    // Two planners, one of whom takes all and one who takes nothing: most workers earn less than the mean and gain from high taxes.
    let world = json!({"planners": 2, "vote": true, "years": 1, "thresholds": [0.0], "rates": [0.2]});
    let mut scenario = society(5, &world, &json!("worker"));
    let planner = |rate: f64| json!({"count": 1, "policy": {"kind": "tax-planner", "plan": "keep", "rates": [rate]}});
    scenario["cohorts"] = json!([planner(0.0), planner(0.5), {"count": 38, "policy": "worker"}]);
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut rounds = Vec::new();
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        rounds.push((
            *report,
            society.acts().flat_map(|block| block.rows.iter().map(|act| act.value)).collect::<Vec<f64>>(),
        ));
    }
    let place = |name: &str| society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
    let skills: Vec<f64> = society.column(place("skill"))[2..].to_vec();
    // All had adjusted to 0.2 at most in thought only: incomes are still those without taxes.
    let rebate = 0.5 * skills.iter().sum::<f64>() / 38.0;
    let kept = 1.0 / 1.25;
    let expected: Vec<f64> = skills
        .iter()
        .map(|skill| f64::from(u8::from(kept * skill * 0.5f64.powf(1.25) + rebate > kept * skill)))
        .collect();
    assert_eq!(rounds[1].1, expected);
    let ayes = expected.iter().sum::<f64>();
    assert_eq!(metric(&rounds[1].0, "elected"), f64::from(u8::from(ayes > 19.0)));
    assert_eq!(metric(&rounds[1].0, "refused"), 0.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let found = refused(&society(1, &json!({}), &json!({"kind": "worker", "adjust": 2})));
    assert!(found.contains("adjust"), "{found}");
}
