//! Items of a data set: the question, the right answer, and how answers are scored.
//!
//! Formats follow GSM8K (Cobbe et al. 2021), MATH (Hendrycks et al. 2021), HumanEval (Chen et al. 2021); multiple choice follows
//! MMLU (Hendrycks et al. 2021).

mod answers;
mod checker;
mod code;
mod read;
mod recorded;
mod shape;

pub use answers::{boxed, last_number, same_answer};
pub use checker::{CHECK, Checked, Checker, CheckerError};
pub use code::{Program, Tested, program};
pub use read::read;
pub(crate) use recorded::in_other_order;
pub use recorded::{Lookup, RECORDED, Recording, recorded_model};
pub use shape::Shape;

use crate::ask::{ChatMessage, Hidden, Part, PlannedCall, Request, ResponseFormat, Role, Task, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An item of a data set, as a team gets it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Row of the data set.
    pub index: u32,
    /// Its id in the table of recorded answers: its cell in the column of ids, else its row in the file. Empty without such a table.
    pub id: String,
    /// The question, including its options, if any.
    pub question: String,
    /// The right answer, if the data set names one; for scoring and for simulated models, never for a prompt.
    pub gold: Option<String>,
    /// Difficulty on the scale of the simulated models' skill.
    pub difficulty: f64,
    /// The tempting wrong answer, if the data set names one.
    pub distractor: Option<String>,
    /// Its field of knowledge, if the data set names one.
    pub topic: Option<String>,
    /// The options of a multiple-choice item; the answers are `A`, `B` and so on.
    pub options: Vec<String>,
    /// Whether the item is a pair of answers, one of which people prefer. The question is which; `options` are the answers.
    pub pair: bool,
    /// How answers are read and compared.
    pub scorer: Scorer,
    /// The requested program, if any.
    pub program: Option<Arc<Program>>,
    /// The model that scores answers, if any.
    pub judge: Option<Arc<str>>,
    /// Recorded answers to the items of its data set, if any.
    pub recording: Option<Arc<Recording>>,
    /// Calls of tools that find what the answer needs, in order, if the data set names them; for simulated models, never for a prompt.
    pub plan: Arc<Vec<PlannedCall>>,
    /// Wrong answers, if the data set names some; for simulated models, never for a prompt.
    pub wrong: Arc<Vec<String>>,
    /// What the data set knows of parts of the work, by name; for simulated models, never for a prompt.
    pub parts: Arc<BTreeMap<String, ItemPart>>,
    /// The program that decides whether an answer is right, if any.
    pub checker: Option<Arc<Checker>>,
}

/// A part of the work on an item that a member may be asked for, such as a plan or one of several files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemPart {
    /// The right text.
    pub gold: String,
    /// Wrong ones.
    pub wrong: Arc<Vec<String>>,
    /// Difficulty on the scale of the simulated models' skill.
    pub difficulty: f64,
    /// Its field of knowledge, if the data set names one.
    pub topic: Option<String>,
    /// What must be found or shown first.
    pub plan: Arc<Vec<PlannedCall>>,
}

/// How answers to an item are read and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scorer {
    /// As a whole: equal as numbers, or as text without regard to case and surrounding space.
    #[default]
    Exact,
    /// By the last number in it, so that units and sentences around it do no harm.
    Number,
    /// By the formula in its last `\boxed{}`, else as a whole, without what only looks different.
    Math,
    /// By the letter of an option or its text.
    Choice,
    /// A program, by its tests; in the sandbox.
    Code,
    /// By a Python function `check` (`items.checker`); in the sandbox.
    Checker,
    /// As a whole, by a model (`items.judge`) that reads it beside the right one, if the data set names that.
    Judge,
}

/// The purpose of requests to a model that scores answers ([`Request::purpose`]). It does not count towards a method's usage.
pub const SCORING: &str = "score";
/// The instructions to a scoring model, after question and answer.
const SCORE: &str = include_str!("score.md");

/// Returns the format of a verdict on an answer: reasons first. [`judged`] reads it.
#[must_use]
pub fn right_or_wrong() -> ResponseFormat {
    let verdict = ResponseFormat::Choice(["right", "wrong"].map(String::from).to_vec());
    ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), verdict)])
}

/// Reads such a verdict: whether the answer is right, and why.
#[must_use]
pub fn judged(judgement: &Value) -> Option<(bool, &str)> {
    let Some(Value::Choice(said)) = judgement.field(1) else { return None };
    Some((*said == 0, judgement.field(0).and_then(Value::as_text)?))
}

