//! A crew against a scripted model: who is offered and shown what.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::{evaluation, play_evaluation};
use polity_kernel::ask::{Effect, Part, ResponseFormat, Value};
use polity_kernel::machine::ItemReport;
use polity_kernel::tool::ToolCall;
use serde_json::{Value as Json, json};

fn scenario(method: Json) -> Json {
    json!({"rounds": 20, "model": "test/scripted", "method": method, "tools": ["calculator"],
        "team": [{"name": "Clerk", "tools": ["calculator"]}, {"name": "Editor", "tools": []}],
        "items": {"file": "items", "answer": "answer", "scorer": "number"}})
}

fn call(tool: &str, arguments: Json) -> Value {
    Value::Calls { text: String::new(), calls: vec![ToolCall::new(tool, arguments.as_object().unwrap())] }
}

/// A clerk that calculates, and an editor that repeats what the clerk found.
fn crew(effect: &Effect) -> Value {
    let request = &effect.request;
    let ResponseFormat::Calls(tools) = &request.response_format else { panic!() };
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let parts = || request.messages.iter().flat_map(|message| &message.parts);
    let results: Vec<&str> =
        parts().filter_map(|part| if let Part::Result(result) = part { Some(&*result.text) } else { None }).collect();
    let said =
        parts().find_map(|part| if let Part::Said { by, answer, .. } = part { Some((by, answer)) } else { None });
    let question = request.messages[0].rendered();
    let n = question.split_whitespace().nth(5).unwrap();
    match (effect.id.actor, results.as_slice()) {
        (0, []) => {
            assert_eq!(names, ["calculate", "answer"]);
            call("calculate", json!({"expression": format!("{n} * 42")}))
        }
        (0, [result]) => call("answer", json!({"answer": result})),
        (1, []) => {
            assert_eq!(names, ["answer"], "the editor has no tools");
            let (by, found) = said.unwrap();
            assert_eq!(by, "Clerk");
            call("answer", json!({"answer": found}))
        }
        other => panic!("{other:?}"),
    }
}

/// Prices of one to four lamps.
fn questions() -> Vec<(String, String)> {
    (1..=4).map(|i| (format!("What is the price of {i} lamps?"), (42 * i).to_string())).collect()
}

fn play(scenario: &Json, model: impl Fn(&Effect) -> Value, break_at: Option<u32>) -> (Vec<ItemReport>, String) {
    let (items, digest, _) = play_evaluation(scenario, &questions(), model, break_at);
    (items, digest)
}

#[test]
fn members_work_in_order_with_their_own_tools_and_the_results_before_them() {
    let (items, digest) = play(&scenario(json!("crew")), crew, None);
    assert_eq!(items.len(), 4);
    assert!(items.iter().all(|item| item.correct == Some(true) && item.measured == [Some(1.0)]), "{items:?}");
    for at in 0..2 {
        assert_eq!(play(&scenario(json!("crew")), crew, Some(at)).1, digest, "broken off after round {at}");
    }
}

#[test]
fn under_the_placebo_results_have_their_shape_and_no_information() {
    let seen = |effect: &Effect| {
        let parts = effect.request.messages.iter().flat_map(|message| &message.parts);
        let result = parts
            .filter_map(|part| if let Part::Result(result) = part { Some(&*result.text) } else { None })
            .next_back();
        if let Some(result) = result {
            assert!(!result.is_empty() && result.chars().all(|c| c == '0'), "{result}");
        }
        crew(effect)
    };
    let mut scenario = scenario(json!("crew"));
    scenario["placebo"] = json!(["tools"]);
    let (items, _) = play(&scenario, seen, None);
    assert!(items.iter().all(|item| item.correct == Some(false) && item.measured == [Some(1.0)]), "{items:?}");
}

#[test]
fn in_the_last_reply_of_a_task_a_member_can_only_answer() {
    let all = |effect: &Effect| {
        let ResponseFormat::Calls(tools) = &effect.request.response_format else { panic!() };
        match tools.iter().any(|tool| &*tool.name == "calculate") {
            true => call("calculate", json!({"expression": "1 + 1"})),
            false => call("answer", json!({"answer": "2"})),
        }
    };
    let (items, _) = play(&scenario(json!({"kind": "crew", "steps": 3})), all, None);
    // Two calls and an answer of the clerk, and an answer of the editor.
    assert!(items.iter().all(|item| item.asks == 4 && item.measured == [Some(2.0)]), "{items:?}");
}

#[test]
fn tasks_name_members_and_what_to_do() {
    let tasks = json!([{"member": 1, "task": "Guess."}, {"member": 0, "task": "Check the guess."}]);
    let said = |effect: &Effect| {
        let shown = effect.request.messages[0].rendered();
        let guess = effect.id.actor == 1;
        assert_eq!((shown.contains("Your task: Guess."), shown.contains("Your task: Check")), (guess, !guess));
        call("answer", json!({"answer": if guess { "1" } else { "42" }}))
    };
    let (items, _) = play(&scenario(json!({"kind": "crew", "tasks": tasks})), said, None);
    assert_eq!(items.iter().filter(|item| item.correct == Some(true)).count(), 1);
    let wrong = scenario(json!({"kind": "crew", "tasks": [{"member": 2, "task": "x"}]}));
    let opened = std::panic::catch_unwind(|| evaluation(&wrong, &questions())).err().unwrap();
    let error = opened.downcast_ref::<String>().unwrap();
    assert!(error.contains("there is no member 2"), "{error}");
}

#[test]
fn absent_members_do_nothing() {
    let mut scenario = scenario(json!("crew"));
    scenario["team"][1]["role"] = json!("absent");
    // The clerk calculates, and answers.
    let (items, _) = play(&scenario, crew, None);
    assert!(items.iter().all(|item| item.correct == Some(true) && item.asks == 2), "{items:?}");
}
