//! Layers, the judge's choice and the end on scripted replies, against the official program.

use crate::official::{Call, Case, Official, Rule, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};

/// The members that answered in a layer, in the order of the moderator's numbers.
fn answered(case: &Case, round: u32) -> Vec<usize> {
    let layer = &case.answers()[round as usize];
    (0..layer.len()).filter(|member| layer[*member].is_some()).collect()
}

/// The moderator's choice in a layer, and whether it ends the work.
fn moderated(case: &Case, round: u32) -> (Vec<usize>, bool) {
    let said = &case.replies["moderator"][round as usize];
    (serde_json::from_value(said["chosen"].clone()).unwrap(), said["end"].as_bool().unwrap())
}

/// The official moderator's call becomes ours: the judge's, and before the last layer the moderator's on the best proposal.
fn judge_and_moderator(case: &mut Case) {
    let last = case.answers().len() as u32 - 1;
    let calls = std::mem::take(&mut case.calls);
    for call in calls {
        if call.kind != "moderate" {
            case.calls.push(call);
            continue;
        }
        let best = answered(case, call.round)[moderated(case, call.round).0[0]];
        case.calls.push(Call { member: "judge".into(), kind: "rate".into(), ..call.clone() });
        if case.has("stop_early", true) && call.round < last {
            let check = Call {
                member: "moderator".into(),
                kind: "check".into(),
                shown: vec![(call.round, best.into())],
                ..call
            };
            case.calls.push(check);
        }
    }
}

/// The one call for all roles becomes one a member.
fn roles_for_each_item(case: &mut Case) {
    let members = case.answers()[0].len();
    let calls = std::mem::take(&mut case.calls);
    for call in calls {
        let times = if call.kind == "roles" { members } else { 1 };
        case.calls.extend(std::iter::repeat_n(call, times));
    }
}

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

#[test]
fn acts_as_the_official_program() {
    let rules: [Rule<'_>; 2] =
        [("judge-and-moderator", &judge_and_moderator), ("roles-for-each-item", &roles_for_each_item)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let answers = case.answers();
        // The work ends at the layer after which the moderator says so, else after the last; then the aggregator is asked.
        let ends = |round: u32| case.has("stop_early", true) && moderated(case, round).1;
        let layers =
            (0..answers.len() as u32).find(|round| ends(*round)).map_or(answers.len() as u32, |round| round + 1);
        let who = |_: usize, effect: &Effect| match (effect.id.round, effect.request.purpose.as_str()) {
            (round, "rate") => (round, "judge".into(), "rate"),
            (round, "check") => (round, "moderator".into(), "check"),
            (round, "write") => (round, "roles".into(), "roles"),
            (round, _) if round >= layers => (round, "aggregator".into(), "aggregate"),
            (round, _) => (round, effect.id.actor.into(), "answer"),
        };
        play("sparse-moa", &case.settings, &who, &|(round, member, kind), marker| match *kind {
            "rate" => {
                // Marks fall in the order in which the official moderator names the responses.
                let chosen = moderated(case, *round).0;
                let mark = |n: usize| chosen.iter().position(|c| *c == n).map_or(1.0, |place| 10.0 - place as f64);
                let marks = (0..answered(case, *round).len()).map(|n| Value::Number(mark(n))).collect();
                reply(Value::Record(vec![Value::List(marks)]))
            }
            "check" => {
                let right = u32::from(!moderated(case, *round).1);
                reply(Value::Record(vec![Value::Text("so".into()), Value::Choice(right)]))
            }
            "roles" => reply(Value::Text("a role".into())),
            "aggregate" => answer(marker, case.replies["aggregator"].as_str().map(String::from).as_ref()),
            _ => {
                let Json::Number(n) = member else { unreachable!("a member has a number") };
                answer(marker, answers[*round as usize][n.as_u64().unwrap() as usize].as_ref())
            }
        })
    });
}

#[test]
fn without_marks_all_proposals_are_passed_on() {
    let settings =
        json!({"agents": 4, "rounds": 3, "method": {"kind": "sparse-moa", "stop_early": false, "roles": false}});
    let who = |_: usize, effect: &Effect| {
        let kind = if effect.request.purpose == "rate" { "rate" } else { "answer" };
        (effect.id.round, effect.id.actor.into(), kind)
    };
    let played = play("sparse-moa", &settings, &who, &|(_, member, kind), marker| match *kind {
        "rate" => answer(marker, None),
        _ => answer(marker, Some(&member.to_string())),
    });
    let shown: Vec<usize> = played.calls.iter().map(|call| call.shown.len()).collect();
    assert_eq!(shown, [0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4]);
}
