//! Trials against what theory says of each family.
#![allow(clippy::unwrap_used)]

use super::{Family, Params, Shown};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn trials(params: Params, count: u32) -> Vec<Vec<f64>> {
    (0..count).map(|i| params.trial(&mut Draws::new(3, Stream::World, 0, i)).unwrap()).collect()
}

#[test]
fn who_sees_the_move_helps_both_and_who_sees_the_mixture_does_not() {
    let of = |family, shown| trials(Params { family, shown, ..Params::default() }, 40);
    assert!(of(Family::Trust, Shown::Pure).iter().all(|trial| trial[1] == 1.0));
    assert!(of(Family::Trust, Shown::Mixed).iter().all(|trial| trial[1] == 0.0));
    assert!(of(Family::Scalable, Shown::Random).iter().all(|trial| trial[1] == 0.0));
}

#[test]
fn partial_trust_that_risks_as_much_for_what_it_brings_does_not_help() {
    let of = |caution| trials(Params { family: Family::Scalable, caution, ..Params::default() }, 40);
    assert!(of(1.0).iter().all(|trial| trial[1] == 0.0));
    assert!(of(0.3).iter().any(|trial| trial[1] == 1.0 && trial[2] > 0.0));
}

#[test]
fn every_point_that_is_called_an_equilibrium_is_one() {
    for family in [Family::Trust, Family::Scalable, Family::Observed] {
        assert!(trials(Params { family, ..Params::default() }, 5).iter().all(|trial| trial[5] < 1e-8));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { cost: -1.0, ..Params::default() }.check().is_err());
    assert!(Params { caution: 0.0, ..Params::default() }.check().is_err());
}
