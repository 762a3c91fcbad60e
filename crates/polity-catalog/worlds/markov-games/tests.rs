//! What is learned, with and without what the learner should see.
#![allow(clippy::unwrap_used)]

use super::{Concept, Params, Sight};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn mean(params: Params, column: usize) -> f64 {
    let of = |i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()[column];
    (0..8).map(of).sum::<f64>() / 8.0
}

#[test]
fn gaps_fall_for_all_kinds_of_equilibria() {
    for concept in [Concept::Nash, Concept::Correlated, Concept::Coarse] {
        let params = Params { concept, ..Params::default() };
        assert!(mean(params, 0) < 0.7 * mean(params, 1), "{concept:?}");
        let placebo = Params { sight: Sight::Random, ..params };
        assert!(mean(placebo, 0) > mean(params, 0), "{concept:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { actions: 5, steps: 4, ..Params::default() }.check().is_err());
    assert!(Params { episodes: 1, ..Params::default() }.check().is_err());
}
