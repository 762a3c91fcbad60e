//! What is learned, with and without what the learner should see.
#![allow(clippy::unwrap_used)]

use super::{Concept, Params, Sight};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn means(params: Params) -> Vec<f64> {
    const TRIALS: u32 = 8;
    let all: Vec<Vec<f64>> =
        (0..TRIALS).map(|i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()).collect();
    (0..all[0].len()).map(|column| all.iter().map(|trial| trial[column]).sum::<f64>() / f64::from(TRIALS)).collect()
}

#[test]
fn gaps_fall_for_all_kinds_of_equilibria() {
    for concept in [Concept::Nash, Concept::Correlated, Concept::Coarse] {
        let params = Params { concept, ..Params::default() };
        let (found, placebo) = (means(params), means(Params { sight: Sight::Random, ..params }));
        assert!(found[0] < 0.7 * found[1], "{concept:?}");
        assert!(placebo[0] > found[0], "{concept:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { actions: 5, steps: 4, ..Params::default() }.check().is_err());
    assert!(Params { episodes: 1, ..Params::default() }.check().is_err());
}