impl Item {
    /// Extracts the final answer from a reply; `None` if nothing is found. It is recorded, so that scoring can be audited.
    #[must_use]
    pub fn extracted(&self, answer: &str) -> Option<String> {
        let found = match self.scorer {
            Scorer::Exact | Scorer::Judge | Scorer::Checker => Some(answer.trim().to_owned()),
            Scorer::Number => last_number(answer),
            Scorer::Math => Some(answers::formula(answer)),
            Scorer::Choice => answers::letter(answer, &self.options),
            Scorer::Code => self.program.as_ref().map(|program| program.code_in(answer)),
        };
        found.filter(|found| !found.is_empty())
    }

    /// Returns whether two answers are the same to the scorer. An answer in which nothing is found equals no other.
    #[must_use]
    pub fn same(&self, a: &str, b: &str) -> bool {
        match self.scorer {
            Scorer::Exact | Scorer::Judge | Scorer::Checker => same_answer(a, b),
            _ => matches!((self.extracted(a), self.extracted(b)), (Some(a), Some(b)) if same_answer(&a, &b)),
        }
    }

    /// Returns whether an answer is right, if reading it can decide that. `None`: there is no right answer, or only a program or a
    /// judge can decide.
    #[must_use]
    pub fn is_right(&self, answer: &str) -> Option<bool> {
        let gold = self.gold.as_ref()?;
        (!matches!(self.scorer, Scorer::Code | Scorer::Checker | Scorer::Judge)).then(|| self.same(answer, gold))
    }

    /// Returns the question to the model that scores an answer, if any. [`judged`] reads its reply.
    #[must_use]
    pub fn to_judge(&self, answer: &str) -> Option<Request> {
        let model = self.judge.as_ref().filter(|_| self.scorer == Scorer::Judge)?;
        let mut question = format!("The question:\n{}", self.question);
        if let Some(gold) = &self.gold {
            question.push_str(&format!("\n\nThe right answer, as the data set has it:\n{gold}"));
        }
        let shown = Part::Said { by: "The answer to be scored".into(), answer: answer.into(), reasons: String::new() };
        let parts = vec![Part::Text(question), shown, Part::Text(SCORE.trim_end().into())];
        let messages = vec![ChatMessage { role: Role::User, parts }];
        Some(Request { purpose: SCORING.into(), ..Request::new(&**model, messages, right_or_wrong()) })
    }

    /// Returns the letters of its options; empty if the answer is not one of them.
    #[must_use]
    pub fn letters(&self) -> Vec<String> {
        match self.scorer {
            Scorer::Choice if !self.pair => (0..self.options.len()).filter_map(answers::letter_of).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns what a simulated model may know about a part of the work on the item; `None` if the data set does not name it.
    #[must_use]
    pub fn hidden_part(&self, part: &str, task: Task) -> Option<Hidden> {
        let ItemPart { gold, wrong, difficulty, topic, plan } = self.parts.get(part)?.clone();
        Some(Hidden { gold, difficulty, topic, wrong, task, plan, ..Hidden::default() })
    }

    /// Returns what a simulated model may know about a question on the item.
    #[must_use]
    pub fn hidden(&self, task: Task) -> Option<Hidden> {
        let Item { gold, difficulty, distractor, topic, program, .. } = self;
        if self.pair {
            // For a judge, the better answer is the right one.
            let letter = gold.as_ref()?.bytes().next()?;
            let better = self.options.get(usize::from(letter.checked_sub(b'A')?))?.clone();
            let gold = if matches!(task, Task::Choose | Task::Rate | Task::Check) { better } else { gold.clone()? };
            let (difficulty, distractor, topic) = (*difficulty, distractor.clone(), topic.clone());
            return Some(Hidden {
                gold,
                difficulty,
                distractor,
                topic,
                task,
                plan: self.plan.clone(),
                ..Hidden::default()
            });
        }
        let (gold, wrong) = match (task, program) {
            (Task::Test, Some(program)) => (program.assertions.join("\n"), program.wrong_tests.clone()),
            (Task::Test, None) => return None,
            (_, Some(program)) => (gold.clone()?, program.wrong.clone()),
            (_, None) => (gold.clone()?, self.wrong.clone()),
        };
        Some(Hidden {
            gold,
            difficulty: *difficulty,
            distractor: distractor.clone(),
            topic: topic.clone(),
            wrong,
            task,
            recorded: None,
            plan: self.plan.clone(),
        })
    }
}
