//! Programs, tests and repairs on scripted replies, against the official program.

use crate::exchange::open;
use crate::official::{Case, Official, Rule, answer, play_on};
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::Cell;

/// The problem of the official runs.
const PROBLEM: [(&str, &str); 5] = [
    ("task_id", "own/0"),
    ("prompt", "def double(x):\n    \"\"\"Returns twice x.\"\"\"\n"),
    ("entry_point", "double"),
    ("canonical_solution", "    return 2 * x\n"),
    ("test", "def check(candidate):\n    assert candidate(2) == 4\n"),
];

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

/// What Python makes of the scripted programs and suites: only the right program passes the right suite.
fn run(told: &str) -> Outcome {
    let passes = told.contains("return 2 * x") && (told.contains("double(3) == 6") || told.contains("candidate(2)"));
    let ended = if passes { Ended::Finished } else { Ended::Failed };
    reply(Ran { ended, status: 0, output: String::new(), errors: "AssertionError".into() }.value())
}

#[test]
fn acts_as_the_official_program() {
    let one_of_each = |case: &mut Case| {
        case.calls.retain(|call| call.member == json!(0) || call.member == json!("suite 0"));
    };
    let repairs = |case: &mut Case| {
        for call in case.calls.iter_mut().filter(|call| call.kind == "answer" && call.round > 0) {
            call.shown.push((call.round - 1, json!(0)));
        }
    };
    let tests_once = |case: &mut Case| case.calls.retain(|call| call.kind != "tests" || call.round == 0);
    let rules: [Rule<'_>; 3] = [("one-of-each", &one_of_each), ("repairs", &repairs), ("tests-once", &tests_once)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let mut scenario = json!({
            "agents": 1, "model": "test/scripted", "method": {"kind": "agentcoder"},
            "items": {"file": "items", "shape": "humaneval"},
        });
        scenario.as_object_mut().unwrap().extend(case.settings.as_object().unwrap().clone());
        let columns = PROBLEM.map(|(name, cell)| (name, vec![cell.to_string()]));
        let evaluation = open(&scenario, &columns, &crate::testing::registry()).unwrap();
        let programs = Cell::new(0);
        let who = |_: usize, effect: &Effect| {
            if effect.request.purpose == "test" {
                return (0, json!("suite 0"), "tests");
            }
            programs.set(programs.get() + 1);
            (programs.get() - 1, json!(0), "answer")
        };
        let scripted = |of: &str, generation: u32| -> Json { case.replies[of][generation as usize][0].clone() };
        let mut played = play_on(
            evaluation,
            &who,
            &|(generation, _, kind), marker| match *kind {
                "tests" => {
                    let value = if scripted("suites", 0) == "right" { 6 } else { 7 };
                    reply(Value::Record(vec![Value::Text(format!("# {marker}\nassert double(3) == {value}"))]))
                }
                _ => {
                    let body = if scripted("programs", *generation) == "right" { "2 * x" } else { "x" };
                    answer(marker, Some(&format!("    return {body}")))
                }
            },
            &run,
        );
        played.answer = played.answer.and_then(|text| text.split("return ").nth(1).map(|body| body.trim().to_owned()));
        played
    });
}
