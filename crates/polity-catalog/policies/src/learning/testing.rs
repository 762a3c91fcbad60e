//! Data that tests learn from, and a second, plain computation of networks and of slopes.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::learning::Batch;
use crate::testing::{metric, open, play_with};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::population::{Column, Table, TextBuilder};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_nn::{Array, Weights};
use serde_json::{Value, json};
use std::sync::Arc;

/// Runs a scenario and returns the table of its steps, as the file `steps.csv`.
pub fn recorded(scenario: &Value) -> Inputs {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap();
    let names: Vec<String> = society.interface().numbers().map(|field| field.name.to_string()).collect();
    let (mut rounds, mut agents, mut seen) = (Vec::new(), Vec::new(), vec![Vec::new(); names.len()]);
    let (mut cohorts, mut choices) = (TextBuilder::default(), TextBuilder::default());
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(report) => {
                let steps = society.steps(&report);
                for row in 0..steps.agents.len() {
                    rounds.push(f64::from(report.round));
                    agents.push(f64::from(steps.agents[row]));
                    cohorts.push(&society.cohorts()[usize::from(steps.cohorts[row])]);
                    choices.push(steps.choices[row].as_deref().unwrap_or_default());
                }
                seen.iter_mut().zip(steps.seen).for_each(|(all, new)| all.extend(new));
            }
            Then::Done(_) => break,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("these leaves ask nobody"),
        }
    }
    let mut columns = vec![
        ("round".to_owned(), Column::Number(rounds)),
        ("agent".to_owned(), Column::Number(agents)),
        ("cohort".to_owned(), cohorts.finish()),
        ("choice".to_owned(), choices.finish()),
    ];
    let named = names.into_iter().zip(seen);
    columns.extend(named.map(|(name, values)| (format!("observation.{name}"), Column::Number(values))));
    inputs(columns)
}

/// Returns a table as the file `steps.csv`.
pub fn inputs(columns: Vec<(String, Column)>) -> Inputs {
    let table = Arc::new(Table::new(columns).unwrap());
    Inputs { tables: [("steps.csv".to_owned(), table)].into(), ..Inputs::default() }
}

/// Players of cart-pole of mixed quality: one in four keeps the pole up, the others mostly push it over.
pub fn players(agents: u32, rounds: u32) -> Value {
    let pushing = |skill: f64| {
        let right = format!("(angle + turn / 2 > 0) if luck < {skill} else (angle + turn / 2 <= 0)");
        let left = format!("not ({right})");
        json!({"kind": "rule", "state": {"luck": 0}, "update": {"luck": "uniform()"},
            "actions": [{"act": "right", "when": right}, {"act": "left", "when": left}]})
    };
    json!({"seed": 7, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
        "cohorts": [{"name": "skilled", "share": 0.25, "policy": pushing(0.9)},
            {"name": "unskilled", "share": 0.75, "policy": pushing(0.35)}]})
}

