//! The two-step game of the paper on QMIX, and a game whose solution is a sum.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::mixed::testing::{self, reached};
use crate::testing::refused;
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    testing::playing("vdn", world, rounds, more)
}

#[test]
fn a_sum_cannot_hold_what_needs_both() {
    // Fitted to all payoffs, the sum says that 6.5 is to be had after `b`, and 7 after `a`.
    assert_eq!(reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({}))), 7.0);
    // These payoffs are sums.
    let world = json!({"kind": "two-step-game", "after_b": [[0, 4], [4, 8]]});
    assert_eq!(reached(&playing(&world, 802, &json!({}))), 8.0);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let game = json!({"kind": "two-step-game"});
    for (more, key) in [
        (json!({"buffer_rounds": 1}), "buffer_rounds"),
        (json!({"mixer": {"embedding": 8}}), "embedding"),
        (json!({"together": "friends"}), "together"),
        (json!({"observe": ["seat-2"]}), "seat-2"),
    ] {
        let why = refused(&playing(&game, 5, &more));
        assert!(why.contains(key), "{why}");
    }
}
