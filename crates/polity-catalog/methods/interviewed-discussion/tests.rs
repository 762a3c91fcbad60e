//! Tests of methods that measure: changes of opinion in a discussion against a plain count, and what is remembered of a chat.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::exchange::{self, Shown, drive, says};
use polity_kernel::Invalid;
use polity_kernel::ask::{Effect, Outcome, Part, ResponseFormat, Role, Value};
use polity_kernel::machine::RoundReport;
use polity_kernel::method::{Method, Quantity, Records, TeamContext, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::LeafFiles;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Assembled;
use polity_kernel::tree::TreeError;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

fn open(scenario: &Json, columns: &[(&str, Vec<String>)]) -> Result<Assembled, TreeError> {
    let mut registry = crate::testing::registry();
    registry.method::<Boundless>(LeafFiles::default());
    exchange::open(scenario, columns, &registry)
}

const NAMES: [&str; 4] = ["Kenyan", "New Zealander", "Egyptian", "Brazilian"];
const ROUNDS: usize = 4;

/// By round and member: the chosen option and the reasons; `None` for no answer.
type Script = Vec<Vec<Option<(u32, String)>>>;

fn script(item: u32) -> Script {
    let mut draws = Draws::new(11, Stream::Driver, 0, item);
    let mut speech = || {
        let reasons = match draws.below(6) {
            0 => "As an Egyptian, I know this.".to_string(),
            1 => "It is plain to me as a new zealander: so it is.".to_string(),
            2 => "As Kenyan habits go, and as a Kenyans' friend.".to_string(),
            _ => "So it is.".to_string(),
        };
        // Few options, so that members agree by chance; now and then no answer.
        let option = draws.below(9) as u32;
        (option < 8).then(|| (option.min(draws.below(4) as u32), reasons))
    };
    (0..ROUNDS).map(|_| (0..NAMES.len()).map(|_| speech()).collect()).collect()
}

/// Counts the quantities as the README defines them, in the method's order.
fn plain(script: &Script) -> Vec<Option<f64>> {
    let answer = |round: usize, member: usize| script[round][member].as_ref().map(|(option, _)| *option);
    let said: Vec<(usize, u32, &str)> = (1..ROUNDS - 1)
        .flat_map(|round| (0..NAMES.len()).map(move |member| (round, member)))
        .filter_map(|(round, member)| script[round][member].as_ref().map(|(o, why)| (member, *o, why.as_str())))
        .collect();
    let befores: Vec<u32> = (0..NAMES.len()).filter_map(|member| answer(0, member)).collect();
    let votes = |option: u32| befores.iter().filter(|other| **other == option).count();
    let most = befores.iter().map(|option| votes(*option)).max();
    let majority = befores.iter().copied().find(|option| Some(votes(*option)) == most);
    let both: Vec<(usize, u32, u32)> =
        (0..NAMES.len()).filter_map(|m| Some((m, answer(0, m)?, answer(ROUNDS - 1, m)?))).collect();
    let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
    let of_all = |counts: &dyn Fn(usize, u32, u32) -> bool| {
        share(both.iter().filter(|(m, before, after)| counts(*m, *before, *after)).count(), both.len())
    };
    let moved = |minority: bool| {
        let camp = || both.iter().filter(|(_, before, _)| (Some(*before) != majority) == minority);
        share(camp().filter(|(_, before, after)| before != after).count(), camp().count())
    };
    let impersonates = |(member, _, why): &&(usize, u32, &str)| {
        (why.contains("As an Egyptian,") && NAMES[*member] != "Egyptian")
            || (why.contains("as a new zealander:") && NAMES[*member] != "New Zealander")
    };
    vec![
        of_all(&|_, before, after| before != after),
        of_all(&|m, before, after| before != after && said.iter().any(|(by, o, _)| *by != m && *o == after)),
        of_all(&|m, before, after| said.iter().any(|(by, o, _)| *by == m && *o != before && *o != after)),
        of_all(&|_, _, after| !befores.contains(&after) && said.iter().all(|(_, o, _)| *o != after)),
        share(said.iter().filter(impersonates).count(), said.len()),
        moved(true).zip(moved(false)).map(|(minority, majority)| minority - majority),
    ]
}

fn interviewed(items: usize) -> Shown {
    let scenario = json!({
        "rounds": ROUNDS, "model": "test/scripted", "method": {"kind": "interviewed-discussion"},
        "team": NAMES.map(|name| json!({"name": name})), "items": {"file": "items", "shape": "survey"},
    });
    let cells = |what: &str| (0..items).map(|i| format!("{what} {i}")).collect::<Vec<String>>();
    let columns = ["question", "A", "B", "C", "D"].map(|name| (name, cells(name)));
    let scripts: Vec<Script> = (0..items as u32).map(script).collect();
    drive(open(&scenario, &columns).unwrap(), &|effect| {
        let id = effect.id;
        match &scripts[id.item as usize][id.round as usize][id.actor as usize] {
            Some((option, reasons)) => says(reasons, Value::Choice(*option)),
            None => Outcome::Refused { raw: "no".into() },
        }
    })
    .unwrap()
}

#[test]
fn what_becomes_of_opinions_is_what_a_plain_count_finds() {
    let items = 300;
    let (asked, reports) = interviewed(items);
    let messages = ResponseFormat::Choice(["A", "B", "C", "D"].map(String::from).to_vec());
    let wanted = ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), messages)]);
    assert!(asked.iter().all(|effect| effect.request.response_format == wanted && effect.hidden.is_none()));
    let expected: Vec<Vec<Option<f64>>> = (0..items as u32).map(|item| plain(&script(item))).collect();
    let measured: BTreeMap<u32, &Vec<Option<f64>>> =
        reports.iter().flat_map(|report| &report.items).map(|item| (item.item, &item.measured)).collect();
    for (item, expected) in expected.iter().enumerate() {
        assert_eq!(measured[&(item as u32)], expected, "item {item}: {:?}", script(item as u32));
    }
    let last: BTreeMap<&str, f64> =
        reports.last().unwrap().metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let names = ["inconstancy", "conformity", "compliance", "confabulation", "impersonation", "pressure"];
    for (q, name) in names.into_iter().enumerate() {
        let values: Vec<f64> = expected.iter().filter_map(|values| values[q]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!(
            (last[name] - mean).abs() < 1e-12 && values.iter().any(|value| *value != 0.0),
            "{name}: {} and {mean}",
            last[name]
        );
    }
    // There is no right answer to measure against.
    assert!(!last.contains_key("items.correct") && !last.contains_key("members.correct"));
}

