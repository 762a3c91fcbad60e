//! Tests of `commons` with rules: against a second, plain stock, against theory, and what talk changes.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::share::{gini, share};
use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

/// Seeds of the comparisons.
const SEEDS: u64 = 30;

/// Harvesters of the scenario: `rules` of all, in this world. It goes on until the world ends it.
fn lake(seed: u64, agents: u32, world: &Value, cohorts: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("commons");
    json!({"seed": seed, "rounds": 400, "agents": agents, "topology": {"kind": "complete"}, "world": world, "cohorts": cohorts})
}

/// A rule with a state, and formulas for the harvest and for the proposal.
fn rule(state: &Value, harvest: &str, propose: Option<&str>) -> Value {
    let mut actions = vec![json!({"act": "harvest", "when": "phase == 0", "value": harvest})];
    actions.extend(propose.map(|value| json!({"act": "propose", "when": "phase > 0", "value": value})));
    json!({"kind": "rule", "state": state, "actions": actions})
}

/// An agent that knows the regrowth but not how many harvest as much as itself: 1 to 5, all equally likely. It keeps to the smallest
/// amount that it knows of.
fn believer() -> Value {
    let harvest = "min(floor(stock / 2 / believed), lowest_proposal if proposals > 0 else capacity)";
    rule(&json!({"believed": "1 + floor(uniform(0, 5))"}), harvest, Some("floor(coming_stock / 2 / believed)"))
}

fn all(policy: Value) -> Value {
    json!([{"policy": policy}])
}

/// The last value of a metric.
fn last(scenario: &Value, name: &str) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), name)
}

fn mean_last(world: &Value, cohorts: &Value, name: &str) -> f64 {
    (0..SEEDS).map(|seed| last(&lake(seed, 5, world, cohorts), name)).sum::<f64>() / SEEDS as f64
}

#[test]
fn a_plain_stock_agrees_in_every_month() {
    let world = json!({"talk": 1, "months": 12, "growth": 1.7, "capacity": 230, "collapse": 0});
    let cohorts = all(rule(&json!({}), "floor(uniform(0, 14)) if month < 7 else floor(uniform(20, 90))", Some("3")));
    for seed in 0..20 {
        let mut society = open(&lake(seed, 7, &world, &cohorts), &Inputs::default(), 1).unwrap();
        let (mut stock, mut month, mut gains) = (230.0f64, 0, vec![0.0; 7]);
        let (mut above, mut all) = (0u32, 0u32);
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            if report.round % 2 == 1 {
                continue;
            }
            let demands: Vec<f64> = society.acts().flat_map(|acts| acts.rows.iter().map(|act| act.value)).collect();
            let taken = society.column(0);
            let (wanted, got) = (demands.iter().sum::<f64>(), taken.iter().sum::<f64>());
            assert_eq!(got, wanted.min(stock), "month {month}");
            for (i, took) in taken.iter().enumerate() {
                let part = demands[i].min(demands[i] * stock / wanted);
                assert!((part.floor()..=demands[i]).contains(took), "{took} of {} with {stock}", demands[i]);
                gains[i] += took;
                above += u32::from(*took > (stock * (1.0 - 1.0 / 1.7) / 7.0).floor());
                all += 1;
            }
            stock -= got;
            assert_eq!(metric(&report, "stock"), stock);
            assert_eq!(metric(&report, "survived"), f64::from(month + 1));
            assert_eq!(metric(&report, "over-use"), f64::from(above) / f64::from(all));
            assert_eq!(society.column(1), gains);
            stock = (stock * 1.7).min(230.0).floor();
            month += 1;
        }
        assert_eq!(month, 12);
    }
}

