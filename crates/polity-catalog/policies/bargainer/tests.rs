//! Bargainers in the environment `bargaining`: against a second, plain game, and what a critic changes.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{Played, metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};

const PAIRS: u32 = 400;

fn market(seed: u64, games: u32, shown: &str, policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["kind"] = json!("bargainer");
    json!({"seed": seed, "rounds": 20 * games, "agents": 2 * PAIRS, "topology": {"kind": "none"},
        "world": {"kind": "bargaining", "games": games, "shown": shown}, "cohorts": [{"policy": policy}]})
}

fn column(played: &Played, name: &str) -> Vec<f64> {
    let place = played.society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
    played.society.column(place)
}

/// The exponents of all players, drawn again: the first of the numbers that each draws at birth.
fn exponents(seed: u64, played: &Played) -> Vec<f64> {
    let n = played.society.column(0).len() as u32;
    (0..n).map(|who| Draws::new(seed, Stream::Birth, 0, who).range(0.5, 2.0)).collect()
}

/// A plain game: the price, and the buyer's bids.
fn plainly(seller: (f64, f64), buyer: (f64, f64)) -> (Option<f64>, Vec<f64>) {
    let (mut ask, mut bids) = (20.0, vec![10.0]);
    for i in 0..10 {
        let way = f64::from(i) / 9.0;
        let next = 20.0 - (20.0 - seller.0) * way.powf(1.0 / seller.1);
        let bid: f64 = *bids.last().unwrap();
        if bid >= next {
            return (Some(bid), bids);
        }
        ask = next;
        let next = 10.0 + (buyer.0 - 10.0) * way.powf(1.0 / buyer.1);
        if ask <= next {
            return (Some(ask), bids);
        }
        bids.push(next);
    }
    let _ = ask;
    (None, bids)
}

#[test]
fn a_plain_game_agrees_with_and_without_a_critic() {
    for (coached, games) in [("nobody", 1), ("nobody", 3), ("seller", 2), ("seller", 6)] {
        let played = play(&market(7, games, "own", &json!({"coached": coached})));
        let (price, gain, broken) = (column(&played, "price"), column(&played, "gain"), column(&played, "broken-last"));
        let exponents = exponents(7, &played);
        let mut deals = 0;
        for pair in 0..PAIRS as usize {
            let (s, b) = (2 * pair, 2 * pair + 1);
            if broken[s] > 0.0 {
                continue;
            }
            let last = price[s];
            let (cost, value) = (last - gain[s], last + gain[b]);
            let (mut target, mut boldness) = (cost, 1.0);
            let mut result = None;
            for _ in 0..games {
                let (price, bids) = plainly((target, exponents[s]), (value, exponents[b]));
                result = price;
                if coached == "seller" && bids.len() > 1 {
                    let step = bids[bids.len() - 1] - bids[bids.len() - 2];
                    target = match price {
                        Some(price) => (price + boldness * step).clamp(cost, 20.0),
                        None => (bids[bids.len() - 1] - step).max(cost),
                    };
                    boldness /= if price.is_none() { 2.0 } else { 1.0 };
                }
            }
            let result = result.unwrap_or_else(|| panic!("pair {pair} had a deal at {last}"));
            assert!((result - last).abs() < 1e-9, "{coached}, {games} games, pair {pair}: {result} and {last}");
            deals += 1;
        }
        assert!(deals > PAIRS as usize / 3, "{deals}");
    }
}

#[test]
fn a_critic_moves_the_price_to_the_coached_side() {
    let of = |coached: &str, shown: &str, games: u32| {
        let played = play(&market(3, games, shown, &json!({"coached": coached})));
        let last = played.rounds.last().unwrap();
        ["price", "broken-last", "seller-gain"].map(|name| metric(last, name))
    };
    let (nobody, seller, buyer) = (of("nobody", "own", 2), of("seller", "own", 2), of("buyer", "own", 2));
    let (another, five) = (of("seller", "another", 2), of("seller", "own", 5));
    println!(
        "price, broken, seller's gain: nobody {nobody:?}, seller {seller:?}, buyer {buyer:?}, another {another:?}, five games {five:?}"
    );
    assert!(seller[0] > nobody[0] + 0.3 && buyer[0] < nobody[0] - 0.3);
    assert!(nobody[1] == 0.0 && five[1] > 0.1);
    assert!(seller[2] > nobody[2] && seller[2] > another[2] + 0.3);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (policy, says) in
        [(json!({"slowest": 3}), "fastest"), (json!({"slowest": 0}), "slowest"), (json!({"boldness": -1}), "boldness")]
    {
        let found = refused(&market(1, 1, "own", &policy));
        assert!(found.contains(says), "{found}");
    }
}
