//! What tools answer. A tool is asked as a model is: `tool/NAME` is its model, one message of plain text what it is to work on.
//! `docs/decisions/a-tool-is-a-model.md`.

use super::{Message, Part, Request, Role, Value, Want};
use crate::items::Tested;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a program ended. Limits come first: a program that passed one of them is told by it, whatever it said itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ended {
    /// With exit status 0; of a program with tests: it passes all of them.
    #[serde(rename = "finished")]
    Finished,
    /// With another exit status, or with an exception that no wall of the sandbox caused; of a program with tests also: it does not pass them, or
    /// it ended before they did.
    #[serde(rename = "failed")]
    Failed,
    /// It had its time.
    #[serde(rename = "too long")]
    TooLong,
    /// It and its children had more memory than they may, or it ended because it was given no more.
    #[serde(rename = "too much memory")]
    TooMuchMemory,
    /// It printed more than is read, or filled its files.
    #[serde(rename = "too much output")]
    TooMuchOutput,
    /// It had more processes and threads at once than it may.
    #[serde(rename = "too many processes")]
    TooManyProcesses,
    /// It ended with an exception because it reached for what the sandbox does not give: a file outside, the network, a system call.
    #[serde(rename = "forbidden")]
    Forbidden,
    /// By a signal that is none of the sandbox's: its own, a crash, or the machine's want of memory. Which of them nobody knows.
    #[serde(rename = "killed")]
    Killed,
}

impl Ended {
    /// All of them, in the order in which they are answered.
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

    /// Its name in answers.
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

/// What came of running a program: the answer of `tool/python`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Its exit status, or minus the signal that ended it.
    pub status: i32,
    /// What it printed, up to the limit; what is no UTF-8 is replaced.
    pub output: String,
    /// What it printed to standard error, likewise.
    pub errors: String,
}

impl Ran {
    /// The tool that runs Python.
    pub const PYTHON: &'static str = "tool/python";

    /// What is asked for: these fields, in this order. The same as [`Want::of`] this type.
    #[must_use]
    pub fn want() -> Want {
        let ended = Ended::ALL.iter().map(|ended| ended.name().to_owned()).collect();
        let status = Want::Number { low: f64::from(i32::MIN), high: f64::from(i32::MAX), whole: true };
        let field = |name: &str, want| (name.to_owned(), want);
        Want::Record(vec![
            field("ended", Want::Choice(ended)),
            field("status", status),
            field("output", Want::Text),
            field("errors", Want::Text),
        ])
    }

    /// The question to [`Ran::PYTHON`] that runs a program.
    #[must_use]
    pub fn request(program: impl Into<String>) -> Request {
        Request::new(Self::PYTHON, vec![Message::text(Role::User, program)], Self::want())
    }

    /// The question to [`Ran::PYTHON`] that runs a program with its tests: a message of two parts. The tests have a process of their own. It
    /// is [`Ended::Finished`] only if they came to their end, which the program cannot pretend.
    #[must_use]
    pub fn tested(tested: &Tested) -> Request {
        let parts = [&tested.program, &tested.tests].map(|text| Part::Text(text.clone())).into();
        Request::new(Self::PYTHON, vec![Message { role: Role::User, parts }], Self::want())
    }

    /// Whether it ended well: a program with tests has passed them.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.ended == Ended::Finished
    }

    /// The answer as a value.
    #[must_use]
    pub fn value(self) -> Value {
        let ended = Ended::ALL.iter().position(|ended| *ended == self.ended).unwrap_or_default();
        let (ended, status) = (Value::Choice(ended as u32), Value::Number(f64::from(self.status)));
        Value::Record(vec![ended, status, Value::Text(self.output), Value::Text(self.errors)])
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// A value that is none, which says what does not fit.
    pub fn read(value: &Value) -> Result<Ran, String> {
        value.read(&Self::want())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_given() {
        assert_eq!(Want::of::<Ran>(), Ok(Ran::want()));
        for ended in Ended::ALL {
            let ran = Ran { ended, status: -9, output: "a\0\n".into(), errors: "\u{fffd}".into() };
            assert_eq!(Ran::read(&ran.clone().value()), Ok(ran.clone()));
            // As a journal keeps it, and as JSON.
            let bytes = postcard::to_allocvec(&ran.clone().value()).unwrap();
            assert_eq!(Ran::read(&postcard::from_bytes(&bytes).unwrap()), Ok(ran));
        }
        assert!(Ran::read(&Value::Text("finished".into())).is_err());
    }
}
