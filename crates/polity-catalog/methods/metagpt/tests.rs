//! Documents, program, tests and repairs on scripted replies, against the official program.

use crate::official::{Call, Case, Official, Rule, bare, play_programs, program, suite};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::json;
use std::cell::Cell;

const LINE: [&str; 5] = ["product manager", "architect", "project manager", "engineer", "qa engineer"];

/// A document of a role, with the marker in it.
fn document(role: &str, marker: &str) -> Outcome {
    let text = || Value::Text(marker.into());
    let list = || Value::List(vec![text()]);
    bare(Value::Record(match role {
        "product manager" => vec![list(), list(), list()],
        "architect" => vec![text(), list(), list()],
        _ => vec![list(), text()],
    }))
}

#[test]
fn acts_as_the_official_program() {
    let kind_of_request = |case: &mut Case| case.calls.retain(|call| call.kind != "intent");
    let pool = |case: &mut Case| {
        let reads_more = |call: &&mut Call| {
            call.round == 0 && (call.kind == "answer" || call.kind == "document" && call.member == json!(LINE[2]))
        };
        for call in case.calls.iter_mut().filter(reads_more) {
            call.shown.insert(0, (0, json!(LINE[0])));
        }
    };
    let executable_feedback = |case: &mut Case| {
        case.calls.retain(|call| call.kind != "review");
        for call in case.calls.iter_mut().filter(|call| call.kind == "answer" && call.round > 0) {
            call.shown.retain(|(_, member)| member == &json!(LINE[3]));
        }
        if let Some(first) = case.calls.iter().position(|call| call.kind == "answer") {
            let tests = Call { temperature: Some(0.0), ..Call::new(0, LINE[4], "tests", Vec::new()) };
            case.calls.insert(first + 1, tests);
        }
    };
    let rules: [Rule<'_>; 3] =
        [("kind-of-request", &kind_of_request), ("pool", &pool), ("executable-feedback", &executable_feedback)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let programs = Cell::new(0);
        let who = |_: usize, effect: &Effect| {
            let role = json!(LINE[effect.id.actor as usize]);
            match effect.request.purpose.as_str() {
                "write" => (0, role, "document"),
                "test" => (0, role, "tests"),
                _ => {
                    programs.set(programs.get() + 1);
                    (programs.get() - 1, role, "answer")
                }
            }
        };
        play_programs("metagpt", &case.settings, &who, &|(round, role, kind), marker| match *kind {
            "document" => document(role.as_str().unwrap_or_default(), marker),
            "tests" => suite(marker, true),
            _ => program(marker, case.replies["program"][*round as usize] == json!("right")),
        })
    });
}
