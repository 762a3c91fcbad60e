//! Documents handed from role to role, each in its form.

use super::talk;
use polity_kernel::ask::{Part, Task};
use polity_kernel::method::{Brief, Desk};
use polity_kernel::policy::Fault;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How often a document that does not fit its form is asked for.
const TRIES: u32 = 2;

/// A document of a kind that all can read: its fields are checked when it is handed over.
pub trait Document: Serialize + DeserializeOwned + JsonSchema {
    /// What it is called.
    const TITLE: &'static str;
}

/// A document as the next role is shown it.
#[must_use]
pub fn shown<D: Document>(document: &D) -> Part {
    let body = serde_json::to_string_pretty(document).unwrap_or_default();
    Part::Text(format!("# {}\n{body}", D::TITLE))
}

/// A member writes a document with those before it in view; one that does not fit its form is asked for again, with what is wrong with it.
/// `None`: it never fitted, and why was recorded.
pub async fn document<D: Document>(
    desk: &mut Desk<'_>,
    member: usize,
    before: &[Part],
    instruction: &str,
) -> Result<Option<D>, Fault> {
    let mut instruction = format!("{}\nWrite the document \"{}\".", instruction.trim_end(), D::TITLE);
    for n in 0..TRIES {
        let brief = Brief::new(member, talk(desk, member, before, &instruction), polity_kernel::ask::Want::Text);
        match desk.ask_as::<D>(brief.task(Task::Write).sample(n)).await? {
            Ok(document) => return Ok(Some(document)),
            Err(why) => {
                desk.record(member, super::NO_ANSWER, format!("{}: {why}", D::TITLE));
                instruction = format!("{instruction}\nThe last one was not accepted: {why}");
            }
        }
    }
    Ok(None)
}
