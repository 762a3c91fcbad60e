//! Flows against all flows of small problems, days against plain computations, and the worth of rebalancing.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::city::{Day, wanted};
use super::flow::{Trip, cheapest, in_order};
use super::{Params, RoboTaxis};
use crate::grid::Cell;
use crate::testing::{metric, play, refused, registry};
use polity_kernel::ask::Value as Argument;
use polity_kernel::environment::{Env, Environment as _, Episode, Move};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use serde_json::{Value, json};

/// Returns the least cost of all ways to take what is too much to where it is needed, pair by pair.
fn least(surplus: &mut [u32], need: &mut [u32], cost: &[Vec<u32>], pair: usize) -> Option<u32> {
    let n = surplus.len();
    if pair == n * n {
        return surplus.iter().chain(need.iter()).all(|left| *left == 0).then_some(0);
    }
    let (from, to) = (pair / n, pair % n);
    let mut found: Option<u32> = None;
    for go in 0..=surplus[from].min(need[to]) {
        (surplus[from], need[to]) = (surplus[from] - go, need[to] - go);
        let rest = least(surplus, need, cost, pair + 1).map(|rest| rest + go * cost[from][to]);
        (surplus[from], need[to]) = (surplus[from] + go, need[to] + go);
        found = found.into_iter().chain(rest).min();
    }
    found
}

#[test]
fn no_other_flow_costs_less() {
    let mut draws = Draws::new(7, Stream::Episode, 0, 0);
    let mut dearer = 0;
    for _ in 0..400 {
        let n = 2 + draws.below(4) as usize;
        let cost: Vec<Vec<u32>> = (0..n).map(|_| (0..n).map(|_| 1 + draws.below(9) as u32).collect()).collect();
        let (mut surplus, mut need) = (vec![0; n], vec![0; n]);
        for _ in 0..draws.below(7) {
            surplus[draws.below(n as u64) as usize] += 1;
            need[draws.below(n as u64) as usize] += 1;
        }
        let total = |trips: &[Trip]| -> u32 {
            let (mut gone, mut come) = (vec![0; n], vec![0; n]);
            trips.iter().for_each(|(from, to, n)| (gone[*from], come[*to]) = (gone[*from] + n, come[*to] + n));
            assert_eq!((&gone, &come), (&surplus, &need));
            trips.iter().map(|(from, to, n)| n * cost[*from][*to]).sum()
        };
        let (found, plain) =
            (total(&cheapest(&surplus, &need, |from, to| cost[from][to])), total(&in_order(&surplus, &need)));
        let expected = least(&mut surplus.clone(), &mut need.clone(), &cost, 0);
        assert_eq!(Some(found), expected, "{surplus:?} {need:?} {cost:?}");
        dearer += u32::from(plain > found);
    }
    assert!(dearer > 100, "{dearer}");
}

#[test]
fn shares_are_rounded_to_all_vehicles_that_wait() {
    let one = Some(1.0);
    assert_eq!(wanted(&[5, 0, 0], &[one; 3]), [2, 2, 1]);
    assert_eq!(wanted(&[7, 1, 2], &[Some(3.0), one, Some(6.0)]), [3, 1, 6]);
    assert_eq!(wanted(&[7, 1, 2], &[one, None, one]), [5, 1, 4]);
    assert_eq!(wanted(&[7, 1, 2], &[None; 3]), [7, 1, 2]);
    assert_eq!(wanted(&[0, 0], &[one; 2]), [0, 0]);
}

fn city(keys: &Value) -> Env {
    let mut world = json!({"kind": "robo-taxis"});
    keys.as_object().unwrap().iter().for_each(|(key, value)| world[key] = value.clone());
    registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"))
}

fn day(episode: &Episode) -> Day {
    serde_json::from_value(episode.state().unwrap()).unwrap()
}

fn want(numbers: &[f64]) -> Vec<Move> {
    let made = |(seat, number): (u32, &f64)| Move { seat, action: 0, argument: Argument::Number(*number) };
    (0..).zip(numbers).map(made).collect()
}

/// Returns the mean requests of a step from one region of 3 x 3 to another, by another formula: probabilities of pairs of places.
fn expected(params: &Params, step: u32, from: usize, to: usize) -> f64 {
    let cell = |region: usize| Cell { x: (region % 3) as u8, y: (region / 3) as u8 };
    let out = |region: usize| f64::from(cell(region).steps_to(Cell { x: 1, y: 1 })) / 2.0;
    let evening = 0.5 - (std::f64::consts::PI * f64::from(step) / f64::from(params.steps - 1)).cos() / 2.0;
    let weight = |from: usize, to: usize| (params.tide * (2.0 * evening - 1.0) * (out(to) - out(from))).exp();
    let pairs = (0..9).flat_map(|from| (0..9).map(move |to| (from, to))).filter(|(from, to)| from != to);
    9.0 * params.demand * weight(from, to) / pairs.map(|(from, to)| weight(from, to)).sum::<f64>()
}