#[test]
fn too_large_demands_are_shared_in_proportion_and_nothing_is_lost() {
    for n in 0..200 {
        let mut draws = Draws::new(7, Stream::World, n, 0);
        let demands: Vec<f64> = (0..6).map(|_| (draws.unit() * 40.0).floor()).collect();
        let stock = (draws.unit() * 100.0).floor();
        let total: f64 = demands.iter().sum();
        let got = share(&demands, stock, &mut draws);
        assert_eq!(got.iter().sum::<f64>(), total.min(stock), "{demands:?} of {stock}: {got:?}");
        for (want, got) in demands.iter().zip(&got) {
            assert!(*got <= *want && *got >= (want * stock / total).floor().min(*want), "{demands:?} of {stock}");
        }
    }
}

#[test]
fn units_that_are_left_go_in_proportion_to_what_is_still_wanted() {
    // 2 of 3 units: parts are 1.2 and 0.8. The unit that is left goes to the first with weight 2 of 4.
    let firsts = (0..4_000).filter(|n| share(&[3.0, 2.0], 2.0, &mut Draws::new(3, Stream::World, *n, 0))[0] == 2.0);
    let count = firsts.count() as f64;
    assert!((count - 2_000.0).abs() < 4.0 * 1_000f64.sqrt(), "{count}");
}

#[test]
fn the_gini_index_is_that_of_all_pairs() {
    let amounts = [0.0, 3.0, 10.0, 2.0, 2.0];
    let pairs: f64 = amounts.iter().flat_map(|a: &f64| amounts.iter().map(move |b| (a - b).abs())).sum();
    assert!((gini(amounts.to_vec()) - pairs / (2.0 * 5.0 * 17.0)).abs() < 1e-12);
    assert_eq!(gini(vec![0.0; 3]), 0.0);
}

#[test]
fn the_sustainable_amount_keeps_the_stock_and_greed_ends_it_at_once() {
    let world = json!({"talk": 0, "universalize": true});
    let played = play(&lake(1, 5, &world, &all(rule(&json!({}), "sustainable", None))));
    assert_eq!(played.rounds.len(), 12);
    let end = played.rounds.last().unwrap();
    for (name, value) in
        [("survived", 12.0), ("sustained", 1.0), ("efficiency", 1.0), ("equality", 1.0), ("over-use", 0.0)]
    {
        assert_eq!(metric(end, name), value, "{name}");
    }
    assert_eq!(played.society.column(1), vec![120.0; 5], "5 agents take half of 100 in each of 12 months");
    let played = play(&lake(1, 5, &world, &all(rule(&json!({}), "sustainable + 1", None))));
    assert!(metric(played.rounds.last().unwrap(), "over-use") == 1.0);
    let greedy = play(&lake(1, 5, &world, &all(rule(&json!({}), "stock", None))));
    assert_eq!(greedy.rounds.len(), 1);
    assert_eq!(greedy.society.column(1).iter().sum::<f64>(), 100.0);
    assert!(greedy.outcome.reason.unwrap().contains("the stock has collapsed: 0 units are left in month 1"));
}

#[test]
fn talk_decides_whether_the_stock_survives() {
    let survival = |world: &Value| mean_last(world, &all(believer()), "sustained");
    let talk = survival(&json!({"talk": 1, "opening": true}));
    let silence = survival(&json!({"talk": 0}));
    let echo = survival(&json!({"talk": 1, "opening": true, "speech": "echo"}));
    let blank = survival(&json!({"talk": 1, "opening": true, "speech": "blank"}));
    println!("survival over {SEEDS} seeds: talk {talk}, silence {silence}, own words back {echo}, not heard {blank}");
    assert!(talk > 0.8, "{talk}");
    for without in [silence, echo, blank] {
        assert!(without < 0.3, "{without}");
    }
}

