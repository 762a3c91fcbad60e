//! What is learned, with and without what the learner should see.

use super::{Concept, Params, Sight};
use crate::trials::testing::{means, refuses};
use serde_json::json;

#[test]
fn gaps_fall_for_all_kinds_of_equilibria() {
    for concept in [Concept::Nash, Concept::Correlated, Concept::Coarse] {
        let params = Params { concept, ..Params::default() };
        let (found, placebo) = (means(params, 8), means(Params { sight: Sight::Random, ..params }, 8));
        assert!(found[0] < 0.7 * found[1], "{concept:?}");
        assert!(placebo[0] > found[0], "{concept:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("markov-games", &[("actions", json!(64)), ("episodes", json!(1))]);
}
