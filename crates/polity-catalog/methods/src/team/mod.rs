//! Building blocks of methods: members' answers, how they are asked for and shown, and mechanisms to combine.
//!
//! | module | mechanism |
//! |---|---|
//! | [`act`] | think, act, observe: a member calls tools step by step |
//! | [`vote`] | one answer out of many: plurality, consensus, ranked and approval ballots |
//! | [`discuss`] | turns of a discussion: who speaks when, and who hears it |
//! | [`floor`] | who is next: a member chooses what follows, hands its work on, or moderates |
//! | [`judge`] | choose the best answer, check one, mark several, rate by criteria, prune; tournaments |
//! | [`refine`] | a finding on an answer and another try, until it passes |
//! | [`layers`] | layers of proposals, each shown to the next layer |
//! | [`search`] | a tree of answers grown where marks are promising |
//! | [`plans`] | a tree of calls of tools: A*, Monte Carlo tree search |
//! | [`repair`] | programs that are written, tested in the sandbox and repaired |
//! | [`line`] | documents handed from role to role, each in its form |
//! | [`ledger`] | an orchestrator's ledgers: facts, a plan, progress, and when to replan |
//!
//! In every prompt the item's question comes first, word for word, and the instruction last. What others said stays typed between the two
//! ([`Part::Said`]). Every text is a [`Prompt`], which the methods that use it list, and which a scenario can change.

pub mod act;
pub mod discuss;
pub mod floor;
pub mod judge;
pub mod layers;
pub mod ledger;
pub mod line;
pub mod plans;
pub mod refine;
pub mod repair;
pub mod search;
pub mod vote;

use polity_kernel::ask::{ChatMessage, Part, Reply, ResponseFormat, Role, Task, Value};
use polity_kernel::items::Scorer;
use polity_kernel::method::{Brief, Member, Prompt, Records, TeamContext, Verdict};
use serde::{Deserialize, Serialize};

/// A member's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stand {
    /// The member's name.
    pub by: String,
    /// The answer alone.
    pub answer: String,
    /// The reasons; may be empty.
    pub reasons: String,
}

/// Index of the act that records a member's answer: the first of every method's records.
pub const ANSWER: u16 = 0;
/// Index of the act that records why a member gave none.
pub const NO_ANSWER: u16 = 1;
/// The first records of every method.
pub const ANSWERS: [Records; 2] = [
    Records { name: "answer", doc: "the answer that the member gives or holds" },
    Records { name: "no-answer", doc: "why the member gave no answer" },
];

/// System instruction of members who argue for wrong answers.
pub const DECEIVE: Prompt = Prompt::new(
    "deceive",
    "tells an adversarial member to argue for a wrong answer (after its persona)",
    include_str!("prompts/deceive.md"),
);
/// How answers are to be written.
pub const FORM: Prompt = Prompt::new(
    "form",
    "says how the answer is to be written, at the end of every question for one",
    "Give the final answer alone as `answer`, {{ length }}.",
)
.may_hold(&["length"])
.by_scorer(&[
    (Scorer::Checker, "Give the complete answer as `answer`."),
    (Scorer::Judge, "Give what you would tell whoever asked as `answer`."),
    (Scorer::Math, "Give the final answer alone as `answer`, as a formula."),
    (Scorer::Choice, "Give the message of one option alone as `answer`."),
    (Scorer::Code, "Give the complete function in Python as `answer`, with nothing around it."),
]);
/// How long answers are to be.
pub const LENGTH: Prompt = Prompt::new(
    "length",
    "says how long answers are to be; it is put for `{{ length }}` in other prompts",
    "as short as it can be",
);

/// What a member is told to do: a prompt of the method, or a text made from some.
#[derive(Clone, Copy, Debug)]
pub enum Instruction<'a> {
    /// A prompt.
    Prompt(Prompt),
    /// A text.
    Text(&'a str),
}

impl Instruction<'_> {
    /// Returns the text.
    #[must_use]
    pub fn words(self, context: &TeamContext<'_>) -> String {
        match self {
            Instruction::Prompt(prompt) => context.prompt(&prompt).to_owned(),
            Instruction::Text(text) => text.trim_end().to_owned(),
        }
    }
}

impl From<Prompt> for Instruction<'_> {
    fn from(prompt: Prompt) -> Self {
        Instruction::Prompt(prompt)
    }
}

