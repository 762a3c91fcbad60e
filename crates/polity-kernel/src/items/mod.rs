//! Items of a data set: what a team is asked, what is right, and how its answer is scored.
//!
//! Sources of the shapes: GSM8K (Cobbe et al. 2021), MATH (Hendrycks et al. 2021), HumanEval (Chen et al. 2021); multiple choice as in MMLU
//! (Hendrycks et al. 2021).

mod answers;
mod code;
mod read;

pub use answers::{boxed, last_number};
pub use code::{Program, Tested, program};
pub use read::{Shape, read};

use crate::ask::{Hidden, Message, Part, Request, Role, Task, Value, Want};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An item of a data set, as a team is given it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Row of the data set.
    pub index: u32,
    /// The question; with its options, where it has some.
    pub question: String,
    /// The right answer, where the data set names one; for scoring and for simulated models, never for a prompt.
    pub gold: Option<String>,
    /// Difficulty on the scale of the simulated models' skill.
    pub difficulty: f64,
    /// The tempting wrong answer, where the data set names one.
    pub lure: Option<String>,
    /// Its field of knowledge, where the data set names one.
    pub topic: Option<String>,
    /// What there is to choose from, where it is a choice; the answers are `A`, `B` and so on.
    pub options: Vec<String>,
    /// Two answers to the question, one of which people prefer: what is asked for is a judgement, and `options` are the answers.
    pub pair: bool,
    /// How answers are read and compared.
    pub scorer: Scorer,
    /// The program that is wanted, where one is.
    pub program: Option<Arc<Program>>,
    /// The model that scores answers, where one does.
    pub judge: Option<Arc<str>>,
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
    /// As a whole, by a model (`items.judge`) that reads it beside the right one, if the data set names that.
    Judge,
}

/// The kind of work of a model that scores answers ([`Request::purpose`]). It is no part of what a method takes.
pub const SCORING: &str = "score";
/// What a model that scores is told behind question and answer.
const SCORE: &str = include_str!("score.md");

/// The form of a judgement whether an answer is right: reasons first. [`judged`] reads it.
#[must_use]
pub fn right_or_wrong() -> Want {
    let verdict = Want::Choice(["right", "wrong"].map(String::from).to_vec());
    Want::Record(vec![("reasons".into(), Want::Text), ("answer".into(), verdict)])
}

/// What such a judgement says: whether the answer is right, and why.
#[must_use]
pub fn judged(judgement: &Value) -> Option<(bool, &str)> {
    let Some(Value::Choice(said)) = judgement.field(1) else { return None };
    Some((*said == 0, judgement.field(0).and_then(Value::as_text)?))
}

impl Item {
    /// What stands in an answer for the answer itself; `None` when nothing is found. It is recorded, so that scoring can be audited.
    #[must_use]
    pub fn extracted(&self, answer: &str) -> Option<String> {
        let found = match self.scorer {
            Scorer::Exact | Scorer::Judge => Some(answer.trim().to_owned()),
            Scorer::Number => last_number(answer),
            Scorer::Math => Some(answers::formula(answer)),
            Scorer::Choice => answers::letter(answer, &self.options),
            Scorer::Code => self.program.as_ref().map(|program| program.code_in(answer)),
        };
        found.filter(|found| !found.is_empty())
    }

    /// Whether two answers are the same, as far as the scorer looks; an answer in which nothing is found is the same as none.
    #[must_use]
    pub fn same(&self, a: &str, b: &str) -> bool {
        match self.scorer {
            Scorer::Exact | Scorer::Judge => same_answer(a, b),
            _ => matches!((self.extracted(a), self.extracted(b)), (Some(a), Some(b)) if same_answer(&a, &b)),
        }
    }

    /// Whether an answer is right, as far as that can be told by reading it. `None`: there is no right answer, or only tests or a judge can
    /// tell.
    #[must_use]
    pub fn is_right(&self, answer: &str) -> Option<bool> {
        let gold = self.gold.as_ref()?;
        (!matches!(self.scorer, Scorer::Code | Scorer::Judge)).then(|| self.same(answer, gold))
    }

    /// The question to the model that scores an answer, if one does. Its reply is read by [`judged`].
    #[must_use]
    pub fn to_judge(&self, answer: &str) -> Option<Request> {
        let model = self.judge.as_ref().filter(|_| self.scorer == Scorer::Judge)?;
        let mut question = format!("The question:\n{}", self.question);
        if let Some(gold) = &self.gold {
            question.push_str(&format!("\n\nThe right answer, as the data set has it:\n{gold}"));
        }
        let shown = Part::Said { by: "The answer to be scored".into(), answer: answer.into(), reasons: String::new() };
        let parts = vec![Part::Text(question), shown, Part::Text(SCORE.trim_end().into())];
        let messages = vec![Message { role: Role::User, parts }];
        Some(Request { purpose: SCORING.into(), ..Request::new(&**model, messages, right_or_wrong()) })
    }

    /// The letters of its options; none where the answer is no choice among them.
    #[must_use]
    pub fn letters(&self) -> Vec<String> {
        match self.scorer {
            Scorer::Choice if !self.pair => (0..self.options.len()).filter_map(answers::letter_of).collect(),
            _ => Vec::new(),
        }
    }

    /// What a simulated model may know of a question about the item.
    #[must_use]
    pub fn hidden(&self, task: Task) -> Option<Hidden> {
        let Item { gold, difficulty, lure, topic, program, .. } = self;
        if self.pair {
            // To whoever judges the better answer is the right one.
            let letter = gold.as_ref()?.bytes().next()?;
            let better = self.options.get(usize::from(letter.checked_sub(b'A')?))?.clone();
            let gold = if matches!(task, Task::Choose | Task::Rate | Task::Check) { better } else { gold.clone()? };
            let (difficulty, lure, topic) = (*difficulty, lure.clone(), topic.clone());
            return Some(Hidden { gold, difficulty, lure, topic, wrong: Arc::default(), task });
        }
        let (gold, wrong) = match (task, program) {
            (Task::Test, Some(program)) => (program.assertions.join("\n"), program.wrong_tests.clone()),
            (Task::Test, None) => return None,
            (_, Some(program)) => (gold.clone()?, program.wrong.clone()),
            (_, None) => (gold.clone()?, Arc::default()),
        };
        Some(Hidden { gold, difficulty: *difficulty, lure: lure.clone(), topic: topic.clone(), wrong, task })
    }
}

/// Whether two answers are the same: equal as numbers, or as text without regard to case and surrounding space.
#[must_use]
pub fn same_answer(a: &str, b: &str) -> bool {
    let number = |s: &str| s.trim().replace(',', "").parse::<f64>().ok();
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a.trim().eq_ignore_ascii_case(b.trim()),
    }
}
