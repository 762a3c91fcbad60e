//! Layers, the judge's choice and the end on scripted replies, against the official program; roles, which are written once a run.

use crate::exchange::{drive, open, says};
use crate::official::{Call, Case, Official, Rule, answer, play};
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, Outcome, Usage, Value};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Assembled;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

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

/// What the writer of roles replies.
fn roles(members: usize) -> Outcome {
    let role = |n| Value::Text(format!("the part of {n};"));
    reply(Value::Record(vec![Value::List((0..members).map(role).collect())]))
}

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

#[test]
fn acts_as_the_official_program() {
    let rules: [Rule<'_>; 1] = [("judge-and-moderator", &judge_and_moderator)];
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
            "roles" => roles(answers[0].len()),
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

/// Four members without an early end on `items` questions, `window` of them at a time.
fn mixture(items: usize, window: usize, method: Json) -> Assembled {
    let mut scenario = json!({
        "agents": 4, "rounds": 3, "model": "test/scripted", "max_concurrent": window,
        "method": {"kind": "sparse-moa", "stop_early": false},
        "items": {"file": "items", "answer": "answer"},
    });
    for (key, value) in method.as_object().unwrap() {
        scenario["method"][key] = value.clone();
    }
    let questions = (0..items).map(|n| format!("What is the capital of country {n}?")).collect();
    let columns = [("question", questions), ("answer", vec!["Canberra".to_string(); items])];
    open(&scenario, &columns, &crate::testing::registry()).unwrap()
}

/// Roles by member, equal marks, and an answer that depends on nothing but who is asked about what.
fn scripted(effect: &Effect) -> Outcome {
    match (effect.id.asker, effect.request.purpose.as_str()) {
        (Asker::Preparation, _) => roles(4),
        (_, "rate") => {
            let mark = |n| Value::Number(f64::from(n % 3) + 2.0);
            let shown = effect.request.rendered().matches(" answers: ").count() as u32;
            reply(Value::Record(vec![Value::List((0..shown).map(mark).collect())]))
        }
        _ => says("so", Value::Text(format!("{}-{}", effect.id.item, effect.id.actor))),
    }
}

/// Returns the requests of a run by id, and its digest. `place` chooses which open request is answered next (modulo their number). After
/// `until` answers the machine is saved, and a restored copy continues.
fn played(open: &dyn Fn() -> Assembled, place: usize, until: usize) -> (BTreeMap<EffectId, String>, String) {
    let Assembled::Evaluation(mut machine) = open() else { panic!("an evaluation was asked for") };
    let (mut asked, mut waiting, mut answers, mut heard) = (BTreeMap::new(), Vec::<Effect>::new(), Vec::new(), 0);
    loop {
        let step = machine.poll(std::mem::take(&mut answers)).unwrap();
        for effect in &step.start {
            assert!(asked.insert(effect.id, effect.request.rendered()).is_none(), "{} is asked once", effect.id);
        }
        waiting.extend(step.start);
        match step.then {
            Then::Done(outcome) => return (asked, format!("{:?}", outcome.digest)),
            Then::Round(_) | Then::More | Then::Exchange(_) => continue,
            Then::Wait => {}
        }
        if heard == until {
            let mut bytes = Vec::new();
            machine.save(&mut bytes).unwrap();
            let Assembled::Evaluation(mut other) = open() else { panic!("an evaluation was asked for") };
            other.restore(&bytes).unwrap();
            machine = other;
            let (mut open, mut known) = (machine.open_effects(), waiting.clone());
            open.sort_by_key(|effect| effect.id);
            known.sort_by_key(|effect| effect.id);
            assert_eq!(open, known, "what was open is open");
        }
        let effect = waiting.swap_remove(place % waiting.len());
        heard += 1;
        let (outcome, usage) = (scripted(&effect), Usage::default());
        answers.push(Answer { id: effect.id, request: effect.request, outcome, usage, reasoning: None });
    }
}

#[test]
fn roles_are_written_once_a_run_however_many_items_there_are_and_whichever_comes_first() {
    let mut written = Vec::new();
    for items in [3, 20] {
        let known = played(&|| mixture(items, 1000, json!({})), 0, usize::MAX);
        for (window, place) in [(1, 0), (1, 7), (5, 3), (1000, 1), (1000, 100_003)] {
            let found = played(&|| mixture(items, window, json!({})), place, usize::MAX);
            assert_eq!(found, known, "{items} items, {window} at a time, the {place}th answer first");
        }
        let once: Vec<_> = known.0.iter().filter(|(id, _)| id.asker == Asker::Preparation).collect();
        assert_eq!(once.len(), 1, "one call a run");
        // Two layers of four, a judge after each, and the aggregator.
        assert_eq!(known.0.len(), 1 + items * (2 * (4 + 1) + 1));
        written.push((*once[0].0, once[0].1.clone()));
    }
    assert_eq!(written[0], written[1], "they depend on the description of the data set");
    let (asked, _) = played(&|| mixture(1, 1, json!({"about": "Capitals."})), 0, usize::MAX);
    assert_eq!(asked.keys().filter(|id| id.asker == Asker::Preparation).count(), 1);
    let (_, told) = asked.iter().find(|(id, _)| id.asker == Asker::Preparation).unwrap();
    assert!(told.contains("Capitals.") && !told.contains("country"), "{told}");
}

#[test]
fn a_run_that_is_saved_and_goes_on_asks_for_roles_no_second_time() {
    let open = || mixture(4, 2, json!({}));
    let known = played(&open, 5, usize::MAX);
    for until in (0..known.0.len()).step_by(3) {
        assert_eq!(played(&open, 5, until), known, "saved after {until} answers");
    }
}

#[test]
fn every_member_reads_its_own_role_and_no_other() {
    let (asked, _) = drive(mixture(3, 1000, json!({})), &scripted).unwrap();
    let parts =
        |told: &str| (0..4).filter(|n| told.contains(&format!("Your part: the part of {n};"))).collect::<Vec<u32>>();
    let mut read = 0;
    for effect in asked.iter().filter(|effect| effect.id.asker == Asker::Member) {
        let told = effect.request.rendered();
        // The judge and the aggregator have none.
        let layered = effect.request.purpose != "rate" && effect.id.round < 2;
        assert_eq!(parts(&told), if layered { vec![effect.id.actor] } else { Vec::new() }, "{told}");
        assert_eq!(told.matches("the part of").count(), usize::from(layered), "{told}");
        read += usize::from(layered);
    }
    assert_eq!(read, 3 * 2 * 4);
    // With `roles: false` no request asks for roles, and no prompt holds one.
    let (asked, _) = drive(mixture(3, 1000, json!({"roles": false})), &scripted).unwrap();
    assert!(
        asked.iter().all(|effect| effect.id.asker == Asker::Member && !effect.request.rendered().contains("part:"))
    );
}

#[test]
fn without_a_reply_nobody_has_a_role() {
    let refuses = |effect: &Effect| match effect.id.asker {
        Asker::Preparation => Outcome::Refused { raw: "no".into() },
        _ => scripted(effect),
    };
    let (asked, _) = drive(mixture(2, 1000, json!({})), &refuses).unwrap();
    assert!(asked.iter().all(|effect| !effect.request.rendered().contains("Your part:")));
    assert_eq!(asked.len(), 1 + 2 * 11);
}
