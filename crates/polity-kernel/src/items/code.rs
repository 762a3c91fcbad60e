//! Items whose answer is a program.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A requested program: a function to complete, and the tests that decide whether it is right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its beginning: imports, the function's head and its description.
    pub prompt: String,
    /// The function's name.
    pub entry_point: String,
    /// A program that defines `check(candidate)`; for scoring, never for a prompt.
    pub tests: String,
    /// Its assertions, one per line, which call the function by name. A simulated model writes them as tests when it is right.
    pub assertions: Vec<String>,
    /// Wrong bodies, for simulated models that are wrong.
    pub wrong: Arc<Vec<String>>,
    /// Wrong tests, likewise.
    pub wrong_tests: Arc<Vec<String>>,
}

/// The maximum number of assertions that a simulated model writes.
const MOST_ASSERTIONS: usize = 3;

/// Makes a requested program from its parts in HumanEval. It also makes the wrong bodies for simulated models: the right body with
/// one sign reversed, and bodies that do nothing.
#[must_use]
pub fn program(prompt: &str, entry_point: &str, tests: &str, solution: &str) -> Program {
    let asserts =
        tests.lines().map(str::trim).filter(|line| line.starts_with("assert ") && line.contains("candidate("));
    // Take only self-contained assertions: a line may continue, or use what the test defines.
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
    /// Returns the code in an answer: in its first fence, or all of it.
    #[must_use]
    pub fn code_in(&self, answer: &str) -> String {
        let Some(start) = answer.find("```") else { return answer.trim_end().to_owned() };
        let inside = &answer[start + 3..];
        // The rest of the fence's line names the language.
        let inside = inside.split_once('\n').map_or("", |(_, code)| code);
        inside.split("```").next().unwrap_or_default().trim_end().to_owned()
    }

    /// Returns an answer's code as a whole program: unchanged if it defines the function, else appended to the beginning.
    #[must_use]
    pub fn completed(&self, answer: &str) -> String {
        let code = self.code_in(answer);
        match self.is_defined_in(&code) {
            // With the imports of the beginning.
            true => format!("{}\n{code}\n", self.imports()),
            false => format!("{}{}\n", self.prompt, indented(&code)),
        }
    }

    fn imports(&self) -> String {
        let lines = self.prompt.lines().take_while(|line| !line.starts_with("def "));
        lines.filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect::<Vec<_>>().join("\n")
    }

    /// Returns the program and tests that score an answer.
    #[must_use]
    pub fn scored(&self, answer: &str) -> Tested {
        self.with_tests(answer, &format!("{}\ncheck({})", self.tests, self.entry_point))
    }

    /// Returns an answer with tests that name the function. The tests have the imports and definitions of the beginning, except for
    /// the function itself, which is the answer's.
    #[must_use]
    pub fn with_tests(&self, answer: &str, tests: &str) -> Tested {
        let (beginning, entry) = (self.prompt.trim_end(), &self.entry_point);
        let beginning = match self.is_defined_in(beginning) {
            true => format!("{beginning}\n    pass\ndel {entry}"),
            false => beginning.to_owned(),
        };
        Tested { program: self.completed(answer), tests: format!("{beginning}\n{tests}\n") }
    }

    fn is_defined_in(&self, code: &str) -> bool {
        code.lines().any(|line| line.trim_start().starts_with(&format!("def {}(", self.entry_point)))
    }
}

/// A program and its tests, which run in a process of their own ([`Ran::tested`](crate::ask::tool::Ran::tested)). Names that the
/// tests do not define are the program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The program.
    pub program: String,
    /// Its tests. The program passes if they run to their end.
    pub tests: String,
}

/// Returns a function's body, indented. Replies often lack the indentation.
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
    fn tests_have_the_beginning_and_not_its_function() {
        let tested = adder().scored("    return a + b");
        assert!(!tested.program.contains("check"), "{}", tested.program);
        let lines: Vec<&str> = tested.tests.lines().collect();
        assert_eq!(
            lines,
            [
                "import math",
                "",
                "def add(a, b):",
                "    \"\"\"Sum.\"\"\"",
                "    pass",
                "del add",
                "def check(candidate):",
                "    assert candidate(1, 2) == 3",
                "",
                "check(add)"
            ]
        );
        let plain = Program { prompt: "# Add numbers.\n".into(), ..adder() };
        assert_eq!(plain.with_tests("", "assert add(1, 2) == 3").tests, "# Add numbers.\nassert add(1, 2) == 3\n");
    }

    #[test]
    fn what_simulated_models_write_comes_from_the_parts() {
        let adder = adder();
        assert_eq!(adder.assertions, ["assert add(1, 2) == 3"]);
        assert_eq!(adder.wrong[0], "    return a - b\n");
        assert_eq!(*adder.wrong_tests, ["assert add(1, 2) != 3"]);
    }
}
