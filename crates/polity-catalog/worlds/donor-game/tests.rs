//! Tests of `donor-game` and `donor`: against a second, plain game, and what histories and punishment change over generations.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Seeds of the comparisons.
const SEEDS: u64 = 30;

fn game(seed: u64, agents: u32, world: &Value, cohorts: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("donor-game");
    json!({"seed": seed, "rounds": 2_000, "agents": agents, "world": world, "cohorts": cohorts})
}

/// A society half of which are donors who judge, the others of another strategy. Children have the attribute `judges` from their parents.
fn mixed(seed: u64, agents: u32, world: &Value, judges: &Value, other: &str) -> Value {
    let mut judges = judges.clone();
    judges["kind"] = json!("donor");
    let cohorts = json!([{"where": "judges == 1", "policy": judges}, {"policy": {"kind": "donor", "strategy": other}}]);
    let mut scenario = game(seed, agents, world, &cohorts);
    scenario["population"] = json!({"marginals": [{"column": "judges", "shares": {"0": 0.5, "1": 0.5}}]});
    scenario["metrics"] = json!([{"kind": "mean", "of": "judges"}]);
    scenario
}

fn mean(value: impl Fn(u64) -> f64) -> f64 {
    (0..SEEDS).map(value).sum::<f64>() / SEEDS as f64
}

fn last(scenario: &Value, name: &str) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), name)
}

/// A gift in the plain game: when, by whom, to whom, which share.
type Plain = (u32, u32, u32, f64);

/// What is known of a player, by the plain list of gifts.
fn chain(gifts: &[Plain], of: u32, steps: usize) -> Vec<f64> {
    let (mut found, mut who, mut before) = (Vec::new(), of, u32::MAX);
    while found.len() < steps {
        let last = gifts.iter().filter(|gift| gift.1 == who && gift.0 < before).max_by_key(|gift| gift.0);
        let Some((round, _, to, share)) = last else { break };
        found.push(*share);
        (who, before) = (*to, *round);
    }
    found
}

#[test]
fn a_plain_game_agrees_on_all_scores() {
    // Image scorers and donors who give by lot. Who meets whom is read from the changes of their scores.
    let lot = json!({"kind": "rule", "actions": [{"act": "give", "when": "donor == 1", "value": "uniform(0, 0.3)"}]});
    let image = json!({"kind": "donor", "strategy": "image", "share": 0.4, "enough": 0.15});
    let cohorts = json!([{"count": 5, "policy": lot}, {"count": 5, "policy": image}]);
    let mut refusals = 0;
    for seed in 0..10 {
        let scenario = game(seed, 10, &json!({"rounds": 10, "generations": 1}), &cohorts);
        let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
        let (mut gifts, mut round): (Vec<Plain>, u32) = (Vec::new(), 0);
        let mut met = BTreeSet::new();
        let mut scores = vec![10.0; 10];
        while let Then::Round(_) = society.poll(Vec::new()).unwrap().then {
            let now = society.column(0);
            let given: BTreeMap<u32, f64> =
                society.acts().flat_map(|acts| acts.rows.iter().map(|act| (act.who, act.value))).collect();
            assert_eq!(given.len(), if round == 0 { 0 } else { 5 }, "half of the players are donors");
            for (donor, share) in &given {
                let gift = scores[*donor as usize] * share;
                assert!((now[*donor as usize] - (scores[*donor as usize] - gift)).abs() < 1e-9);
                let got = |who: &u32| (now[*who as usize] - scores[*who as usize] - 2.0 * gift).abs() < 1e-9;
                let to: Vec<u32> = (0..10).filter(|who| !given.contains_key(who)).filter(got).collect();
                // Of several who got the same it cannot be told whose gift it was.
                assert!(!to.is_empty(), "nobody got the gift");
                let to = if let [to] = to[..] { Some(to) } else { None };
                if let Some(to) = to {
                    assert!(met.insert((*donor, to)), "{donor} met {to} twice");
                }
                if let (Some(to), 5..) = (to, *donor) {
                    let known = chain(&gifts, to, 1);
                    assert_eq!(*share, if known.first().is_none_or(|last| *last >= 0.15) { 0.4 } else { 0.0 });
                    refusals += u32::from(*share == 0.0);
                }
                gifts.push((round, *donor, to.unwrap_or(u32::MAX), *share));
            }
            let all: f64 = given.iter().map(|(donor, share)| scores[*donor as usize] * share).sum();
            assert!((now.iter().sum::<f64>() - scores.iter().sum::<f64>() - all).abs() < 1e-9, "the factor is 2");
            (scores, round) = (now, round + 1);
        }
        assert_eq!(round, 11);
    }
    assert!(refusals > 10, "{refusals}");
}

