//! Items that want a program.

use crate::ask::tool::{Ended, Ran};
use crate::digest::{Kind, RowHash};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A program that is wanted: a function to be completed, and the tests that tell whether it is right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its beginning: imports, the function's head and what it is to do.
    pub prompt: String,
    /// The function's name.
    pub entry_point: String,
    /// A program that defines `check(candidate)`; for scoring, never for a prompt.
    pub tests: String,
    /// The assertions in it, one a line, about the function by its name; what a simulated model writes as tests when it is right.
    pub assertions: Vec<String>,
    /// Wrong bodies, which simulated models write when they are wrong.
    pub wrong: Arc<Vec<String>>,
    /// Wrong tests, likewise.
    pub wrong_tests: Arc<Vec<String>>,
}

/// The longest list of assertions that a simulated model writes.
const MOST_ASSERTIONS: usize = 3;

/// A program that is wanted, from its parts as HumanEval has them. What simulated models write in its place when they are wrong is made here:
/// the right body with one sign turned round, and bodies that do nothing.
#[must_use]
pub fn program(prompt: &str, entry_point: &str, tests: &str, solution: &str) -> Program {
    let asserts =
        tests.lines().map(str::trim).filter(|line| line.starts_with("assert ") && line.contains("candidate("));
    // Only such that stand alone: a line may go on, or use what the test defines.
    let whole = |line: &&str| {
        line.matches('(').count() == line.matches(')').count() && line.contains("==") && !line.contains("\\\n")
    };
    let assertions: Vec<String> = asserts
        .filter(whole)
        .map(|line| line.replace("candidate(", &format!("{entry_point}(")))
        .take(MOST_ASSERTIONS)
        .collect();
    let turned = [
        ("==", "!="),
        (" < ", " >= "),
        (" > ", " <= "),
        (" + ", " - "),
        (" - ", " + "),
        ("True", "False"),
        ("[0]", "[-1]"),
        (" and ", " or "),
    ];
    let mut wrong: Vec<String> = turned
        .into_iter()
        .filter(|(from, _)| solution.contains(from))
        .map(|(from, to)| solution.replacen(from, to, 1))
        .collect();
    wrong.push("    return None\n".into());
    wrong.push("    raise NotImplementedError\n".into());
    let wrong_tests = match assertions.split_first() {
        Some((first, rest)) => {
            let mut lines = vec![first.replacen("==", "!=", 1)];
            lines.extend(rest.iter().cloned());
            vec![lines.join("\n")]
        }
        None => vec![format!("assert {entry_point} is None")],
    };
    Program {
        prompt: prompt.into(),
        entry_point: entry_point.into(),
        tests: tests.into(),
        assertions,
        wrong: Arc::new(wrong),
        wrong_tests: Arc::new(wrong_tests),
    }
}

impl Program {
    /// The code in an answer: in its first fence, or all of it.
    #[must_use]
    pub fn code_in(&self, answer: &str) -> String {
        let Some(start) = answer.find("```") else { return answer.trim_end().to_owned() };
        let inside = &answer[start + 3..];
        // The rest of the fence's line names the language.
        let inside = inside.split_once('\n').map_or("", |(_, code)| code);
        inside.split("```").next().unwrap_or_default().trim_end().to_owned()
    }

    /// An answer's code as a whole program: its own if it defines the function, else put behind the beginning.
    #[must_use]
    pub fn completed(&self, answer: &str) -> String {
        let code = self.code_in(answer);
        let defines = code.lines().any(|line| line.trim_start().starts_with(&format!("def {}(", self.entry_point)));
        match defines {
            // With what the beginning imports.
            true => format!("{}\n{code}\n", self.imports()),
            false => format!("{}{}\n", self.prompt, indented(&code)),
        }
    }

    fn imports(&self) -> String {
        let lines = self.prompt.lines().take_while(|line| !line.starts_with("def "));
        lines.filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect::<Vec<_>>().join("\n")
    }

    /// What scores an answer: it is proven only if every test passes.
    #[must_use]
    pub fn scored(&self, answer: &str) -> Proof {
        Proof::of(&format!("{}\n{}\ncheck({})\n", self.completed(answer), self.tests, self.entry_point))
    }
}

/// A program that says at its end that it got there: one that leaves early with a good exit status has proven nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The program.
    pub program: String,
    /// Its last words. They are a hash of the rest of it, which it can not hold itself.
    words: String,
}

impl Proof {
    /// The program with its last words behind it.
    #[must_use]
    pub fn of(program: &str) -> Self {
        let words = format!("got to its end {:032x}", RowHash::new(Kind::Item, 0).bytes(program.as_bytes()).finish());
        Proof { program: format!("{program}\nprint(\"\\n{words}\")\n"), words }
    }

    /// Whether a run of it got to its end.
    #[must_use]
    pub fn holds(&self, ran: &Ran) -> bool {
        ran.ended == Ended::Finished && ran.output.trim_end().ends_with(&self.words)
    }
}

/// A function's body, which stands in from the margin: replies often come without that.
fn indented(body: &str) -> String {
    match body.starts_with([' ', '\t']) {
        true => body.to_owned(),
        false => body.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adder() -> Program {
        program(
            "import math\n\ndef add(a, b):\n    \"\"\"Sum.\"\"\"\n",
            "add",
            "def check(candidate):\n    assert candidate(1, 2) == 3\n",
            "    return a + b\n",
        )
    }

    #[test]
    fn code_is_found_in_fences_and_without() {
        let adder = adder();
        assert_eq!(adder.code_in("    return a + b\n"), "    return a + b");
        assert_eq!(
            adder.code_in("Here:\n```python\ndef add(a, b):\n    return 1\n```\nDone."),
            "def add(a, b):\n    return 1"
        );
        assert_eq!(adder.code_in("```"), "");
        assert!(adder.completed("    return a + b").starts_with("import math\n\ndef add(a, b):"));
        assert!(adder.completed("```\ndef add(a, b):\n    return 1\n```").starts_with("import math\ndef add"));
    }

    #[test]
    fn who_leaves_early_has_proven_nothing() {
        let proof = Proof::of("import os; os._exit(0)");
        let ran = |ended, output: &str| Ran { ended, status: 0, output: output.into(), errors: String::new() };
        assert!(!proof.holds(&ran(Ended::Finished, "")) && !proof.holds(&ran(Ended::Finished, "got to its end")));
        let end = format!("hello\n{}\n", proof.words);
        assert!(proof.holds(&ran(Ended::Finished, &end)) && !proof.holds(&ran(Ended::Failed, &end)));
        assert!(!Proof::of("other").holds(&ran(Ended::Finished, &end)));
    }

    #[test]
    fn what_simulated_models_write_comes_from_the_parts() {
        let adder = adder();
        assert_eq!(adder.assertions, ["assert add(1, 2) == 3"]);
        assert_eq!(adder.wrong[0], "    return a - b\n");
        assert_eq!(*adder.wrong_tests, ["assert add(1, 2) != 3"]);
    }
}
