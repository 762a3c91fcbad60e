//! Trials against what theory says of each family.

use super::{Family, Params, Shown};
use crate::trials::testing::{refuses, results};
use serde_json::json;

#[test]
fn who_sees_the_move_helps_both_and_who_sees_the_mixture_does_not() {
    let of = |family, shown| results(Params { family, shown, ..Params::default() }, 3, 40);
    assert!(of(Family::Trust, Shown::Pure).iter().all(|trial| trial[1] == 1.0));
    assert!(of(Family::Trust, Shown::Mixed).iter().all(|trial| trial[1] == 0.0));
    assert!(of(Family::Scalable, Shown::Random).iter().all(|trial| trial[1] == 0.0));
}

#[test]
fn partial_trust_that_risks_as_much_for_what_it_brings_does_not_help() {
    let of = |caution| results(Params { family: Family::Scalable, caution, ..Params::default() }, 3, 40);
    assert!(of(1.0).iter().all(|trial| trial[1] == 0.0));
    assert!(of(0.3).iter().any(|trial| trial[1] == 1.0 && trial[2] > 0.0));
}

#[test]
fn every_point_that_is_called_an_equilibrium_is_one() {
    for family in [Family::Trust, Family::Scalable, Family::Observed] {
        assert!(results(Params { family, ..Params::default() }, 3, 5).iter().all(|trial| trial[5] < 1e-8));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("simulated-opponent", &[("cost", json!(-1.0)), ("caution", json!(0.0))]);
}
