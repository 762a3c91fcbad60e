//! Restarted learners against the learner alone.
#![allow(clippy::unwrap_used)]

use super::{Params, Restarts};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn mean(restarts: Restarts, column: usize) -> f64 {
    let params = Params { restarts, ..Params::default() };
    let of = |i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()[column];
    (0..8).map(of).sum::<f64>() / 8.0
}

#[test]
fn restarts_lower_regret_and_its_growth() {
    let alone = mean(Restarts::Never, 0);
    assert!(mean(Restarts::Known, 0) < alone && mean(Restarts::Tested, 0) < alone);
    assert!(mean(Restarts::Tested, 1) < mean(Restarts::Never, 1));
    assert_eq!((mean(Restarts::Never, 2), mean(Restarts::Never, 3)), (0.0, 0.0));
    assert!(mean(Restarts::Tested, 2) >= 2.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { strategies: 9, ..Params::default() }.check().is_err());
    assert!(Params { rounds: 10, ..Params::default() }.check().is_err());
}