/// A cohort that learns in a world. `more`: further keys of the policy.
pub fn learning(kind: &str, world: &Value, [agents, rounds]: [u32; 2], more: &Value) -> Value {
    let mut policy = json!({"kind": kind});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

/// Checks that weights are the same on two shards, and if a run of so many rounds continues from a snapshot.
pub fn weights_are_the_same_again(scenario: &Value, [snapshot, rounds]: [u32; 2]) {
    let [one, two] = [1, 2].map(|shards| play_with(scenario, &Inputs::default(), shards));
    assert_eq!(one.outcome.digest, two.outcome.digest);
    let weights = one.society.weights().unwrap();
    assert_eq!((&weights, weights.len()), (&two.society.weights().unwrap(), 1));
    let mut society = open(scenario, &Inputs::default(), 1).unwrap();
    for _ in 0..snapshot {
        society.poll(Vec::new()).unwrap();
    }
    let saved = society.snapshot().unwrap();
    let mut society = open(scenario, &Inputs::default(), 1).unwrap();
    society.restore(&saved).unwrap();
    while society.next_round() < rounds {
        society.poll(Vec::new()).unwrap();
    }
    assert_eq!(society.weights().unwrap(), weights);
}

/// Learners of cart-pole from data. `more`: further keys of the policy.
pub fn learners(kind: &str, seed: u64, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": kind, "gradient_steps": 4, "data": {"steps": {"file": "steps.csv"}}});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": seed, "rounds": rounds, "agents": 16, "topology": {"kind": "none"},
        "world": {"kind": "cart-pole", "steps": 200}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

/// Checks that a learner gets far more from steps of mixed quality than imitation does, and than itself if outcomes are dealt by lot.
/// `more`: further keys of the policy.
pub fn finds_good_choices(kind: &str, more: &Value) {
    let data = recorded(&players(32, 300));
    let reached = |kind: &str, outcomes: &str, more: &Value| {
        let mut scenario = learners(kind, 1, 700, more);
        scenario["cohorts"][0]["policy"]["data"]["outcomes"] = outcomes.into();
        metric(play_with(&scenario, &data, 1).rounds.last().unwrap(), "episode-return.mean")
    };
    let learned = reached(kind, "recorded", more);
    let (imitated, placebo) = (reached("bc", "recorded", &json!({})), reached(kind, "shuffled", more));
    assert!(learned > 3.0 * imitated && learned > 3.0 * placebo, "{learned} {imitated} {placebo}");
}

/// Returns random decisions with three choices, one of which is not offered in some rows.
pub fn batch(n: usize, inputs: usize) -> Batch {
    let mut draws = Draws::new(5, Stream::Learner, 0, 0);
    let mut random = |columns: usize| Array::new(n, columns, (0..n * columns).map(|_| draws.normal() as f32).collect());
    let masks = || Array::new(n, 3, (0..3 * n).map(|i| if i % 3 == 2 && i % 7 < 3 { -1e9 } else { 0.0 }).collect());
    Batch {
        inputs: random(inputs),
        masks: masks(),
        choices: (0..n as u32).map(|i| i % 2).collect(),
        rewards: random(1).data().to_vec(),
        ended: (0..n).map(|i| i % 3 == 1).collect(),
        then: random(inputs),
        then_masks: masks(),
    }
}

/// Returns what a network with hyperbolic tangents between its layers makes of a row, computed term by term.
pub fn plain(weights: &Weights, name: &str, row: &[f32]) -> Vec<f64> {
    let mut x: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
    let layers: Vec<&Array> =
        weights.iter().filter(|of| of.name.starts_with(&format!("{name}."))).map(|of| &of.array).collect();
    for (i, layer) in layers.chunks(2).enumerate() {
        if i > 0 {
            x.iter_mut().for_each(|x| *x = libm::tanh(*x));
        }
        let term = |from: usize, to: usize| x[from] * f64::from(layer[0].row(from)[to]);
        let sum = |to: usize| f64::from(layer[1].row(0)[to]) + (0..x.len()).map(|from| term(from, to)).sum::<f64>();
        x = (0..layer[0].columns()).map(sum).collect();
    }
    x
}

/// Returns the logarithms of the probabilities of logits, with their mask.
pub fn plain_logs(logits: &[f64], mask: &[f32]) -> Vec<f64> {
    let open: Vec<f64> = logits.iter().zip(mask).map(|(x, mask)| x + f64::from(*mask)).collect();
    let all = libm::log(open.iter().map(|x| libm::exp(*x)).sum());
    open.iter().map(|x| x - all).collect()
}

/// Checks gradients against differences of a loss that is computed in another way.
pub fn check_slopes(weights: &Weights, found: &[Array], loss: impl Fn(&Weights) -> f64) {
    let step = 1e-3f32;
    for (i, tensor) in weights.iter().enumerate() {
        for j in 0..tensor.array.data().len() {
            let moved = |by: f32| {
                let mut moved = weights.clone();
                moved.arrays_mut().nth(i).unwrap().data_mut()[j] += by;
                loss(&moved)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            let got = f64::from(found[i].data()[j]);
            assert!((slope - got).abs() < 2e-3 * slope.abs().max(1.0), "{} {j}: {got}, not {slope}", tensor.name);
        }
    }
}