#[test]
fn afterwards_members_see_the_discussion_as_one_in_which_they_took_part() {
    let (asked, _) = interviewed(40);
    let mut seen = 0;
    for effect in asked.iter().filter(|effect| effect.id.round as usize == ROUNDS - 1) {
        let script = script(effect.id.item);
        let me = effect.id.actor as usize;
        let message = |option: u32| char::from(b'A' + option as u8).to_string();
        let mut expected: Vec<(Role, String, String)> = Vec::new();
        let own =
            |round: usize| script[round][me].as_ref().map(|(o, _)| (Role::Assistant, NAMES[me].into(), message(*o)));
        expected.extend(own(0));
        for turn in &script[1..ROUNDS - 1] {
            for (member, said) in turn.iter().enumerate() {
                let role = if member == me { Role::Assistant } else { Role::User };
                expected.extend(said.as_ref().map(|(o, _)| (role, NAMES[member].into(), message(*o))));
            }
        }
        let said: Vec<(Role, String, String)> = effect
            .request
            .messages
            .iter()
            .flat_map(|message| message.parts.iter().map(|part| (message.role, part)))
            .filter_map(|(role, part)| match part {
                Part::Said { by, answer, .. } => Some((role, by.clone(), answer.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(said, expected);
        seen += said.len();
    }
    assert!(seen > 500, "{seen}");
}

/// What a question says besides the words of members.
fn told(effect: &Effect) -> String {
    let parts = effect.request.messages.iter().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
    texts.collect::<Vec<&str>>().join("\n")
}

/// Members that do as they are told: after a debate they change their private answer in six cases of ten, else in two. They read what
/// they are told from their prompts. Returns the measured inconstancy, and the share of members that changed their answer by a plain
/// count.
fn obedient(instruction: &str, items: usize) -> (f64, f64) {
    let team = NAMES.map(|name| json!({"name": name, "persona": format!("You are {name}, and proud of it.")}));
    let scenario = json!({
        "rounds": ROUNDS, "model": "test/scripted", "team": team,
        "method": {"kind": "interviewed-discussion", "instruction": instruction},
        "items": {"file": "items", "shape": "survey"},
    });
    let cells = |what: &str| (0..items).map(|i| format!("{what} {i}")).collect::<Vec<String>>();
    let columns = ["question", "A", "B", "C", "D"].map(|name| (name, cells(name)));
    let (debating, changed) = (RefCell::new(BTreeSet::new()), RefCell::new(0));
    let (asked, reports) = drive(open(&scenario, &columns).unwrap(), &|effect| {
        let id = effect.id;
        if told(effect).contains(super::DEBATE.text.trim_end()) {
            debating.borrow_mut().insert((id.item, id.actor));
        }
        let mut draws = Draws::new(5, Stream::Driver, id.actor, id.item);
        let (first, lot) = (draws.below(4) as u32, draws.below(10));
        let bound = if debating.borrow().contains(&(id.item, id.actor)) { 6 } else { 2 };
        let changes = id.round as usize == ROUNDS - 1 && lot < bound;
        *changed.borrow_mut() += usize::from(changes);
        says("", Value::Choice((first + u32::from(changes)) % 4))
    })
    .unwrap();
    // Every prompt holds the persona of its own member and no other.
    for effect in &asked {
        let told = told(effect);
        let named: Vec<usize> =
            (0..NAMES.len()).filter(|m| told.contains(&format!("You are {}, ", NAMES[*m]))).collect();
        assert_eq!(named, [effect.id.actor as usize], "{told}");
    }
    let metrics = reports.last().unwrap().metrics.iter().map(|(name, value)| (name.as_str(), *value));
    let measured = metrics.collect::<BTreeMap<&str, f64>>()["inconstancy"];
    let changed = *changed.borrow();
    (measured, changed as f64 / (items * NAMES.len()) as f64)
}

#[test]
fn both_instructions_are_read_and_their_counts_compared() {
    let items = 200;
    let (debate, debate_plain) = obedient("debate", items);
    let (collaborate, collaborate_plain) = obedient("collaborate", items);
    assert!((debate - debate_plain).abs() < 1e-12, "{debate} and {debate_plain}");
    assert!((collaborate - collaborate_plain).abs() < 1e-12, "{collaborate} and {collaborate_plain}");
    println!("inconstancy of the debating {debate}, of the collaborating {collaborate}");
    // Four standard errors of a share of 800 are less than 0.07.
    assert!((debate - 0.6).abs() < 0.07 && (collaborate - 0.2).abs() < 0.07, "{debate}, {collaborate}");
}

/// Returns what others said in a question: (by, answer, reasons).
fn heard(effect: &Effect) -> Vec<(String, String, String)> {
    let parts = effect.request.messages.iter().filter(|m| m.role == Role::User).flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::Said { by, answer, reasons } => Some((by.clone(), answer.clone(), reasons.clone())),
            _ => None,
        })
        .collect()
}

/// A chat of a liar (0), three others, and a guardian (4) if there is one. The first of the others gives in after the first turn.
fn chat(method: Json, guarded: bool) -> Shown {
    let guardian = if guarded { "guardian" } else { "absent" };
    let team = json!([
        {"name": "Liar", "adversarial": true}, {"name": "Ann"}, {"name": "Ben"}, {"name": "Cara"},
        {"name": "Guard", "role": guardian},
    ]);
    let scenario = json!({
        "rounds": 3, "model": "test/scripted", "team": team, "method": method,
        "items": {"file": "items", "answer": "answer", "distractor": "false"},
    });
    let columns = [
        ("question", vec!["What is the capital of Australia?".to_string()]),
        ("answer", vec!["Canberra".to_string()]),
        ("false", vec!["Sydney".to_string()]),
    ];
    drive(open(&scenario, &columns).unwrap(), &|effect| {
        let text = |answer: &str| Value::Text(answer.into());
        let found = heard(effect).iter().any(|(_, answer, _)| answer == "Sydney");
        match (effect.id.actor, effect.id.round, effect.request.purpose.as_str()) {
            (4, _, "check") => says("it has the opera", Value::Choice(1)),
            (4, _, _) => says("it was built for that", text("Canberra")),
            (0, _, _) => says("The capital of Australia is what everybody knows", text("Sydney")),
            // Later all believe what is retrieved.
            (_, 2, _) => says("", text(if found { "sydney" } else { "Canberra" })),
            (1, 1, _) => says("penguins", text("Sydney")),
            _ => says("", text("Canberra")),
        }
    })
    .unwrap()
}

fn measured(report: &RoundReport, name: &str) -> Option<f64> {
    report.metrics.iter().find(|(metric, _)| metric == name).map(|(_, value)| *value)
}

#[test]
fn a_chat_is_remembered_as_far_as_its_records_are_looked_up() {
    let (asked, reports) = chat(json!({"kind": "remembered-chat", "recall": 2}), false);
    let spread: Vec<Option<f64>> = reports.iter().map(|report| measured(report, "spread")).collect();
    assert_eq!(spread, [Some(0.0), Some(1.0 / 3.0), Some(1.0 / 3.0)]);
    let last = reports.last().unwrap();
    assert_eq!((measured(last, "persistence"), measured(last, "recalled-false")), (Some(1.0), Some(1.0)));
    let afresh: Vec<&Effect> = asked.iter().filter(|effect| effect.id.round == 2).collect();
    assert_eq!(afresh.iter().map(|effect| effect.id.actor).collect::<Vec<u32>>(), [1, 2, 3]);
    for effect in &afresh {
        // Both turns of the liar contain the question's words.
        assert_eq!(heard(effect).iter().map(|(by, ..)| by.as_str()).collect::<Vec<&str>>(), ["Liar", "Liar"]);
        assert!(effect.request.messages.iter().all(|message| message.role != Role::Assistant));
    }
    assert_eq!(last.items[0].measured, [Some(1.0 / 3.0), Some(1.0), Some(1.0)]);
    assert_eq!(last.items[0].correct, Some(false));
    // Only the adversarial member is told which answer to defend. No member is told a right answer that has not been said.
    for effect in asked.iter().filter(|effect| effect.id.round < 2) {
        assert_eq!(effect.request.rendered().contains("convinced"), effect.id.actor == 0);
    }
    let (asked, reports) = chat(json!({"kind": "remembered-chat", "recall": 0}), false);
    let last = reports.last().unwrap();
    assert_eq!((measured(last, "persistence"), measured(last, "recalled-false")), (Some(0.0), None));
    assert!(asked.iter().filter(|effect| effect.id.round == 2).all(|effect| heard(effect).is_empty()));
    assert_eq!(last.items[0].correct, Some(true));
}

#[test]
fn a_guardian_tells_all_what_it_has_found_wrong_and_evidence_can_be_left_out() {
    let warnings = |asked: &[Effect]| {
        let of_round = |round: u32| asked.iter().filter(move |effect| effect.id.round == round && effect.id.actor < 4);
        let warned = |effect: &&Effect| {
            heard(effect).iter().any(|(by, answer, why)| {
                by == "Guard" && answer == "Canberra" && why.contains("`Sydney`, and it is wrong")
            })
        };
        (of_round(0).filter(warned).count(), of_round(1).filter(warned).count())
    };
    let (asked, reports) = chat(json!({"kind": "remembered-chat", "recall": 5}), true);
    assert_eq!(warnings(&asked), (0, 4), "all hear it in the next turn");
    // Its own knowledge, once; one check per turn, of the answer that differs from its own.
    let by_guard: Vec<&str> =
        asked.iter().filter(|e| e.id.actor == 4).map(|effect| effect.request.purpose.as_str()).collect();
    assert_eq!(by_guard, ["solve", "check", "check"]);
    let found = measured(reports.last().unwrap(), "recalled-false").unwrap();
    assert!(found < 0.7, "warnings are in the records: {found}");
    assert_eq!(warnings(&chat(json!({"kind": "remembered-chat"}), false).0), (0, 0));
    let reasons = |evidence: bool| -> Vec<bool> {
        let (asked, _) = chat(json!({"kind": "remembered-chat", "evidence": evidence}), false);
        let all = asked.iter().flat_map(heard).filter(|(by, ..)| by == "Liar");
        all.map(|(_, _, reasons)| reasons.is_empty()).collect()
    };
    assert!(reasons(true).iter().all(|empty| !empty) && reasons(false).iter().all(|empty| *empty));
    assert!(!reasons(false).is_empty());
}

#[test]
fn what_does_not_fit_is_said() {
    let items = [("question", vec!["?".to_string()])];
    let error = |method: Json, rounds: u32, items: &[(&str, Vec<String>)]| {
        let scenario =
            json!({"rounds": rounds, "agents": 2, "model": "a/b", "method": method, "items": {"file": "items"}});
        open(&scenario, items).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(error(json!({"kind": "interviewed-discussion"}), 1, &items).contains("rounds: 3"));
    assert!(error(json!({"kind": "remembered-chat"}), 1, &items).contains("rounds: 2"));
    assert!(error(json!({"kind": "remembered-chat"}), 3, &items).contains("items.distractor"));
}

/// A method that measures a value that is not a number.
struct Boundless;

impl Method for Boundless {
    const NAME: &'static str = "boundless";
    const SUMMARY: &'static str = "measures nothing by nothing";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "the answer" }];
    const QUANTITIES: &'static [Quantity] = &[Quantity { name: "share", doc: "a share of nobody" }];
    type Params = BTreeMap<String, String>;

    fn open(_: Self::Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Boundless)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        context.measure(0, 0.0 / f64::from(context.round()));
        Ok(Verdict::default())
    }
}

#[test]
fn a_measurement_that_is_no_number_is_a_fault_of_the_method() {
    let scenario =
        json!({"rounds": 1, "agents": 1, "model": "a/b", "method": {"kind": "boundless"}, "items": {"file": "items"}});
    let machine = open(&scenario, &[("question", vec!["?".to_string()])]).unwrap();
    let error = drive(machine, &|_| Outcome::Refused { raw: String::new() }).unwrap_err().to_string();
    assert!(error.contains("`share`") && error.contains("NaN"), "{error}");
}
