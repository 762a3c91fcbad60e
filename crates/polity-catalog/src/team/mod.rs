//! What methods share: answers that members stand by, how they are asked for and shown, and the mechanisms that methods are put together from.
//!
//! | module | mechanism |
//! |---|---|
//! | [`vote`] | one answer out of many: plurality, consensus, ranked and approval ballots |
//! | [`discuss`] | turns of a discussion: who speaks when, and who hears it |
//! | [`judge`] | choose among answers, check one, mark several; tournaments |
//! | [`refine`] | a finding on an answer, and another try, until it passes |
//! | [`layers`] | proposals that are shown to the next who propose |
//! | [`search`] | a tree of answers grown where marks are promising |
//! | [`repair`] | programs written, tested in the sandbox and mended |
//! | [`line`] | documents handed from role to role, each in its form |
//! | [`ledger`] | an orchestrator's books: facts, a plan, progress, and when to plan anew |
//!
//! In every prompt the item's question is the first part, word for word, and what is to be done with it the last. What others said stays
//! typed between the two ([`Part::Said`]).

pub mod discuss;
pub mod judge;
pub mod layers;
pub mod ledger;
pub mod line;
pub mod refine;
pub mod repair;
pub mod search;
pub mod vote;

use polity_kernel::ask::{Heard, Message, Part, Role, Task, Value, Want};
use polity_kernel::items::Scorer;
use polity_kernel::method::{Brief, Desk, Records, Verdict};
use serde::{Deserialize, Serialize};

/// An answer that a member stands by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stand {
    /// Whose it is.
    pub by: String,
    /// The answer alone.
    pub answer: String,
    /// What leads to it; may be empty.
    pub reasons: String,
}

/// Index of the act that says a member's answer: the first of every method's records.
pub const ANSWER: u16 = 0;
/// Index of the act that says why a member gave none.
pub const NO_ANSWER: u16 = 1;
/// What every method records first.
pub const ANSWERS: [Records; 2] = [
    Records { name: "answer", doc: "the answer that the member gives or holds" },
    Records { name: "no-answer", doc: "why the member gave no answer" },
];

const DECEIVE: &str = include_str!("prompts/deceive.md");

