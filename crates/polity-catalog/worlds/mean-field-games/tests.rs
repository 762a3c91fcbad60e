//! Errors of few and of many players.
#![allow(clippy::unwrap_used)]

use super::{Crowd, Params};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn mean(params: Params, column: usize) -> f64 {
    let of = |i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()[column];
    (0..8).map(of).sum::<f64>() / 8.0
}

#[test]
fn the_error_falls_with_the_number_of_players() {
    let params = Params::default();
    assert!(mean(params, 1) < 0.5 * mean(params, 0) && mean(params, 0) < mean(params, 5));
    let placebo = Params { crowd: Crowd::Four, ..params };
    assert!(mean(placebo, 1) > 2.0 * mean(params, 1));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { few: 100, ..Params::default() }.check().is_err());
    assert!(Params { temperature: 0.0, ..Params::default() }.check().is_err());
}
