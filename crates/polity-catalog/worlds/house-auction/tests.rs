//! Tests of `house-auction` and `house-bidder` against a plain ascending auction.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::params::Params;
use super::table::Table;
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};

fn scenario(agents: u32, world: &Value, policy: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("house-auction");
    json!({"seed": 3, "rounds": 3000, "agents": agents, "world": world, "cohorts": [{"policy": policy}]})
}

#[test]
fn the_clock_stops_where_a_plain_auction_does() {
    let params = Params { seats: 4, houses: 3, seasons: 40, ..Params::default() };
    let personas = [0, 1, 2, 0];
    let mut draws = Draws::new(5, Stream::World, 0, 0);
    let mut table = Table::new(&params, &personas, &mut draws);
    let (mut sold, mut unsold, mut ties, mut gained) = (0, 0, 0, [0.0; 4]);
    while !table.is_over(&params) {
        let house = table.houses[table.house as usize].clone();
        let bidders: Vec<usize> = (0..4).filter(|seat| !table.bought[*seat]).collect();
        assert_eq!(bidders, (0..4).filter(|seat| table.within[*seat]).collect::<Vec<_>>());
        let (season, sales) = (table.season, table.sales.len());
        let gain = loop {
            for seat in 0..4 {
                table.stays[seat] = house.worth[seat] >= table.price;
            }
            let before = (table.house, table.season);
            let gain = table.call(&params, &personas, &mut draws);
            if (table.house, table.season) != before {
                break gain;
            }
        };
        // How many prices of the clock each would agree to.
        let steps = |seat: &usize| {
            let (mut price, mut agreed) = (params.reserve, 0);
            while house.worth[*seat] >= price && price <= 1.0 {
                (price, agreed) = (price + params.step, agreed + 1);
            }
            agreed
        };
        let mut agreed: Vec<usize> = bidders.iter().map(steps).collect();
        agreed.sort_unstable();
        let (most, second) = (agreed[agreed.len() - 1], if agreed.len() > 1 { agreed[agreed.len() - 2] } else { 0 });
        let Some((buyer, gain)) = gain else {
            assert_eq!(most, 0);
            unsold += 1;
            continue;
        };
        assert!(season <= table.season && sales <= table.sales.len());
        let sale = table.sales.last().unwrap();
        // The price at which the second to last left; if the last two left together, one step less.
        let rises = if most == second { most - 1 } else { second };
        assert!((sale.price - (params.reserve + params.step * rises as f64)).abs() < 1e-9);
        assert_eq!(steps(&buyer), most);
        assert!((gain - (house.worth[buyer] - sale.price)).abs() < 1e-12);
        assert_eq!(sale.left.iter().flatten().count(), bidders.len() - 1);
        gained[buyer] += gain;
        ties += usize::from(most == second);
        sold += 1;
    }
    assert!(sold > 80 && unsold > 0 && ties > 3, "{sold} {unsold} {ties}");
    assert!(gained.iter().all(|gain| *gain > 0.0));
}

#[test]
fn profiles_become_right_and_random_ones_do_not() {
    let end = |profile: &str, name: &str| {
        let played = play(&scenario(60, &json!({"seasons": 5}), &json!({"kind": "house-bidder", "profile": profile})));
        metric(played.rounds.last().unwrap(), name)
    };
    let (learned, random) = (end("learned", "accuracy"), end("random", "accuracy"));
    assert!(learned > 0.5, "{learned}");
    assert!((0.2..0.47).contains(&random), "{random}");
    assert_eq!(end("off", "accuracy"), 0.0);
    assert_eq!(end("off", "tables-done"), 1.0);
}

#[test]
fn who_cannot_pay_does_not_buy_and_profits_are_those_of_sales() {
    let personas = json!([{"name": "rich", "weights": [1, 0, 0], "budget": 1},
                          {"name": "poor", "weights": [1, 0, 0], "budget": 0.1}]);
    let world = json!({"personas": personas, "reserve": 0.2, "seasons": 4});
    let played = play(&scenario(40, &world, &json!("house-bidder")));
    let last = played.rounds.last().unwrap();
    assert_eq!(metric(last, "profit-poor"), 0.0);
    assert!(metric(last, "profit-rich") > 0.0);
    let profits = played.society.column(0);
    let mean = profits.iter().sum::<f64>() / profits.len() as f64;
    assert!((mean - metric(last, "profit")).abs() < 1e-12);
    let first: Vec<f64> = profits.iter().step_by(4).copied().collect();
    assert!((first.iter().sum::<f64>() / first.len() as f64 - metric(last, "first-profit")).abs() < 1e-12);
    // Nobody buys more than one house in a season.
    assert!(played.society.column(1).iter().all(|won| *won <= 4.0));
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let one = json!([{"name": "a", "weights": [1, 0, 0], "budget": 1}]);
    let twice =
        json!([{"name": "a", "weights": [1, 0, 0], "budget": 1}, {"name": "a", "weights": [0, 1, 0], "budget": 1}]);
    let heavy =
        json!([{"name": "a", "weights": [1, 1, 0], "budget": 1}, {"name": "b", "weights": [0, 1, 0], "budget": 1}]);
    for (world, says) in [
        (json!({"personas": one}), "2 to 10 personas"),
        (json!({"personas": twice}), "appears twice"),
        (json!({"personas": heavy}), "sum of 1"),
        (json!({"seats": 5}), "whole number of tables"),
        (json!({"step": 0}), "world.step"),
        (json!({"taste": 2}), "world.taste"),
    ] {
        let found = refused(&scenario(8, &world, &json!("house-bidder")));
        assert!(found.contains(says), "{found}");
    }
    assert!(refused(&scenario(8, &json!({}), &json!({"kind": "house-bidder", "error": 0}))).contains("policy.error"));
}
