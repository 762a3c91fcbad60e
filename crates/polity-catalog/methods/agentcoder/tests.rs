//! Programs, tests and repairs on scripted replies, against the official program.

use crate::official::{Case, Official, Rule, play_programs, program, suite};
use polity_kernel::ask::Effect;
use serde_json::json;
use std::cell::Cell;

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
        let programs = Cell::new(0);
        let who = |_: usize, effect: &Effect| {
            if effect.request.purpose == "test" {
                return (0, json!("suite 0"), "tests");
            }
            programs.set(programs.get() + 1);
            (programs.get() - 1, json!(0), "answer")
        };
        let right = |of: &str, generation: u32| case.replies[of][generation as usize][0] == json!("right");
        play_programs("agentcoder", &case.settings, &who, &|(generation, _, kind), marker| match *kind {
            "tests" => suite(marker, right("suites", 0)),
            _ => program(marker, right("programs", *generation)),
        })
    });
}
