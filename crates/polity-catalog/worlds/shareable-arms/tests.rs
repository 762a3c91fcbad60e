//! Trials against the Nash allocation.

use super::{Deviation, Feedback, Params, Rule};
use crate::trials::testing::{means, refuses};
use serde_json::json;

#[test]
fn players_settle_and_nobody_gains_by_deviation() {
    let params = Params { rounds: 40_000, ..Params::default() };
    let found = means(params, 8);
    assert!(found[0] > 0.8 && found[0] > found[1]);
    assert!((found[5] - found[6]).abs() < 0.02 && found[4] < 0.7);
    assert!(found[7] < 0.02);
    assert!(means(Params { rule: Rule::Total, ..params }, 8)[7] > 0.02);
    assert!(means(Params { feedback: Feedback::Random, ..params }, 8)[0] < 0.5);
}

#[test]
fn who_harms_others_loses_more() {
    let found = means(Params { deviation: Deviation::Spoiler, ..Params::default() }, 8);
    assert!(found[7] < 0.0 && found[8] < -found[7]);
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("shareable-arms", &[("players", json!(1)), ("margin", json!(0.5))]);
}
