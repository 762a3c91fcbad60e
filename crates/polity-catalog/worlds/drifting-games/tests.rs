//! Restarted learners against the learner alone.
#![allow(clippy::unwrap_used)]

use super::{Params, Restarts};
use crate::trials::Experiment;
use polity_kernel::rng::{Draws, Stream};

fn means(params: Params) -> Vec<f64> {
    const TRIALS: u32 = 8;
    let all: Vec<Vec<f64>> =
        (0..TRIALS).map(|i| params.trial(&mut Draws::new(2, Stream::World, 0, i)).unwrap()).collect();
    (0..all[0].len()).map(|column| all.iter().map(|trial| trial[column]).sum::<f64>() / f64::from(TRIALS)).collect()
}

#[test]
fn restarts_lower_regret_and_its_growth() {
    let of = |restarts| means(Params { restarts, ..Params::default() });
    let (alone, known, tested) = (of(Restarts::Never), of(Restarts::Known), of(Restarts::Tested));
    assert!(known[0] < alone[0] && tested[0] < alone[0]);
    assert!(tested[1] < alone[1]);
    assert_eq!((alone[2], alone[3]), (0.0, 0.0));
    assert!(tested[2] >= 2.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Params { strategies: 9, ..Params::default() }.check().is_err());
    assert!(Params { rounds: 10, ..Params::default() }.check().is_err());
}
