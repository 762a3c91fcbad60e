//! Multiagent debate: answer alone, then read the others and think again. See README.md for the source and what is reproduced.

use polity_kernel::Invalid;
use polity_kernel::ask::{Message, Part, Role, Value, Want};
use polity_kernel::method::{Desk, Method, Records, Verdict, same_answer};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Debate>(files);
}

/// How the team's answer is made of the members' last answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// The answer of most members; of equally many, the one whose first supporter comes first in the team.
    #[default]
    Majority,
}

/// Parameters of a debate.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// End as soon as every member has the same answer, instead of working all rounds.
    stop_when_agreed: bool,
    /// Show the others' reasons, not their answers alone.
    show_reasons: bool,
    /// How the team's answer is made of the members' last answers.
    aggregate: Aggregate,
}

impl Default for Params {
    fn default() -> Self {
        Params { stop_when_agreed: false, show_reasons: true, aggregate: Aggregate::Majority }
    }
}

/// Multiagent debate.
pub struct Debate {
    params: Params,
    rounds: u32,
}

/// What a member holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stand {
    answer: String,
    reasons: String,
}

/// Index of [`Method::RECORDS`].
const ANSWER: u16 = 0;
const NO_ANSWER: u16 = 1;

const ALONE: &str =
    "Work this out by yourself. Give your final answer, as short as it can be, and the reasons that lead to it.";
const OTHERS: &str = "Others have worked on the same question. This is where they stand:";
const NOBODY: &str = "Nobody else has an answer yet.";
const AGAIN: &str = "Look for mistakes in their work and in your own. Then answer the question again: keep your answer if it \
                     stands up, change it if something has convinced you.";

impl Method for Debate {
    const NAME: &'static str = "debate";
    const SUMMARY: &'static str =
        "Everybody answers alone, then reads the others and answers again (multiagent debate)";
    const RECORDS: &'static [Records] = &[
        Records { name: "answer", doc: "the answer that the member holds at the end of the round" },
        Records { name: "no-answer", doc: "why the member gave no answer in the round; it holds on to its last one" },
    ];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(Debate { params, rounds })
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let mut stands: Vec<Option<Stand>> = desk.restore()?.unwrap_or_else(|| vec![None; desk.team.len()]);
        while desk.round() < self.rounds && !(self.params.stop_when_agreed && agreed(&stands)) {
            let asks = (0..stands.len()).map(|member| (member, self.talk(desk, &stands, member), wanted())).collect();
            let heard = desk.ask_all(asks).await;
            for (member, heard) in heard.into_iter().enumerate() {
                match heard.map_err(|why| why.to_string()).and_then(|value| stand(&value)) {
                    Ok(stand) => stands[member] = Some(stand),
                    Err(why) => desk.record(member, NO_ANSWER, why),
                }
                if let Some(stand) = &stands[member] {
                    desk.record(member, ANSWER, &stand.answer);
                }
            }
            desk.end_round(&stands).await?;
        }
        let Aggregate::Majority = self.params.aggregate;
        Ok(Verdict { answer: plurality(&stands) })
    }
}

impl Debate {
    /// The conversation that a member is sent, and a note of whom it is shown.
    fn talk(&self, desk: &mut Desk<'_>, stands: &[Option<Stand>], member: usize) -> Vec<Message> {
        let mut talk = Vec::with_capacity(4);
        let persona = &desk.team[member].persona;
        if !persona.is_empty() {
            talk.push(Message::text(Role::System, persona));
        }
        talk.push(Message::text(Role::User, format!("{}\n\n{ALONE}", desk.item.question)));
        if desk.round() == 0 {
            return talk;
        }
        if let Some(Stand { answer, reasons }) = &stands[member] {
            let (by, answer, reasons) = (desk.team[member].name.clone(), answer.clone(), reasons.clone());
            talk.push(Message { role: Role::Assistant, parts: vec![Part::Said { by, answer, reasons }] });
        }
        let mut parts = vec![Part::Text(OTHERS.into())];
        for other in desk.hears(member) {
            if let Some(Stand { answer, reasons }) = &stands[other] {
                let reasons = if self.params.show_reasons { reasons.clone() } else { String::new() };
                parts.push(Part::Said { by: desk.team[other].name.clone(), answer: answer.clone(), reasons });
                desk.tell(other, member, answer);
            }
        }
        if parts.len() == 1 {
            parts = vec![Part::Text(NOBODY.into())];
        }
        parts.push(Part::Text(AGAIN.into()));
        talk.push(Message { role: Role::User, parts });
        talk
    }
}

fn wanted() -> Want {
    Want::Record(vec![("answer".into(), Want::Text), ("reasons".into(), Want::Text)])
}

fn stand(value: &Value) -> Result<Stand, String> {
    let text = |i| value.field(i).and_then(Value::as_text).map(str::trim);
    match (text(0), text(1)) {
        (Some(""), _) => Err("the answer is empty".into()),
        (Some(answer), Some(reasons)) => Ok(Stand { answer: answer.into(), reasons: reasons.into() }),
        _ => Err("the reply has no answer and reasons".into()),
    }
}

/// Whether every member has an answer and all are the same.
fn agreed(stands: &[Option<Stand>]) -> bool {
    let first = stands.first().and_then(Option::as_ref);
    first.is_some_and(|first| {
        stands.iter().all(|stand| stand.as_ref().is_some_and(|s| same_answer(&s.answer, &first.answer)))
    })
}

/// The answer of most members, in the words of its first supporter; on a tie the one supported first.
fn plurality(stands: &[Option<Stand>]) -> Option<String> {
    let mut camps: Vec<(&str, usize)> = Vec::new();
    for Stand { answer, .. } in stands.iter().flatten() {
        match camps.iter_mut().find(|(camp, _)| same_answer(camp, answer)) {
            Some((_, size)) => *size += 1,
            None => camps.push((answer, 1)),
        }
    }
    // `max_by_key` keeps the last of equals: turned round, that is the first.
    camps.into_iter().rev().max_by_key(|(_, size)| *size).map(|(answer, _)| answer.to_owned())
}
