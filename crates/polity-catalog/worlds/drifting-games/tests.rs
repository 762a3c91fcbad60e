//! Restarted learners against the learner alone.

use super::{Params, Restarts};
use crate::trials::testing::{means, refuses};
use serde_json::json;

#[test]
fn restarts_lower_regret_and_its_growth() {
    let of = |restarts| means(Params { restarts, ..Params::default() }, 8);
    let (alone, known, tested) = (of(Restarts::Never), of(Restarts::Known), of(Restarts::Tested));
    assert!(known[0] < alone[0] && tested[0] < alone[0]);
    assert!(tested[1] < alone[1]);
    assert_eq!((alone[2], alone[3]), (0.0, 0.0));
    assert!(tested[2] >= 2.0);
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("drifting-games", &[("strategies", json!(9)), ("rounds", json!(10))]);
}
