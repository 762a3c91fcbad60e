//! Tests of `auction` and `bidder` against a plain auctioneer, and against theory for bidders with uniform values.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn market(agents: u32, rounds: u32, world: &Value, cohorts: &Value) -> Value {
    json!({"seed": 5, "rounds": rounds, "agents": agents, "world": world, "cohorts": cohorts})
}

fn world(rule: &str, reserve: f64) -> Value {
    json!({"kind": "auction", "goods": ["timber", "grain", "salt"], "rule": rule, "reserve": reserve})
}

/// The mean of a metric over all rounds.
fn mean(scenario: &Value, name: &str) -> f64 {
    let played = play(scenario);
    played.rounds.iter().map(|round| metric(round, name)).sum::<f64>() / played.rounds.len() as f64
}

#[test]
fn a_plain_auctioneer_agrees_on_every_price() {
    for (rule, reserve) in [("first-price", 0.0), ("second-price", 0.0), ("first-price", 0.7), ("second-price", 0.7)] {
        let cohorts = json!([{"name": "a", "share": 0.5, "policy": "bidder"},
                             {"name": "b", "share": 0.5, "policy": {"kind": "bidder", "share": 0.9}}]);
        let mut society = open(&market(7, 50, &world(rule, reserve), &cohorts), &Inputs::default(), 1).unwrap();
        let mut sold = 0;
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            for good in ["timber", "grain", "salt"] {
                let mut bids: Vec<f64> = Vec::new();
                for acts in society.acts() {
                    for i in 0..acts.rows.len() {
                        let bid: Value = serde_json::from_str(acts.text(i).unwrap()).unwrap();
                        bids.extend((bid["good"] == good).then(|| bid["price"].as_f64().unwrap()));
                    }
                }
                bids.sort_by(|a, b| b.total_cmp(a));
                let price = match (bids.as_slice(), rule) {
                    ([], _) => 0.0,
                    ([first, ..], "first-price") => *first,
                    ([_], _) => reserve,
                    ([_, second, ..], _) => *second,
                };
                sold += usize::from(!bids.is_empty());
                assert_eq!(metric(&report, &format!("price-{good}")), price, "{rule} {reserve} {good}: {bids:?}");
            }
            assert_eq!(metric(&report, "refused"), 0.0);
        }
        assert!(sold > 100, "{sold}");
    }
}

