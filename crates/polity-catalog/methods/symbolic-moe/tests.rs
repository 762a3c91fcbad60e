//! Who is recruited for which question, how often, and what the aggregator reads.

use super::{above_zero, suitable};
use crate::exchange::{Shown, drive, open, says};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

/// A team of two models and an aggregator. Annotators name geography and history in turn: geography three times, history twice, and
/// algebra once.
fn answer(effect: &Effect) -> Outcome {
    if told(effect).contains("Name the `skills`") {
        let named: &[u32] = [&[1][..], &[2], &[1, 2], &[0], &[1]][effect.id.n as usize % 5];
        let list = Value::List(named.iter().map(|i| Value::Choice(*i)).collect());
        return Outcome::Reply { value: Value::Record(vec![list]), raw: String::new(), repaired: false };
    }
    says(&format!("reasons of {} {}", effect.request.model, effect.request.sample), Value::Text("Canberra".into()))
}

fn run(method: Json, items: usize) -> Shown {
    let mut scenario = json!({
        "rounds": 1, "model": "test/b", "method": {"kind": "symbolic-moe", "profiles": {
            "test/a": {"algebra": 9.0, "geography": -1.0, "history": -1.0},
            "test/b": {"algebra": -1.0, "geography": 2.0, "history": 1.0},
        }},
        "team": [{"name": "A", "model": "test/a"}, {"name": "B"}, {"name": "Z", "model": "test/z", "role": "aggregator"}],
        "items": {"file": "items", "answer": "answer", "topic": "topic"},
    });
    for (key, value) in method.as_object().unwrap() {
        scenario["method"][key] = value.clone();
    }
    let column = |text: &str| vec![text.to_string(); items];
    let columns = [
        ("question", column("What is the capital of Australia?")),
        ("answer", column("Canberra")),
        ("topic", column("geography, cooking")),
    ];
    drive(open(&scenario, &columns, &crate::testing::registry()).unwrap(), &answer).unwrap()
}

/// How often each model was asked.
fn asked(shown: &Shown) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for effect in &shown.0 {
        *asked.entry(effect.request.model.to_string()).or_default() += 1;
    }
    asked
}

fn measured(shown: &Shown, name: &str) -> f64 {
    let metrics = &shown.1.last().unwrap().metrics;
    metrics.iter().find(|(metric, _)| metric == name).unwrap().1
}

#[test]
fn the_model_that_is_strong_in_the_skills_answers() {
    let shown = run(json!({"skills": "topic"}), 20);
    // Three answers of B, and the aggregator; A is weaker than 0 in geography, whatever it is otherwise.
    assert_eq!(asked(&shown), BTreeMap::from([("test/b".into(), 60), ("test/z".into(), 20)]));
    assert_eq!((measured(&shown, "fit"), measured(&shown, "distinct-experts")), (2.0, 1.0));
}

#[test]
fn a_lot_asks_as_often_and_whoever_comes() {
    let shown = run(json!({"skills": "topic", "recruit": "lot"}), 200);
    let asked = asked(&shown);
    assert_eq!(asked["test/a"] + asked["test/b"], 600);
    assert!((240..360).contains(&asked["test/a"]), "{asked:?}");
    assert!(measured(&shown, "fit") < 1.0);
}

#[test]
fn skills_that_an_annotator_names_once_do_not_count() {
    let shown = run(json!({}), 1);
    // The first member annotates five times. With algebra A would have a chance, too.
    assert_eq!(asked(&shown), BTreeMap::from([("test/a".into(), 5), ("test/b".into(), 3), ("test/z".into(), 1)]));
    assert_eq!(measured(&shown, "fit"), 3.0, "geography and history");
}

#[test]
fn the_aggregator_reads_every_answer_and_experts_read_none() {
    let (asked, _) = run(json!({"skills": "topic"}), 1);
    let (experts, last): (Vec<_>, Vec<_>) = asked.iter().partition(|effect| effect.id.actor < 2);
    assert_eq!((experts.len(), last.len()), (3, 1));
    let mut samples: Vec<u32> = experts.iter().map(|effect| effect.request.sample).collect();
    samples.dedup();
    assert_eq!(samples.len(), 3, "a model that is drawn again answers anew");
    for (expert, sample) in experts.iter().zip(samples) {
        assert!(!told(expert).contains("reasons of"));
        assert!(told(last[0]).contains(&format!("reasons of test/b {sample}")));
    }
}

#[test]
fn without_profiles_everybody_has_the_same_chance_and_nobody_annotates() {
    let shown = run(json!({"profiles": {}}), 200);
    let asked = asked(&shown);
    assert_eq!(asked.values().sum::<usize>(), 800);
    assert!((240..360).contains(&asked["test/a"]), "{asked:?}");
}

#[test]
fn weights_are_shifted_as_in_the_repository() {
    assert_eq!(suitable(&[Some(2.0), Some(-1.0), None]), [2.0, 0.0, 0.0]);
    assert_eq!(suitable(&[Some(-3.0), Some(0.0), None]), [1.0, 4.0, 0.0]);
    assert_eq!(above_zero(&[-3.0, 4.0]), [1.0, 8.0]);
    assert_eq!(above_zero(&[0.0, 4.0]), [0.0, 4.0]);
}
