//! Tests of teams as agents: their questions against evaluations of the same method, acts of every kind, errors.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::open;
use polity_kernel::ask::{Answer, Asker, Effect, Outcome, Part, Request, ResponseFormat, Role, Usage, Value};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::items::Item;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::population::{Table, TextBuilder};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn registry() -> Registry {
    crate::testing::registry()
}

/// A valid value, drawn from the words of the question alone.
fn drawn(response_format: &ResponseFormat, words: &str, nth: u64) -> Value {
    let draw = RowHash::new(Kind::Request, 0).bytes(words.as_bytes()).word(nth).finish() as u64;
    match response_format {
        ResponseFormat::Text => Value::Text(format!("{}", draw % 90)),
        ResponseFormat::Choice(options) => Value::Choice((draw % options.len() as u64) as u32),
        ResponseFormat::Number { low, high, .. } => Value::Number((low.max(0.0) + (draw % 5) as f64).min(*high)),
        ResponseFormat::List { of, least, .. } => {
            Value::List((0..*least).map(|i| drawn(of, words, u64::from(i) + 1)).collect())
        }
        ResponseFormat::Record(fields) => Value::Record(
            fields
                .iter()
                .zip(nth * 7 + 1..)
                .map(|((_, response_format), n)| drawn(response_format, words, n))
                .collect(),
        ),
        ResponseFormat::Calls(_) => Value::Calls { text: format!("{}", draw % 90), calls: Vec::new() },
        ResponseFormat::Vector => panic!("no team asks for a vector"),
    }
}

fn words(request: &Request) -> String {
    request.messages.iter().map(|message| format!("[{}] {}\n", message.role.name(), message.rendered())).collect()
}

fn reply(effect: &Effect) -> Answer {
    let value = drawn(&effect.request.response_format, &words(&effect.request), 0);
    let outcome = Outcome::Reply { value, raw: String::new(), repaired: false };
    Answer { id: effect.id, request: effect.request.clone(), outcome, usage: Usage::default(), reasoning: None }
}

/// Runs a machine whose models answer by the words of the question; calls `seen` after every round.
fn play<M: Machine>(machine: &mut M, mut seen: impl FnMut(&M, &Then)) -> Vec<Effect> {
    let (mut ready, mut asked) = (Vec::new(), Vec::new());
    loop {
        let step = machine.poll(std::mem::take(&mut ready)).unwrap();
        ready.extend(step.start.iter().map(reply));
        asked.extend(step.start);
        seen(machine, &step.then);
        if matches!(step.then, Then::Done(_)) {
            return asked;
        }
    }
}

fn society(world: &str, policy: &Json, agents: u32) -> Json {
    json!({"rounds": 1, "agents": agents, "world": {"kind": world}, "topology": {"kind": "none"},
        "cohorts": [{"policy": policy}]})
}

fn team(method: &str, changes: Json) -> Json {
    let mut policy = json!({"kind": "team", "method": method, "model": "sim/medium", "rounds": 2});
    policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    policy
}

/// Returns the questions of a society's only agent, and the values of its acts.
fn acted(scenario: &Json) -> (Vec<Effect>, Vec<f64>) {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut acts = Vec::new();
    let asked = play(&mut society, |society, then| {
        if matches!(then, Then::Round(_)) {
            acts.extend(society.acts().flat_map(|block| block.rows.iter().map(|act| act.value)));
        }
    });
    (asked, acts)
}

/// Returns the questions of an evaluation of the method on one item, and its answer.
fn evaluated(method: &str, question: &str, members: usize) -> (Vec<Effect>, Option<String>) {
    let mut text = TextBuilder::default();
    text.push(question);
    let table = Table::new(vec![("question".to_string(), text.finish())]).unwrap();
    let tables = BTreeMap::from([("items".to_string(), Arc::new(table))]);
    let scenario = json!({
        "rounds": 2, "agents": members, "model": "sim/medium", "method": {"kind": method}, "max_retries": 1,
        "items": {"file": "items", "scorer": "number"},
    });
    let (registry, inputs) = (registry(), Inputs { tables, ..Inputs::default() });
    let tree = Node::from_json(&scenario);
    let machine = assemble(&tree, &registry, &inputs, Layout::default()).unwrap();
    let Assembled::Evaluation(mut evaluation) = machine else { panic!("an evaluation was asked for") };
    let mut answer = None;
    let asked = play(&mut *evaluation, |_, then| {
        if let Then::Round(report) = then {
            answer = report.items.first().and_then(|item| item.answer.clone()).or(answer.take());
        }
    });
    (asked, answer)
}