impl<'a> From<&'a str> for Instruction<'a> {
    fn from(text: &'a str) -> Self {
        Instruction::Text(text)
    }
}

impl<'a> From<&'a String> for Instruction<'a> {
    fn from(text: &'a String) -> Self {
        Instruction::Text(text)
    }
}

/// Returns how a reply's answer must be written, for the current item.
#[must_use]
pub fn form(context: &TeamContext<'_>) -> String {
    context.filled(&FORM, &[("length", context.prompt(&LENGTH))])
}

/// Returns the format of members' replies: reasons and an answer. If the item has options, the answer is the letter of one.
#[must_use]
pub fn wanted(context: &TeamContext<'_>) -> ResponseFormat {
    ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), wanted_answer(context))])
}

/// Returns the format of an answer without reasons.
#[must_use]
pub fn wanted_answer(context: &TeamContext<'_>) -> ResponseFormat {
    let letters = context.item.letters();
    if letters.is_empty() { ResponseFormat::Text } else { ResponseFormat::Choice(letters) }
}

/// Builds a conversation with a member: its persona, the question, what others said, and the instruction.
#[must_use]
pub fn talk<'a>(
    context: &TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: impl Into<Instruction<'a>>,
) -> Vec<ChatMessage> {
    let mut messages = persona(context, member);
    let mut parts = vec![Part::Text(context.item.question.clone())];
    parts.extend_from_slice(shown);
    parts.extend(Some(instruction.into().words(context)).filter(|words| !words.is_empty()).map(Part::Text));
    messages.push(ChatMessage { role: Role::User, parts });
    messages
}

/// Returns the persona of a member, if any.
#[must_use]
pub fn persona(context: &TeamContext<'_>, member: usize) -> Vec<ChatMessage> {
    persona_in(context.team, member, context.prompt(&DECEIVE))
}

/// Returns the persona of a member of a team, if any. `deceive`: what it is told besides if it is adversarial.
#[must_use]
pub fn persona_in(team: &[Member], member: usize, deceive: &str) -> Vec<ChatMessage> {
    let Some(member) = team.get(member) else { return Vec::new() };
    let told: Vec<&str> = [member.persona.as_str(), if member.adversarial { deceive } else { "" }]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    if told.is_empty() { Vec::new() } else { vec![ChatMessage::text(Role::System, told.join("\n\n"))] }
}

impl Stand {
    /// Formats the answer for others.
    #[must_use]
    pub fn said(&self) -> Part {
        Part::Said { by: self.by.clone(), answer: self.answer.clone(), reasons: self.reasons.clone() }
    }

    /// Formats the answer as the member's own message in a continued conversation.
    #[must_use]
    pub fn own(&self) -> ChatMessage {
        ChatMessage { role: Role::Assistant, parts: vec![self.said()] }
    }

    /// Returns the same under another name, for judges who must not know the author.
    #[must_use]
    pub fn named(&self, by: impl Into<String>) -> Stand {
        Stand { by: by.into(), ..self.clone() }
    }
}

/// Builds a question to a member to solve the item.
#[must_use]
pub fn to_solve<'a>(
    context: &TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: impl Into<Instruction<'a>>,
) -> Brief {
    let instruction = format!("{}\n{}", instruction.into().words(context), form(context));
    Brief::new(member, talk(context, member, shown, &instruction), wanted(context))
}

/// Asks members to solve the item; records their answers, or why they gave none.
pub async fn solve(context: &mut TeamContext<'_>, briefs: Vec<Brief>) -> Vec<Option<Stand>> {
    let members: Vec<usize> = briefs.iter().map(|brief| brief.member).collect();
    let heard = context.ask_all(briefs).await;
    members.into_iter().zip(heard).map(|(member, heard)| stand(context, member, heard)).collect()
}

/// Asks one member to solve the item, as [`solve`] does.
pub async fn solve_one(context: &mut TeamContext<'_>, brief: Brief) -> Option<Stand> {
    solve(context, vec![brief]).await.pop().flatten()
}

/// Every member that works on the item answers it alone.
pub async fn propose(context: &mut TeamContext<'_>, instruction: impl Into<Instruction<'_>>) -> Vec<Option<Stand>> {
    let instruction = instruction.into();
    let briefs = context.workers().into_iter().map(|member| to_solve(context, member, &[], instruction)).collect();
    solve(context, briefs).await
}

