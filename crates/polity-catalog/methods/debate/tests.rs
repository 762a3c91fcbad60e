//! Tests of the debate against a plain second implementation, in every order of arrival, and through snapshots.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::official::{Case, Official, Rule, answer, play};
use polity_kernel::Bug;
use polity_kernel::ask::{Answer, ChatMessage, Effect, Outcome, Part, Role, Usage, Value};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::interface::Actions;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, RoundReport, Then};
use polity_kernel::method::same_answer;
use polity_kernel::population::{Table, TextBuilder};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tree::Node;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const GOLD: &str = "the-gold-answer";

fn debate(scenario: &Json, items: usize) -> Evaluation {
    let (mut question, mut gold) = (TextBuilder::default(), TextBuilder::default());
    for i in 0..items {
        question.push(&format!("question {i}?"));
        gold.push(GOLD);
    }
    let columns = vec![("question".to_string(), question.finish()), ("gold".to_string(), gold.finish())];
    let tables = BTreeMap::from([("items".to_string(), Arc::new(Table::new(columns).unwrap()))]);
    let inputs = Inputs { tables, ..Inputs::default() };
    let registry = crate::testing::registry();
    match assemble(&Node::from_json(scenario), &registry, &inputs, Layout::default()).unwrap() {
        Assembled::Evaluation(evaluation) => *evaluation,
        Assembled::Society(_) => panic!("a debate is an evaluation"),
    }
}

fn scenario(members: usize, rounds: usize, more: &Json) -> Json {
    let mut scenario = json!({
        "rounds": rounds, "agents": members, "model": "test/scripted", "method": {"kind": "debate"},
        "items": {"file": "items", "answer": "gold"}, "max_concurrent": 3,
    });
    for (key, value) in more.as_object().unwrap() {
        scenario[key] = value.clone();
    }
    scenario
}

/// The members' replies: by item, round and member; `Err` is no answer.
type Script = Vec<Vec<Vec<Result<&'static str, &'static str>>>>;

fn outcome(script: &Script, effect: &Effect) -> Outcome {
    let id = effect.id;
    match script[id.item as usize][id.round as usize][id.actor as usize] {
        Ok(answer) => {
            let reasons = format!("why {answer} in round {}", id.round);
            Outcome::Reply {
                value: Value::Record(vec![Value::Text(reasons), Value::Text(answer.into())]),
                raw: String::new(),
                repaired: false,
            }
        }
        Err("invalid") => Outcome::Invalid { raw: "{".into(), why: "broken".into() },
        Err("refused") => Outcome::Refused { raw: "no".into() },
        Err("failed") => Outcome::Failed { why: "timeout".into() },
        Err(why) => Outcome::Denied { why: why.into() },
    }
}

fn reply(script: &Script, effect: &Effect) -> Answer {
    Answer {
        id: effect.id,
        request: effect.request.clone(),
        outcome: outcome(script, effect),
        usage: Usage::default(),
        reasoning: None,
    }
}

/// The order in which answers arrive.
#[derive(Clone, Copy, Debug)]
enum Order {
    Together,
    OneByOne,
    Reverse,
    Random(u64),
}

/// Everything that a run reports.
#[derive(Debug, Default)]
struct Shown {
    asked: Vec<Effect>,
    batches: Vec<usize>,
    /// By round: (item, from, to, answer).
    messages: Vec<Vec<(u32, u32, u32, String)>>,
    reports: Vec<RoundReport>,
    /// By round and item: (member, kind, text) of each act.
    records: Vec<Vec<Vec<(u32, u16, String)>>>,
    digest: String,
    /// The snapshot after each round.
    snapshots: Vec<Vec<u8>>,
}

fn drive(machine: &mut Evaluation, script: &Script, order: Order) -> Shown {
    let mut shown = Shown::default();
    let mut open = machine.open_effects();
    let mut answers = Vec::new();
    let mut draws = Draws::new(if let Order::Random(seed) = order { seed } else { 0 }, Stream::Driver, 0, 0);
    loop {
        let step = machine.poll(std::mem::take(&mut answers)).unwrap();
        if !step.start.is_empty() {
            shown.batches.push(step.start.len());
        }
        shown.asked.extend(step.start.iter().cloned());
        open.extend(step.start);
        match step.then {
            Then::Done(outcome) => {
                shown.digest = outcome.digest.to_string();
                return shown;
            }
            Then::Round(report) => {
                shown.messages.push(machine.messages().to_vec());
                shown.reports.push(*report);
                shown.records.push(machine.acts().iter().map(|(_, acts)| records(acts)).collect());
                shown.snapshots.push(machine.snapshot().unwrap());
            }
            Then::More | Then::Exchange(_) => {}
            Then::Wait => {
                let take = match order {
                    Order::Together => std::mem::take(&mut open),
                    Order::OneByOne => vec![open.remove(0)],
                    Order::Reverse => vec![open.pop().unwrap()],
                    Order::Random(_) => {
                        draws.shuffle(&mut open);
                        let n = 1 + draws.below(open.len() as u64) as usize;
                        open.drain(..n).collect()
                    }
                };
                answers = take.iter().map(|effect| reply(script, effect)).collect();
            }
        }
    }
}

