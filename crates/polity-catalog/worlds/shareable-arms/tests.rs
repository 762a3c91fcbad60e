//! Trials against the Nash allocation.
#![allow(clippy::unwrap_used)]

use super::{Deviation, Feedback, Params, Rule};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn means(params: Params) -> Vec<f64> {
    const TRIALS: u32 = 8;
    let all: Vec<Vec<f64>> =
        (0..TRIALS).map(|i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()).collect();
    (0..all[0].len()).map(|column| all.iter().map(|trial| trial[column]).sum::<f64>() / f64::from(TRIALS)).collect()
}

#[test]
fn players_settle_and_nobody_gains_by_deviation() {
    let params = Params { rounds: 40_000, ..Params::default() };
    let found = means(params);
    assert!(found[0] > 0.8 && found[0] > found[1]);
    assert!((found[5] - found[6]).abs() < 0.02 && found[4] < 0.7);
    assert!(found[7] < 0.02);
    assert!(means(Params { rule: Rule::Total, ..params })[7] > 0.02);
    assert!(means(Params { feedback: Feedback::Random, ..params })[0] < 0.5);
}

#[test]
fn who_harms_others_loses_more() {
    let found = means(Params { deviation: Deviation::Spoiler, ..Params::default() });
    assert!(found[7] < 0.0 && found[8] < -found[7]);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { players: 1, ..Params::default() }.check().is_err());
    assert!(Params { margin: 0.5, ..Params::default() }.check().is_err());
}
