//! Errors of few and of many players.
#![allow(clippy::unwrap_used)]

use super::{Crowd, Params};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn means(params: Params) -> Vec<f64> {
    const TRIALS: u32 = 4;
    let all: Vec<Vec<f64>> =
        (0..TRIALS).map(|i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()).collect();
    (0..all[0].len()).map(|column| all.iter().map(|trial| trial[column]).sum::<f64>() / f64::from(TRIALS)).collect()
}

#[test]
fn the_error_falls_with_the_number_of_players() {
    let params = Params { steps: 300, ..Params::default() };
    let (found, placebo) = (means(params), means(Params { crowd: Crowd::Four, ..params }));
    assert!(found[1] < 0.5 * found[0] && found[0] < found[5]);
    assert!(placebo[1] > 2.0 * found[1]);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { few: 100, ..Params::default() }.check().is_err());
    assert!(Params { temperature: 0.0, ..Params::default() }.check().is_err());
}