/// A member's own last answer, and those of others by member.
type Seen = (Option<String>, Vec<(usize, String)>);

/// The expected results on one item by a plain reading of the README: by round, each member's record lines and whose answers it was
/// shown, and the team's answer.
struct Plain {
    /// By round: (member, kind, text).
    records: Vec<Vec<(u32, u16, String)>>,
    /// By round and member: what it was shown.
    seen: Vec<Vec<Seen>>,
    verdict: Option<String>,
}

fn plain(script: &[Vec<Result<&'static str, &'static str>>], hears: &dyn Fn(usize) -> Vec<usize>, stop: bool) -> Plain {
    let members = script[0].len();
    let mut holds: Vec<Option<String>> = vec![None; members];
    let mut plain = Plain { records: Vec::new(), seen: Vec::new(), verdict: None };
    let votes = |holds: &[Option<String>], answer: &str| {
        holds.iter().flatten().filter(|other| same_answer(other, answer)).count()
    };
    for (round, replies) in script.iter().enumerate() {
        if stop && holds[0].as_ref().is_some_and(|first| votes(&holds, first) == members) {
            break;
        }
        let known = |other: usize| Some((other, holds[other].clone()?));
        plain.seen.push(match round {
            0 => vec![(None, Vec::new()); members],
            _ => (0..members).map(|m| (holds[m].clone(), hears(m).into_iter().filter_map(known).collect())).collect(),
        });
        let mut records = Vec::new();
        for (member, reply) in replies.iter().enumerate() {
            let why = match reply {
                Ok(answer) if answer.trim().is_empty() => Some("the answer is empty"),
                Ok(answer) => {
                    holds[member] = Some(answer.trim().to_owned());
                    None
                }
                Err("invalid") => Some("the reply does not fit what was asked: broken"),
                Err("refused") => Some("the model refused: no"),
                Err("failed") => Some("no reply: timeout"),
                Err(_) => Some("not asked: budget"),
            };
            records.extend(why.map(|why| (member as u32, 1, why.to_owned())));
            records.extend(holds[member].clone().map(|answer| (member as u32, 0, answer)));
        }
        plain.records.push(records);
    }
    let most = holds.iter().flatten().map(|answer| votes(&holds, answer)).max();
    plain.verdict = holds.iter().flatten().find(|answer| Some(votes(&holds, answer)) == most).cloned();
    plain
}

/// Returns the answers of others that a request shows, and the member's own.
fn seen(messages: &[ChatMessage]) -> (Option<String>, Vec<String>) {
    let said = |role: Role| {
        let parts = messages.iter().filter(move |m| m.role == role).flat_map(|m| &m.parts);
        parts.filter_map(|part| match part {
            Part::Said { answer, .. } => Some(answer.clone()),
            _ => None,
        })
    };
    (said(Role::Assistant).next_back(), said(Role::User).collect())
}

/// Returns a round's records, by member; those of one member in order.
fn records(acts: &Actions) -> Vec<(u32, u16, String)> {
    let mut records: Vec<(u32, u16, String)> =
        acts.rows.iter().enumerate().map(|(n, act)| (act.who, act.kind, acts.text(n).unwrap().to_owned())).collect();
    records.sort_by_key(|(who, ..)| *who);
    records
}

fn any_reply() -> impl Strategy<Value = Result<&'static str, &'static str>> {
    prop_oneof![
        8 => prop::sample::select(vec!["1", "1.0", "2", " 2", "yes", "YES", "1,000", "1000"]).prop_map(Ok),
        1 => Just(Ok(" ")),
        2 => prop::sample::select(vec!["invalid", "refused", "failed", "budget"]).prop_map(Err),
    ]
}

