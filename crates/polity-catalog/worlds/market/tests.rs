//! Tests of `market` and `trader` against a search over all prices, direct statistics, and what must be conserved.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::book::{Order, clear};
use super::facts::{Facts, LAGS};
use crate::testing::{mean, metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn scenario(agents: u32, rounds: u32, world: &Value, cohorts: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("market");
    json!({"seed": 7, "rounds": rounds, "agents": agents, "topology": {"kind": "barabasi-albert", "links": 3},
           "world": world, "cohorts": cohorts})
}

fn traders() -> Value {
    json!([{"name": "patient", "share": 0.3, "policy": {"kind": "trader", "fundamental": 0.1, "trend": 0, "herd": 0, "tone": 0}},
           {"name": "social", "share": 0.7, "policy": "trader"}])
}

#[test]
fn the_auction_finds_the_price_of_a_search_over_all() {
    let mut draws = Draws::new(3, Stream::World, 0, 0);
    let (mut traded, mut ties) = (0, 0);
    for _ in 0..3_000 {
        let orders: Vec<Order> = (0..draws.below(12))
            .map(|who| Order {
                who: who as u32,
                buys: draws.chance(0.5),
                limit: 1 + draws.below(20) as i64,
                quantity: 1 + draws.below(5) as i64,
            })
            .collect();
        let before = 1 + draws.below(20) as i64;
        let found = clear(&orders, before, &mut draws);
        let side = |price: i64, buys: bool| {
            let fits =
                |order: &&Order| order.buys == buys && if buys { order.limit >= price } else { order.limit <= price };
            orders.iter().filter(fits).map(|order| order.quantity).sum::<i64>()
        };
        let volume = |price: i64| side(price, true).min(side(price, false));
        let rest = |price: i64| (side(price, true) - side(price, false)).abs();
        let most = (1..=20).map(volume).max().unwrap();
        let least = (1..=20).filter(|price| volume(*price) == most).map(rest).min().unwrap();
        let best: Vec<i64> = (1..=20).filter(|price| volume(*price) == most && rest(*price) == least).collect();
        let nearest = *best.iter().min_by_key(|price| ((**price - before).abs(), **price)).unwrap();
        assert_eq!(found.volume, most);
        assert_eq!(found.price, if most == 0 { before } else { nearest }, "{orders:?} {before}");
        ties += usize::from(most > 0 && best.len() > 1);
        traded += usize::from(most > 0);
        // Nobody pays more or takes less than its limit, both sides are equal, and better limits are filled first.
        let listed = &orders;
        let filled = |buys: bool| found.fills.iter().filter(move |(place, _)| listed[*place].buys == buys);
        assert_eq!(filled(true).map(|(_, n)| n).sum::<i64>(), most);
        assert_eq!(filled(false).map(|(_, n)| n).sum::<i64>(), most);
        for (place, order) in orders.iter().enumerate() {
            let own = found.fills.iter().find(|(other, _)| *other == place).map_or(0, |(_, n)| *n);
            let fits = if order.buys { order.limit >= found.price } else { order.limit <= found.price };
            assert!(own <= order.quantity && (own == 0 || fits));
            for (other, _) in filled(order.buys) {
                let worse =
                    if order.buys { orders[*other].limit < order.limit } else { orders[*other].limit > order.limit };
                assert!(!worse || own == order.quantity, "{orders:?}");
            }
        }
    }
    assert!(traded > 1_000 && ties > 300, "{traded} {ties}");
}

#[test]
fn money_and_shares_are_conserved_to_the_unit() {
    let cohorts = json!([{"name": "traders", "share": 0.9, "policy": {"kind": "trader", "stake": 1, "activity": 1, "fundamental": 0.1}},
                         {"name": "reckless", "share": 0.1, "policy": {"kind": "rule", "actions": [
                             {"act": "trade", "value": "1e6 if uniform() < 0.5 else -1e6"}, {"act": "limit", "value": "uniform(0.01, 300)"}]}}]);
    let world = json!({"cash": 1234.56, "shares": 77});
    let mut society = open(&scenario(50, 150, &world, &cohorts), &Inputs::default(), 1).unwrap();
    let mut volume = 0.0;
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let (cash, shares) = (society.column(0), society.column(1));
        assert!(cash.iter().chain(&shares).all(|owned| *owned >= 0.0));
        let cents: i64 = cash.iter().map(|money| (money * 100.0).round() as i64).sum();
        assert_eq!(cents, 123_456 * 50);
        assert_eq!(shares.iter().sum::<f64>(), 77.0 * 50.0);
        assert_eq!(metric(&report, "all-shares"), 77.0 * 50.0);
        volume += metric(&report, "volume");
    }
    assert!(volume > 1_000.0, "{volume}");
}

