//! The selection agent's marks decide which search comes first.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Outcome, Value};
use serde_json::json;

/// The questions for answers in the first round, if the selection agent favours one of the searches.
fn first_answers(favoured: usize) -> usize {
    let scenario = json!({
        "rounds": 1, "agents": 1, "method": {"kind": "plangen", "constraints": false, "samples": 5, "accept": 100},
    });
    let (asked, _) = one_question(&scenario, &|effect| {
        let told = effect.request.rendered();
        if told.contains("Mark each of the three ways") {
            let marks = (0..3).map(|way| Value::Number(if way == favoured { 1.0 } else { 0.0 })).collect();
            let value = Value::Record(vec![Value::List(marks)]);
            return Outcome::Reply { value, raw: String::new(), repaired: false };
        }
        match effect.request.purpose.as_str() {
            "rate" => {
                let value = Value::Record(vec![Value::Number(10.0), Value::Text("doubtful".into())]);
                Outcome::Reply { value, raw: String::new(), repaired: false }
            }
            _ => says("", Value::Text("Canberra".into())),
        }
    });
    // The first pass asks for as many answers at once as its search begins with.
    let answers: Vec<u32> =
        asked.iter().filter(|effect| effect.request.purpose == "solve").map(|effect| effect.id.n).collect();
    let first = answers.first().copied().unwrap_or_default();
    answers.iter().zip(first..).take_while(|(n, next)| **n == *next).count()
}

#[test]
fn the_search_that_suits_the_question_comes_first() {
    // Best of n asks for five answers at once, the tree for three, the balanced search for three and develops two.
    assert_eq!(first_answers(0), 5);
    assert_eq!(first_answers(1), 3);
    assert_eq!(first_answers(2), 3);
}
