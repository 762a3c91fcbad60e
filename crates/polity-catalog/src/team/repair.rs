//! Programs written, tested in the sandbox and mended.

use super::Stand;
use super::refine::Finding;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Task, Want};
use polity_kernel::items::Proof;
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

/// The program of an answer with these tests behind it.
#[must_use]
pub fn with_tests(desk: &Desk<'_>, stand: &Stand, tests: &str) -> Proof {
    let program = match &desk.item.program {
        Some(program) => program.completed(&stand.answer),
        None => stand.answer.clone(),
    };
    Proof::of(&format!("{program}\n{tests}\n"))
}

/// What running an answer with tests says of it. `None`: it could not be run, which says nothing.
pub async fn tried(desk: &mut Desk<'_>, by: usize, stand: &Stand, tests: &str) -> Option<Finding> {
    let proof = with_tests(desk, stand, tests);
    match desk.run(&proof).await {
        Ok(ran) => Some(finding(&desk.team[by].name, &proof, &ran)),
        Err(why) => {
            desk.record(by, super::NO_ANSWER, format!("the tests could not be run: {why}"));
            None
        }
    }
}

/// What a run says of a program.
#[must_use]
pub fn finding(by: &str, proof: &Proof, ran: &Ran) -> Finding {
    let right = proof.holds(ran);
    let errors = ran.errors.trim();
    let from = errors.char_indices().rev().nth(SHOWN - 1).map_or(0, |(i, _)| i);
    let words = match (right, ran.ended) {
        (true, _) => String::from("All tests pass."),
        (false, Ended::Finished) => String::from("The program ended before the last test."),
        (false, ended) => format!("Running it with the tests ended so: {}.\n{}", ended.name(), &errors[from..]),
    };
    Finding { by: by.into(), right, words: words.trim_end().into() }
}
