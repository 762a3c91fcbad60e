//! Trials against theory.

use super::{Estimator, Params};
use crate::trials::testing::{refuses, results};
use serde_json::json;

#[test]
fn evaluations_grow_more_slowly_with_variance_reduction() {
    let of = |estimator| results(Params { estimator, tolerance: 1e-3, ..Params::default() }, 4, 1).remove(0);
    let (full, reduced) = (of(Estimator::Full), of(Estimator::Reduced));
    assert!((full[2] - 1.0).abs() < 0.35 && reduced[2] < full[2], "{full:?} {reduced:?}");
    for found in [full, reduced] {
        // The operator is 1-strongly monotone: a residual r leaves a distance of at most 2 r.
        assert!(found[3] <= 1e-3 && found[4] <= 2.0 * found[3] && found[5] == 1.0, "{found:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("finite-sum-games", &[("many", json!(16)), ("tolerance", json!(0.0))]);
}
