//! Tests of tools for methods and agents, against a scripted model that reads their results.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, play_evaluation};
use polity_kernel::ask::{Answer, Effect, Outcome, Part, ResponseFormat, Usage, Value};
use polity_kernel::machine::{ItemReport, Machine, Then};
use polity_kernel::scenario::Inputs;
use polity_kernel::tool::ToolCall;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Questions about a shop, with the right answers: pieces of the goods in the table.
fn questions() -> Vec<(String, String)> {
    let goods = [("ink", 7.5), ("lamp", 42.0), ("paper", 3.25), ("stool", 61.0)];
    let mut all = Vec::new();
    for (i, (one, price)) in goods.iter().enumerate() {
        for (j, (other, others)) in goods.iter().enumerate() {
            let (n, m) = (i + 2, 2 * j + 1);
            let right = n as f64 * price + m as f64 * others;
            all.push((format!("What is the price of {n} x {one} and {m} x {other} together?"), right.to_string()));
        }
    }
    all
}

fn tools(environment: Json) -> Json {
    json!({"rounds": 8, "agents": 1, "model": "test/scripted", "method": "react", "environment": environment,
        "items": {"file": "items", "answer": "answer", "scorer": "number"}})
}

/// A clerk that looks both goods up, computes the sum from the results, and answers with it.
fn clerk(effect: &Effect) -> Value {
    let request = &effect.request;
    let question = request.messages[0].rendered();
    let question = question.lines().next().unwrap();
    let words: Vec<&str> = question.trim_end_matches(" together?").split(' ').collect();
    let (n, one, m, other) = (words[5], words[7], words[9], words[11]);
    let results: Vec<&str> = request.messages.iter().flat_map(|message| &message.parts).filter_map(result).collect();
    let (tool, arguments) = match results.as_slice() {
        [] => ("look-up", json!({"good": one, "column": "price"})),
        [_] => ("look-up", json!({"good": other, "column": "price"})),
        [first, second] => ("calculate", json!({"expression": format!("{n} * {first} + {m} * {second}")})),
        [.., last] => ("answer", json!({"answer": last})),
    };
    let ResponseFormat::Calls(tools) = &request.response_format else { panic!("{:?}", request.response_format) };
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["look-up", "calculate", "answer"]);
    let call = ToolCall::new(tool, arguments.as_object().unwrap());
    Value::Calls { text: "so far so good".into(), calls: vec![call] }
}

/// What a tool returned.
fn result(part: &Part) -> Option<&str> {
    match part {
        Part::Result(result) => Some(&result.text),
        _ => None,
    }
}

/// The same clerk, ignoring the tools' results.
fn blind(effect: &Effect) -> Value {
    let mut effect = effect.clone();
    for part in Arc::make_mut(&mut effect.request.messages).iter_mut().flat_map(|message| &mut message.parts) {
        if let Part::Result(result) = part {
            result.text = "1".into();
        }
    }
    clerk(&effect)
}

fn answer(effect: &Effect, value: Value) -> Answer {
    let outcome = Outcome::Reply { value, raw: String::new(), repaired: false };
    Answer { id: effect.id, request: effect.request.clone(), outcome, usage: Usage::default(), reasoning: None }
}

/// Runs an evaluation of the questions to its end.
fn play(scenario: &Json, model: fn(&Effect) -> Value, break_at: Option<u32>) -> (Vec<ItemReport>, String, u64) {
    play_evaluation(scenario, &questions(), model, break_at)
}

#[test]
fn a_model_that_reads_what_tools_give_back_answers_right_and_one_that_does_not_does_not() {
    let scenario = tools(json!("shop-tools"));
    let (items, digest, asked) = play(&scenario, clerk, None);
    assert_eq!(items.len(), questions().len());
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    assert_eq!(asked, 4 * items.len() as u64, "two look-ups, a sum and an answer");
    for item in &items {
        assert_eq!(item.measured, [Some(1.0), Some(4.0)], "its reward, and its steps");
        assert_eq!((item.rounds, item.asks), (4, 4));
    }
    // Interrupted after any round, the result is the same.
    for at in 0..3 {
        assert_eq!(play(&scenario, clerk, Some(at)).1, digest, "broken off after round {at}");
    }
    let (items, ..) = play(&scenario, blind, None);
    assert!(items.iter().all(|item| item.correct == Some(false)), "{items:?}");
}

#[test]
fn an_episode_that_ends_without_an_answer_has_none() {
    let (items, _, asked) = play(&tools(json!({"kind": "shop-tools", "most_calls": 2})), clerk, None);
    assert_eq!(asked, 2 * items.len() as u64);
    for item in items {
        assert_eq!((item.correct, item.measured), (Some(false), vec![Some(0.0), Some(2.0)]));
    }
}

#[test]
fn the_same_tools_are_a_world_of_a_thousand_episodes() {
    let scenario = json!({"rounds": 9, "agents": 1000, "world": {"kind": "shop-tools", "most_calls": 3}, "topology": {"kind": "none"},
        "cohorts": [{"policy": {"kind": "mind", "model": "test/scripted"}}]});
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let (mut ready, mut rewards, mut rounds) = (Vec::new(), 0.0, 0);
    loop {
        let step = society.poll(std::mem::take(&mut ready)).unwrap();
        ready.extend(step.start.iter().map(|effect| {
            // A guess of the answer in every third round, otherwise a tool call: never right by chance.
            let ResponseFormat::Record(fields) = &effect.request.response_format else {
                panic!("{:?}", effect.request.response_format)
            };
            let action = if effect.id.round % 3 == 2 { "answer" } else { "calculate" };
            let value = |(_, response_format): &(String, ResponseFormat)| match response_format {
                ResponseFormat::Choice(options) => {
                    Value::Choice(options.iter().position(|option| option == action).unwrap_or_default() as u32)
                }
                ResponseFormat::Record(_) => Value::Record(vec![Value::Text("-1".into())]),
                _ => Value::Text("1 + 1".into()),
            };
            answer(effect, Value::Record(fields.iter().map(value).collect()))
        }));
        match step.then {
            Then::Round(report) => {
                let metric = |name: &str| report.metrics.iter().find(|(known, _)| known == name).unwrap().1;
                rewards += metric("mean-reward");
                rounds += 1;
                assert_eq!(metric("episodes"), f64::from(1000 * (rounds / 3)), "round {rounds}: {:?}", report.metrics);
            }
            Then::Done(_) => break,
            Then::More | Then::Wait | Then::Exchange(_) => {}
        }
    }
    assert_eq!((rounds, rewards), (9, 0.0));
}
