//! Programs that are written, tested in the sandbox and repaired.

use super::Stand;
use super::refine::Finding;
use polity_kernel::ask::tool::Ran;
use polity_kernel::ask::{ResponseFormat, Task};
use polity_kernel::items::Tested;
use polity_kernel::method::{Brief, TeamContext};

const TESTS: &str = include_str!("prompts/tests.md");
/// Maximum characters shown of an error, from its end, which says what went wrong.
const SHOWN: usize = 1500;

/// A member writes tests for the wanted program without seeing one: lines of Python that call it by its name.
pub async fn tests(context: &mut TeamContext<'_>, member: usize) -> Option<String> {
    let response_format = ResponseFormat::Record(vec![("tests".into(), ResponseFormat::Text)]);
    let brief = Brief::new(member, super::talk(context, member, &[], TESTS), response_format).task(Task::Test);
    match context.ask(brief).await {
        Ok(value) => value.field(0).and_then(|tests| tests.as_text()).map(str::to_owned),
        Err(why) => {
            context.record(member, super::NO_ANSWER, why.to_string());
            None
        }
    }
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
