//! Plans are carried out whole, and drafts, checks and steps are those of the official program on the same replies.

use crate::exchange::{one_question, says};
use crate::official::{Call, Case, Official, Rule, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::BTreeMap;

#[test]
fn all_steps_of_a_plan_are_done_however_many_rounds_there_are() {
    let text = |text: &str| Value::Text(text.into());
    for rounds in [2, 5, 10] {
        let scenario =
            json!({"rounds": rounds, "agents": 1, "method": {"kind": "autoagents", "drafts": 1, "tries": 1}});
        let (asked, reports) = one_question(&scenario, &|effect| {
            if effect.request.purpose == "write" {
                let role = Value::Record(vec![text("Geographer"), text("knows capitals")]);
                let steps = (1..=6).map(|n| Value::Record(vec![text("Geographer"), text(&format!("task {n}"))]));
                let value = Value::Record(vec![Value::List(vec![role]), Value::List(steps.collect())]);
                return Outcome::Reply { value, raw: String::new(), repaired: false };
            }
            let told = effect.request.rendered();
            let step = told.split("Your step: task ").last().unwrap_or_default().chars().next().unwrap_or('?');
            says("", text(if step == '6' { "Canberra" } else { "Sydney" }))
        });
        assert_eq!(asked.len(), 7, "a plan and six steps in {rounds} rounds");
        let last = reports.last().and_then(|report| report.items.first());
        assert_eq!(last.and_then(|item| item.correct), Some(true), "the last step gives the answer");
    }
}

/// How far a run of ours is.
#[derive(Default)]
struct At {
    drafts: u32,
    step: u32,
    role: String,
    tried: u32,
    /// Replies used of each list.
    used: [usize; 3],
}

/// The part of a text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    text.rsplit_once(from)?.1.split(to).next()
}

fn who(at: &mut At, effect: &Effect) -> (u32, Json, &'static str) {
    let told = effect.request.rendered();
    match effect.request.purpose.as_str() {
        "write" => {
            at.drafts += 1;
            (at.drafts - 1, json!("planner"), "draft")
        }
        "check" if told.contains("Look at the roles:") => (at.drafts - 1, json!("agent observer"), "check"),
        "check" if told.contains("Look at the steps:") => (at.drafts - 1, json!("plan observer"), "check"),
        "check" => (at.step, json!(format!("action observer, try {}", at.tried)), "check"),
        _ => {
            let step = between(&told, "Your step: task ", " ").unwrap().parse::<u32>().unwrap() - 1;
            at.tried = if told.contains("finds your answer") { at.tried + 1 } else { 0 };
            at.role = between(&told, "You are ", ":").unwrap().into();
            at.step = step;
            (at.step, json!(format!("{}, try {}", at.role, at.tried)), "answer")
        }
    }
}