#[test]
fn a_team_asks_and_answers_as_an_evaluation_of_its_method() {
    // These draw whom to ask: their draws are keyed by the item and the round, which differ in a society.
    let drawing = ["dylan", "mixture-of-agents", "symbolic-moe"];
    let mut compared = 0;
    for card in registry().methods() {
        let scenario = society("guess-average", &team(card.name, json!({"acts": ["guess"]})), 1);
        if let Err(error) = open(&scenario, &Inputs::default(), 1) {
            assert!(error.to_string().contains("it cannot decide what to do in a world"), "{}: {error}", card.name);
            continue;
        }
        if drawing.contains(&card.name) {
            continue;
        }
        let (asked, acts) = acted(&scenario);
        assert!(asked.iter().all(|effect| effect.id.asker == Asker::Agent && effect.id.actor == 0), "{}", card.name);
        let numbers: Vec<u32> = asked.iter().map(|effect| effect.id.n).collect();
        assert_eq!(numbers, (0..asked.len() as u32).collect::<Vec<_>>(), "{}: each question has its number", card.name);
        // In every prompt the item's question is the first part of the user's message.
        let first = asked[0].request.messages.iter().find(|message| message.role == Role::User).unwrap();
        let Part::Text(question) = &first.parts[0] else { panic!("{first:?}") };
        let facts = registry().facts(card.name).unwrap().usual.members as usize;
        let (expected, answer) = evaluated(card.name, question, facts);

        let own = |effect: &Effect| {
            let Request { model, messages, response_format, settings, purpose, step, .. } = effect.request.clone();
            (model, messages, response_format, settings, purpose, step)
        };
        // A verdict that is not a number is converted to the format by one more question.
        let item = Item { scorer: polity_kernel::items::Scorer::Number, ..Item::default() };
        let value: Option<f64> = answer.as_ref().and_then(|answer| item.extracted(answer)?.parse().ok());
        let value = value.filter(|value| (0.0..=100.0).contains(value));
        let more = usize::from(answer.is_some() && value.is_none());
        assert_eq!(asked.len(), expected.len() + more, "{}", card.name);
        for (asked, expected) in asked.iter().zip(&expected) {
            assert_eq!(own(asked), own(expected), "{}", card.name);
        }
        let samples: Vec<u32> = asked.iter().map(|effect| effect.request.sample).collect();
        let others: Vec<u32> = expected.iter().map(|effect| effect.request.sample).collect();
        assert_eq!(samples[..others.len()], others, "{}: agent 0 has the samples of an evaluation", card.name);
        match value {
            Some(value) => assert_eq!(acts, [value], "{}", card.name),
            None => assert!(answer.is_some() || acts.is_empty(), "{}: {acts:?}", card.name),
        }
        compared += 1;
    }
    assert!(compared >= 12, "{compared} methods were compared");
}

#[test]
fn teams_of_two_agents_ask_other_samples() {
    let (asked, acts) = acted(&society("guess-average", &team("debate", json!({"members": 3})), 2));
    assert_eq!((asked.len(), acts.len()), (12, 2));
    let mut samples: Vec<u32> = asked.iter().map(|effect| effect.request.sample).collect();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!(samples.len(), 6, "three members of each of two agents");
}

#[test]
fn acts_of_every_kind_are_put_into_their_form() {
    for card in registry().worlds() {
        let mut scenario = society(card.name, &team("self-consistency", json!({"members": 1, "rounds": 1})), 120);
        match card.name {
            "epidemic" => scenario["world"]["initial"] = json!(0.1),
            // In the first round all are born.
            "donor-game" => scenario["rounds"] = json!(2),
            "opinion" | "platform" | "town" | "asymmetry" => scenario["topology"] = json!({"kind": "complete"}),
            _ => {}
        }
        scenario["agents"] = json!(crate::testing::whole_episodes(&scenario, 120));
        let mut society = match open(&scenario, &Inputs::default(), 1) {
            Ok(society) => society,
            Err(error) => panic!("{}: {error}", card.name),
        };
        let mut acts = 0;
        let asked = play(&mut society, |society, then| {
            if matches!(then, Then::Round(_)) {
                acts += society.acts().map(|block| block.rows.len()).sum::<usize>();
            }
        });
        assert!(!asked.is_empty(), "{}", card.name);
        let formed = asked.iter().filter(|effect| words(&effect.request).contains("Your team answers:")).count();
        println!("{}: {} questions, {formed} of them for the form, {acts} acts", card.name, asked.len());
        if card.name == "platform" {
            assert!(formed > 0 && acts > 0, "a pick among what is seen has a form");
        }
        if card.name == "guess-average" {
            assert_eq!((formed, acts), (0, 120), "a number is read as it stands");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |changes: Json| {
        let mut policy = team("debate", json!({}));
        policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        match open(&society("guess-average", &policy, 2), &Inputs::default(), 1) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{policy} was taken"),
        }
    };
    for (changes, told) in [
        (json!({"method": "debat"}), "did you mean `debate`"),
        (json!({"method": {"kind": "debate", "stop_when_agred": true}}), "stop_when_agred"),
        (json!({"method": "agentcoder"}), "it cannot decide what to do in a world"),
        (json!({"members": 0}), "members"),
        (json!({"rounds": 0}), "at least one round"),
        (json!({"max_retries": 11}), "max_retries"),
        (json!({"model": "medium"}), "provider/model"),
        (json!({"default": {"gues": 5}}), "there is no such act"),
    ] {
        let error = refused(changes.clone());
        assert!(error.contains(told), "{changes}: {error}");
    }
}
