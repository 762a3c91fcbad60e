//! Trials against theory.
#![allow(clippy::unwrap_used)]

use super::{Estimator, Params};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn trial(params: Params) -> Vec<f64> {
    params.trial(&mut Draws::new(4, Stream::World, 0, 0)).unwrap()
}

#[test]
fn evaluations_grow_more_slowly_with_variance_reduction() {
    let of = |estimator| trial(Params { estimator, tolerance: 1e-3, ..Params::default() });
    let (full, reduced) = (of(Estimator::Full), of(Estimator::Reduced));
    assert!((full[2] - 1.0).abs() < 0.35 && reduced[2] < full[2], "{full:?} {reduced:?}");
    for found in [full, reduced] {
        // The operator is 1-strongly monotone: a residual r leaves a distance of at most 2 r.
        assert!(found[3] <= 1e-3 && found[4] <= 2.0 * found[3] && found[5] == 1.0, "{found:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { few: 300, ..Params::default() }.check().is_err());
    assert!(Params { tolerance: 0.0, ..Params::default() }.check().is_err());
}