#[test]
fn days_are_those_of_a_plain_computation() {
    let params = Params::default();
    let environment = city(&json!({}));
    let number = |episode: &Episode, seat, name: &str| {
        let slot = environment.interface().number("robo-taxis", name).unwrap();
        episode.observe(seat, |seen| seen.number(slot)).unwrap()
    };
    for seed in 0..5 {
        let mut episode = environment.begin(&Default::default(), seed, 0);
        let mut numbers = Draws::new(seed, Stream::Learner, 0, 0);
        for step in 0..params.steps {
            let before = day(&episode);
            let vehicles: u32 = before.waiting.iter().chain(before.coming.iter().flatten()).sum();
            assert_eq!(vehicles, 72);
            let mean = |step: u32, region: usize| match step < params.steps {
                true => {
                    before.busy[region]
                        * (0..9).filter(|to| *to != region).map(|to| expected(&params, step, region, to)).sum::<f64>()
                }
                false => 0.0,
            };
            let seen = |region: usize| {
                let coming: u32 = before.coming.iter().map(|arrivals| arrivals[region]).sum();
                let later = (1..=3).map(|ahead| mean(step + ahead, region)).sum::<f64>() / 3.0;
                [
                    f64::from(before.waiting[region]) / 8.0,
                    f64::from(coming) / 8.0,
                    mean(step, region) / 2.0,
                    later / 2.0,
                ]
            };
            for (seat, around) in [(0, vec![1, 3]), (4, vec![1, 3, 5, 7]), (5, vec![2, 4, 8])] {
                for (i, name) in ["waiting", "coming", "demand", "later"].iter().enumerate() {
                    let near = around.iter().map(|region| seen(*region)[i]).sum::<f64>() / around.len() as f64;
                    let (own, beside) = (number(&episode, seat, name), number(&episode, seat, &format!("near-{name}")));
                    assert!((own - seen(seat as usize)[i]).abs() < 1e-9, "{name}: {own}");
                    assert!((beside - near).abs() < 1e-9, "near {name}: {beside}, not {near}");
                }
            }
            // Vehicles go one by one, and passengers one by one.
            let moves: Vec<f64> = (0..9).map(|_| numbers.range(-3.0, 3.0)).collect();
            let result = episode.step(&want(&moves)).unwrap();
            let after = day(&episode);
            let weights: Vec<Option<f64>> = moves.iter().map(|number| Some(number.exp())).collect();
            let mut waiting = wanted(&before.waiting, &weights);
            let steps = |from: usize, to: usize| (from % 3).abs_diff(to % 3) + (from / 3).abs_diff(to / 3);
            let (mut surplus, mut need) = (vec![], vec![]);
            for (region, waiting) in waiting.iter_mut().enumerate() {
                surplus.push(before.waiting[region].saturating_sub(*waiting));
                need.push(waiting.saturating_sub(before.waiting[region]));
                *waiting = (*waiting).min(before.waiting[region]) + before.coming[0][region];
            }
            let mut empty = 0;
            for (from, to, n) in cheapest(&surplus, &need, |from, to| steps(from, to) as u32) {
                empty += u64::from(n) * steps(from, to) as u64;
                waiting[to] += if steps(from, to) == 1 { n } else { 0 };
            }
            let (mut requests, mut served, mut fares) = (0, 0, 0);
            let mut draws = Draws::new(seed, Stream::Episode, step + 1, 0);
            for (from, waiting) in waiting.iter().enumerate() {
                let mut passengers: Vec<usize> = Vec::new();
                for to in (0..9).filter(|to| *to != from) {
                    let n = draws.poisson(before.busy[from] * expected(&params, step, from, to));
                    passengers.extend((0..n).map(|_| steps(from, to)));
                }
                requests += passengers.len() as u64;
                passengers.sort_unstable();
                for steps in passengers.iter().rev().take(*waiting as usize) {
                    (served, fares) = (served + 1, fares + 1 + *steps as u64);
                }
            }
            let sums = [
                after.sums.requests - before.sums.requests,
                after.sums.served - before.sums.served,
                after.sums.fares - before.sums.fares,
                after.sums.empty - before.sums.empty,
            ];
            assert_eq!(sums, [requests, served, fares, empty]);
            let reward = (fares as f64 - 0.25 * empty as f64) / 72.0;
            assert!(result.rewards.iter().all(|found| (found - reward).abs() < 1e-9), "{:?}", result.rewards);
            assert_eq!(result.done, step == 19);
        }
    }
}

