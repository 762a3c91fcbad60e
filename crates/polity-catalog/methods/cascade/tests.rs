//! When the strong member is asked, and whose answer counts.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Effect, Value};
use serde_json::{Value as Json, json};

/// Members 0 and 1 are weak, 2 is strong. Returns who was asked, and whether the answer was right.
fn asked(method: Json, weak: [&str; 2]) -> (Vec<u32>, Option<bool>) {
    let mut method = method;
    method["kind"] = "cascade".into();
    let scenario = json!({"rounds": 1, "team": [{}, {}, {"role": "strong"}], "method": method});
    let reply = |effect: &Effect| {
        let answer = weak.get(effect.id.actor as usize).copied().unwrap_or("Canberra");
        says("because", Value::Text(answer.into()))
    };
    let (asked, reports) = one_question(&scenario, &reply);
    let right = reports.iter().flat_map(|report| &report.items).next().and_then(|item| item.correct);
    (asked.iter().map(|effect| effect.id.actor).collect(), right)
}

#[test]
fn the_strong_member_is_asked_where_the_weak_ones_disagree() {
    assert_eq!(asked(json!({}), ["Sydney", "Sydney"]), (vec![0, 1], Some(false)));
    assert_eq!(asked(json!({}), ["Sydney", "Perth"]), (vec![0, 1, 2], Some(true)));
    // Half of two agree.
    assert_eq!(asked(json!({"agree": 0.5}), ["Sydney", "Perth"]), (vec![0, 1], Some(false)));
}

#[test]
fn a_lot_decides_without_looking() {
    assert_eq!(asked(json!({"lot": 1}), ["Sydney", "Sydney"]), (vec![0, 1, 2], Some(true)));
    assert_eq!(asked(json!({"lot": 0}), ["Sydney", "Perth"]), (vec![0, 1], Some(false)));
    let topics = json!({"by": "topic", "topics": ["geography"], "lot": 1});
    assert_eq!(asked(topics, ["Sydney", "Sydney"]), (vec![2], Some(true)));
}

#[test]
fn items_of_other_topics_are_left_to_the_weak_members() {
    let topics = json!({"by": "topic", "topics": ["geography"]});
    assert_eq!(asked(topics, ["Sydney", "Perth"]), (vec![0, 1], Some(false)));
}