#[test]
fn one_who_knows_and_speaks_restrains_the_others() {
    let mixed = |speaks: bool, speech: &str| {
        let knows =
            rule(&json!({}), "floor(stock / 2 / members)", speaks.then_some("floor(coming_stock / 2 / members)"));
        let mut listens = believer();
        listens["actions"].as_array_mut().unwrap().pop();
        let cohorts = json!([{"count": 1, "policy": knows}, {"count": 4, "policy": listens}]);
        let world = json!({"talk": 1, "opening": true, "speech": speech});
        (0..SEEDS)
            .map(|seed| play(&lake(seed, 5, &world, &cohorts)).society.column(2)[1..].iter().sum::<f64>() / 4.0)
            .sum::<f64>()
            / SEEDS as f64
    };
    let (speaks, silent, echo) = (mixed(true, "heard"), mixed(false, "heard"), mixed(true, "echo"));
    println!(
        "harvests of weak members above the sustainable: {speaks}; strong one silent {silent}; own words back {echo}"
    );
    assert_eq!(speaks, 0.0);
    assert!(silent > 0.5 && echo > 0.5, "{silent} {echo}");
}

#[test]
fn a_burden_that_nobody_carries_becomes_too_large() {
    let house = json!({"inverse": true, "talk": 0, "universalize": true, "setting": "house"});
    let share = play(&lake(1, 5, &house, &all(rule(&json!({}), "sustainable", None))));
    assert_eq!(metric(share.rounds.last().unwrap(), "sustained"), 1.0);
    assert_eq!(share.society.column(1), vec![120.0; 5], "50 units a month, shared by 5");
    // The reward is a cost.
    let reward = share.society.interface().reward.unwrap();
    assert_eq!(share.society.column(reward), vec![-10.0; 5]);
    let idle = play(&lake(1, 5, &house, &all(rule(&json!({}), "sustainable - 1", None))));
    assert_eq!(idle.rounds.len(), 1);
    assert_eq!(metric(idle.rounds.last().unwrap(), "over-use"), 1.0);
    assert!(idle.outcome.reason.unwrap().contains("the burden is too large: 55 units are left"));
}

#[test]
fn newcomers_take_part_from_their_month_on() {
    let greedy = rule(&json!({}), "stock", None);
    let calm = rule(&json!({}), "floor(stock / 2 / members)", None);
    let cohorts = json!([{"count": 4, "policy": calm}, {"count": 1, "policy": greedy}]);
    let world = json!({"talk": 0, "newcomers": 1, "arrival": 3});
    let played = play(&lake(1, 5, &world, &cohorts));
    // Four members take 12 each for three months; then five take 10, and the newcomer wants all.
    assert_eq!(played.rounds.len(), 4);
    assert_eq!(metric(&played.rounds[2], "harvest"), 48.0);
    assert_eq!(metric(&played.rounds[2], "refused"), 1.0);
    assert_eq!(metric(&played.rounds[3], "harvest"), 100.0);
    assert_eq!(metric(&played.rounds[3], "refused"), 0.0);
}

#[test]
fn acts_at_the_wrong_time_do_not_count() {
    let confused = json!({"kind": "rule", "actions": [{"act": "harvest", "value": 1}, {"act": "propose", "value": 1}]});
    let played = play(&lake(1, 3, &json!({"talk": 2, "months": 2}), &all(confused)));
    assert!(played.rounds.iter().all(|round| metric(round, "refused") == 3.0));
    assert_eq!(played.society.column(1), vec![2.0; 3]);
    assert_eq!(played.rounds.len(), 4);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"capacity": 10.5}), "world.capacity: must be whole units"),
        (json!({"growth": 1}), "world.growth: must be above 1"),
        (json!({"initial": 200}), "world.initial: must be whole units from 0 to 100"),
        (json!({"newcomers": 5}), "world.newcomers: must be below the number of agents (5)"),
        (json!({"talk": 11}), "world.talk"),
        (json!({"collapse": 101}), "world.collapse"),
    ] {
        let found = refused(&lake(1, 5, &world, &all(rule(&json!({}), "1", None))));
        assert!(found.contains(says), "{found}");
    }
}
