//! Societies from JSON, driven by hand: the leaves under test make no calls, so one poll without answers is a round.
#![allow(dead_code, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use polity_kernel::ask::{self, Answer, Effect, Usage};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{ItemReport, Machine, Outcome, RoundReport, Then};
use polity_kernel::population::{Column, Table, TextBuilder};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::society::Society;
use polity_kernel::tree::{Node, TreeError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// The results of a round, and the values of its acts in order of agent.
pub struct Round {
    report: RoundReport,
    acts: Vec<f64>,
}

impl Deref for Round {
    type Target = RoundReport;

    fn deref(&self) -> &RoundReport {
        &self.report
    }
}

/// A society that has run to its end.
pub struct Played {
    /// The values of the column `opinion` or `last-guess` before the first round.
    pub start: Vec<f64>,
    pub rounds: Vec<Round>,
    pub outcome: Outcome,
    pub society: Society,
}

/// Returns a registry with all leaves of the catalogue.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    crate::register_all(&mut registry);
    crate::register_others(&mut registry);
    registry
}

pub fn open(scenario: &Value, inputs: &Inputs, shards: usize) -> Result<Society, TreeError> {
    let registry = registry();
    let tree = Node::from_json(scenario);
    match assemble(&tree, &registry, inputs, Layout::shards(shards))? {
        Assembled::Society(society) => Ok(*society),
        Assembled::Evaluation(_) => panic!("a society was asked for"),
    }
}

pub fn play_with(scenario: &Value, inputs: &Inputs, shards: usize) -> Played {
    let mut society = open(scenario, inputs, shards).unwrap_or_else(|error| panic!("{error}"));
    let start = society.column(0);
    let mut rounds = Vec::new();
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(report) => {
                let acts = society.acts().flat_map(|block| block.rows.iter().map(|act| act.value)).collect();
                rounds.push(Round { report: *report, acts });
            }
            Then::Done(outcome) => return Played { start, rounds, outcome, society },
            Then::More | Then::Wait | Then::Exchange(_) => panic!("these leaves ask nobody"),
        }
    }
}

/// Runs a society to the end of its next round against a scripted model, whose answers arrive last first: the questions, and the report. An
/// error is the outcome of a society that has ended.
pub fn round(
    society: &mut Society,
    answer: &mut dyn FnMut(&Effect) -> ask::Outcome,
) -> Result<(Vec<Effect>, RoundReport), Outcome> {
    let (mut ready, mut asked): (Vec<Answer>, Vec<Effect>) = (Vec::new(), Vec::new());
    loop {
        let step = society.poll(std::mem::take(&mut ready)).unwrap();
        for effect in step.start {
            let (id, request, outcome) = (effect.id, effect.request.clone(), answer(&effect));
            ready.push(Answer { id, request, outcome, usage: Usage::default(), reasoning: None });
            asked.push(effect);
        }
        ready.reverse();
        match step.then {
            Then::Wait | Then::More | Then::Exchange(_) => {}
            Then::Round(report) => return Ok((asked, *report)),
            Then::Done(outcome) => return Err(outcome),
        }
    }
}

pub fn play(scenario: &Value) -> Played {
    play_with(scenario, &Inputs::default(), 1)
}

/// Returns the agents' actions in a round, by id; each acts once.
pub fn acts(round: &Round) -> Vec<f64> {
    round.acts.clone()
}

/// Returns the value of a metric in a round.
pub fn metric(report: &RoundReport, name: &str) -> f64 {
    let found = report.metrics.iter().find(|(other, _)| other == name);
    found.unwrap_or_else(|| panic!("no metric {name} among {:?}", report.metrics)).1
}

/// Creates a population with one column of numbers, under the name `people`.
pub fn people(column: &str, values: Vec<f64>) -> Inputs {
    let table = Table::new(vec![(column.into(), Column::Number(values))]).unwrap();
    Inputs { tables: [("people".to_string(), Arc::new(table))].into(), ..Inputs::default() }
}

/// Creates an edge list under the name `ties`.
pub fn ties(edges: &[(u32, u32)]) -> Inputs {
    Inputs { edges: [("ties".to_string(), Arc::new(edges.to_vec().into()))].into(), ..Inputs::default() }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the lowest multiple of `agents` that fills whole episodes of the scenario's world; `agents` if there is none up to nine times it.
pub fn whole_episodes(scenario: &Value, agents: u32) -> u32 {
    let opens = |n: &u32| {
        let mut scenario = scenario.clone();
        scenario["agents"] = Value::from(*n);
        open(&scenario, &Inputs::default(), 1).is_ok()
    };
    (1..=9).map(|times| agents * times).find(opens).unwrap_or(agents)
}

/// Returns why a scenario is refused.
pub fn refused(scenario: &Value) -> String {
    match open(scenario, &Inputs::default(), 1) {
        Ok(_) => panic!("it was accepted: {scenario}"),
        Err(error) => error.to_string(),
    }
}

/// Assembles an evaluation whose items, the file `items`, are these questions with their answers. Its checker file, if it names `check.py`,
/// is empty; the scripted model answers for it.
pub fn evaluation(scenario: &Value, rows: &[(String, String)]) -> Box<Evaluation> {
    let (mut question, mut answer) = (TextBuilder::default(), TextBuilder::default());
    for (asked, right) in rows {
        question.push(asked);
        answer.push(right);
    }
    let columns = vec![("question".to_string(), question.finish()), ("answer".to_string(), answer.finish())];
    let tables = BTreeMap::from([("items".to_string(), Arc::new(Table::new(columns).unwrap()))]);
    let texts = BTreeMap::from([("check.py".to_string(), "".into())]);
    let inputs = Inputs { tables, texts, ..Inputs::default() };
    let tree = Node::from_json(scenario);
    match assemble(&tree, &registry(), &inputs, Layout::default()).unwrap_or_else(|e| panic!("{e}")) {
        Assembled::Evaluation(evaluation) => evaluation,
        Assembled::Society(_) => panic!("an evaluation was asked for"),
    }
}

/// Runs an evaluation to its end against a scripted model: its items, its digest, and the number of questions. `break_at`: snapshot and
/// continue in a new machine after that round.
pub fn play_evaluation(
    scenario: &Value,
    rows: &[(String, String)],
    model: impl Fn(&Effect) -> ask::Value,
    break_at: Option<u32>,
) -> (Vec<ItemReport>, String, u64) {
    let answer = |effect: &Effect| Answer {
        id: effect.id,
        request: effect.request.clone(),
        outcome: ask::Outcome::Reply { value: model(effect), raw: String::new(), repaired: false },
        usage: Usage::default(),
        reasoning: None,
    };
    let mut machine = evaluation(scenario, rows);
    let (mut ready, mut items, mut asked): (Vec<Answer>, Vec<ItemReport>, u64) = (Vec::new(), Vec::new(), 0);
    loop {
        let step = machine.poll(std::mem::take(&mut ready)).unwrap();
        asked += step.start.len() as u64;
        ready.extend(step.start.iter().map(answer));
        match step.then {
            Then::Round(report) => {
                items.extend(report.items);
                if break_at == Some(report.round) {
                    let saved = machine.snapshot().unwrap();
                    machine = evaluation(scenario, rows);
                    machine.restore(&saved).unwrap();
                    ready = machine.open_effects().iter().map(answer).collect();
                }
            }
            Then::Done(outcome) => return (items, outcome.digest.to_string(), asked),
            Then::More | Then::Wait | Then::Exchange(_) => {}
        }
    }
}
