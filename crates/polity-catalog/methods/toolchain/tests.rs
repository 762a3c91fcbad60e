//! Searches for plans, against the environment's own count of the least cost. No model is asked.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::registry;
use polity_kernel::ask::{Answer, Effect, Outcome, ResponseFormat, Usage, Value};
use polity_kernel::machine::{ItemReport, Machine, Then};
use polity_kernel::population::{Table, TextBuilder};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tool::{Arguments, ToolCall};
use polity_kernel::transport::InMemory;
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const TASKS: u32 = 40;

/// A member that proposes every tool that it is offered.
fn generous(effect: &Effect) -> Answer {
    let ResponseFormat::Calls(tools) = &effect.request.response_format else { panic!("{effect:?}") };
    let calls = tools.iter().map(|tool| ToolCall::new(&*tool.name, &Arguments::new())).collect();
    let outcome =
        Outcome::Reply { value: Value::Calls { text: String::new(), calls }, raw: String::new(), repaired: false };
    let (id, request) = (effect.id, effect.request.clone());
    Answer { id, request, outcome, usage: Usage::default(), reasoning: None }
}

/// The items of a whole run; the environment draws a task for each.
fn play(method: Json, environment: Json) -> Vec<ItemReport> {
    let proposes = method["proposals"] != json!(0);
    let mut question = TextBuilder::default();
    (0..TASKS).for_each(|i| question.push(&format!("Task {i}")));
    let tables = BTreeMap::from([(
        "items".to_string(),
        Arc::new(Table::new(vec![("question".to_string(), question.finish())]).unwrap()),
    )]);
    let scenario = json!({"rounds": 1, "agents": 1, "model": "test/nobody", "method": method, "environment": environment,
        "items": {"file": "items"}});
    let inputs = Inputs { tables, ..Inputs::default() };
    let tree = Node::from_json(&scenario);
    let assembled = assemble(&tree, &registry(), &inputs, 1, Box::new(InMemory::default()));
    let Assembled::Evaluation(mut machine) = assembled.unwrap_or_else(|error| panic!("{error}")) else { panic!() };
    let (mut items, mut ready) = (Vec::new(), Vec::new());
    loop {
        let step = machine.poll(std::mem::take(&mut ready)).unwrap();
        assert!(proposes || step.start.is_empty(), "no model is asked");
        ready.extend(step.start.iter().map(generous));
        match step.then {
            Then::Round(report) => items.extend(report.items),
            Then::Done(_) => return items,
            Then::More | Then::Wait => {}
        }
    }
}

fn search(search: &str, nodes: u32) -> Json {
    json!({"kind": "toolchain", "search": search, "nodes": nodes, "proposals": 0})
}

/// Right answers, nodes, and costs of plans that were found.
fn sums(items: &[ItemReport]) -> (usize, f64, f64) {
    assert_eq!(items.len(), TASKS as usize);
    let of = |place: usize| items.iter().filter_map(|item| item.measured[place]).sum::<f64>();
    (items.iter().filter(|item| item.correct == Some(true)).count(), of(0), of(1))
}

#[test]
fn every_plan_is_the_cheapest_with_fewer_nodes_by_the_estimate() {
    let (right, nodes, cost) = sums(&play(search("a-star", 100_000), json!("api-plans")));
    let (right_without, nodes_without, cost_without) = sums(&play(search("uniform-cost", 100_000), json!("api-plans")));
    assert_eq!((right, right_without, cost), (TASKS as usize, TASKS as usize, cost_without));
    assert!(nodes < nodes_without, "{nodes} nodes with the estimate, {nodes_without} without");
}

#[test]
fn monte_carlo_tree_search_finds_plans_but_seldom_the_cheapest_with_as_many_nodes() {
    let items = play(search("a-star", 100_000), json!("api-plans"));
    let nodes = sums(&items).1 / f64::from(TASKS);
    let (right, expanded, _) = sums(&play(search("monte-carlo", nodes.ceil() as u32), json!("api-plans")));
    assert!(right > 0 && right < TASKS as usize, "{right} of {TASKS}");
    assert!(expanded / f64::from(TASKS) <= nodes.ceil(), "{expanded} nodes in all");
    // With many nodes it comes close.
    let (later, ..) = sums(&play(search("monte-carlo", 2_000), json!("api-plans")));
    assert!(later > right, "{later} of {TASKS} with more nodes, {right} before");
}

#[test]
fn a_search_that_may_expand_too_little_finds_nothing_and_says_so() {
    let items = play(search("a-star", 1), json!("api-plans"));
    assert!(items.iter().all(|item| item.correct == Some(false) && item.measured[0] == Some(1.0)), "{items:?}");
}

#[test]
fn a_member_that_proposes_every_call_leads_to_the_same_plans() {
    let all = play(search("a-star", 100_000), json!("api-plans"));
    let proposed = play(json!({"kind": "toolchain", "proposals": 2}), json!("api-plans"));
    assert_eq!(sums(&proposed), sums(&all));
    assert!(proposed.iter().all(|item| item.asks > 0));
}
