//! Thoughts, votes and values on scripted replies, against the official program.

use crate::exchange::{one_question, says};
use crate::official::{Call, Case, Official, Rule, Who, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};

/// The mark that stands for a word: in the proportions of the official weights.
fn mark(word: &str) -> Value {
    let mark = match word {
        "sure" => 10.0,
        "likely" => 0.5,
        _ => 0.0005,
    };
    Value::Record(vec![Value::List(vec![Value::Number(mark)])])
}

#[test]
fn acts_as_the_official_program() {
    // A thought is shown after those on which it was thought.
    fn with_all_before(calls: &[Call], said: &(u32, Json)) -> Vec<(u32, Json)> {
        let thought =
            calls.iter().find(|call| call.kind == "answer" && (call.round, &call.member) == (said.0, &said.1));
        let before = thought.and_then(|call| call.shown.last()).map(|before| with_all_before(calls, before));
        before.into_iter().flatten().chain([said.clone()]).collect()
    }
    let whole_state = |case: &mut Case| {
        if !case.has("evaluate", "value") {
            return; // The text task shows whole states.
        }
        let calls = case.calls.clone();
        for call in &mut case.calls {
            let all: Vec<(u32, Json)> = call.shown.iter().flat_map(|said| with_all_before(&calls, said)).collect();
            call.shown.clear();
            for said in all {
                if !call.shown.contains(&said) {
                    call.shown.push(said);
                }
            }
        }
    };
    let rules: [Rule<'_>; 1] = [("whole-state", &whole_state)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let (evaluated, place) = (Cell::new(0), RefCell::new((0, 0)));
        let who = |_: usize, effect: &Effect| -> Who {
            let kind = match effect.request.purpose.as_str() {
                "choose" => "vote",
                "rate" => "value",
                _ => {
                    let mut place = place.borrow_mut();
                    let next = if place.0 == effect.id.round { place.1 } else { 0 };
                    *place = (effect.id.round, next + 1);
                    return (effect.id.round, json!(next), "answer");
                }
            };
            evaluated.set(evaluated.get() + 1);
            (effect.id.round, json!(format!("{kind} {}", evaluated.get())), kind)
        };
        let thoughts = Cell::new(0);
        let reply = |(_, _, kind): &Who, marker: &str| -> Outcome {
            let said = || case.replies["evaluate"][evaluated.get() - 1].clone();
            match *kind {
                "vote" => says("", Value::Choice(said().as_u64().unwrap_or_default() as u32 - 1)),
                "value" => {
                    let value = mark(said().as_str().unwrap_or_default());
                    Outcome::Reply { value, raw: String::new(), repaired: false }
                }
                _ => {
                    thoughts.set(thoughts.get() + 1);
                    let letter = case.replies["thought"][thoughts.get() - 1].as_str().map(str::to_owned);
                    answer(marker, letter.as_ref())
                }
            }
        };
        play("tree-of-thoughts", &case.settings, &who, &reply)
    });
}

#[test]
fn a_thought_that_comes_twice_is_valued_once() {
    let method = json!({"kind": "tree-of-thoughts", "thoughts": 3, "evaluations": 2, "evaluate": "value"});
    let scenario = json!({"agents": 1, "rounds": 1, "method": method});
    let thoughts = Cell::new(0);
    let (asked, reports) = one_question(&scenario, &|effect| {
        if effect.request.purpose == "rate" {
            let value = mark(if effect.request.rendered().contains("Canberra") { "sure" } else { "likely" });
            return Outcome::Reply { value, raw: String::new(), repaired: false };
        }
        thoughts.set(thoughts.get() + 1);
        let city = if thoughts.get() == 3 { "Canberra" } else { "Sydney" };
        says("it is the largest", Value::Text(city.into()))
    });
    assert_eq!(asked.len(), 3 + 2 * 2, "three thoughts, two of them new");
    assert_eq!(reports.last().and_then(|report| report.items.first()?.answer.as_deref()), Some("Canberra"));
}
