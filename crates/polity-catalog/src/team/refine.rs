//! A finding on an answer and another try, until it passes: verify, criticise, refine.

use super::{Stand, form, judge, persona, stand, talk, wanted};
use polity_kernel::ask::{Message, Part, Role};
use polity_kernel::method::{Brief, Desk};

const AGAIN: &str = include_str!("prompts/again.md");

/// What was found of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// By whom.
    pub by: String,
    /// Whether it is right.
    pub right: bool,
    /// What was found.
    pub words: String,
}

/// A question to a member to answer anew after a finding.
#[must_use]
pub fn to_revise(desk: &Desk<'_>, member: usize, before: &Stand, finding: &Finding) -> Brief {
    let mut messages = talk(desk, member, &[], form(desk));
    messages.push(before.own());
    let Finding { by, right, words } = finding.clone();
    let parts = vec![Part::Finding { by, right, words }, Part::Text(AGAIN.trim_end().into())];
    messages.push(Message { role: Role::User, parts });
    let want = wanted(desk);
    Brief::new(member, messages, want)
}

/// The member's next answer after a finding; without a reply it holds on to the one before.
pub async fn revise(desk: &mut Desk<'_>, member: usize, before: Stand, finding: &Finding) -> Stand {
    let brief = to_revise(desk, member, &before, finding);
    let heard = desk.ask(brief).await;
    stand(desk, member, heard).unwrap_or(before)
}

/// Checks and tries again at most `most` times, and ends as soon as the critic passes the answer. Says how often it was tried again.
pub async fn until_it_passes(
    desk: &mut Desk<'_>,
    author: usize,
    critic: usize,
    first: Stand,
    most: u32,
) -> (Stand, u32) {
    let mut held = first;
    for n in 0..most {
        match judge::check(desk, critic, &held).await {
            Some((false, words)) => {
                let by = desk.team[critic].name.clone();
                held = revise(desk, author, held, &Finding { by, right: false, words }).await;
            }
            // Without a judgement there is nothing to mend it by.
            Some((true, _)) | None => return (held, n),
        }
    }
    (held, most)
}

/// The beginning of a conversation in which a member looks back on its own answer.
#[must_use]
pub fn looking_back(desk: &Desk<'_>, member: usize, before: &Stand, instruction: &str) -> Vec<Message> {
    let mut messages = persona(desk, member);
    messages.push(Message {
        role: Role::User,
        parts: vec![Part::Text(desk.item.question.clone()), Part::Text(form(desk).into())],
    });
    messages.push(before.own());
    messages.push(Message::text(Role::User, instruction.trim_end()));
    messages
}
