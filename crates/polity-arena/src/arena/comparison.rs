//! The results of a comparison.

use super::tables::names;
use super::{Duel, Overall, Pilot, Score, Sheet};
use polity_driver::run::RunStatus;
use serde::Serialize;

/// A use that differs from the allowance by more than this share gets a warning.
const UNLIKE: f64 = 0.25;

/// What the mock server and simulated models reply to free questions.
const STAND_IN: &str = "simulated reply ";

/// A task of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskOf {
    /// The name of its file.
    pub task: String,
    /// The format of that file.
    pub shape: String,
    /// Items.
    pub items: u32,
}

/// The results of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Always [`RunStatus::Done`], since stopped runs are not compared.
    pub status: RunStatus,
    /// Its folder.
    pub folder: String,
    /// The tasks.
    pub tasks: Vec<TaskOf>,
    /// The models; one at a time is that of all members.
    pub models: Vec<String>,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Items of all tasks.
    pub items: u32,
    /// Runs of each method on each task with each model.
    pub repeats: u32,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Every method, as it was named, on every task with every model, in this order: tasks, models, methods.
    pub methods: Vec<Score>,
    /// The means over the tasks, if there are several: of accuracies, then of differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Overall>,
    /// All pairs of methods on the same task with the same model; of a single method, all pairs of models on the same task.
    pub compared: Vec<Duel>,
    /// What was measured to make budgets equal, for each task and model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pilots: Vec<Pilot>,
    /// Why no item at all was solved, if that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsolved: Option<String>,
    /// The command that makes it again.
    #[serde(skip)]
    pub command: String,
    /// Answers to items, by method and repeat, in the order of `methods`.
    #[serde(skip)]
    pub sheets: Vec<Vec<Sheet>>,
}

/// Returns a warning if no item was solved at all. `stand_in`: whether the replies may be those of the mock server.
pub(super) fn unsolved(scores: &[Score], sheets: &[Vec<Sheet>], stand_in: &[bool]) -> Option<String> {
    let all_wrong = !scores.is_empty() && scores.iter().all(|score| score.accuracy == Some(0.0));
    if !all_wrong {
        return None;
    }
    let answers = || {
        let of_wires = sheets.iter().zip(stand_in).filter(|(_, may)| **may);
        of_wires.flat_map(|(sheets, _)| sheets).flat_map(|sheet| &sheet.rows).filter_map(|row| row.answer.as_deref())
    };
    let example = answers().next().filter(|_| answers().all(|answer| answer.trim().starts_with(STAND_IN)));
    Some(match example {
        Some(answer) => format!(
            "no item was solved, and none can be: the answers are those of the mock server (`{}`), which does not know the \
             items. Ask a simulated model directly (--model sim/medium), which is right as often as its declared skill \
             allows, or a real model",
            answer.trim()
        ),
        None => {
            "no item was solved, by any method. Models rarely fail on all items: look at what they were asked and what \
                 they answered (`polity calls FOLDER`), and at the column with the right answers"
                .into()
        }
    })
}

impl Comparison {
    /// Returns warnings about results that could mislead a reader.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let unlike = |score: &Score| {
            let part = score.of_allowance.filter(|part| !(1.0 - UNLIKE..=1.0 + UNLIKE).contains(part))?;
            Some(format!(
                "{}{} used {:.0} % of the allowance: its budget is not equal to that of the others",
                score.method,
                self.place(&score.task, Some(&score.model)),
                100.0 * part
            ))
        };
        let mut warnings: Vec<String> = self.unsolved.iter().cloned().collect();
        warnings.extend(self.methods.iter().filter_map(unlike));
        let fitted = |score: &&Score| {
            let pilots = self.pilots.iter().filter(|pilot| pilot.task == score.task && pilot.model == score.model);
            pilots.flat_map(|pilot| &pilot.trials).filter(|trial| trial.method == score.method).count() > 1
        };
        if self.methods.iter().filter(fitted).any(|score| unlike(score).is_some()) {
            warnings.push("a pilot with more items would come closer (--pilot)".into());
        }
        warnings
    }

    /// Returns a task and a model for a sentence, ` on TASK with MODEL`: each only if the comparison has several.
    pub(super) fn place(&self, task: &str, model: Option<&str>) -> String {
        let mut place = String::new();
        if self.tasks.len() > 1 {
            place.push_str(&format!(" on {task}"));
        }
        if let Some(model) = model.filter(|_| self.models.len() > 1) {
            place.push_str(&format!(" with {model}"));
        }
        place
    }

    /// Returns the names of the tasks, for a sentence.
    #[must_use]
    pub fn task_names(&self) -> String {
        joined(self.tasks.iter().map(|task| task.task.as_str()))
    }

    /// Returns the methods' labels, each once, in order.
    #[must_use]
    pub fn labels(&self) -> Vec<&str> {
        names(&self.methods, |score| &score.method)
    }

    /// Whether the pairs are of models, not of methods.
    pub(super) fn pairs_models(&self) -> bool {
        self.compared.iter().any(|duel| duel.model.is_none())
    }

    /// Returns what the pairs consist of, for headings and sentences: methods, or models.
    #[must_use]
    pub fn sides(&self) -> &'static str {
        if self.pairs_models() { "models" } else { "methods" }
    }
}

/// Joins words for a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
