//! Answers of tools. A tool is asked like a model: its model is `tool/NAME`, and its input is one message of plain text. See
//! `docs/decisions/a-tool-is-a-model.md`.

use super::{ChatMessage, Part, Request, ResponseFormat, Role, Value};
use crate::items::Tested;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a program ended. Limits take precedence: a program that exceeded one is reported with that limit, whatever it printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ended {
    /// With exit status 0. A program with tests has passed all of them.
    #[serde(rename = "finished")]
    Finished,
    /// With another exit status, or with an exception that no limit of the sandbox caused. A program with tests did not pass them,
    /// or ended before they did.
    #[serde(rename = "failed")]
    Failed,
    /// It ran out of time.
    #[serde(rename = "too long")]
    TooLong,
    /// It and its children used more memory than allowed, or it ended because an allocation failed.
    #[serde(rename = "too much memory")]
    TooMuchMemory,
    /// It printed more than is read, or filled its files.
    #[serde(rename = "too much output")]
    TooMuchOutput,
    /// It had more processes and threads at once than allowed.
    #[serde(rename = "too many processes")]
    TooManyProcesses,
    /// It ended with an exception because it used what the sandbox forbids: a file outside, the network, a system call.
    #[serde(rename = "forbidden")]
    Forbidden,
    /// By a signal that the sandbox did not send: its own, a crash, or the machine's lack of memory. Which one is unknown.
    #[serde(rename = "killed")]
    Killed,
}

impl Ended {
    /// All of them, in the order of the answer's options.
    pub const ALL: [Ended; 8] = [
        Ended::Finished,
        Ended::Failed,
        Ended::TooLong,
        Ended::TooMuchMemory,
        Ended::TooMuchOutput,
        Ended::TooManyProcesses,
        Ended::Forbidden,
        Ended::Killed,
    ];

    /// Returns its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ended::Finished => "finished",
            Ended::Failed => "failed",
            Ended::TooLong => "too long",
            Ended::TooMuchMemory => "too much memory",
            Ended::TooMuchOutput => "too much output",
            Ended::TooManyProcesses => "too many processes",
            Ended::Forbidden => "forbidden",
            Ended::Killed => "killed",
        }
    }
}

/// The result of running a program: the answer of `tool/python`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Its exit status, or the negated number of the signal that ended it.
    pub status: i32,
    /// What it printed, up to the limit; invalid UTF-8 is replaced.
    pub output: String,
    /// What it printed to standard error, likewise.
    pub errors: String,
}

impl Ran {
    /// The tool that runs Python.
    pub const PYTHON: &'static str = "tool/python";

    /// Returns the format of the answer: these fields, in this order. The same as [`ResponseFormat::of`] this type.
    #[must_use]
    pub fn response_format() -> ResponseFormat {
        let ended = Ended::ALL.iter().map(|ended| ended.name().to_owned()).collect();
        let status = ResponseFormat::Number { low: f64::from(i32::MIN), high: f64::from(i32::MAX), whole: true };
        let field = |name: &str, response_format| (name.to_owned(), response_format);
        ResponseFormat::Record(vec![
            field("ended", ResponseFormat::Choice(ended)),
            field("status", status),
            field("output", ResponseFormat::Text),
            field("errors", ResponseFormat::Text),
        ])
    }

    /// Returns the question to [`Ran::PYTHON`] that runs a program.
    #[must_use]
    pub fn request(program: impl Into<String>) -> Request {
        Request::new(Self::PYTHON, vec![ChatMessage::text(Role::User, program)], Self::response_format())
    }

    /// Returns the question to [`Ran::PYTHON`] that runs a program with its tests: a message of two parts. The tests run in a
    /// process of their own. The result is [`Ended::Finished`] only if they ran to their end, which the program cannot fake.
    #[must_use]
    pub fn tested(tested: &Tested) -> Request {
        let parts = [&tested.program, &tested.tests].map(|text| Part::Text(text.clone())).into();
        Request::new(Self::PYTHON, vec![ChatMessage { role: Role::User, parts }], Self::response_format())
    }

    /// Returns whether it ended well: a program with tests has passed them.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.ended == Ended::Finished
    }

    /// Returns the answer as a value.
    #[must_use]
    pub fn value(self) -> Value {
        let ended = Ended::ALL.iter().position(|ended| *ended == self.ended).unwrap_or_default();
        let (ended, status) = (Value::Choice(ended as u32), Value::Number(f64::from(self.status)));
        Value::Record(vec![ended, status, Value::Text(self.output), Value::Text(self.errors)])
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// The value is not such an answer; the message says what does not fit.
    pub fn read(value: &Value) -> Result<Ran, String> {
        value.read(&Self::response_format())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_given() {
        assert_eq!(ResponseFormat::of::<Ran>(), Ok(Ran::response_format()));
        for ended in Ended::ALL {
            let ran = Ran { ended, status: -9, output: "a\0\n".into(), errors: "\u{fffd}".into() };
            assert_eq!(Ran::read(&ran.clone().value()), Ok(ran.clone()));
            // As a journal stores it, and as JSON.
            let bytes = postcard::to_allocvec(&ran.clone().value()).unwrap();
            assert_eq!(Ran::read(&postcard::from_bytes(&bytes).unwrap()), Ok(ran));
        }
        assert!(Ran::read(&Value::Text("finished".into())).is_err());
    }
}
