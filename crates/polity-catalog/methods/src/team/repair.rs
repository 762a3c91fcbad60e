//! Programs that are written, tested in the sandbox and repaired.

use super::Stand;
use super::refine::Finding;
use polity_kernel::ask::tool::Ran;
use polity_kernel::ask::{ResponseFormat, Task};
use polity_kernel::items::Tested;
use polity_kernel::method::{Brief, Prompt, TeamContext};

/// Asks for tests of a program that the writer has not seen.
pub const TESTS: Prompt =
    Prompt::new("tests", "asks for tests of a program that the writer has not seen", include_str!("prompts/tests.md"));
/// Maximum characters shown of an error, from its end, which says what went wrong.
const SHOWN: usize = 1500;

/// A member writes tests for the wanted program without seeing one: lines of Python that call it by its name.
pub async fn tests(context: &mut TeamContext<'_>, member: usize) -> Option<String> {
    suites(context, member, 1).await.pop()
}

/// A member writes several suites of such tests; those without a reply are left out.
pub async fn suites(context: &mut TeamContext<'_>, member: usize, n: u32) -> Vec<String> {
    let response_format = ResponseFormat::Record(vec![("tests".into(), ResponseFormat::Text)]);
    let brief = Brief::new(member, super::talk(context, member, &[], TESTS), response_format).task(Task::Test);
    let briefs = (0..n).map(|k| brief.clone().sample(k)).collect();
    super::written(context, briefs, |value| value.field(0)?.as_text()).await
}

/// Splits a suite into its test cases: its lines, if each is an assertion of its own, else the suite as a whole.
#[must_use]
pub fn cases(suite: &str) -> Vec<String> {
    let lines: Vec<&str> = suite.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let closed = |line: &&str| line.starts_with("assert ") && line.matches('(').count() == line.matches(')').count();
    match lines.iter().all(closed) {
        true => lines.into_iter().map(str::to_owned).collect(),
        false => vec![suite.to_owned()],
    }
}

/// What became of an answer with test cases that ran one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    /// How many passed.
    pub passed: usize,
    /// The first failure.
    pub failure: Option<Finding>,
}

/// Runs an answer with test cases, one by one. A case that could not be run did not pass.
pub async fn passed(context: &mut TeamContext<'_>, by: usize, stand: &Stand, cases: &[String]) -> Passed {
    let mut result = Passed { passed: 0, failure: None };
    for case in cases {
        match tried(context, by, stand, case).await {
            Some(finding) if finding.right => result.passed += 1,
            Some(finding) if result.failure.is_none() => result.failure = Some(finding),
            _ => {}
        }
    }
    result
}

/// Returns the program of an answer with these tests.
#[must_use]
pub fn with_tests(context: &TeamContext<'_>, stand: &Stand, tests: &str) -> Tested {
    match &context.item.program {
        Some(program) => program.with_tests(&stand.answer, tests),
        None => Tested { program: stand.answer.clone(), tests: tests.to_owned() },
    }
}

/// Runs an answer with tests. `None`: it could not be run, which says nothing about it.
pub async fn tried(context: &mut TeamContext<'_>, by: usize, stand: &Stand, tests: &str) -> Option<Finding> {
    match context.test(&with_tests(context, stand, tests)).await {
        Ok(ran) => Some(finding(&context.team[by].name, &ran)),
        Err(why) => {
            context.record(by, super::NO_ANSWER, format!("the tests could not be run: {why}"));
            None
        }
    }
}

/// Converts the result of a run into a finding.
#[must_use]
pub fn finding(by: &str, ran: &Ran) -> Finding {
    let right = ran.is_right();
    let errors = ran.errors.trim();
    let from = errors.char_indices().rev().nth(SHOWN - 1).map_or(0, |(i, _)| i);
    let words = match right {
        true => String::from("All tests pass."),
        false => format!("Running it with the tests ended so: {}.\n{}", ran.ended.name(), &errors[from..]),
    };
    Finding { by: by.into(), right, words: words.trim_end().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_of_assertions_is_split_and_any_other_is_one_case() {
        assert_eq!(cases("assert f(1) == 2\n\nassert f((2)) == 3  \n"), ["assert f(1) == 2", "assert f((2)) == 3"]);
        for whole in ["x = 1\nassert f(x) == 2", "assert f(\n1) == 2"] {
            assert_eq!(cases(whole), [whole]);
        }
        assert!(cases(" \n").is_empty());
    }
}
