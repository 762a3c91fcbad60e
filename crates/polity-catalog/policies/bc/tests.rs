//! What recorded agents did is done; the gradient is that of a plain computation; data that do not fit.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Bc, Params};
use crate::learning::testing::{batch, check_slopes, inputs, learners, plain, plain_logs, players, recorded};
use crate::learning::{Data, Learner, Replay};
use crate::testing::{metric, open, play_with};
use polity_kernel::population::{Column, TextBuilder};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Mlp, Weights};
use serde_json::{Value, json};

/// The columns of a table, by name.
type Columns = Vec<(String, Column)>;

#[test]
fn the_gradient_is_that_of_a_plain_computation() {
    let (mut weights, mut draws) = (Weights::default(), Draws::new(2, Stream::Learner, 0, 0));
    let policy = Mlp::new(&mut weights, "policy", &[2, 4, 3], Activation::Tanh, 1.0, &mut draws);
    let learner = Bc { params: Params::default(), policy, data: Data::default() };
    let batch = batch(90, 2);
    let found = learner.slope(&weights, &batch).unwrap();
    let loss = |weights: &Weights| {
        let log = |i: usize| {
            let logits = plain(weights, "policy", batch.inputs.row(i));
            plain_logs(&logits, batch.masks.row(i))[batch.choices[i] as usize]
        };
        -(0..90).map(log).sum::<f64>() / 90.0
    };
    assert!((loss(&weights) - found.losses[0]).abs() < 1e-5);
    check_slopes(&weights, &found.of, loss);
}

#[test]
fn a_learner_does_as_recorded_agents_did() {
    let data = recorded(&players(32, 300));
    let reached = |cohort: &str| {
        let source = json!({"steps": {"file": "steps.csv"}, "cohort": cohort});
        let scenario = learners(Bc::NAME, 1, 500, &json!({"data": source}));
        metric(play_with(&scenario, &data, 1).rounds.last().unwrap(), "episode-return.mean")
    };
    let (skilled, unskilled) = (reached("skilled"), reached("unskilled"));
    assert!(skilled > 100.0 && unskilled < 15.0, "{skilled} {unskilled}");
}

/// A table of two agents on cart-pole in the rounds 0, 1 and 3; the second is not there in round 1.
fn table(change: impl Fn(&mut Columns)) -> Columns {
    let rows = [(0, 4, "left"), (0, 9, "right"), (1, 4, ""), (3, 4, "right"), (3, 9, "left")];
    let (mut choice, mut cohort) = (TextBuilder::default(), TextBuilder::default());
    rows.iter().for_each(|row| choice.push(row.2));
    rows.iter().for_each(|row| cohort.push(if row.1 == 4 { "a" } else { "b" }));
    let numbers = |of: &dyn Fn(usize) -> f64| Column::Number((0..rows.len()).map(of).collect());
    let mut columns = vec![
        ("round".to_owned(), numbers(&|i| f64::from(rows[i].0))),
        ("agent".to_owned(), numbers(&|i| f64::from(rows[i].1))),
        ("choice".to_owned(), choice.finish()),
        ("cohort".to_owned(), cohort.finish()),
    ];
    for (n, name) in ["position", "speed", "angle", "turn"].into_iter().enumerate() {
        columns.push((format!("observation.{name}"), numbers(&|i| (10 * i + n) as f64)));
    }
    columns.push(("observation.last-reward".to_owned(), numbers(&|i| i as f64 / 2.0)));
    columns.push(("observation.episode-ended".to_owned(), numbers(&|_| 0.0)));
    columns.push(("observation.episode-cut".to_owned(), numbers(&|_| 0.0)));
    columns.push(("observation.active".to_owned(), numbers(&|_| 1.0)));
    columns.push(("observation.may-left".to_owned(), numbers(&|_| 1.0)));
    columns.push(("observation.may-right".to_owned(), numbers(&|_| 1.0)));
    change(&mut columns);
    columns
}

#[test]
fn data_that_do_not_fit_are_refused() {
    let said = |columns: Columns, more: &Value| {
        let made = open(&learners(Bc::NAME, 1, 1, more), &inputs(columns), 1);
        made.map_or_else(|error| error.to_string(), |_| "accepted".into())
    };
    let refused = |change: &dyn Fn(&mut Columns)| said(table(change), &json!({}));
    assert_eq!(refused(&|_| {}), "accepted");
    let of = |cohort: &str| json!({"data": {"steps": {"file": "steps.csv"}, "cohort": cohort}});
    assert_eq!(said(table(|_| {}), &of("a")), "accepted");
    let why = said(table(|_| {}), &of("c"));
    assert!(why.contains("no cohort `c`"), "{why}");
    let why = refused(&|columns| columns.retain(|(name, _)| name != "observation.angle"));
    assert!(why.contains("observation.angle") && why.contains("data.steps"), "{why}");
    let why = refused(&|columns| {
        let mut choice = TextBuilder::default();
        ["left", "up", "left", "left", "left"].iter().for_each(|word| choice.push(word));
        columns[2].1 = choice.finish();
    });
    assert!(why.contains("`up`") && why.contains("left, right"), "{why}");
    let why = refused(&|columns| columns[0].1 = Column::Number(vec![0.0, 0.0, 0.0, 3.0, 3.0]));
    assert!(why.contains("agent 4 in round 0"), "{why}");
    let why = refused(&|columns| columns[0].1 = Column::Number(vec![0.5, 0.0, 1.0, 3.0, 3.0]));
    assert!(why.contains("`round` has 0.5"), "{why}");
    let why = refused(&|columns| columns[4].1 = Column::Number(vec![f64::NAN; 5]));
    assert!(why.contains("missing"), "{why}");
}

#[test]
fn outcomes_are_dealt_to_others_and_stay_the_same_as_a_whole() {
    use crate::learning::Seen;
    use polity_nn::Array;
    let mut replay = Replay::default();
    for t in 0..50u32 {
        let seen = Seen {
            agents: vec![2, 7],
            inputs: Array::column(vec![t as f32, t as f32]),
            rewards: vec![t as f32, 100.0 + t as f32],
            ended: vec![t % 10 == 9, false],
            cut: vec![false, t == 20],
            active: vec![true, true],
            mask: Array::zeros(2, 2),
        };
        replay.push(seen, vec![0, 1], true, u32::MAX);
    }
    let before = replay.clone();
    replay.shuffle_outcomes(&mut Draws::new(1, Stream::Learner, 0, 0));
    assert_ne!(before, replay);
    let sums = |replay: &Replay| {
        let batch = replay.batch(40_000, &mut Draws::new(2, Stream::Learner, 0, 0));
        let n = batch.choices.len() as f64;
        let mean = batch.rewards.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let ended = batch.ended.iter().filter(|ended| **ended).count() as f64 / n;
        // How much of a reward the round tells.
        let told = |i: usize| {
            let (x, y) = (f64::from(batch.inputs.row(i)[0]), f64::from(batch.rewards[i]) % 100.0);
            (x - 24.0) * (y - 24.5)
        };
        (mean, ended, (0..batch.choices.len()).map(told).sum::<f64>() / n)
    };
    let (old, new) = (sums(&before), sums(&replay));
    assert!((old.0 - new.0).abs() < 4.0 && (old.1 - new.1).abs() < 0.02, "{old:?} {new:?}");
    assert!(old.2 > 150.0 && new.2.abs() < 60.0, "{old:?} {new:?}");
}
