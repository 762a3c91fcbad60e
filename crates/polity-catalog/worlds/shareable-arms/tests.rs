//! Trials against the Nash allocation.
#![allow(clippy::unwrap_used)]

use super::{Deviation, Feedback, Params, Rule};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn mean(params: Params, column: usize) -> f64 {
    let of = |i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()[column];
    (0..8).map(of).sum::<f64>() / 8.0
}

#[test]
fn players_settle_and_nobody_gains_by_deviation() {
    let params = Params { rounds: 40_000, ..Params::default() };
    assert!(mean(params, 0) > 0.8 && mean(params, 0) > mean(params, 1));
    assert!((mean(params, 5) - mean(params, 6)).abs() < 0.02 && mean(params, 4) < 0.7);
    assert!(mean(params, 7) < 0.02);
    assert!(mean(Params { rule: Rule::Total, ..params }, 7) > 0.02);
    assert!(mean(Params { feedback: Feedback::Random, ..params }, 0) < 0.5);
}

#[test]
fn who_harms_others_loses_more() {
    let spoiler = Params { deviation: Deviation::Spoiler, ..Params::default() };
    assert!(mean(spoiler, 7) < 0.0 && mean(spoiler, 8) < -mean(spoiler, 7));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { players: 1, ..Params::default() }.check().is_err());
    assert!(Params { margin: 0.5, ..Params::default() }.check().is_err());
}
