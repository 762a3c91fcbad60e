//! The toolkits of a scenario, called by a team.
#![allow(clippy::panic, clippy::unwrap_used)]

use polity_kernel::ask::{Answer, Effect, Outcome, Part, ResponseFormat, Usage, Value};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{ItemReport, Machine, Then};
use polity_kernel::population::{Table, TextBuilder};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tool::{ToolCall, ToolResult};
use polity_kernel::tree::{Node, TreeError};
use serde_json::{Value as Json, json};
use std::sync::Arc;

fn registry() -> Registry {
    let mut registry = Registry::new();
    crate::register_all(&mut registry);
    polity_methods::register_all(&mut registry);
    registry
}

#[test]
fn every_toolkit_is_registered_under_the_name_of_its_folder() {
    let registry = registry();
    for leaf in registry.toolkits() {
        assert!(leaf.files.folder.ends_with(leaf.name), "{} is in {}", leaf.name, leaf.files.folder);
        assert!(leaf.files.readme.starts_with(&format!("# {}\n", leaf.name)), "{}", leaf.name);
    }
    assert!(!registry.toolkits().is_empty());
}

/// Makes a table of rows with these columns, which are separated by `|`.
fn table(columns: &str, rows: &[&str]) -> Arc<Table> {
    let columns = columns.split('|').enumerate().map(|(i, name)| {
        let mut column = TextBuilder::default();
        rows.iter().for_each(|row| column.push(row.split('|').nth(i).unwrap()));
        (name.to_owned(), column.finish())
    });
    Arc::new(Table::new(columns.collect()).unwrap())
}

fn inputs() -> Inputs {
    let news = ["a|2024-01-05|Parks get 300 crowns.", "b|2024-02-01|Parks get 900 crowns."];
    let tables = [
        ("items", table("question|answer", &["What do the parks get for each gardener?|100"])),
        ("news.jsonl", table("id|date|text", &news)),
        ("staff.csv", table("subject|relation|object", &["Parks|gardeners|3", "Schools|teachers|20"])),
    ];
    Inputs { tables: tables.map(|(name, table)| (name.to_owned(), table)).into(), ..Inputs::default() }
}

fn scenario(before: &str) -> Json {
    json!({"rounds": 6, "agents": 1, "model": "test/scripted", "method": "react",
        "items": {"file": "items", "answer": "answer", "scorer": "number"},
        "tools": [{"kind": "search", "file": "news.jsonl", "k": 1, "before": before}, {"kind": "graph", "file": "staff.csv"}, "calculator"]})
}

fn open(scenario: &Json) -> Result<Box<Evaluation>, TreeError> {
    match assemble(&Node::from_json(scenario), &registry(), &inputs(), Layout::default())? {
        Assembled::Evaluation(evaluation) => Ok(evaluation),
        Assembled::Society(_) => panic!("an evaluation was asked for"),
    }
}

/// A member that searches and looks at the graph at once, divides what it found, and answers with the result.
fn clerk(effect: &Effect) -> Answer {
    let results: Vec<&ToolResult> = effect
        .request
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| if let Part::Result(result) = part { Some(result) } else { None })
        .collect();
    assert!(results.iter().all(|result| !result.error), "{results:?}");
    assert!(matches!(effect.request.response_format, ResponseFormat::Calls(_)));
    let between = |text: &str, start: &str, end: &str| {
        text.split(start)
            .nth(1)
            .unwrap_or_else(|| panic!("no {start:?} in {text:?}"))
            .split(end)
            .next()
            .unwrap()
            .to_owned()
    };
    let calls = match results.as_slice() {
        [] => vec![("search", json!({"query": "what parks get"})), ("neighbours", json!({"node": "Parks"}))],
        [found, edges] => {
            let (crowns, gardeners) =
                (between(&found.text, "get ", " crowns"), between(&edges.text, "--gardeners--> ", "\n"));
            vec![("calculate", json!({"expression": format!("{crowns} / {gardeners}")}))]
        }
        [.., last] => vec![("answer", json!({"answer": last.text}))],
    };
    let calls =
        calls.into_iter().map(|(tool, arguments)| ToolCall::new(tool, arguments.as_object().unwrap())).collect();
    let outcome =
        Outcome::Reply { value: Value::Calls { text: String::new(), calls }, raw: String::new(), repaired: false };
    Answer { id: effect.id, request: effect.request.clone(), outcome, usage: Usage::default(), reasoning: None }
}

/// Runs an evaluation to its end; `break_at`: snapshot and continue in a new machine after that round.
fn play(scenario: &Json, break_at: Option<u32>) -> (Vec<ItemReport>, String) {
    let mut machine = open(scenario).unwrap();
    let (mut ready, mut items) = (Vec::new(), Vec::new());
    loop {
        let step = machine.poll(std::mem::take(&mut ready)).unwrap();
        ready.extend(step.start.iter().map(clerk));
        match step.then {
            Then::Round(report) => {
                items.extend(report.items);
                if break_at == Some(report.round) {
                    let saved = machine.snapshot().unwrap();
                    machine = open(scenario).unwrap();
                    machine.restore(&saved).unwrap();
                    ready = machine.open_effects().iter().map(clerk).collect();
                }
            }
            Then::Done(outcome) => return (items, outcome.digest.to_string()),
            Then::More | Then::Wait | Then::Exchange(_) => {}
        }
    }
}

#[test]
fn a_team_calls_the_toolkits_of_its_scenario() {
    let (items, digest) = play(&scenario("2024-02-01"), None);
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].correct, items[0].asks), (Some(true), 3), "calls of pure toolkits are not asked: {items:?}");
    for round in 0..2 {
        assert_eq!(play(&scenario("2024-02-01"), Some(round)).1, digest, "broken off after round {round}");
    }
    // Nothing is found before the first document, so the toolkit is refused.
    let error = open(&scenario("2024-01-05")).err().unwrap().to_string();
    let expected = "tools[0].before: no document is dated before 2024-01-05: there are 2, of which 0 have no date";
    assert_eq!(error, expected);
}