#[test]
fn statistics_are_those_of_a_direct_computation() {
    let mut draws = Draws::new(9, Stream::World, 0, 0);
    let mut facts = Facts::default();
    let (mut returns, mut prices, mut volumes) = (Vec::new(), vec![0.0f64], Vec::new());
    for i in 0..400 {
        let gain = draws.normal() * if i / 40 % 2 == 0 { 0.01 } else { 0.04 };
        let price = prices.last().unwrap() + gain;
        let volume = 10.0 + 500.0 * gain.abs() + draws.unit();
        facts.add(gain, volume, price, 0.1);
        returns.push(gain);
        prices.push(price);
        volumes.push(volume);
    }
    let centred = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value - mean(values)).collect() };
    let moment = |values: &[f64], power: i32| mean(&values.iter().map(|v| v.powi(power)).collect::<Vec<_>>());
    let plain = centred(&returns);
    let kurtosis = moment(&plain, 4) / moment(&plain, 2).powi(2) - 3.0;
    assert!((facts.kurtosis() - kurtosis).abs() < 1e-6, "{} {kurtosis}", facts.kurtosis());
    assert!((facts.deviation() - moment(&plain, 2).sqrt()).abs() < 1e-12);
    let absolute: Vec<f64> = returns.iter().map(|gain| gain.abs()).collect();
    for lag in 1..=LAGS {
        for (values, of) in [(&returns, false), (&absolute, true)] {
            let own = centred(values);
            let sum: f64 = (lag..own.len()).map(|i| own[i] * own[i - lag]).sum();
            let direct = sum / (own.len() - lag) as f64 / moment(&own, 2);
            assert!((facts.autocorrelation(lag, of) - direct).abs() < 0.01, "{lag} {of}");
        }
    }
    assert!(facts.clustering() > 0.1 && facts.volume_volatility() > 0.99);
    let peak = prices[1..].iter().fold(f64::NEG_INFINITY, |most, price| most.max(price - 0.1)).max(0.0);
    assert!((facts.peak - peak).abs() < 1e-12);
    // The first session's price has no recorded price before it.
    let falls = (11..prices.len()).map(|i| prices[i - 10] - prices[i]);
    assert!((facts.crash - falls.fold(0.0, f64::max)).abs() < 1e-12);
}

#[test]
fn traders_who_know_the_value_bring_the_price_to_it() {
    let knowing =
        json!([{"policy": {"kind": "trader", "fundamental": 0.5, "trend": 0, "herd": 0, "tone": 0, "attention": 0}}]);
    let played = play(&scenario(200, 200, &json!({"dispersion": 0.02}), &knowing));
    let gaps: Vec<f64> = played.rounds[20..].iter().map(|round| metric(round, "mispricing").abs()).collect();
    assert!(mean(&gaps) < 0.03, "{}", mean(&gaps));
    // Others, who do not, leave it behind.
    let blind = json!([{"policy": {"kind": "trader", "trend": 0, "herd": 0, "tone": 0, "attention": 0}}]);
    let played = play(&scenario(200, 200, &json!({"dispersion": 0.02, "news": 0.02}), &blind));
    let gaps: Vec<f64> = played.rounds[20..].iter().map(|round| metric(round, "mispricing").abs()).collect();
    assert!(mean(&gaps) > 0.06, "{}", mean(&gaps));
}

#[test]
fn the_feed_moves_the_price_only_if_it_tells_something() {
    let peak = |feed: &str| {
        let played = play(&scenario(300, 300, &json!({"feed": feed}), &traders()));
        metric(played.rounds.last().unwrap(), "return-memory")
    };
    let (heard, by_lot, blank) = (peak("neighbours"), peak("signs-by-lot"), peak("blank"));
    assert!(heard > by_lot + 0.05 && heard > blank + 0.05, "{heard} {by_lot} {blank}");
}

#[test]
fn traders_with_the_bias_sell_winners_and_keep_losers() {
    let sold = |disposition: f64| {
        let cohorts = json!([{"policy": {"kind": "trader", "fundamental": 0.1, "disposition": disposition}}]);
        let played = play(&scenario(200, 200, &json!({}), &cohorts));
        metric(played.rounds.last().unwrap(), "disposition")
    };
    let (without, with) = (sold(0.0), sold(0.3));
    assert!(with > without + 0.01, "{without} {with}");
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"price": 0}), "world.price"),
        (json!({"news": 2}), "world.news"),
        (json!({"dispersion": -1}), "world.dispersion"),
        (json!({"feed": "loud"}), "feed"),
    ] {
        let found = refused(&scenario(4, 2, &world, &traders()));
        assert!(found.contains(says), "{found}");
    }
    let found = refused(&scenario(4, 2, &json!({}), &json!([{"policy": {"kind": "trader", "stake": 2}}])));
    assert!(found.contains("policy.stake"), "{found}");
}

/// `bash scripts/campaigns.sh market` runs it in a release build.
#[test]
#[ignore = "it measures time and prints it"]
fn sessions_a_second() {
    let begun = std::time::Instant::now();
    let played = play(&scenario(1_000, 1_000, &json!({}), &traders()));
    let took = begun.elapsed().as_secs_f64();
    println!("1,000 traders: {:.0} sessions a second", played.rounds.len() as f64 / took);
}
