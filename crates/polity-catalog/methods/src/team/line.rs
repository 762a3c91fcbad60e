//! Documents handed from role to role, each in a fixed form.

use super::{Instruction, talk};
use polity_kernel::ask::{Part, Task};
use polity_kernel::method::{Brief, Prompt, TeamContext};
use polity_kernel::policy::Fault;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How often a document that does not fit its form is requested.
const TRIES: u32 = 2;

/// What document is to be written.
pub const DOCUMENT: Prompt =
    Prompt::new("document", "says which document is to be written", "Write the document \"{{ title }}\".")
        .may_hold(&["title"]);
/// Why a document is requested again.
pub const NOT_ACCEPTED: Prompt = Prompt::new(
    "not-accepted",
    "says why the last version of a document does not fit its form",
    "The last one was not accepted: {{ why }}",
)
.must_hold(&["why"]);

/// A document of a kind that all can read; its fields are checked on handover.
pub trait Document: Serialize + DeserializeOwned + JsonSchema {
    /// Its title.
    const TITLE: &'static str;
}

/// Formats a document for the next role.
#[must_use]
pub fn shown<D: Document>(document: &D) -> Part {
    let body = serde_json::to_string_pretty(document).unwrap_or_default();
    Part::Text(format!("# {}\n{body}", D::TITLE))
}

/// A member writes a document with the earlier ones in view. If it does not fit its form, it is requested again, with the error. `None`:
/// it never fitted, and the reason was recorded.
pub async fn document<D: Document>(
    context: &mut TeamContext<'_>,
    member: usize,
    before: &[Part],
    instruction: impl Into<Instruction<'_>>,
) -> Result<Option<D>, Fault> {
    let document = context.filled(&DOCUMENT, &[("title", D::TITLE)]);
    let mut instruction = format!("{}\n{document}", instruction.into().words(context));
    for n in 0..TRIES {
        let brief =
            Brief::new(member, talk(context, member, before, &instruction), polity_kernel::ask::ResponseFormat::Text);
        match context.ask_as::<D>(brief.task(Task::Write).sample(n)).await? {
            Ok(document) => return Ok(Some(document)),
            Err(why) => {
                context.record(member, super::NO_ANSWER, format!("{}: {why}", D::TITLE));
                let why = context.filled(&NOT_ACCEPTED, &[("why", &why.to_string())]);
                instruction = format!("{instruction}\n{why}");
            }
        }
    }
    Ok(None)
}
