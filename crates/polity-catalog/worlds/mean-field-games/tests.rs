//! Errors of few and of many players.

use super::{Crowd, Params};
use crate::trials::testing::{means, refuses};
use serde_json::json;

#[test]
fn the_error_falls_with_the_number_of_players() {
    let params = Params { steps: 300, ..Params::default() };
    let (found, placebo) = (means(params, 4), means(Params { crowd: Crowd::Four, ..params }, 4));
    assert!(found[1] < 0.5 * found[0] && found[0] < found[5]);
    assert!(placebo[1] > 2.0 * found[1]);
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("mean-field-games", &[("many", json!(4)), ("temperature", json!(0.0))]);
}
