//! Searches for plans, against the environment's own count of the least cost.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::play_evaluation;
use polity_kernel::ask::{Effect, ResponseFormat, Value};
use polity_kernel::machine::ItemReport;
use polity_kernel::tool::{Arguments, ToolCall};
use serde_json::{Value as Json, json};

const TASKS: u32 = 40;

/// A member that proposes every tool that it is offered.
fn generous(effect: &Effect) -> Value {
    let ResponseFormat::Calls(tools) = &effect.request.response_format else { panic!("{effect:?}") };
    let calls = tools.iter().map(|tool| ToolCall::new(&*tool.name, &Arguments::new())).collect();
    Value::Calls { text: String::new(), calls }
}

/// The items of a whole run; the environment draws a task for each.
fn play(method: Json, environment: Json) -> Vec<ItemReport> {
    let proposes = method["proposals"] != json!(0);
    let rows: Vec<(String, String)> = (0..TASKS).map(|i| (format!("Task {i}"), String::new())).collect();
    let scenario = json!({"rounds": 1, "agents": 1, "model": "test/generous", "method": method, "environment": environment,
        "items": {"file": "items"}});
    let (items, _, asked) = play_evaluation(&scenario, &rows, generous, None);
    assert!(proposes || asked == 0, "no model is asked");
    items
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
