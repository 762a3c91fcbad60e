//! A finding on an answer and another try, until it passes: verify, criticise, refine.

use super::{Instruction, Stand, form, judge, persona, solve_one, talk, wanted};
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::method::{Brief, Prompt, TeamContext};

/// Tells a member to answer again after a finding.
pub const AGAIN: Prompt =
    Prompt::new("again", "tells a member to answer again after a finding", include_str!("prompts/again.md"));

/// A finding on an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its author.
    pub by: String,
    /// Whether the answer is right.
    pub right: bool,
    /// What was found.
    pub words: String,
}

/// Builds a question to a member to revise its answer after a finding.
#[must_use]
pub fn to_revise(context: &TeamContext<'_>, member: usize, before: &Stand, finding: &Finding) -> Brief {
    again(context, question(context, member), before, finding)
}

/// Builds the bare question to a member, with the form of its answer.
#[must_use]
pub fn question(context: &TeamContext<'_>, member: usize) -> Brief {
    Brief::new(member, talk(context, member, &[], &form(context)), wanted(context))
}

/// Asks a question again, after the previous answer and a finding on it.
#[must_use]
pub fn again(context: &TeamContext<'_>, mut question: Brief, before: &Stand, finding: &Finding) -> Brief {
    question.messages.push(before.own());
    let Finding { by, right, words } = finding.clone();
    let parts = vec![Part::Finding { by, right, words }, Part::Text(context.prompt(&AGAIN).to_owned())];
    question.messages.push(ChatMessage { role: Role::User, parts });
    question
}

/// Returns the member's next answer after a finding; without a reply, the previous one.
pub async fn revise(context: &mut TeamContext<'_>, member: usize, before: Stand, finding: &Finding) -> Stand {
    let brief = to_revise(context, member, &before, finding);
    solve_one(context, brief).await.unwrap_or(before)
}

/// A critic checks an answer, with this instruction besides the usual one. If it fails, the question is asked again with the finding: at
/// most `most` times.
pub async fn until_it_passes(
    context: &mut TeamContext<'_>,
    question: &Brief,
    first: Stand,
    (critic, instruction): (usize, &str),
    most: u32,
) -> Stand {
    let mut held = first;
    for _ in 0..most {
        // Without a judgement there is no basis for another try.
        let Some((false, words)) = judge::check(context, critic, &held, instruction).await else { break };
        let finding = Finding { by: context.team[critic].name.clone(), right: false, words };
        let brief = again(context, question.clone(), &held, &finding);
        held = solve_one(context, brief).await.unwrap_or(held);
    }
    held
}

/// Begins a conversation in which a member reviews its own answer.
#[must_use]
pub fn looking_back<'a>(
    context: &TeamContext<'_>,
    member: usize,
    before: &Stand,
    instruction: impl Into<Instruction<'a>>,
) -> Vec<ChatMessage> {
    let mut messages = persona(context, member);
    messages.push(ChatMessage {
        role: Role::User,
        parts: vec![Part::Text(context.item.question.clone()), Part::Text(form(context))],
    });
    messages.push(before.own());
    messages.push(ChatMessage::text(Role::User, instruction.into().words(context)));
    messages
}