/// One member answers the item alone, several times.
pub async fn samples(
    context: &mut TeamContext<'_>,
    member: usize,
    n: u32,
    instruction: impl Into<Instruction<'_>>,
) -> Vec<Option<Stand>> {
    let instruction = instruction.into();
    let briefs = (0..n).map(|k| to_solve(context, member, &[], instruction).sample(k)).collect();
    solve(context, briefs).await
}

/// Converts a reply to the member's answer and records it.
pub fn stand(context: &mut TeamContext<'_>, member: usize, heard: Reply) -> Option<Stand> {
    let text = |value: &Value, i: usize| value.field(i).and_then(Value::as_text).map(str::to_owned);
    let read = heard.map_err(|why| why.to_string()).and_then(|value| {
        // A bare answer has no reasons.
        let (reasons, answer) = match &value {
            Value::Text(answer) => (Some(String::new()), Some(answer.clone())),
            Value::Choice(_) => (Some(String::new()), letter(context, &value)),
            value => (text(value, 0), text(value, 1).or_else(|| letter(context, value.field(1)?))),
        };
        match (reasons, answer) {
            (_, Some(answer)) if answer.trim().is_empty() => Err("the answer is empty".into()),
            (Some(reasons), Some(answer)) => Ok((reasons.trim().to_owned(), trimmed(context, &answer).to_owned())),
            _ => Err("the reply has no answer and reasons".into()),
        }
    });
    match read {
        Ok((reasons, answer)) => {
            context.record(member, ANSWER, &answer);
            Some(Stand { by: context.team[member].name.clone(), answer, reasons })
        }
        Err(why) => {
            context.record(member, NO_ANSWER, why);
            None
        }
    }
}

/// Returns the letter of the chosen option.
fn letter(context: &TeamContext<'_>, value: &Value) -> Option<String> {
    let Value::Choice(chosen) = value else { return None };
    context.item.letters().get(*chosen as usize).cloned()
}

/// Returns an answer without surrounding space; keeps the indentation of a program's first line.
fn trimmed<'a>(context: &TeamContext<'_>, answer: &'a str) -> &'a str {
    match context.item.scorer {
        Scorer::Code | Scorer::Checker => answer.trim_end().trim_start_matches(['\r', '\n']),
        _ => answer.trim(),
    }
}

/// Returns a team's verdict.
#[must_use]
pub fn verdict(answer: Option<String>) -> Verdict {
    Verdict { answer }
}

/// Asks a member for a text: a plan, a document, an instruction. `None`: the reason was recorded.
pub async fn write(
    context: &mut TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: impl Into<Instruction<'_>>,
) -> Option<String> {
    drafts(context, member, 1, shown, instruction).await.pop()
}

/// A member writes such a text several times, independently; those without a reply are left out.
pub async fn drafts(
    context: &mut TeamContext<'_>,
    member: usize,
    n: u32,
    shown: &[Part],
    instruction: impl Into<Instruction<'_>>,
) -> Vec<String> {
    let brief = to_write(context, member, shown, instruction);
    written(context, (0..n).map(|k| brief.clone().sample(k)).collect(), |value| value.as_text()).await
}

/// Builds a question to a member for a text.
#[must_use]
pub fn to_write<'a>(
    context: &TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: impl Into<Instruction<'a>>,
) -> Brief {
    Brief::new(member, talk(context, member, shown, instruction), ResponseFormat::Text).task(Task::Write)
}

/// Asks for texts together and reads one from each reply; those without one are left out, and the reason is recorded.
pub async fn written(
    context: &mut TeamContext<'_>,
    briefs: Vec<Brief>,
    read: impl Fn(&Value) -> Option<&str>,
) -> Vec<String> {
    let members: Vec<usize> = briefs.iter().map(|brief| brief.member).collect();
    let mut texts = Vec::new();
    for (member, heard) in members.into_iter().zip(context.ask_all(briefs).await) {
        match heard {
            Ok(value) => texts.extend(read(&value).map(str::to_owned)),
            Err(why) => context.record(member, NO_ANSWER, why.to_string()),
        }
    }
    texts
}

/// Records in the messages' table that one heard another.
pub fn tell_all(context: &mut TeamContext<'_>, to: usize, stands: &[Stand]) {
    for stand in stands {
        if let Some(from) = context.team.iter().position(|member| member.name == stand.by) {
            context.tell(from, to, stand.answer.clone());
        }
    }
}
