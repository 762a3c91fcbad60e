//! Facts of official programs on scripted replies (a leaf's `official.json`, made by `scripts/official`), and the comparison of our
//! methods on the same replies with them.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::exchange;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Answer, Effect, Outcome, Usage, Value};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Assembled;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// The facts of an official program.
#[derive(Deserialize)]
pub struct Official {
    /// Whether the official program itself was run.
    ran: bool,
    /// Why it was not.
    reason: Option<String>,
    /// Its runs.
    pub cases: Vec<Case>,
    differences: Vec<Difference>,
}

/// A run of a program on scripted replies.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub name: String,
    /// Settings of our scenario that correspond.
    pub settings: Json,
    /// The replies, in a form of the method's own.
    pub replies: Json,
    pub calls: Vec<Call>,
    number_of_calls: usize,
    stopped_after_round: u32,
    pub answer: Option<String>,
    /// Facts of the method's own.
    #[serde(flatten)]
    pub more: BTreeMap<String, Json>,
}

/// A call of a program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub round: u32,
    /// The number of a member, or the name of another part.
    pub member: Json,
    /// `answer` for the members' answers; the others are the method's own.
    pub kind: String,
    pub temperature: Option<f64>,
    /// The replies shown, as (round, member), in the order of the prompt.
    pub shown: Vec<(u32, Json)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    what: String,
    why: String,
    /// The name of the change that turns the official facts into those expected of ours; none if no fact of a case shows it.
    rule: Option<String>,
}

/// A named difference: it changes the official facts of a case into those expected of ours.
pub type Rule<'a> = (&'a str, &'a dyn Fn(&mut Case));

/// What is compared of a run of ours.
pub struct Played {
    pub calls: Vec<Call>,
    pub answer: Option<String>,
    /// The acts of all rounds: (member, kind, text).
    pub acts: Vec<(u32, u16, String)>,
    /// The member that each call went to.
    pub actors: Vec<u32>,
}

