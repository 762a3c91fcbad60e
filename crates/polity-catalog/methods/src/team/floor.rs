//! Who is next: a member chooses what follows, hands its work on, or moderates a conversation.

use super::{Instruction, NO_ANSWER, Stand, form, talk, wanted_answer};
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::method::{Brief, Prompt, TeamContext};

/// Tells a member how to choose.
pub const ROUTE: Prompt = Prompt::new(
    "route",
    "tells a member how to name what follows, after its instruction",
    "Name where it goes on as `answer`, and give your `reasons` first.",
);
/// Tells a member how to hand on.
pub const HAND_OFF: Prompt = Prompt::new(
    "hand-off",
    "tells a member how to hand its work on, after its instruction",
    "Do your part, and give the result as `answer`. Then name as `next` who goes on, or `nobody` if the work is done.\n\
     The others:\n{{ members }}",
)
.may_hold(&["members"]);
/// Tells a moderator how to choose a speaker.
pub const NEXT_SPEAKER: Prompt = Prompt::new(
    "next-speaker",
    "tells the moderator of a chat how to name the next speaker, after the instruction",
    "You moderate this conversation; what was said so far, if anything, is shown above. Name as `answer` who speaks next, \
     or `end` if all has been said.\nThe members:\n{{ members }}",
)
.may_hold(&["members"]);
/// Tells a member of a chat to speak.
pub const SPEAK: Prompt = Prompt::new(
    "speak",
    "tells a member of a chat to speak, after the instruction",
    "It is your turn to speak; what was said so far, if anything, is shown above. Speak to the others, and do not repeat what was said.",
);
/// Whom a member names when the work is done.
pub const NOBODY: &str = "nobody";
/// What a moderator names when all has been said.
pub const END: &str = "end";

/// Lists members for a prompt: their names and personas.
#[must_use]
pub fn listed(context: &TeamContext<'_>, members: &[usize]) -> String {
    let line = |member: &usize| {
        let member = context.team.get(*member)?;
        let persona = member.persona.trim();
        Some(if persona.is_empty() { member.name.clone() } else { format!("{}: {persona}", member.name) })
    };
    members.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the names of members.
#[must_use]
pub fn names(context: &TeamContext<'_>, members: &[usize]) -> Vec<String> {
    members.iter().filter_map(|member| Some(context.team.get(*member)?.name.clone())).collect()
}

/// A member picks one of several options, with reasons. Returns its place; `None` without a readable reply, whose reason is recorded.
pub async fn picked(
    context: &mut TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: impl Into<Instruction<'_>>,
    options: Vec<String>,
) -> Option<usize> {
    let format = ResponseFormat::Record(vec![
        ("reasons".into(), ResponseFormat::Text),
        ("answer".into(), ResponseFormat::Choice(options)),
    ]);
    let brief = Brief::new(member, talk(context, member, shown, instruction), format).task(Task::Write);
    match context.ask(brief).await {
        Ok(value) => {
            let place = super::judge::choice(&value);
            if place.is_none() {
                context.record(member, NO_ANSWER, "the reply names no option");
            }
            place
        }
        Err(why) => {
            context.record(member, NO_ANSWER, why.to_string());
            None
        }
    }
}

/// What a member hands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// Its result.
    pub result: Value,
    /// Whom it names; `None` ends the work.
    pub next: Option<usize>,
}

/// A member does its part of the work and names who goes on among `others`. `want`: the form of its result; by default, the item's answer.
/// `None` without a readable reply, whose reason is recorded.
pub async fn handed(
    context: &mut TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: &str,
    others: &[usize],
    want: Option<&ResponseFormat>,
) -> Option<Handed> {
    let how = context.filled(&HAND_OFF, &[("members", &listed(context, others))]);
    let (form, result, task) = match want {
        Some(want) => (String::new(), want.clone(), Task::Write),
        None => (form(context), wanted_answer(context), Task::Solve),
    };
    let options = names(context, others).into_iter().chain([NOBODY.to_owned()]).collect();
    let format =
        ResponseFormat::Record(vec![("answer".into(), result), ("next".into(), ResponseFormat::Choice(options))]);
    let instruction = format!("{}\n{how}\n{form}", instruction.trim_end());
    let brief = Brief::new(member, talk(context, member, shown, &instruction), format).task(task);
    match context.ask(brief).await {
        Ok(Value::Record(mut fields)) if fields.len() == 2 => {
            let next = match fields.pop() {
                Some(Value::Choice(place)) => others.get(place as usize).copied(),
                _ => None,
            };
            Some(Handed { result: fields.pop()?, next })
        }
        Ok(_) => {
            context.record(member, NO_ANSWER, "the reply has no answer and next member");
            None
        }
        Err(why) => {
            context.record(member, NO_ANSWER, why.to_string());
            None
        }
    }
}

/// Names the next speaker of a conversation: the moderator picks one of the speakers, or ends it (`None`).
pub async fn next_speaker(
    context: &mut TeamContext<'_>,
    moderator: usize,
    shown: &[Part],
    instruction: &str,
    speakers: &[usize],
) -> Option<usize> {
    let how = context.filled(&NEXT_SPEAKER, &[("members", &listed(context, speakers))]);
    let instruction = format!("{}\n{how}", instruction.trim_end());
    let options = names(context, speakers).into_iter().chain([END.to_owned()]).collect();
    let place = picked(context, moderator, shown, &instruction, options).await?;
    speakers.get(place).copied()
}

/// A member speaks, and the others hear it. `None`: the reason was recorded.
pub async fn speech(
    context: &mut TeamContext<'_>,
    member: usize,
    shown: &[Part],
    instruction: &str,
    hearers: &[usize],
) -> Option<Stand> {
    let instruction = format!("{}\n{}", instruction.trim_end(), context.prompt(&SPEAK));
    let answer = super::write(context, member, shown, &instruction).await?;
    let by = context.team.get(member).map_or_else(String::new, |member| member.name.clone());
    for hearer in hearers.iter().filter(|hearer| **hearer != member) {
        context.tell(member, *hearer, answer.clone());
    }
    Some(Stand { by, answer, reasons: String::new() })
}
