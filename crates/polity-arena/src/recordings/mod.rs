//! Answers that models gave elsewhere, taken from logs: what `polity import recorded` does.
//!
//! Each format has a file that reads it into a [`Log`]: questions, and answers as the log's own scorer extracted them. A [`Bundle`] is made
//! of logs: the items, the table of answers (`items.recorded`) and a scenario that plays them. It also scores the answers by the rule of its
//! items, which shows whether the import kept what the log says.

mod bundle;
mod harness;
mod inspect;
mod own;

pub use bundle::{ANSWERS, Account, Bundle, ITEMS, SCENARIO};

use polity_kernel::items::Scorer;
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use polity_store::files::read_bytes;
use std::collections::BTreeMap;
use std::path::Path;

/// Which answers of a log are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// The name of the model, instead of the log's.
    pub model: Option<&'a str>,
    /// The scorer (Inspect) or the filter (lm-evaluation-harness) whose answers are taken. Default: the first.
    pub scorer: Option<&'a str>,
}

/// A log, in the same terms for every format.
#[derive(Debug, Default)]
pub struct Log {
    /// Its file or folder, as the user named it.
    pub path: String,
    /// The program that wrote it.
    pub format: &'static str,
    /// The name of its task.
    pub task: String,
    /// The scorer or the filter that extracted the answers; empty if nothing did.
    pub scorer: String,
    /// The rule by which the log compares answers, if it is one of Polity's.
    pub rule: Option<Scorer>,
    /// The questions, in order.
    pub questions: Vec<Question>,
    /// The answers, in order.
    pub replies: Vec<Reply>,
    /// The accuracy that the log states, and what it is a mean of.
    pub accuracy: Option<(f64, MeanOf)>,
    /// What was not taken over: why, and how many.
    pub left_out: BTreeMap<&'static str, usize>,
    /// What else to know about it.
    pub notes: Vec<String>,
}

/// What a log's accuracy is a mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeanOf {
    /// Items, each with the mean of its answers. An unreadable answer is wrong.
    Items,
    /// The readable answers of the first round.
    ReadableAnswers,
}

/// A question of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Its id in the log.
    pub id: String,
    /// Its text, without the options.
    pub text: String,
    /// The options, if it is multiple choice.
    pub choices: Vec<String>,
    /// The right answer, if the log has one; for multiple choice a letter.
    pub right: Option<String>,
}

/// An answer of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The id of the question.
    pub item: String,
    /// The model.
    pub model: String,
    /// Which of the model's samples, from 0.
    pub sample: u32,
    /// The round, from 0.
    pub round: u32,
    /// The member of the team, in runs of Polity.
    pub member: Option<String>,
    /// What it says.
    pub said: Said,
    /// The log's own mark: whether it is right.
    pub mark: Option<bool>,
    /// Tokens of the request and of the reply.
    pub tokens: [u64; 2],
    /// Its cost in US dollars.
    pub cost_usd: f64,
    /// What tells it from all other answers, if the log says so. An answer that is in two logs is taken once.
    pub identity: Option<String>,
}

/// How a log states an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The answer alone, as the log's scorer extracted it; empty if it found none.
    Extracted(String),
    /// The whole reply. The item's own rule reads the answer from it.
    Whole(String),
}

impl Default for Said {
    fn default() -> Self {
        Said::Extracted(String::new())
    }
}

impl Log {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }
}

/// Reads a log. Its content and the ending of its name say which format it has.
///
/// # Errors
/// [`DriveError::Input`] for a file that is no log, is damaged or holds no answer; for a run folder also those of reading a run.
pub fn read(path: &Path, choice: Choice<'_>, registry: &Registry) -> Result<Log, DriveError> {
    let log = if path.is_dir() {
        own::read(path, choice, registry)?
    } else {
        let bytes = read_bytes(path).map_err(|error| DriveError::Input(error.to_string()))?;
        let ending = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        match ending.as_str() {
            _ if bytes.is_empty() => return Err(wrong(path, "the file is empty, so there is no log in it")),
            "eval" => inspect::read_archive(path, bytes, choice)?,
            "json" => inspect::read_json(path, &bytes, choice)?,
            "jsonl" => harness::read(path, &bytes, choice)?,
            _ => {
                let what = "this is not a known kind of log: name an Inspect log (.eval or .json), samples of \
                            lm-evaluation-harness (samples_TASK_DATE.jsonl), or the folder of a run of Polity";
                return Err(wrong(path, what));
            }
        }
    };
    if log.replies.is_empty() {
        let reasons: Vec<String> = log.left_out.iter().map(|(why, count)| format!("{why}: {count}")).collect();
        let reasons = if reasons.is_empty() { "it has no samples".into() } else { reasons.join(", ") };
        return Err(wrong(path, format!("the log holds no answer that can be taken over ({reasons})")));
    }
    Ok(log)
}

/// An error about a log, which names its file.
fn wrong(path: &Path, what: impl std::fmt::Display) -> DriveError {
    DriveError::Input(format!("{}: {what}", path.display()))
}

/// The letter of option `index`.
fn letter(index: usize) -> Option<String> {
    u8::try_from(index).ok().filter(|index| *index < 26).map(|index| char::from(b'A' + index).to_string())
}

/// The letter of the right option, if the text names exactly one: its letter, or its text.
fn right_option(text: &str, choices: &[String]) -> Option<String> {
    let text = text.trim();
    let named = (0..choices.len()).filter_map(letter).find(|letter| letter == text);
    named.or_else(|| letter(choices.iter().position(|choice| choice.trim() == text)?))
}

#[cfg(test)]
mod tests;
