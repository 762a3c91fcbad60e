//! Payoffs by hand, played by rules.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn scenario(world: &Value, rules: &Value) -> Value {
    json!({"seed": 1, "rounds": 2, "agents": 4, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": rules}}]})
}

#[test]
fn payoffs_are_those_of_the_matrix_that_the_first_player_chose() {
    let world = json!({"kind": "two-step-game", "after_a": [[7, 6], [5, 4]], "after_b": [[0, 1], [2, 8]]});
    let b_when = |when: &str| json!([{"act": "b", "when": when}, {"act": "a", "when": format!("not ({when})")}]);
    // In the first step, `b` or not; in the second, `b` or not.
    let cases = [("at_start < 0", 7.0), ("at_start > 0", 0.0), ("at_start < 2", 8.0), ("after_a > 0", 4.0)];
    for (when, reward) in cases {
        let rounds = play(&scenario(&world, &b_when(when))).rounds;
        assert_eq!(metric(&rounds[0], "mean-reward"), 0.0);
        assert_eq!(metric(&rounds[1], "mean-reward"), reward, "{when}");
        assert_eq!(metric(&rounds[1], "episodes"), 2.0);
        let chose = f64::from(u8::from(["at_start > 0", "at_start < 2"].contains(&when)));
        assert_eq!(metric(&rounds[1], "chose-b"), chose, "{when}");
    }
}

#[test]
fn an_odd_number_of_players_and_payoffs_that_are_no_numbers_are_refused() {
    let rules = json!([{"act": "a"}]);
    let mut odd = scenario(&json!({"kind": "two-step-game"}), &rules);
    odd["agents"] = json!(3);
    let why = refused(&odd);
    assert!(why.contains("2 seats"), "{why}");
    let why = refused(&scenario(&json!({"kind": "two-step-game", "after_a": [[1, 2]]}), &rules));
    assert!(why.contains("after_a"), "{why}");
}
