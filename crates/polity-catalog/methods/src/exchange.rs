//! Evaluations from JSON whose questions a test answers: who is asked what, and what comes of the replies.
#![allow(clippy::panic, clippy::unwrap_used)]

use polity_kernel::Bug;
use polity_kernel::ask::{Answer, Effect, Outcome, Usage, Value};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, RoundReport, Then};
use polity_kernel::population::{Table, TextBuilder};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tree::{Node, TreeError};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Opens a scenario whose items, the file `items`, have these columns.
pub fn open(scenario: &Json, columns: &[(&str, Vec<String>)], registry: &Registry) -> Result<Assembled, TreeError> {
    let column = |(name, cells): &(&str, Vec<String>)| {
        let mut text = TextBuilder::default();
        cells.iter().for_each(|cell| text.push(cell));
        ((*name).to_string(), text.finish())
    };
    let table = Table::new(columns.iter().map(column).collect()).unwrap();
    let inputs = Inputs { tables: BTreeMap::from([("items".into(), Arc::new(table))]), ..Inputs::default() };
    assemble(&Node::from_json(scenario), registry, &inputs, Layout::default())
}

/// The questions asked, and the report of every round.
pub type Shown = (Vec<Effect>, Vec<RoundReport>);

/// Runs an evaluation to its end with these replies.
pub fn drive(machine: Assembled, reply: &dyn Fn(&Effect) -> Outcome) -> Result<Shown, Bug> {
    watched(machine, reply, &mut |_| {})
}

/// The same, and calls a function after every round: acts and messages stay with the machine until the next one.
pub fn watched(
    machine: Assembled,
    reply: &dyn Fn(&Effect) -> Outcome,
    watch: &mut dyn FnMut(&Evaluation),
) -> Result<Shown, Bug> {
    let Assembled::Evaluation(mut machine) = machine else { panic!("an evaluation was asked for") };
    let (mut asked, mut reports, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let step = machine.poll(std::mem::take(&mut answers))?;
        let answered = |effect: &Effect| Answer {
            id: effect.id,
            request: effect.request.clone(),
            outcome: reply(effect),
            usage: Usage::default(),
            reasoning: None,
        };
        answers.extend(step.start.iter().map(answered));
        asked.extend(step.start);
        match step.then {
            Then::Done(_) => return Ok((asked, reports)),
            Then::Round(report) => {
                watch(&machine);
                reports.push(*report);
            }
            Then::More | Then::Wait | Then::Exchange(_) => {}
        }
    }
}

/// One question, `What is the capital of Australia?`, to a team of a method.
pub fn one_question(scenario: &Json, reply: &dyn Fn(&Effect) -> Outcome) -> Shown {
    drive(opened(scenario), reply).unwrap()
}

/// The evaluation of [`one_question`], not yet run.
pub fn opened(scenario: &Json) -> Assembled {
    let mut scenario = scenario.clone();
    scenario["model"] = "test/scripted".into();
    scenario["items"] = serde_json::json!({"file": "items", "answer": "answer"});
    let columns =
        [("question", vec!["What is the capital of Australia?".to_string()]), ("answer", vec!["Canberra".to_string()])];
    open(&scenario, &columns, &crate::testing::registry()).unwrap()
}

/// Reasons and an answer, as members reply.
pub fn says(reasons: &str, answer: Value) -> Outcome {
    let value = Value::Record(vec![Value::Text(reasons.into()), answer]);
    Outcome::Reply { value, raw: String::new(), repaired: false }
}