fn scenario(world: &Value, actions: &Value) -> Value {
    let mut scenario = json!({"seed": 1, "rounds": 20, "agents": 1_800, "topology": {"kind": "none"}, "world": {"kind": "robo-taxis"},
        "cohorts": [{"policy": {"kind": "rule", "actions": actions}}]});
    world.as_object().unwrap().iter().for_each(|(key, value)| scenario["world"][key] = value.clone());
    scenario
}

/// Returns what a day brings: the share of requests that are served, profit and empty driving of each vehicle.
fn brings(world: &Value, actions: &Value) -> [f64; 3] {
    let round = play(&scenario(world, actions)).rounds.pop().unwrap();
    ["served", "profit", "empty"].map(|name| metric(&round, name))
}

#[test]
fn vehicles_are_worth_more_where_they_are_wanted() {
    let stay = json!([{"act": "want", "value": 0, "when": false}]);
    let even = json!([{"act": "want", "value": 0}]);
    let needed = json!([{"act": "want", "value": "clamp(1.5 * ln(0.05 + demand + later), -3, 3)"}]);
    let [none, uniform, informed] = [&stay, &even, &needed].map(|actions| brings(&json!({}), actions));
    assert!(informed[0] > uniform[0] + 0.05 && uniform[0] > none[0] + 0.05);
    assert!(informed[1] > uniform[1] && uniform[1] > none[1]);
    assert_eq!(none[2], 0.0);
    // Every request is served where there are enough vehicles.
    assert_eq!(brings(&json!({"vehicles": 1_000}), &stay)[0], 1.0);
    // Without shortest trips there is more driving; of two regions there is one way.
    let in_order = brings(&json!({"trips": "in-order"}), &even);
    assert!(in_order[2] > 1.05 * uniform[2], "{in_order:?}");
    let two = |trips: &str| brings(&json!({"width": 2, "height": 1, "trips": trips}), &even);
    assert_eq!(two("in-order"), two("shortest"));
}

#[test]
fn regions_can_be_shown_what_others_should_see() {
    let mut episode = city(&json!({"scrambled": true})).begin(&Default::default(), 2, 0);
    let own: Vec<u8> = (0..9).collect();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut shown = day(&episode).shown;
        seen.push(shown.clone());
        shown.sort_unstable();
        assert_eq!(shown, own);
        episode.step(&[]).unwrap();
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2] && seen.iter().all(|shown| *shown != own));
}

#[test]
fn bad_states_and_keys_are_refused() {
    let keys = [
        ("width", json!(9)),
        ("height", json!(0)),
        ("vehicles", json!(0)),
        ("steps", json!(1)),
        ("demand", json!(0)),
        ("tide", json!(-1)),
        ("cost", json!(11)),
    ];
    for (key, value) in keys {
        let why = refused(&scenario(&json!({key: value}), &json!([])));
        assert!(why.contains(key), "{why}");
    }
    assert!(refused(&scenario(&json!({"width": 1, "height": 1}), &json!([]))).contains("two regions"));
    let environment = city(&json!({"width": 2, "height": 1}));
    let good = json!({"step": 3, "busy": [1.0, 0.5], "waiting": [9, 5], "coming": [[0, 2]], "shown": [0, 1],
        "sums": {"requests": 5, "served": 4, "fares": 8, "empty": 0}});
    let mut episode = environment.begin(&Default::default(), 1, 0);
    episode.begin_from(&good).unwrap();
    episode.step(&want(&[1.0, -1.0])).unwrap();
    let bad = [
        ("step", json!(20)),
        ("busy", json!([1.0])),
        ("busy", json!([1.0, -0.5])),
        ("waiting", json!([9, 6])),
        ("coming", json!([])),
        ("coming", json!([[2]])),
        ("shown", json!([0, 2])),
        ("shown", json!([1, 1])),
        ("sums", json!({"requests": 5, "served": 6, "fares": 8, "empty": 0})),
        ("sums", json!({"requests": 5, "served": 4, "fares": u64::MAX, "empty": 0})),
    ];
    for (key, value) in bad {
        let mut state = good.clone();
        state[key] = value;
        assert!(episode.begin_from(&state).is_err(), "{state}");
    }
    assert_eq!(RoboTaxis::NAME, "robo-taxis");
}