#[test]
fn both_rules_give_the_revenue_of_theory_and_are_efficient() {
    // Vickrey 1961: n bidders, values uniform on 0 to 1: (n-1)/(n+1) for both; four standard errors are 0.02 here.
    for n in [2u32, 5, 9] {
        for rule in ["first-price", "second-price"] {
            let scenario = market(n, 500, &world(rule, 0.0), &json!([{"policy": "bidder"}]));
            let (revenue, expected) = (mean(&scenario, "revenue"), f64::from(n - 1) / f64::from(n + 1));
            assert!((revenue - expected).abs() < 0.025, "{rule}, {n} bidders: {revenue}, by theory {expected}");
            assert!((mean(&scenario, "efficiency") - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn no_other_share_earns_more_at_first_price() {
    // One of five bids another share than the 4/5 of the others. By theory it earns less (for a share s below 4/5).
    let earned = |share: f64| {
        let cohorts = json!([{"name": "one", "count": 1, "policy": {"kind": "bidder", "share": share}},
                             {"name": "rest", "count": 4, "policy": "bidder"}]);
        play(&market(5, 3_000, &world("first-price", 0.0), &cohorts)).society.column(0)[0]
    };
    let best = earned(0.8);
    for share in [0.4, 0.6, 0.95, 1.0] {
        assert!(earned(share) < best, "{share}: {} against {best}", earned(share));
    }
}

#[test]
fn bids_that_are_none_are_refused_and_goods_need_names() {
    let refused = |world: Value| {
        let error = open(&market(4, 2, &world, &json!([{"policy": "bidder"}])), &Inputs::default(), 1);
        error.err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (goods, words) in [
        (json!([]), "1 to 100 goods"),
        (json!(["Salt"]), "lower-case letter"),
        (json!(["salt", "salt"]), "appears twice"),
    ] {
        let said = refused(json!({"kind": "auction", "goods": goods}));
        assert!(said.contains(words), "{said}");
    }
    let said = refused(json!({"kind": "auction", "reserve": 2}));
    assert!(said.contains("reserve"), "{said}");
}

fn agency(way: &str, budgets: &Value, rounds: u32) -> Value {
    let world = json!({"kind": "auction", "rule": "second-price",
                       "agency": {"clients": 4, "way": way, "budgets": budgets, "auctions": rounds}});
    market(6, rounds, &world, &json!([{"policy": "bidder"}]))
}

#[test]
fn a_plain_agency_agrees_on_every_sale_and_keeps_every_budget() {
    let budgets = [0.03, 0.05, 0.05, 0.08];
    let mut society = open(&agency("coordinated", &json!(budgets), 400), &Inputs::default(), 1).unwrap();
    let (mut left, mut multipliers) = (budgets.map(|budget| budget * 400.0), [0.0f64; 4]);
    let (mut earned, mut sold) = ([0.0; 4], 0);
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let mut values = [0.0; 6];
        for acts in society.acts() {
            for (i, act) in acts.rows.iter().enumerate() {
                let bid: Value = serde_json::from_str(acts.text(i).unwrap()).unwrap();
                values[act.who as usize] = bid["price"].as_f64().unwrap();
            }
        }
        let outside = [values[4], values[5]];
        let price = outside[0].max(outside[1]);
        let bids: Vec<f64> = (0..4).map(|i| (values[i] / (1.0 + multipliers[i])).min(left[i])).collect();
        let elected = (0..4).fold(0, |best, i| if bids[i] > bids[best] { i } else { best });
        let wins = bids[elected] >= price;
        let expected = if wins { price } else { bids[elected].max(outside[0].min(outside[1])) };
        assert_eq!(metric(&report, "price-good"), expected);
        for i in 0..4 {
            let spent = if wins && i == elected { price } else { 0.0 };
            earned[i] += if spent > 0.0 { values[i] - spent } else { 0.0 };
            left[i] -= spent;
            multipliers[i] = (multipliers[i] + 0.05 * (spent - budgets[i])).max(0.0);
        }
        sold += usize::from(wins);
        assert!(left.iter().all(|left| *left > -1e-9));
        assert!((metric(&report, "welfare") - earned.iter().sum::<f64>()).abs() < 1e-9);
        assert!(metric(&report, "welfare-of-bound") <= 1.0);
    }
    assert!(sold > 100, "{sold}");
    let column = society.column(0);
    earned.iter().zip(&column).for_each(|(earned, column)| assert!((earned - column).abs() < 1e-9));
}

#[test]
fn coordination_gains_for_every_client_and_a_client_by_lot_does_not() {
    let last = |way: &str, name: &str| {
        let played = play(&agency(way, &json!([0.05]), 1_000));
        metric(played.rounds.last().unwrap(), name)
    };
    assert!(last("coordinated", "least-advantage") > 0.0);
    assert!(last("hybrid", "least-advantage") > 0.0);
    assert!(last("by-lot", "least-advantage") < 0.0);
    // Alone, a client gains no more than by the best multiplier in hindsight; its own pacing is what `welfare-alone` adds up.
    assert!(last("independent", "least-advantage") <= 0.0);
    let (real, reckoned) = (last("independent", "welfare"), last("independent", "welfare-alone"));
    assert!((real - reckoned).abs() < 1e-9, "{real} {reckoned}");
}

#[test]
fn agencies_that_do_not_fit_are_refused() {
    for (agency, rule, says) in [
        (json!({"clients": 9, "budgets": [0.1], "auctions": 5}), "second-price", "agency.clients"),
        (json!({"clients": 2, "budgets": [], "auctions": 5}), "second-price", "agency.budgets"),
        (json!({"clients": 2, "budgets": [0.0], "auctions": 5}), "second-price", "agency.budgets[0]"),
        (json!({"clients": 2, "budgets": [0.1], "auctions": 0}), "second-price", "agency.auctions"),
        (json!({"clients": 2, "budgets": [0.1], "auctions": 5}), "first-price", "second price"),
    ] {
        let world = json!({"kind": "auction", "rule": rule, "agency": agency});
        let found = refused(&market(4, 5, &world, &json!([{"policy": "bidder"}])));
        assert!(found.contains(says), "{found}");
    }
}