/// Round, member and kind of a call.
pub type Who = (u32, Json, &'static str);

impl Case {
    /// Whether the method's settings have this value.
    pub fn has(&self, key: &str, value: impl Into<Json>) -> bool {
        self.settings["method"][key] == value.into()
    }

    /// The facts expected of ours, and the rules that changed something.
    fn under<'a>(&self, rules: &[Rule<'a>]) -> (Case, BTreeSet<&'a str>) {
        let (mut expected, mut used) = (self.clone(), BTreeSet::new());
        for (name, rule) in rules {
            let before = (expected.calls.clone(), expected.answer.clone());
            rule(&mut expected);
            if before != (expected.calls.clone(), expected.answer.clone()) {
                used.insert(*name);
            }
        }
        (expected, used)
    }

    /// Compares a run of ours with the facts; returns the rules that changed something.
    fn fits<'a>(&self, rules: &[Rule<'a>], played: &Played) -> Result<BTreeSet<&'a str>, String> {
        let same = |what: &str, ours: &dyn Debug, theirs: &dyn Debug| match (format!("{ours:?}"), format!("{theirs:?}"))
        {
            (ours, theirs) if ours == theirs => Ok(()),
            (ours, theirs) => Err(format!("{what}: ours {ours}, officially {theirs}")),
        };
        same("number of calls, as listed", &self.calls.len(), &self.number_of_calls)?;
        same("round of the stop, as listed", &last_round(&self.calls), &self.stopped_after_round)?;
        let (expected, used) = self.under(rules);
        for (n, (ours, theirs)) in played.calls.iter().zip(&expected.calls).enumerate() {
            same(&format!("call {n}"), ours, theirs)?;
        }
        same("number of calls", &played.calls.len(), &expected.calls.len())?;
        same("round of the stop", &last_round(&played.calls), &last_round(&expected.calls))?;
        same("answer", &played.answer, &expected.answer)?;
        Ok(used)
    }

    /// Whether a rule leaves a call out.
    fn dropped(&self, n: usize, rules: &[Rule<'_>]) -> bool {
        let mut marked = self.clone();
        marked.calls[n].temperature = Some(ODD);
        marked.under(rules).0.calls.iter().all(|call| call.temperature != Some(ODD))
    }

    /// The same case with one fact changed, for every fact that no rule replaces.
    fn altered(&self, rules: &[Rule<'_>]) -> Vec<(String, Case)> {
        let mut all = Vec::new();
        let mut alter = |what: String, change: &dyn Fn(&mut Case)| {
            let mut altered = self.clone();
            change(&mut altered);
            all.push((what, altered));
        };
        let (expected, _) = self.under(rules);
        if expected.answer == self.answer {
            alter("the answer".into(), &|case| case.answer = Some("another".into()));
        }
        alter("the number of calls".into(), &|case| case.number_of_calls += 1);
        alter("the round of the stop".into(), &|case| case.stopped_after_round += 1);
        let kept: Vec<usize> = (0..self.calls.len()).filter(|n| !self.dropped(*n, rules)).collect();
        let last = *kept.last().unwrap();
        alter("the last call".into(), &|case| {
            case.calls.remove(last);
            case.number_of_calls -= 1;
        });
        for n in kept {
            let call = &self.calls[n];
            alter(format!("the kind of call {n}"), &|case| case.calls[n].kind = "other".into());
            alter(format!("the temperature of call {n}"), &|case| case.calls[n].temperature = Some(ODD));
            if call.kind == "answer" {
                alter(format!("the member of call {n}"), &|case| case.calls[n].member = 99.into());
            }
            let same = expected.calls.iter().filter(|other| (other.round, &other.member) == (call.round, &call.member));
            if let Some(seen) = same.flat_map(|other| &other.shown).find(|seen| call.shown.contains(seen)) {
                alter(format!("what call {n} is shown"), &|case| case.calls[n].shown.retain(|shown| shown != seen));
            }
        }
        all
    }

    /// The scripted answers by round and member.
    pub fn answers(&self) -> Vec<Vec<Option<String>>> {
        let answers = if self.replies.is_array() { &self.replies } else { &self.replies["answers"] };
        serde_json::from_value(answers.clone()).unwrap()
    }
}

impl Call {
    pub fn new(round: u32, member: impl Into<Json>, kind: &str, shown: Vec<(u32, Json)>) -> Call {
        Call { round, member: member.into(), kind: kind.into(), temperature: None, shown }
    }
}

impl Official {
    /// Compares our runs of all cases with the official facts under the named differences, each of which must show in some case and
    /// stand in the README. Any fact changed must make the comparison fail.
    pub fn compare(official: &str, readme: &str, rules: &[Rule<'_>], play: &dyn Fn(&Case) -> Played) {
        let official: Official = serde_json::from_str(official).unwrap();
        assert!(official.ran || official.reason.is_some());
        let listed =
            readme.split("## Differences from the official code").nth(1).expect("the README lists differences");
        let listed = words(listed.split("\n## ").next().unwrap());
        for Difference { what, why, .. } in &official.differences {
            assert!(listed.contains(&words(what)) && listed.contains(&words(why)), "not in the README: {what} {why}");
        }
        let named: BTreeSet<&str> = official.differences.iter().filter_map(|found| found.rule.as_deref()).collect();
        assert_eq!(named, rules.iter().map(|(name, _)| *name).collect());
        let mut used = BTreeSet::new();
        assert!(!official.cases.is_empty());
        for case in &official.cases {
            let played = play(case);
            used.extend(case.fits(rules, &played).unwrap_or_else(|why| panic!("{}: {why}", case.name)));
            for (what, altered) in case.altered(rules) {
                assert!(altered.fits(rules, &played).is_err(), "{}: nothing is compared with {what}", case.name);
            }
        }
        assert_eq!(used, named, "a difference that shows in no case is none");
    }
}

/// A temperature that no case has.
const ODD: f64 = 0.123;

/// The text in single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number of rounds in which members answered.
fn last_round(calls: &[Call]) -> u32 {
    calls.iter().filter(|call| call.kind == "answer").map(|call| call.round + 1).max().unwrap_or(0)
}

/// Runs our method on the question of the tests. `who` says what the nth call is, and `reply` answers it; the reply should hold the
/// marker, by which later calls are seen to show it.
pub fn play(
    method: &str,
    settings: &Json,
    who: &dyn Fn(usize, &Effect) -> Who,
    reply: &dyn Fn(&Who, &str) -> Outcome,
) -> Played {
    let mut scenario = json!({"method": {"kind": method}});
    scenario.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    play_on(exchange::opened(&scenario), who, reply, &|_| panic!("the method runs no programs"))
}

/// The same with an evaluation that is open. `run` gives the result of a program with its tests; a run is no call.
fn play_on(
    evaluation: Assembled,
    who: &dyn Fn(usize, &Effect) -> Who,
    reply: &dyn Fn(&Who, &str) -> Outcome,
    run: &dyn Fn(&str) -> Outcome,
) -> Played {
    let Assembled::Evaluation(mut machine) = evaluation else { panic!("an evaluation was asked for") };
    let log: RefCell<Vec<(Who, Call)>> = RefCell::default();
    let mut played = Played { calls: Vec::new(), answer: None, acts: Vec::new(), actors: Vec::new() };
    let mut answers = Vec::new();
    loop {
        let step = machine.poll(std::mem::take(&mut answers)).unwrap();
        for effect in &step.start {
            if &*effect.request.model == Ran::PYTHON {
                let outcome = run(&effect.request.rendered());
                answers.push(Answer {
                    id: effect.id,
                    request: effect.request.clone(),
                    outcome,
                    usage: Usage::default(),
                    reasoning: None,
                });
                continue;
            }
            let n = log.borrow().len();
            let told = effect.request.rendered();
            let mut shown: Vec<(usize, (u32, Json))> = Vec::new();
            for (k, (who, _)) in log.borrow().iter().enumerate() {
                shown.extend(told.find(&marker(k)).map(|place| (place, (who.0, who.1.clone()))));
            }
            shown.sort_by_key(|(place, _)| *place);
            let shown = shown.into_iter().map(|(_, said)| said).collect();
            let spoken = who(n, effect);
            let mut call = Call::new(spoken.0, spoken.1.clone(), spoken.2, shown);
            call.temperature = effect.request.settings.temperature;
            played.actors.push(effect.id.actor);
            let outcome = reply(&spoken, &marker(n));
            log.borrow_mut().push((spoken, call));
            answers.push(Answer {
                id: effect.id,
                request: effect.request.clone(),
                outcome,
                usage: Usage::default(),
                reasoning: None,
            });
        }
        match step.then {
            Then::Done(_) => break,
            Then::Round(report) => {
                played.answer = report.items.iter().find_map(|item| item.answer.clone());
                for (_, acts) in machine.acts() {
                    let text = |n: usize| acts.text(n).unwrap_or_default().to_owned();
                    played.acts.extend(acts.rows.iter().enumerate().map(|(n, act)| (act.who, act.kind, text(n))));
                }
            }
            Then::More | Then::Wait | Then::Exchange(_) => {}
        }
    }
    played.calls = log.into_inner().into_iter().map(|(_, call)| call).collect();
    played
}

/// The problem of programming of the official runs.
const DOUBLE: [(&str, &str); 5] = [
    ("task_id", "own/0"),
    ("prompt", "def double(x):\n    \"\"\"Returns twice x.\"\"\"\n"),
    ("entry_point", "double"),
    ("canonical_solution", "    return 2 * x\n"),
    ("test", "def check(candidate):\n    assert candidate(2) == 4\n"),
];

/// Runs a method that writes programs on the problem of the official runs. A suite of tests is [`suite`], a program [`program`]; the answer
/// is what the program returns.
pub fn play_programs(
    method: &str,
    settings: &Json,
    who: &dyn Fn(usize, &Effect) -> Who,
    reply: &dyn Fn(&Who, &str) -> Outcome,
) -> Played {
    let mut scenario = json!({
        "model": "test/scripted", "method": {"kind": method}, "items": {"file": "items", "shape": "humaneval"},
    });
    scenario.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let columns = DOUBLE.map(|(name, cell)| (name, vec![cell.to_string()]));
    let evaluation = exchange::open(&scenario, &columns, &crate::testing::registry()).unwrap();
    // What Python makes of them: only the right program passes the right suite.
    let run = |told: &str| {
        let passes =
            told.contains("return 2 * x") && (told.contains("double(3) == 6") || told.contains("candidate(2)"));
        let ended = if passes { Ended::Finished } else { Ended::Failed };
        bare(Ran { ended, status: 0, output: String::new(), errors: "AssertionError".into() }.value())
    };
    let mut played = play_on(evaluation, who, reply, &run);
    played.answer = played.answer.and_then(|text| text.split("return ").nth(1).map(|body| body.trim().to_owned()));
    played
}

/// A program, right or wrong, after a marker.
pub fn program(marker: &str, right: bool) -> Outcome {
    answer(marker, Some(&format!("    return {}", if right { "2 * x" } else { "x" })))
}

/// A suite of tests, right or wrong, with a marker.
pub fn suite(marker: &str, right: bool) -> Outcome {
    let value = if right { 6 } else { 7 };
    bare(Value::Record(vec![Value::Text(format!("# {marker}\nassert double(3) == {value}"))]))
}

/// A value as the reply.
pub fn bare(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

fn marker(n: usize) -> String {
    format!("mark-{n:04}")
}

/// The reply of a member: the marker as its reasons, and the answer; without an answer, no reply.
pub fn answer(marker: &str, answer: Option<&String>) -> Outcome {
    match answer {
        Some(answer) => exchange::says(marker, Value::Text(answer.clone())),
        None => Outcome::Failed { why: "refused by the script".into() },
    }
}