#[test]
fn all_who_give_alike_grow_by_the_closed_form_and_defectors_stay_poor() {
    // All give the share s in turns: what a half has is (1 - s) a for donors, and b + 2 s a for recipients.
    let (s, mut a, mut b) = (0.3, 10.0, 10.0);
    for _ in 0..12 {
        (a, b) = (b + 2.0 * s * a, (1.0 - s) * a);
    }
    let all = |strategy: &str| json!([{"policy": {"kind": "donor", "strategy": strategy, "share": s}}]);
    for strategy in ["unconditional", "image", "standing"] {
        let score = last(&game(3, 12, &json!({"generations": 1}), &all(strategy)), "final-score");
        assert!((score - f64::midpoint(a, b)).abs() < 1e-6, "{strategy}: {score}");
    }
    assert_eq!(last(&game(3, 12, &json!({"generations": 3}), &all("free-rider")), "final-score"), 10.0);
}

#[test]
fn descendants_of_conditional_donors_take_over_if_histories_are_seen() {
    let image = json!({"strategy": "image", "share": 0.25});
    let givers = |world: Value| mean(|seed| last(&mixed(seed, 24, &world, &image, "free-rider"), "judges.mean"));
    let shown = givers(json!({}));
    let random = givers(json!({"history": "random"}));
    let hidden = givers(json!({"history": "hidden"}));
    let lot = givers(json!({"selection": "random"}));
    println!(
        "share of conditional donors after ten generations, {SEEDS} seeds: seen {shown}, random {random}, hidden {hidden}, selected by lot {lot}"
    );
    assert!(shown > 0.65, "{shown}");
    assert!(random < 0.1 && hidden < 0.1, "{random} {hidden}");
    assert!((0.25..0.75).contains(&lot), "{lot}");
}

#[test]
fn punishment_makes_the_deterred_give_and_no_free_rider() {
    let score = |other: &str, punishment: f64| {
        let world = json!({"generations": 1, "punishment": punishment});
        mean(|seed| last(&mixed(seed, 12, &world, &json!({"punish": 0.1}), other), "final-score"))
    };
    let [deterred, free] = ["deterred", "free-rider"].map(|other| [score(other, 0.0), score(other, 2.0)]);
    println!("final score without and with punishment: among the deterred {deterred:?}, among free riders {free:?}");
    assert!(deterred[1] > deterred[0], "{deterred:?}");
    assert!(free[1] < free[0], "{free:?}");
}

#[test]
fn half_live_on_and_children_have_their_parents_strategy() {
    let scenario = mixed(4, 12, &json!({"generations": 4, "rounds": 6}), &json!({}), "free-rider");
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
    let (mut scores, mut born) = (Vec::new(), 0);
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        assert_eq!(report.agents, 12);
        assert_eq!(report.births.len(), report.deaths.len());
        if !report.births.is_empty() {
            assert_eq!((report.round % 7, report.births.len()), (0, 6));
            let of = |who: u32| scores[who as usize];
            let dead: f64 = report.deaths.iter().map(|who| of(*who)).fold(0.0, f64::max);
            for (child, parent) in &report.births {
                assert_eq!(*child as usize, 12 + born, "children are numbered in order");
                assert!(of(*parent) >= dead && !report.deaths.contains(parent), "only those live on who have most");
                born += 1;
            }
        }
        scores = society.column(0);
    }
    assert_eq!(born, 18);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let donors = json!([{"policy": "donor"}]);
    for (world, says) in [
        (json!({"rounds": 0}), "world.rounds"),
        (json!({"trace": 4}), "world.trace"),
        (json!({"mutation": 1.5}), "world.mutation"),
    ] {
        let found = refused(&game(1, 4, &world, &donors));
        assert!(found.contains(says), "{found}");
    }
    assert!(refused(&game(1, 1, &json!({}), &donors)).contains("needs at least 2 agents"));
    let enough = json!([{"policy": {"kind": "donor", "enough": 0}}]);
    assert!(refused(&game(1, 4, &json!({}), &enough)).contains("policy.enough: must be above 0"));
}
