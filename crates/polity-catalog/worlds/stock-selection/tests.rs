//! Tests of `stock-selection` and `analyst`: returns in plain code, no look-ahead, risk and debate.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::params::Params;
use super::prices::Market;
use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn scenario(agents: u32, world: &Value, policy: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("stock-selection");
    json!({"seed": 3, "rounds": 1000, "agents": agents, "world": world, "cohorts": [{"policy": policy}]})
}

fn end(world: &Value, policy: &Value, name: &str) -> f64 {
    metric(play(&scenario(30, world, policy)).rounds.last().unwrap(), name)
}

#[test]
fn choices_do_not_see_the_future_unless_it_leaks() {
    // The shocks of the last of four periods are turned. All choices are made before.
    let code = |leak: bool, mirror: Value| {
        let world = json!({"periods": 4, "leak": leak, "mirror_from": mirror});
        (end(&world, &json!("analyst"), "choice-code"), end(&world, &json!("analyst"), "return-benchmark"))
    };
    let (plain, turned) = (code(false, Value::Null), code(false, json!(3)));
    assert_eq!(plain.0, turned.0);
    assert_ne!(plain.1, turned.1);
    // A change one period earlier reaches the last choice, by volatilities at least of those who avoid risk.
    let averse = json!({"kind": "analyst", "aversion": 0.5});
    let code_of = |mirror: Value| end(&json!({"periods": 4, "mirror_from": mirror}), &averse, "choice-code");
    assert_eq!(code_of(Value::Null), code_of(json!(3)));
    let (plain, turned) = (code(true, Value::Null), code(true, json!(3)));
    assert_ne!(plain.0, turned.0);
}

#[test]
fn prices_are_the_sum_of_what_moves_them() {
    let params = Params { stocks: 40, days: 250, ..Params::default() };
    let mut draws = Draws::new(2, Stream::World, 0, 0);
    let mut market = Market::new(&params, &mut draws);
    // Without shocks the return of a period is what its three parts say.
    let parts: Vec<f64> = market.stocks.iter().map(|stock| stock.parts(250).iter().map(|part| part.0).sum()).collect();
    market.draw(&params, 0.0, &mut draws);
    for (stock, expected) in market.stocks.iter().zip(parts) {
        assert!((stock.coming.iter().sum::<f64>() - expected).abs() < 1e-9);
    }
    // With them, and with their sign turned, the mean of both is the same.
    let (mut plain, mut turned) = (market.clone(), market.clone());
    plain.draw(&params, 1.0, &mut Draws::new(4, Stream::World, 0, 0));
    turned.draw(&params, -1.0, &mut Draws::new(4, Stream::World, 0, 0));
    market.draw(&params, 0.0, &mut draws);
    for i in 0..40 {
        for day in 0..250 {
            let mean = 0.5 * (plain.stocks[i].coming[day] + turned.stocks[i].coming[day]);
            assert!((mean - market.stocks[i].coming[day]).abs() < 1e-12);
        }
    }
    plain.pass(&mut draws);
    assert!(plain.stocks.iter().all(|stock| stock.volatility > 0.008 && stock.volatility < 0.04));
}

#[test]
fn returns_are_those_of_a_plain_backtest() {
    let analysts = json!({"kind": "analyst", "yields": 0});
    let world = json!({"stocks": 6, "picks": 2, "periods": 5, "talk": 0, "days": 10});
    let mut society = open(&scenario(3, &world, &analysts), &Inputs::default(), 1).unwrap();
    let mut benchmark = Vec::new();
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        // One act for each stock of each of three analysts.
        assert_eq!(society.acts().map(|block| block.rows.len()).sum::<usize>(), 18);
        benchmark.push(metric(&report, "return-benchmark"));
        let excess = metric(&report, "return-committee") - metric(&report, "return-benchmark");
        assert!((metric(&report, "excess") - excess).abs() < 1e-15);
        let roles: f64 = ["fundamental", "sentiment", "valuation"]
            .iter()
            .map(|role| metric(&report, &format!("return-{role}")))
            .sum();
        let over = metric(&report, "return-committee") - roles / 3.0;
        assert!((metric(&report, "excess-over-roles") - over).abs() < 1e-15);
    }
    assert_eq!(benchmark.len(), 5);
}

#[test]
fn committees_beat_the_benchmark_and_shuffled_signals_do_not() {
    let world = |signals: &str| json!({"signals": signals, "periods": 60, "noise": 0.5});
    let excess = |signals: &str, name: &str| end(&world(signals), &json!("analyst"), name);
    assert!(excess("own", "excess") > 0.0003, "{}", excess("own", "excess"));
    assert!(excess("own", "excess-over-roles") > 0.0001);
    assert!(excess("shuffled", "excess").abs() < 0.0004, "{}", excess("shuffled", "excess"));
}

#[test]
fn those_who_avoid_risk_hold_calmer_stocks_and_debate_makes_analysts_agree() {
    let volatility = |aversion: f64| {
        end(&json!({"periods": 20}), &json!({"kind": "analyst", "aversion": aversion}), "volatility-committee")
    };
    assert!(volatility(0.3) < 0.9 * volatility(0.0), "{} {}", volatility(0.3), volatility(0.0));
    let agreed = |debate: &str| end(&json!({"debate": debate}), &json!("analyst"), "agreed");
    assert!(agreed("heard") > agreed("echo") + 0.2, "{} {}", agreed("heard"), agreed("echo"));
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"stocks": 1}), "world.stocks"),
        (json!({"picks": 15}), "world.picks"),
        (json!({"days": 1}), "world.days"),
        (json!({"noise": -1}), "world.noise"),
    ] {
        let found = refused(&scenario(6, &world, &json!("analyst")));
        assert!(found.contains(says), "{found}");
    }
    assert!(refused(&scenario(4, &json!({}), &json!("analyst"))).contains("3 analysts"));
    assert!(refused(&scenario(6, &json!({}), &json!({"kind": "analyst", "scale": 0}))).contains("policy.scale"));
}
