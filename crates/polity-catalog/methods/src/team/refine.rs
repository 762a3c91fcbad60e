//! A finding on an answer and another try, until it passes: verify, criticise, refine.

use super::{Stand, form, judge, persona, stand, talk, wanted};
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::method::{Brief, TeamContext};

const AGAIN: &str = include_str!("prompts/again.md");

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
    let question = Brief::new(member, talk(context, member, &[], form(context)), wanted(context));
    again(question, before, finding)
}

/// Asks a question again, after the previous answer and a finding on it.
#[must_use]
pub fn again(mut question: Brief, before: &Stand, finding: &Finding) -> Brief {
    question.messages.push(before.own());
    let Finding { by, right, words } = finding.clone();
    let parts = vec![Part::Finding { by, right, words }, Part::Text(AGAIN.trim_end().into())];
    question.messages.push(ChatMessage { role: Role::User, parts });
    question
}

/// Returns the member's next answer after a finding; without a reply, the previous one.
pub async fn revise(context: &mut TeamContext<'_>, member: usize, before: Stand, finding: &Finding) -> Stand {
    let brief = to_revise(context, member, &before, finding);
    let heard = context.ask(brief).await;
    stand(context, member, heard).unwrap_or(before)
}

/// Checks and retries at most `most` times, and stops as soon as the critic passes the answer. Returns the number of retries.
pub async fn until_it_passes(
    context: &mut TeamContext<'_>,
    author: usize,
    critic: usize,
    first: Stand,
    most: u32,
) -> (Stand, u32) {
    let mut held = first;
    for n in 0..most {
        match judge::check(context, critic, &held).await {
            Some((false, words)) => {
                let by = context.team[critic].name.clone();
                held = revise(context, author, held, &Finding { by, right: false, words }).await;
            }
            // Without a judgement there is no basis for a repair.
            Some((true, _)) | None => return (held, n),
        }
    }
    (held, most)
}

/// Begins a conversation in which a member reviews its own answer.
#[must_use]
pub fn looking_back(context: &TeamContext<'_>, member: usize, before: &Stand, instruction: &str) -> Vec<ChatMessage> {
    let mut messages = persona(context, member);
    messages.push(ChatMessage {
        role: Role::User,
        parts: vec![Part::Text(context.item.question.clone()), Part::Text(form(context).into())],
    });
    messages.push(before.own());
    messages.push(ChatMessage::text(Role::User, instruction.trim_end()));
    messages
}
