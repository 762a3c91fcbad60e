//! Programs written, tested in the sandbox and mended.

use super::Stand;
use super::refine::Finding;
use polity_kernel::ask::tool::Ran;
use polity_kernel::ask::{Task, Want};
use polity_kernel::items::Tested;
use polity_kernel::method::{Brief, Desk};

const TESTS: &str = include_str!("prompts/tests.md");
/// Letters of an error that are shown: its end says what went wrong.
const SHOWN: usize = 1500;

/// Tests that a member writes for the program that is wanted, without seeing any: lines of Python that call it by its name.
pub async fn tests(desk: &mut Desk<'_>, member: usize) -> Option<String> {
    let want = Want::Record(vec![("tests".into(), Want::Text)]);
    let brief = Brief::new(member, super::talk(desk, member, &[], TESTS), want).task(Task::Test);
    match desk.ask(brief).await {
        Ok(value) => value.field(0).and_then(|tests| tests.as_text()).map(str::to_owned),
        Err(why) => {
            desk.record(member, super::NO_ANSWER, why.to_string());
            None
        }
    }
}

/// The program of an answer with these tests.
#[must_use]
pub fn with_tests(desk: &Desk<'_>, stand: &Stand, tests: &str) -> Tested {
    match &desk.item.program {
        Some(program) => program.with_tests(&stand.answer, tests),
        None => Tested { program: stand.answer.clone(), tests: tests.to_owned() },
    }
}

/// What running an answer with tests says of it. `None`: it could not be run, which says nothing.
pub async fn tried(desk: &mut Desk<'_>, by: usize, stand: &Stand, tests: &str) -> Option<Finding> {
    match desk.test(&with_tests(desk, stand, tests)).await {
        Ok(ran) => Some(finding(&desk.team[by].name, &ran)),
        Err(why) => {
            desk.record(by, super::NO_ANSWER, format!("the tests could not be run: {why}"));
            None
        }
    }
}

/// What a run says of a program.
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
