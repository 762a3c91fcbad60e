//! Checker files: Python functions that decide whether an answer is right, and do other work on an item without a model.

use crate::ask::Request;
use crate::ask::tool::Ran;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a checker file may use, and how one of its functions is called.
const RUNNER: &str = include_str!("checker.py");
/// Begins the line with the result. Functions may print other lines.
const MARK: &str = "\u{1e}checked ";
/// The function that scores an answer.
pub const CHECK: &str = "check";

/// The checker file of a data set, with one of its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Checker {
    /// The text of the file.
    pub source: Arc<str>,
    /// All cells of the row, as a JSON object.
    pub row: String,
}

/// What a function of a checker file returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Whether it passed.
    pub passed: bool,
    /// What it says.
    pub text: String,
    /// A score from 0 to 1.
    pub score: f64,
    /// Numbers that it measured, by name.
    pub measures: BTreeMap<String, f64>,
}

/// Why a function of a checker file has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckerError {
    /// The file cannot be used: it is no Python, or lacks the function.
    Broken(String),
    /// It ended without a result, for instance because it exceeded a limit of the sandbox.
    NoResult(String),
}

impl Checker {
    /// Returns the question to [`Ran::PYTHON`] that calls a function of the file with the row and these texts.
    #[must_use]
    pub fn request(&self, function: &str, texts: &[&str]) -> Request {
        let literal = |text: &str| serde_json::Value::from(text).to_string();
        let texts = serde_json::Value::from(texts).to_string();
        // A JSON text is a Python literal, as long as it holds a text.
        let call = format!(
            "_value = _main({}, {}, json.loads({}), json.loads({}))\nsys.stdout.flush()\nprint({} + json.dumps(_value))\n",
            literal(&self.source),
            literal(function),
            literal(&self.row),
            literal(&texts),
            literal(&format!("\n{MARK}")),
        );
        Ran::request(format!("{RUNNER}{call}"))
    }
}

impl Checked {
    /// Reads the result of a run.
    ///
    /// # Errors
    /// The file is no Python or lacks the function, or the run has no result, for instance because it exceeded a limit of the sandbox.
    pub fn read(ran: &Ran) -> Result<Checked, CheckerError> {
        let line = ran.output.lines().rev().find_map(|line| line.strip_prefix(MARK));
        let Some(json) = line else {
            let last = ran.errors.trim().lines().last().unwrap_or_default();
            return Err(CheckerError::NoResult(format!(
                "the checker ended without a result ({}): {last}",
                ran.ended.name()
            )));
        };
        #[derive(Deserialize)]
        struct Fault {
            fault: String,
        }
        if let Ok(Fault { fault }) = serde_json::from_str(json) {
            return Err(CheckerError::Broken(fault));
        }
        let unread = |error| CheckerError::Broken(format!("the checker's result cannot be read: {error}"));
        serde_json::from_str(json).map_err(unread)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    const SOURCE: &str = r#"
def check(row, answer):
    print("noise")
    assert answer != "bad", "it is \"bad\"\nreally"
    return answer == row["answer"]

def share(row, answer):
    return {"score": len(answer) / 4, "text": "é", "measures": {"size": len(files_of(answer))}}

def broken(row):
    return row["nothing"]

def ran(row, answer):
    status, output = execute(files_of(answer), "main.py")
    return status == 0, output
"#;

    fn called(function: &str, texts: &[&str]) -> Result<Checked, CheckerError> {
        let row = serde_json::json!({"answer": "4\u{2028}\"'", "list": "[1, 2]"}).to_string();
        let request = Checker { source: SOURCE.into(), row }.request(function, texts);
        let program = request.messages[0].rendered();
        let done = Command::new("python3").args(["-c", &program]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ended =
            if done.status.success() { crate::ask::tool::Ended::Finished } else { crate::ask::tool::Ended::Failed };
        Checked::read(&Ran { ended, status: 0, output: text(done.stdout), errors: text(done.stderr) })
    }

    #[test]
    fn functions_return_what_they_decide() {
        let right = called("check", &["4\u{2028}\"'"]).unwrap();
        assert_eq!((right.passed, right.score), (true, 1.0));
        assert_eq!(called("check", &["5"]).map(|checked| (checked.passed, checked.score)), Ok((false, 0.0)));
        let said = called("check", &["bad"]).unwrap();
        assert_eq!((said.passed, said.text.as_str()), (false, "it is \"bad\"\nreally"));
        let share = called("share", &["ab"]).unwrap();
        assert_eq!((share.passed, share.score, share.text.as_str()), (false, 0.5, "é"));
        assert_eq!(share.measures, BTreeMap::from([("size".to_owned(), 1.0)]));
        assert!(called("share", &["abcd"]).unwrap().passed);
        let broken = called("broken", &[]).unwrap();
        assert!(!broken.passed && broken.text.contains("KeyError"), "{broken:?}");
        let Err(CheckerError::Broken(why)) = called("other", &[]) else { panic!("the function is missing") };
        assert!(why.contains("no function `other`; it has broken, check"), "{why}");
    }

    #[test]
    fn files_of_an_answer_run_in_a_folder_of_their_own() {
        let answer = "### a.py\n```python\n### not a head\nX = 6\n```\n### main.py\nimport a\nprint(a.X * 7)";
        assert_eq!(called("ran", &[answer]).map(|ran| (ran.passed, ran.text)), Ok((true, "42\n".into())));
        let bad = called("ran", &["### ../x.py\nprint(1)"]).unwrap();
        assert!(!bad.passed && bad.text.contains("leads out"), "{bad:?}");
        // A text without heads is one file.
        assert!(called("ran", &["print(1)"]).unwrap().passed);
    }
}