/// How a reply's answer is to be written, for the item at hand.
#[must_use]
pub fn form(desk: &Desk<'_>) -> &'static str {
    match desk.item.scorer {
        Scorer::Exact | Scorer::Number => "Give the final answer alone as `answer`, as short as it can be.",
        Scorer::Judge => "Give what you would tell whoever asked as `answer`.",
        Scorer::Math => "Give the final answer alone as `answer`, as a formula.",
        Scorer::Choice => "Give the letter of one option alone as `answer`.",
        Scorer::Code => "Give the complete function in Python as `answer`, with nothing around it.",
    }
}

/// What members reply with: an answer, and what leads to it. Where there are options, the answer is one of their letters.
#[must_use]
pub fn wanted(desk: &Desk<'_>) -> Want {
    Want::Record(vec![("reasons".into(), Want::Text), ("answer".into(), wanted_answer(desk))])
}

/// The answer alone.
#[must_use]
pub fn wanted_answer(desk: &Desk<'_>) -> Want {
    let letters = desk.item.letters();
    if letters.is_empty() { Want::Text } else { Want::Choice(letters) }
}

/// A conversation with a member: who it is, the question, what others said, and what is to be done.
#[must_use]
pub fn talk(desk: &Desk<'_>, member: usize, shown: &[Part], instruction: &str) -> Vec<Message> {
    let mut messages = persona(desk, member);
    let mut parts = vec![Part::Text(desk.item.question.clone())];
    parts.extend_from_slice(shown);
    parts.push(Part::Text(instruction.trim_end().to_owned()));
    messages.push(Message { role: Role::User, parts });
    messages
}

/// What a member is told of itself, if anything.
#[must_use]
pub fn persona(desk: &Desk<'_>, member: usize) -> Vec<Message> {
    let Some(member) = desk.team.get(member) else { return Vec::new() };
    let told: Vec<&str> = [member.persona.as_str(), if member.misleads { DECEIVE.trim_end() } else { "" }]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    if told.is_empty() { Vec::new() } else { vec![Message::text(Role::System, told.join("\n\n"))] }
}

impl Stand {
    /// As it is shown to others.
    #[must_use]
    pub fn said(&self) -> Part {
        Part::Said { by: self.by.clone(), answer: self.answer.clone(), reasons: self.reasons.clone() }
    }

    /// As the member's own words in a conversation that goes on.
    #[must_use]
    pub fn own(&self) -> Message {
        Message { role: Role::Assistant, parts: vec![self.said()] }
    }

    /// The same under another name, for judges who are not to know whose it is.
    #[must_use]
    pub fn named(&self, by: impl Into<String>) -> Stand {
        Stand { by: by.into(), ..self.clone() }
    }
}

/// A question to a member to solve the item.
#[must_use]
pub fn to_solve(desk: &Desk<'_>, member: usize, shown: &[Part], instruction: &str) -> Brief {
    let instruction = format!("{}\n{}", instruction.trim_end(), form(desk));
    Brief::new(member, talk(desk, member, shown, &instruction), wanted(desk))
}

/// Asks members to solve the item; records what they answer, or why they do not.
pub async fn solve(desk: &mut Desk<'_>, briefs: Vec<Brief>) -> Vec<Option<Stand>> {
    let members: Vec<usize> = briefs.iter().map(|brief| brief.member).collect();
    let heard = desk.ask_all(briefs).await;
    members.into_iter().zip(heard).map(|(member, heard)| stand(desk, member, heard)).collect()
}

/// Every member that works on the item answers it alone.
pub async fn propose(desk: &mut Desk<'_>, instruction: &str) -> Vec<Option<Stand>> {
    let briefs = desk.workers().into_iter().map(|member| to_solve(desk, member, &[], instruction)).collect();
    solve(desk, briefs).await
}

/// One member answers the item alone, several times.
pub async fn samples(desk: &mut Desk<'_>, member: usize, n: u32, instruction: &str) -> Vec<Option<Stand>> {
    let briefs = (0..n).map(|k| to_solve(desk, member, &[], instruction).sample(k)).collect();
    solve(desk, briefs).await
}

/// A reply as an answer that the member stands by; recorded.
pub fn stand(desk: &mut Desk<'_>, member: usize, heard: Heard) -> Option<Stand> {
    let text = |value: &Value, i: usize| value.field(i).and_then(Value::as_text).map(str::to_owned);
    let read = heard.map_err(|why| why.to_string()).and_then(|value| {
        // A bare answer has no reasons.
        let (reasons, answer) = match &value {
            Value::Text(answer) => (Some(String::new()), Some(answer.clone())),
            Value::Choice(_) => (Some(String::new()), letter(desk, &value)),
            value => (text(value, 0), text(value, 1).or_else(|| letter(desk, value.field(1)?))),
        };
        match (reasons, answer) {
            (_, Some(answer)) if answer.trim().is_empty() => Err("the answer is empty".into()),
            (Some(reasons), Some(answer)) => Ok((reasons.trim().to_owned(), trimmed(desk, &answer).to_owned())),
            _ => Err("the reply has no answer and reasons".into()),
        }
    });
    match read {
        Ok((reasons, answer)) => {
            desk.record(member, ANSWER, &answer);
            Some(Stand { by: desk.team[member].name.clone(), answer, reasons })
        }
        Err(why) => {
            desk.record(member, NO_ANSWER, why);
            None
        }
    }
}

/// The letter of the option that is chosen.
fn letter(desk: &Desk<'_>, value: &Value) -> Option<String> {
    let Value::Choice(chosen) = value else { return None };
    desk.item.letters().get(*chosen as usize).cloned()
}

/// An answer without space around it; a program's first line may stand in from the margin.
fn trimmed<'a>(desk: &Desk<'_>, answer: &'a str) -> &'a str {
    match desk.item.scorer {
        Scorer::Code => answer.trim_end().trim_start_matches(['\r', '\n']),
        _ => answer.trim(),
    }
}

/// A team's verdict.
#[must_use]
pub fn verdict(answer: Option<String>) -> Verdict {
    Verdict { answer }
}

/// A text that somebody writes: a plan, a document, an order. `None`: why there is none was recorded.
pub async fn write(desk: &mut Desk<'_>, member: usize, shown: &[Part], instruction: &str) -> Option<String> {
    let brief = Brief::new(member, talk(desk, member, shown, instruction), Want::Text).task(Task::Write);
    match desk.ask(brief).await {
        Ok(value) => value.as_text().map(str::to_owned),
        Err(why) => {
            desk.record(member, NO_ANSWER, why.to_string());
            None
        }
    }
}

/// Says in the messages' table that one heard another.
pub fn tell_all(desk: &mut Desk<'_>, to: usize, stands: &[Stand]) {
    for stand in stands {
        if let Some(from) = desk.team.iter().position(|member| member.name == stand.by) {
            desk.tell(from, to, stand.answer.clone());
        }
    }
}
