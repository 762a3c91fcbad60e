//! The demand of firms against a search for the most profit, flows against plain counts, and how curves react.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::Params;
use super::economy::{Prices, Technology};
use crate::testing::{Played, metric, play, refused};
use serde_json::{Value, json};

/// Individuals train if it pays, firms adopt if it is cheaper, and the government does as told.
fn society(seed: u64, rounds: u32, world: &Value, government: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("labour-market");
    world["firms"] = json!(20);
    let firm = json!([{"act": "adopt", "value": "1 if ai_cost + own_hurdle < unskilled_wage else 0"}]);
    let person = json!([{"act": "train", "when": "may_train == 1 and skilled_wage * skilled_chance - unskilled_wage * unskilled_chance > training_cost"}]);
    json!({"seed": seed, "rounds": rounds, "agents": 621, "topology": {"kind": "none"}, "world": world, "cohorts": [
        {"count": 1, "policy": {"kind": "rule", "actions": government}},
        {"count": 20, "policy": {"kind": "rule", "actions": firm}},
        {"count": 600, "policy": {"kind": "rule", "actions": person}},
    ]})
}

/// The acts of a government that does nothing.
fn nothing() -> Value {
    json!([{"act": "tax", "value": 0}])
}

fn last(played: &Played, name: &str) -> f64 {
    metric(played.rounds.last().unwrap(), name)
}

#[test]
fn firms_demand_what_gives_the_most_profit() {
    let params = Params::default();
    let technology = Technology::new(&params, 1000);
    let start = Prices { routine: 1.0, skilled: 1.6 };
    let (a, b) = (technology.routine, technology.skilled);
    let [r0, s0] = technology.demand(1.3, start, start);
    // The productivity at which the start is the best plan: at the optimum the price is a times output over routine work.
    let z = r0 / a / (r0.powf(a) * s0.powf(b));
    for prices in [start, Prices { routine: 0.6, skilled: 1.7 }, Prices { routine: 1.4, skilled: 1.0 }] {
        let profit = |r: f64, s: f64| z * r.powf(a) * s.powf(b) - prices.routine * r - prices.skilled * s;
        let [r, s] = technology.demand(1.3, prices, start);
        let best = profit(r, s);
        for i in -20..=20 {
            for j in -20..=20 {
                let (r, s) = (r * 1.03f64.powi(i), s * 1.03f64.powi(j));
                assert!(profit(r, s) <= best + 1e-9 * best.abs(), "{prices:?} {i} {j}");
            }
        }
    }
}

#[test]
fn without_ai_the_market_stays_at_rest() {
    // AI is never cheaper than people: shares and wages only vary by chance.
    let played = play(&society(1, 60, &json!({"ai_cost": 100, "lowest": 100, "spread": 0}), &nothing()));
    for (name, value, tolerance) in [
        ("employment", 0.95, 0.04),
        ("adoption", 0.0, 0.0),
        ("skilled", 0.4, 0.08),
        ("unskilled-wage", 1.0, 0.15),
        ("skilled-wage", 1.6, 0.25),
        ("refused", 0.0, 0.0),
    ] {
        let found = last(&played, name);
        assert!((found - value).abs() <= tolerance, "{name}: {found}");
    }
}

#[test]
fn counts_are_those_of_agents() {
    let played = play(&society(2, 40, &json!({}), &json!([{"act": "subsidise", "value": 0.5}])));
    let place = |name: &str| played.society.interface().columns.iter().position(|c| &*c.name == name).unwrap();
    let working = played.society.column(place("working"));
    assert!((last(&played, "employment") - working.iter().sum::<f64>() / 600.0).abs() < 1e-12);
    let adopted = played.society.column(place("adopted"));
    assert!(adopted.iter().all(|share| (0.0..=0.6).contains(share)));
    let mean: f64 = played.rounds.iter().map(|round| metric(round, "employment")).sum::<f64>() / 40.0;
    assert!((last(&played, "mean-employment") - mean).abs() < 1e-12);
    // Nobody who is skilled becomes unskilled.
    let skilled: Vec<f64> = played.rounds.iter().map(|round| metric(round, "skilled")).collect();
    assert!(skilled.windows(2).all(|two| two[0] <= two[1]));
}

#[test]
fn adoption_follows_costs_firm_by_firm() {
    // At speed 1 a firm adopts wholly in the round in which AI with its hurdle is cheaper than people. With fixed wages the share of
    // adopters is that of hurdles below the gap.
    let world = json!({"speed": 1, "flexibility": 0, "ai_cost": 0.7, "decline": 0, "lowest": 0.7, "hurdle": 0.6});
    let mut adopters = 0.0;
    for seed in 0..20 {
        let played = play(&society(seed, 3, &world, &nothing()));
        let place = played.society.interface().columns.iter().position(|c| &*c.name == "adopted").unwrap();
        adopters += played.society.column(place).iter().filter(|share| **share == 0.6).count() as f64;
    }
    assert!((adopters / 400.0 - 0.5).abs() < 0.1, "{adopters} of 400");
}

#[test]
fn policy_moves_the_curves_if_it_is_applied() {
    let mean = |world: &Value, government: &Value, name: &str| {
        (0..10).map(|seed| last(&play(&society(seed, 30, world, government)), name)).sum::<f64>() / 10.0
    };
    let (none, tax, school) =
        (nothing(), json!([{"act": "tax", "value": 0.6}]), json!([{"act": "subsidise", "value": 0.6}]));
    let (plain, announced) = (json!({}), json!({"policy": "announced"}));
    for name in ["employment", "unskilled-employment", "adoption", "skilled"] {
        let values = [&none, &tax, &school].map(|government| mean(&plain, government, name));
        println!("{name}: nothing {}, tax {}, subsidy {}", values[0], values[1], values[2]);
    }
    assert!(mean(&plain, &tax, "adoption") < 0.5 * mean(&plain, &none, "adoption"));
    assert!(mean(&plain, &school, "skilled") > 0.05 + mean(&plain, &none, "skilled"));
    for (government, name) in [(&tax, "adoption"), (&school, "skilled")] {
        assert_eq!(mean(&announced, government, name), mean(&plain, &none, name));
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (world, says) in [
        (json!({"premium": 1}), "world.premium"),
        (json!({"returns": 1}), "world.returns"),
        (json!({"course": 0}), "world.course"),
        (json!({"exposure": 1}), "world.exposure"),
    ] {
        let found = refused(&society(1, 1, &world, &nothing()));
        assert!(found.contains(says), "{found}");
    }
    let mut few = society(1, 1, &json!({}), &nothing());
    (few["agents"], few["cohorts"]) = (json!(21), json!([{"policy": {"kind": "rule", "actions": nothing()}}]));
    let found = refused(&few);
    assert!(found.contains("needs more agents than 20 firms"), "{found}");
}
