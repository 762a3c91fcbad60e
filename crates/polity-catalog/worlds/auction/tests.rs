//! Tests of `auction` and `bidder` against a plain auctioneer, and against theory for bidders with uniform values.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play};
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