fn any_script(items: usize) -> impl Strategy<Value = Script> {
    (1usize..5, 1usize..4).prop_flat_map(move |(members, rounds)| {
        let round = prop::collection::vec(any_reply(), members);
        prop::collection::vec(prop::collection::vec(round, rounds), items)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn agrees_with_a_plain_reading(script in any_script(2), ring: bool, stop: bool, reasons: bool, seed: u64) {
        let (members, rounds) = (script[0][0].len(), script[0].len());
        let ring = ring && members == 4;
        let mut more = json!({"method": {"kind": "debate", "stop_when_agreed": stop, "show_reasons": reasons}});
        if ring {
            more["topology"] = json!({"kind": "ring", "neighbours": 2});
        }
        let hears = |member: usize| -> Vec<usize> {
            let beside = |other: &usize| *other != member && (!ring || (other + member) % 2 == 1);
            (0..members).filter(beside).collect()
        };
        let shown = drive(&mut debate(&scenario(members, rounds, &more), script.len()), &script, Order::Random(seed));
        let plains: Vec<Plain> = script.iter().map(|script| plain(script, &hears, stop)).collect();

        for (round, recorded) in shown.records.iter().enumerate() {
            let under_way = plains.iter().enumerate().filter(|(_, plain)| plain.records.len() > round);
            let expected: Vec<_> = under_way.clone().map(|(_, plain)| plain.records[round].clone()).collect();
            prop_assert_eq!(recorded, &expected);
            let mut messages = Vec::new();
            for (item, plain) in under_way {
                for (to, (_, others)) in plain.seen[round].iter().enumerate() {
                    messages.extend(others.iter().map(|(from, a)| (item as u32, *from as u32, to as u32, a.clone())));
                }
            }
            prop_assert_eq!(&shown.messages[round], &messages);
        }
        let asked: usize = plains.iter().map(|plain| plain.seen.len() * members).sum();
        prop_assert_eq!(shown.asked.len(), asked);
        for Effect { id, request, hidden, .. } in &shown.asked {
            let (own, others) = &plains[id.item as usize].seen[id.round as usize][id.actor as usize];
            let others: Vec<String> = others.iter().map(|(_, answer)| answer.clone()).collect();
            prop_assert_eq!(seen(&request.messages), (own.clone(), others.clone()));
            let text: String = request.messages.iter().map(ChatMessage::rendered).collect();
            let question = format!("question {}?", id.item);
            prop_assert!(text.contains(&question) && !text.contains(GOLD));
            prop_assert_eq!(&hidden.as_ref().unwrap().gold, GOLD);
            let argued = request.messages.iter().filter(|m| m.role == Role::User).any(|m| m.rendered().contains("why "));
            prop_assert_eq!(argued, reasons && !others.is_empty());
        }
        let verdicts: BTreeMap<u32, Option<String>> =
            shown.reports.iter().flat_map(|r| &r.items).map(|item| (item.item, item.answer.clone())).collect();
        prop_assert_eq!(verdicts, plains.into_iter().map(|plain| plain.verdict).enumerate().map(|(i, v)| (i as u32, v)).collect());
    }

    #[test]
    fn no_order_of_arrival_and_no_snapshot_changes_the_digest(script in any_script(3), seed: u64) {
        let scenario = scenario(script[0][0].len(), script[0].len(), &json!({"max_concurrent": 2}));
        let whole = drive(&mut debate(&scenario, 3), &script, Order::Together);
        for order in [Order::OneByOne, Order::Reverse, Order::Random(seed)] {
            let other = drive(&mut debate(&scenario, 3), &script, order);
            prop_assert_eq!(&other.digest, &whole.digest, "{:?}", order);
            for snapshot in &other.snapshots {
                let mut resumed = debate(&scenario, 3);
                resumed.restore(snapshot).unwrap();
                prop_assert_eq!(drive(&mut resumed, &script, order).digest, whole.digest.clone());
            }
        }
    }
}

fn agreeing(members: usize, rounds: usize) -> Script {
    vec![vec![vec![Ok("7"); members]; rounds]]
}

#[test]
fn members_ask_together() {
    let script = agreeing(3, 4);
    let shown = drive(&mut debate(&scenario(3, 4, &json!({})), 1), &script, Order::Together);
    assert_eq!(shown.batches, [3, 3, 3, 3]);
    assert_eq!(shown.reports.len(), 4);
    let item = &shown.reports[3].items[0];
    assert_eq!((item.rounds, item.asks, item.answer.as_deref()), (4, 12, Some("7")));
}

#[test]
fn a_debate_can_stop_when_all_agree() {
    let script = agreeing(3, 4);
    let stop = json!({"method": {"kind": "debate", "stop_when_agreed": true}});
    let shown = drive(&mut debate(&scenario(3, 4, &stop), 1), &script, Order::Together);
    assert_eq!(shown.batches, [3]);
    // From a later round on: the parameter changes during the run, as in a fork.
    let later = json!({"changes": [{"at": 2, "set": {"method.stop_when_agreed": true}}]});
    let shown = drive(&mut debate(&scenario(3, 4, &later), 1), &script, Order::Together);
    assert_eq!(shown.batches, [3, 3]);
}

#[test]
fn ties_go_to_the_answer_supported_first() {
    let verdict = |answers: Vec<Result<&'static str, &'static str>>| {
        let script = vec![vec![answers]];
        let mut machine = debate(&scenario(script[0][0].len(), 1, &json!({})), 1);
        drive(&mut machine, &script, Order::Reverse).reports[0].items[0].answer.clone()
    };
    assert_eq!(verdict(vec![Ok("b"), Ok("a"), Ok("a"), Ok("B")]).as_deref(), Some("b"));
    assert_eq!(verdict(vec![Ok("b"), Ok("a"), Ok("A"), Ok("a")]).as_deref(), Some("a"));
    assert_eq!(verdict(vec![Err("failed"), Ok("c"), Ok("a")]).as_deref(), Some("c"));
    assert_eq!(verdict(vec![Err("failed"), Err("refused")]), None);
}

#[test]
fn a_persona_stands_first() {
    let team =
        json!({"agents": 2, "team": [{"persona": "You doubt.", "model": "test/scripted"}, {"model": "test/scripted"}]});
    let shown = drive(&mut debate(&scenario(2, 2, &team), 1), &agreeing(2, 2), Order::Together);
    let roles = |effect: &Effect| effect.request.messages.iter().map(|m| m.role).collect::<Vec<_>>();
    assert_eq!(roles(&shown.asked[0]), [Role::System, Role::User]);
    assert_eq!(shown.asked[0].request.messages[0], ChatMessage::text(Role::System, "You doubt."));
    assert_eq!(roles(&shown.asked[3]), [Role::User, Role::Assistant, Role::User]);
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let mut machine = debate(&scenario(2, 2, &json!({})), 1);
    let script = agreeing(2, 2);
    let effects = machine.poll(Vec::new()).unwrap().start;
    let mut answers: Vec<Answer> = effects.iter().map(|effect| reply(&script, effect)).collect();
    Arc::make_mut(&mut answers[1].request.messages)[0] = ChatMessage::text(Role::User, "something else");
    match machine.poll(answers) {
        Err(Bug::Mismatch { id, .. }) => assert_eq!(id, effects[1].id),
        other => panic!("{other:?}"),
    }
}

#[test]
fn acts_as_the_official_programs() {
    // Earlier rounds are not repeated.
    let last_round = |case: &mut Case| {
        case.calls.iter_mut().for_each(|call| call.shown.retain(|(round, _)| round + 1 == call.round));
    };
    let answers_only = |case: &mut Case| {
        let answers = case.answers();
        let given = |round: &u32, member: &Json| answers[*round as usize][member.as_u64().unwrap() as usize].is_some();
        case.calls.iter_mut().for_each(|call| call.shown.retain(|(round, member)| given(round, member)));
    };
    // The most common of the members' last answers, the first of equals.
    let keeps = |case: &mut Case| {
        let answers = case.answers();
        if answers.last().unwrap().iter().all(Option::is_some) {
            return;
        }
        let held: Vec<&String> =
            (0..answers[0].len()).filter_map(|n| answers.iter().rev().find_map(|round| round[n].as_ref())).collect();
        let votes = |answer: &String| held.iter().filter(|other| **other == answer).count();
        let most = held.iter().map(|answer| votes(answer)).max();
        case.answer = held.iter().find(|answer| Some(votes(answer)) == most).map(|answer| (*answer).clone());
    };
    let rules: [Rule<'_>; 3] =
        [("last-round", &last_round), ("answers-only", &answers_only), ("keeps-its-answer", &keeps)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let answers = case.answers();
        let who = |_: usize, effect: &Effect| (effect.id.round, effect.id.actor.into(), "answer");
        play("debate", &case.settings, &who, &|(round, member, _), marker| {
            answer(marker, answers[*round as usize][member.as_u64().unwrap() as usize].as_ref())
        })
    });
}
