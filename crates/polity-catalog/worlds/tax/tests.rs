//! The distribution of skills against its closed form, the flow of a tax year, and refusals. What workers and planners do with it is
//! tested against theory in `policies/worker` and `policies/tax-planner`.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::Skills;
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};

fn society(world: &Value, cohorts: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("tax");
    json!({"seed": 1, "rounds": 50, "agents": 10, "topology": {"kind": "none"}, "world": world, "cohorts": cohorts})
}

fn works(labour: &str) -> Value {
    json!({"kind": "rule", "actions": [{"act": "work", "when": "may_work == 1", "value": labour}]})
}

#[test]
fn skills_have_the_moments_of_their_distribution() {
    // E(z^k) = scale^k B(lower + k / shape, upper - k / shape) / B(lower, upper).
    let skills = Skills::default();
    let (scale, shape, lower, upper): (f64, f64, f64, f64) = (72_402.781_8, 2.072_107_1, 0.486_518_7, 1.141_039_9);
    let beta = |p: f64, q: f64| libm::lgamma(p) + libm::lgamma(q) - libm::lgamma(p + q);
    let mut draws = Draws::new(3, Stream::World, 0, 0);
    let n = 200_000;
    let all: Vec<f64> = (0..n).map(|_| skills.draw(&mut draws)).collect();
    // The square root and the mean; higher moments hardly exist.
    for (k, tolerance) in [(0.5, 0.01), (1.0, 0.03), (-0.25, 0.01)] {
        let log = beta(lower + k / shape, upper - k / shape) - beta(lower, upper);
        let expected = scale.powf(k) * log.exp();
        let mean = all.iter().map(|z| z.powf(k)).sum::<f64>() / f64::from(n);
        assert!((mean / expected - 1.0).abs() < tolerance, "moment {k}: {mean} and {expected}");
    }
    // A gamma ratio with shape 1 on both sides has the odds u / (1 - u): half are below the scale.
    let plain: Skills = serde_json::from_value(json!({"scale": 10, "shape": 1.5, "lower": 1, "upper": 1})).unwrap();
    let below = (0..n).filter(|_| plain.draw(&mut draws) < 20.0).count() as f64 / f64::from(n);
    let expected = 2f64.powf(1.5) / (1.0 + 2f64.powf(1.5));
    assert!((below - expected).abs() < 0.005, "{below} {expected}");
}

#[test]
fn money_is_neither_made_nor_lost() {
    let world = json!({"planners": 0, "years": 6});
    let played = play(&society(&world, &json!([{"policy": works("uniform(0, 2)")}])));
    let column = |name: &str| {
        let place = played.society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
        played.society.column(place)
    };
    let (income, consumption, skill, labour) =
        (column("income"), column("consumption"), column("skill"), column("labour"));
    assert!((income.iter().sum::<f64>() / consumption.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(income.iter().zip(skill.iter().zip(&labour)).all(|(z, (n, l))| (z - n * l).abs() <= 1e-9 * z));
    assert!(labour.iter().any(|l| *l > 1.0) && labour.iter().any(|l| *l < 1.0));
}

#[test]
fn a_year_has_its_parts_and_the_rest_is_refused() {
    // Proposals, then two rounds of work; the planner's attempt to work does not count.
    let cohorts = json!([
        {"count": 1, "policy": {"kind": "rule", "actions": [{"act": "work", "value": 1}]}},
        {"count": 9, "policy": {"kind": "rule", "actions": [{"act": "work", "value": 0.5}]}}
    ]);
    let played = play(&society(&json!({"years": 2, "steps": 2}), &cohorts));
    let of = |name: &str| -> Vec<f64> { played.rounds.iter().map(|round| metric(round, name)).collect() };
    assert_eq!(of("year"), [0.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
    assert_eq!(of("refused"), [10.0, 1.0, 1.0, 10.0, 1.0, 1.0]);
    assert!(played.outcome.reason.unwrap().contains("2 tax years are over"));
}

#[test]
fn nobody_works_without_reward_and_all_share_alike() {
    // A rate of 1 takes everything; who works all the same gets the mean.
    let world = json!({"planners": 0, "years": 1, "thresholds": [0], "rates": [1], "aversion": 0});
    let played = play(&society(&world, &json!([{"policy": works("1")}])));
    let place = played.society.interface().columns.iter().position(|column| &*column.name == "consumption").unwrap();
    let consumption = played.society.column(place);
    let last = played.rounds.last().unwrap();
    assert!(consumption.iter().all(|c| (c / metric(last, "rebate") - 1.0).abs() < 1e-9));
    assert!((metric(last, "rebate") / metric(last, "output") - 1.0).abs() < 1e-9);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"thresholds": [1, 2], "rates": [0, 0]}), "world.thresholds: the first bracket must begin at 0"),
        (json!({"thresholds": [0, 5, 5], "rates": [0, 0, 0]}), "world.thresholds: bracket 3 must begin above 5"),
        (json!({"thresholds": [0, 5]}), "world.rates: there are 2 brackets and 7 rates"),
        (json!({"thresholds": [0], "rates": [1.5]}), "world.rates: the rate of bracket 1 must lie in 0..=1"),
        (json!({"planners": 10}), "needs more agents than planners (10), has 10"),
        (json!({"planners": 0, "vote": true}), "world.vote: there is no planner"),
        (json!({"skills": {"shape": 0.8, "upper": 1}}), "world.skills.upper: times `shape` must be above 1"),
    ] {
        let found = refused(&society(&world, &json!([{"policy": works("1")}])));
        assert!(found.contains(says), "{found}");
    }
}
