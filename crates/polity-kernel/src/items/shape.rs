//! The format of a data set.

use crate::items::Scorer;
use crate::population::{Population, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The format of a data set: its columns, and how answers are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// `question`, and the columns that the scenario names. Answers are compared as a whole.
    #[default]
    Plain,
    /// Like GSM8K: `question`, and `answer` with `#### 18` at its end; scored by the last number. Without a difficulty column, the
    /// difficulty is (number of calculations (`<<`) in the answer - 3.1) / 1.43 (mean and deviation of the first 200 test
    /// problems).
    Gsm8k,
    /// Like MATH: `problem`, and `solution` with `\boxed{...}`; scored as formulas. The difficulty is (`level` - 3) / 1.4.
    Math,
    /// Multiple choice: `question`, `choices` (a list) or `A`, `B`, `C`, `D`, and `answer` (a letter, a number from 0, or an option's
    /// text); scored by letter. `subject` is the topic.
    Choice,
    /// Multiple choice without right answers, as in surveys: the columns of `choice` without `answer`; compared by letter.
    Survey,
    /// Preferences: `question`, `answer_a`, `answer_b`, and `label` (`A` or `B`), the answer that people prefer. For judges; scored
    /// by letter.
    Preference,
    /// Like HumanEval: `prompt`, `entry_point`, `canonical_solution`, `test`; scored by the tests, in the sandbox. The difficulty
    /// is (lines of the solution - 6) / 5.
    Humaneval,
}

impl Shape {
    /// Detects the format of a table by its columns.
    #[must_use]
    pub fn of(table: &Table) -> Shape {
        let has = |name: &str| table.index(name).is_ok();
        let first_answer = || {
            table.index("answer").ok().map(|c| Population::from_table(Arc::new(table.clone())).cell(c, 0).to_string())
        };
        match () {
            () if has("canonical_solution") && has("test") && has("entry_point") => Shape::Humaneval,
            () if has("answer_a") && has("answer_b") && has("label") => Shape::Preference,
            () if has("problem") && has("solution") => Shape::Math,
            () if (has("choices") || has("A") && has("B")) && !has("answer") => Shape::Survey,
            () if has("choices") || has("A") && has("B") => Shape::Choice,
            () if has("question") && first_answer().is_some_and(|answer| answer.contains("####")) => Shape::Gsm8k,
            () => Shape::Plain,
        }
    }

    pub(super) fn scorer(self) -> Scorer {
        match self {
            Shape::Plain => Scorer::Exact,
            Shape::Gsm8k => Scorer::Number,
            Shape::Math => Scorer::Math,
            Shape::Choice | Shape::Survey | Shape::Preference => Scorer::Choice,
            Shape::Humaneval => Scorer::Code,
        }
    }

    pub(super) fn question(self) -> &'static str {
        match self {
            Shape::Plain | Shape::Gsm8k | Shape::Choice | Shape::Survey | Shape::Preference => "question",
            Shape::Math => "problem",
            Shape::Humaneval => "prompt",
        }
    }

    /// Returns whether there are options to choose from.
    pub(super) fn has_options(self) -> bool {
        matches!(self, Shape::Choice | Shape::Survey)
    }

    pub(super) fn answer(self) -> Option<&'static str> {
        match self {
            Shape::Plain | Shape::Survey => None,
            Shape::Gsm8k | Shape::Choice => Some("answer"),
            Shape::Preference => Some("label"),
            Shape::Math => Some("solution"),
            Shape::Humaneval => Some("canonical_solution"),
        }
    }
}
