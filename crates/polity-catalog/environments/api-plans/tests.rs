//! The cheapest plans against a plain enumeration, bounds against plans, and episodes.
#![allow(clippy::unwrap_used)]

use super::plans::Interfaces;
use crate::testing::registry;
use polity_kernel::environment::Env;
use polity_kernel::items::Item;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use serde_json::json;

fn drawn(seed: u64) -> (Interfaces, Draws) {
    let mut draws = Draws::new(seed, Stream::Episode, 0, 0);
    (Interfaces::drawn(6, 9, &mut draws), draws)
}

/// The least cost, by trying every order of calls.
fn plain(interfaces: &Interfaces, have: u32, goal: u32, cost: u32, best: &mut Option<u32>) {
    if best.is_some_and(|best| best <= cost) {
        return;
    }
    if have & (1 << goal) != 0 {
        *best = Some(cost);
        return;
    }
    for api in interfaces.apis.iter().filter(|api| api.applies(have)) {
        plain(interfaces, have | 1 << api.output, goal, cost + api.cost, best);
    }
}

#[test]
fn the_cheapest_plan_is_that_of_a_plain_search_and_no_bound_is_above_it() {
    let (mut reached, mut tight) = (0, 0);
    for seed in 0..300 {
        let (interfaces, mut draws) = drawn(seed);
        let (have, goal) = (1 << draws.below(6), draws.below(6) as u32);
        let mut best = None;
        plain(&interfaces, have, goal, 0, &mut best);
        let found = interfaces.cheapest(have, goal, 0);
        assert_eq!(found.as_ref().map(|(cost, _)| *cost), best, "seed {seed}");
        let bound = interfaces.bound(have, goal, 0);
        assert_eq!(bound.is_some(), best.is_some(), "seed {seed}");
        if let (Some(bound), Some((cost, plan))) = (bound, found) {
            assert!(bound <= cost, "seed {seed}: {bound} > {cost}");
            assert_eq!(plan.iter().map(|i| interfaces.apis[*i].cost).sum::<u32>(), cost, "seed {seed}");
            reached += u32::from(cost > 0);
            tight += u32::from(cost > 0 && bound == cost);
        }
    }
    assert!(reached > 50 && tight < reached, "{reached} plans, {tight} of them with an exact bound");
}

fn env(parameters: serde_json::Value) -> Env {
    registry().make_env(&Node::from_json(&parameters)).unwrap()
}

#[test]
fn an_episode_that_follows_the_bound_reaches_its_goal() {
    let env = env(json!({"kind": "api-plans", "cheapest": false}));
    let mut solved = 0;
    for index in 0..50 {
        let mut episode = env.begin(&Item::default(), 7, index);
        while !episode.is_done() {
            let before = episode.estimate().unwrap().unwrap();
            let offered = episode.offered(0).unwrap();
            assert!(before > 0.0 && before.is_finite() && !offered.is_empty(), "episode {index}");
            episode.step(&[offered[0].with(0, Vec::new())]).unwrap();
        }
        solved += u32::from(episode.solved(None).unwrap() == Some(true));
        assert!(episode.total_reward(0) < 0.0);
    }
    assert!(solved > 25, "{solved} of 50 goals are reached by calling whatever is offered first");
}

#[test]
fn a_broken_interface_fails_once_and_leaves_a_way_around_it() {
    let env = env(json!({"kind": "api-plans", "broken": 1, "cheapest": false, "most_calls": 40}));
    let mut failures = 0;
    for index in 0..40 {
        let mut episode = env.begin(&Item::default(), 7, index);
        while let Some(offer) = episode.offered(0).unwrap().first().cloned() {
            let result = episode.step(&[offer.with(0, Vec::new())]).unwrap();
            if result.results[0].starts_with("error") {
                failures += 1;
                assert!(episode.offered(0).unwrap().iter().all(|again| again.name != offer.name));
                assert!(episode.estimate().unwrap().unwrap().is_finite(), "episode {index}: no way is left");
            }
        }
        assert_eq!(episode.solved(None).unwrap(), Some(true), "episode {index}");
    }
    assert!(failures > 10, "{failures}");
}
