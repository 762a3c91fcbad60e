//! Rounds, the ranker, the early end and importance on scripted replies, against the official program.

use super::IMPORTANCE;
use crate::official::{Case, Official, Rule, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::RefCell;

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

/// A member's reply: with marks in a later round.
fn says(marker: &str, said: Option<&String>, marks: Option<Vec<f64>>) -> Outcome {
    match (answer(marker, said), marks) {
        (Outcome::Reply { value: Value::Record(mut fields), .. }, Some(marks)) => {
            fields.push(Value::List(marks.into_iter().map(Value::Number).collect()));
            reply(Value::Record(fields))
        }
        (outcome, _) => outcome,
    }
}

/// Marks by which the places named come first, in their order.
fn best(places: &[usize], of: usize) -> Value {
    let mark = |n: usize| places.iter().position(|place| *place == n).map_or(1.0, |first| 5.0 - first as f64);
    Value::Record(vec![Value::List((0..of).map(|n| Value::Number(mark(n))).collect())])
}

/// The members of each round, in their order.
type Order = RefCell<Vec<Vec<u32>>>;

/// Says which place of its round a call goes to, and keeps the order.
fn place(order: &Order, effect: &Effect) -> (u32, Json, &'static str) {
    let round = effect.id.round;
    if effect.request.purpose == "rate" {
        return (round, "ranker".into(), "rank");
    }
    let mut order = order.borrow_mut();
    while order.len() <= round as usize {
        order.push(Vec::new());
    }
    order[round as usize].push(effect.id.actor);
    (round, (order[round as usize].len() - 1).into(), "answer")
}

#[test]
fn acts_as_the_official_program() {
    let in_order = |case: &mut Case| {
        case.calls.iter_mut().for_each(|call| call.shown.sort_by_key(|(round, place)| (*round, place.as_u64())));
    };
    let rules: [Rule<'_>; 1] = [("order-of-the-round", &in_order)];
    let by_lot = RefCell::new(0);
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let (answers, order) = (case.answers(), Order::default());
        let agents = answers[0].len();
        let named: Option<Vec<usize>> = serde_json::from_value(case.replies["ranker"].clone()).unwrap();
        let played =
            play("dylan", &case.settings, &|_, effect| place(&order, effect), &|(round, member, kind), marker| {
                let Some(member) = member.as_u64().filter(|_| *kind == "answer") else {
                    return reply(best(named.as_ref().unwrap(), agents));
                };
                let marks = round.checked_sub(1).map(|before| {
                    let marks = &case.replies["marks"][before as usize][member as usize];
                    // Without marks the list is empty, and all count the same.
                    serde_json::from_value::<Option<Vec<f64>>>(marks.clone()).unwrap().unwrap_or_default()
                });
                says(marker, answers[*round as usize][member as usize].as_ref(), marks)
            });
        let order = order.into_inner();
        let theirs: Vec<Vec<usize>> = serde_json::from_value(case.more["agents_in_order"].clone()).unwrap();
        if let Some(named) = named {
            // Ours asks those that the ranker names; the official program asks as many, by lot.
            let mut kept: Vec<u32> = named.iter().map(|place| order[1][*place]).collect();
            let mut asked = order[2].clone();
            kept.sort_unstable();
            asked.sort_unstable();
            assert_eq!(kept, asked, "{}", case.name);
            let mut kept: Vec<usize> = serde_json::from_value(case.more["named_by_the_ranker"].clone()).unwrap();
            let mut asked = theirs[2].clone();
            kept.sort_unstable();
            asked.sort_unstable();
            *by_lot.borrow_mut() += u32::from(kept != asked);
        }
        // The official importance, by round and place, summed for our members.
        let importance: Vec<Vec<f64>> = serde_json::from_value(case.more["importance"].clone()).unwrap();
        for member in 0..agents as u32 {
            let places = order.iter().zip(&importance).flat_map(|(members, scores)| members.iter().zip(scores));
            let expected: f64 = places.filter(|(other, _)| **other == member).map(|(_, score)| score).sum();
            let ours = played.acts.iter().find(|(who, kind, _)| (*who, *kind) == (member, IMPORTANCE)).unwrap();
            assert!(
                (ours.2.parse::<f64>().unwrap() - expected).abs() < 1e-4,
                "{}: {member}: {} {expected}",
                case.name,
                ours.2
            );
        }
        played
    });
    assert!(by_lot.into_inner() > 0, "the official program asks others than those named: a difference in the README");
}

#[test]
fn who_was_dropped_stays_out() {
    let order = Order::default();
    let settings = json!({"agents": 4, "rounds": 5});
    play("dylan", &settings, &|_, effect| place(&order, effect), &|(round, member, kind), marker| match *kind {
        "rank" => reply(best(&[3, 1], 4)),
        _ => {
            let marks = (*round > 0).then(|| vec![1.0; if *round < 3 { 4 } else { 2 }]);
            says(marker, Some(&member.to_string()), marks)
        }
    });
    let order = order.into_inner();
    let sorted = |round: usize| {
        let mut members = order[round].clone();
        members.sort_unstable();
        members
    };
    assert_eq!((order.len(), order[1].len(), order[2].len()), (5, 4, 2));
    assert_eq!((sorted(3), sorted(4)), (sorted(2), sorted(2)));
}

#[test]
fn replies_without_an_answer_are_no_agreement() {
    let order = Order::default();
    let settings = json!({"agents": 4, "rounds": 3});
    let played = play("dylan", &settings, &|_, effect| place(&order, effect), &|(round, member, _), marker| {
        let silent = *round == 0 && member.as_u64() < Some(3);
        says(marker, Some(&"7".to_string()).filter(|_| !silent), (*round > 0).then(|| vec![5.0]))
    });
    // All four are asked, and the one answer is shown to the three whose agreement ends the second round.
    let shown: Vec<usize> = played.calls.iter().map(|call| call.shown.len()).collect();
    assert_eq!((shown, played.answer.as_deref()), (vec![0, 0, 0, 0, 1, 1, 1], Some("7")));
}