fn scripted(at: &mut At, case: &Case, (_, member, kind): &(u32, Json, &'static str), marker: &str) -> Outcome {
    let text = |text: String| Value::Text(text);
    let mut next = |list: usize, name: &str| {
        at.used[list] += 1;
        case.replies[name][at.used[list] - 1].clone()
    };
    let found = |right: bool| {
        let words = if right { String::new() } else { format!("remark {marker}") };
        says(&words, Value::Choice(u32::from(!right)))
    };
    match (*kind, member.as_str().unwrap()) {
        ("draft", _) => {
            let steps: Vec<String> = serde_json::from_value(case.replies["steps"].clone()).unwrap();
            let mut names = steps.clone();
            names.sort();
            names.dedup();
            let role = |name| Value::Record(vec![text(name), text(format!("expert {marker}"))]);
            let step = |(n, name)| Value::Record(vec![text(name), text(format!("task {} {marker}", n + 1))]);
            let roles = Value::List(names.into_iter().map(role).collect());
            let steps = Value::List(steps.into_iter().enumerate().map(step).collect());
            Outcome::Reply { value: Value::Record(vec![roles, steps]), raw: String::new(), repaired: false }
        }
        (_, "agent observer") => found(next(0, "roles") == json!(true)),
        (_, "plan observer") => found(next(1, "plan") == json!(true)),
        // The action observer finds right what the official role calls final.
        ("check", _) => found(case.replies["work"][at.used[2] - 1][1] == json!(true)),
        _ => answer(marker, Some(&next(2, "work")[0].as_str().unwrap().into())),
    }
}

/// The number of a try.
fn tried(member: &Json) -> Option<(&str, u32)> {
    let (role, n) = member.as_str()?.split_once(", try ")?;
    Some((role, n.parse().ok()?))
}

#[test]
fn acts_as_the_official_program() {
    let stage = |case: &mut Case| case.calls.retain(|call| call.kind != "stage");
    let last_draft = |case: &mut Case| {
        let drafts = case.settings["method"]["drafts"].as_u64().unwrap() as u32;
        case.calls.retain(|call| call.kind != "check" || call.round + 1 < drafts);
    };
    let draft_alone = |case: &mut Case| {
        for call in case.calls.iter_mut().filter(|call| call.kind == "check") {
            call.shown.retain(|(round, member)| (*round, member) == (call.round, &json!("planner")));
        }
    };
    let faults_only = |case: &mut Case| {
        let replies = case.replies.clone();
        for call in case.calls.iter_mut().filter(|call| call.kind == "draft") {
            call.shown.retain(|(round, member)| match member.as_str() {
                Some("agent observer") => replies["roles"][*round as usize] == json!(false),
                Some("plan observer") => replies["plan"][*round as usize] == json!(false),
                _ => true,
            });
        }
    };
    let order_last = |case: &mut Case| {
        for call in case.calls.iter_mut().filter(|call| call.kind == "answer") {
            let of_earlier_step = |(step, member): &(u32, Json)| *step < call.round && member != &json!("planner");
            call.shown.sort_by_key(|shown| !of_earlier_step(shown));
        }
    };
    let last_try = |case: &mut Case| {
        let mut last: BTreeMap<u32, Json> = BTreeMap::new();
        for call in case.calls.iter_mut().filter(|call| call.kind == "answer") {
            call.shown.retain(|(step, member)| tried(member).is_none() || last.get(step) == Some(member));
            last.insert(call.round, call.member.clone());
        }
    };
    let action_observer = |case: &mut Case| {
        let tries = case.settings["method"]["tries"].as_u64().unwrap() as u32;
        for mut call in std::mem::take(&mut case.calls) {
            let n = tried(&call.member).map(|(_, n)| n).filter(|_| call.kind == "answer");
            if let Some(n @ 1..) = n {
                call.shown.push((call.round, json!(format!("action observer, try {}", n - 1))));
            }
            let checked = n.filter(|n| n + 1 < tries).map(|n| {
                // The observer is shown the step, and so a part of the plan.
                let planner = call.shown.iter().find(|(_, member)| member == &json!("planner")).cloned();
                let shown = std::iter::once((call.round, call.member.clone())).chain(planner).collect();
                Call {
                    temperature: call.temperature,
                    ..Call::new(call.round, format!("action observer, try {n}"), "check", shown)
                }
            });
            case.calls.push(call);
            case.calls.extend(checked);
        }
    };
    let rules: [Rule<'_>; 7] = [
        ("stage", &stage),
        ("last-draft", &last_draft),
        ("draft-alone", &draft_alone),
        ("faults-only", &faults_only),
        ("order-last", &order_last),
        ("last-try", &last_try),
        ("action-observer", &action_observer),
    ];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let at = RefCell::new(At::default());
        let who = |_: usize, effect: &Effect| who(&mut at.borrow_mut(), effect);
        play("autoagents", &case.settings, &who, &|who, marker| scripted(&mut at.borrow_mut(), case, who, marker))
    });
}
