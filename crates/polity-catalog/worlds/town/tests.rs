//! Tests of news in a town, against a second count made from the acts alone.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open};
use polity_kernel::machine::{Machine, RoundReport, Then};
use polity_kernel::scenario::Inputs;
use polity_kernel::society::Society;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn town(world: Value, policy: Value) -> Value {
    let (mut world, mut policy) = (world, policy);
    world["kind"] = "town".into();
    policy["kind"] = "gossip".into();
    json!({
        "seed": 11, "rounds": 32, "agents": 25, "topology": {"kind": "erdos-renyi", "mean_degree": 4},
        "world": world, "cohorts": [{"policy": policy}],
    })
}

fn each_round(scenario: &Value, mut seen: impl FnMut(&Society, &RoundReport)) {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        seen(&society, &report);
    }
}

fn last(scenario: &Value, name: &str) -> f64 {
    let mut value = f64::NAN;
    each_round(scenario, |_, round| value = metric(round, name));
    value
}

/// Tracks who was told which news and who knows whom from acts alone, and compares the number informed and the density of acquaintances.
#[test]
fn who_is_told_and_who_knows_whom_is_what_the_acts_say() {
    let scenario = town(json!({"news": [{"holder": 0}, {"holder": 4}]}), json!({}));
    let start = open(&scenario, &Inputs::default(), 1).unwrap();
    let acquaintances: f64 = start.column(0).iter().sum();
    let mut met: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut told: BTreeSet<(u32, u32)> = [(0, 0), (4, 1)].into();
    let mut densities = Vec::new();
    each_round(&scenario, |society, round| {
        let (mut new, mut partner, mut tellings, mut knowing) = (Vec::new(), 0, 0, 0);
        for act in society.acts().flat_map(|block| block.rows.iter()) {
            match act.kind {
                0 => {
                    partner = act.value as u32;
                    met.insert((act.who.min(partner), act.who.max(partner)));
                }
                1 => {
                    tellings += 1;
                    assert!(told.contains(&(act.who, act.value as u32)), "nobody tells what it was not told");
                    new.push((partner, act.value as u32));
                }
                _ => {
                    knowing += 1;
                    assert!(told.contains(&(act.who, act.value as u32)), "nobody knows what it was not told");
                }
            }
        }
        assert_eq!(metric(round, "informed"), f64::from(knowing) / 2.0);
        assert_eq!(knowing as usize, told.len(), "nobody forgets");
        assert_eq!(metric(round, "told"), f64::from(tellings));
        assert_eq!((metric(round, "unfounded"), metric(round, "refused")), (0.0, 0.0));
        told.extend(new);
        densities.push(metric(round, "density"));
    });
    // Pairs who knew each other before and have met count once: between the two sums.
    let (pairs, met) = (25.0 * 24.0, 2.0 * met.len() as f64);
    let end = densities.last().copied().unwrap_or_default() * pairs;
    assert!(end <= acquaintances + met + 0.5 && end >= met.max(acquaintances) - 0.5, "{end} {acquaintances} {met}");
    assert!(densities.windows(2).all(|pair| pair[0] <= pair[1]) && told.len() > 2);
}

#[test]
fn without_memory_nobody_passes_on_and_inventions_are_noticed() {
    assert_eq!(last(&town(json!({}), json!({"memory": 0})), "informed"), 1.0);
    assert!(last(&town(json!({}), json!({})), "informed") > 1.0);
    assert!(last(&town(json!({}), json!({"memory": 0, "invent": 0.5})), "unfounded") > 0.0);
    assert_eq!(last(&town(json!({"out": 0}), json!({})), "talks"), 0.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        (json!({"people_per_place": 0.5}), json!({}), "people_per_place"),
        (json!({"out": 2}), json!({}), "out"),
        (json!({"news": [{"holder": 0}, {"holder": 25}]}), json!({}), "there is no agent 25"),
        (json!({}), json!({"tell": 1.5}), "tell"),
    ];
    for (world, policy, word) in cases {
        let error = open(&town(world, policy), &Inputs::default(), 1).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(word)), "{word}: {error:?}");
    }
}
