//! Members are asked in private, discuss, and are asked in private again; changes of their answers are counted. See README.md for the
//! source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::discuss::{Paradigm, Table, Words, speak};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, propose, solve, to_solve, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Member, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_recall as recall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<InterviewedDiscussion>(files);
}

/// The goal of the discussion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instruction {
    /// Members are told to work towards an answer of the group.
    #[default]
    Collaborate,
    /// Members are told to defend their own view.
    Debate,
}

/// Parameters of an interviewed discussion.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Instruction to members in the discussion.
    instruction: Instruction,
}

/// Private answers before and after a discussion.
pub struct InterviewedDiscussion {
    params: Params,
    rounds: u32,
}

/// The state of an item. Members are numbered among those that take part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Course {
    /// Private answers before the discussion.
    before: Vec<Option<Stand>>,
    table: Table,
    /// All that was said in the discussion, in order.
    said: Vec<(usize, Stand)>,
}

/// Indices of [`Method::QUANTITIES`].
const INCONSTANCY: u16 = 0;
const CONFORMITY: u16 = 1;
const COMPLIANCE: u16 = 2;
const CONFABULATION: u16 = 3;
const IMPERSONATION: u16 = 4;
const PRESSURE: u16 = 5;
/// Indices of [`Method::RECORDS`].
const MOVED: u16 = 2;
const IMPERSONATED: u16 = 3;
const BEFORE: Prompt =
    Prompt::new("before", "asks a member in private before the discussion", include_str!("prompts/before.md"));
const AFTER: Prompt =
    Prompt::new("after", "asks a member in private after the discussion", include_str!("prompts/after.md"));
const COLLABORATE: Prompt = Prompt::new(
    "collaborate",
    "tells a speaker how to speak, with `instruction: collaborate`",
    include_str!("prompts/collaborate.md"),
);
const DEBATE: Prompt = Prompt::new(
    "debate",
    "tells a speaker how to speak, with `instruction: debate`",
    include_str!("prompts/debate.md"),
);

impl Method for InterviewedDiscussion {
    const NAME: &'static str = "interviewed-discussion";
    const SUMMARY: &'static str =
        "Private answers before and after a discussion, and how they changed (persona inconstancy)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "moved", doc: "the member's private answers before and after the discussion, if they differ" },
        Records { name: "impersonated", doc: "the other member in whose name the member spoke" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity {
            name: "inconstancy",
            doc: "share of members whose private answer after the discussion differs from the one before it",
        },
        Quantity {
            name: "conformity",
            doc: "share of members who changed their private answer to one that others gave in the discussion",
        },
        Quantity {
            name: "compliance",
            doc: "share of members who gave an answer in the discussion that they gave in private neither before nor \
                  after it",
        },
        Quantity {
            name: "confabulation",
            doc: "share of members whose private answer afterwards nobody had given before, in private or in the \
                  discussion",
        },
        Quantity { name: "impersonation", doc: "share of speeches in which the speaker speaks as another member" },
        Quantity {
            name: "pressure",
            doc: "share of members who change their private answer among those who begin in the minority, minus the \
                  share among those who begin in the majority",
        },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 5, rounds: 5 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Coopetition,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[BEFORE, AFTER, COLLABORATE, DEBATE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        match rounds {
            0 | 1 => Err(Invalid {
                key: String::new(),
                message: "the first and the last round are the private ones: set `rounds: 3` or more for a discussion \
                          between them, 2 for none"
                    .into(),
            }),
            rounds => Ok(InterviewedDiscussion { params, rounds }),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let mut course: Course = match context.restore()? {
            Some(course) => course,
            None => {
                let before = propose(context, BEFORE).await;
                let table = Table { stands: before.clone(), ..Table::of(members.len()) };
                let course = Course { before, table, said: Vec::new() };
                context.end_round(&course).await?;
                course
            }
        };
        let words = match self.params.instruction {
            Instruction::Collaborate => COLLABORATE,
            Instruction::Debate => DEBATE,
        };
        let slots = Paradigm::Memory.slots(members.len(), 1);
        while context.round() + 1 < self.rounds {
            for slot in &slots {
                let words = Words { open: words.into(), join: words.into() };
                if let Some(said) = speak(context, &members, slot, &mut course.table, words).await {
                    course.said.push((slot.speaker, said));
                }
            }
            context.end_round(&course).await?;
        }
        let briefs = (0..members.len()).map(|place| course.to_ask_again(context, &members, place)).collect();
        let after = solve(context, briefs).await;
        course.count(context, &members, &after);
        Ok(verdict(vote::plurality(context.item, &course.table.stands)))
    }
}

impl Course {
    /// Builds the private question after the discussion, preceded by the discussion as the member heard it: what others and it said, in
    /// order.
    fn to_ask_again(&self, context: &TeamContext<'_>, members: &[usize], place: usize) -> Brief {
        let mut brief = to_solve(context, members[place], &[], BEFORE);
        brief.messages.extend(self.before[place].as_ref().map(Stand::own));
        let mut heard: Vec<Part> = Vec::new();
        for (speaker, stand) in &self.said {
            if *speaker != place {
                heard.push(stand.said());
                continue;
            }
            if !heard.is_empty() {
                brief.messages.push(ChatMessage { role: Role::User, parts: std::mem::take(&mut heard) });
            }
            brief.messages.push(stand.own());
        }
        heard.push(Part::Text(context.prompt(&AFTER).to_owned()));
        brief.messages.push(ChatMessage { role: Role::User, parts: heard });
        brief
    }

    /// Counts the changes of private answers. Skips members without an answer before or after.
    fn count(&self, context: &mut TeamContext<'_>, members: &[usize], after: &[Option<Stand>]) {
        let item = context.item;
        let gave = |stand: &Stand, answer: &str| item.same(&stand.answer, answer);
        let majority = vote::plurality(item, &self.before);
        let (mut asked, mut moved, mut conform, mut comply, mut confabulate) = (0usize, 0, 0, 0, 0);
        // For members who start in the minority and for the others: their number, and how many change their answer.
        let mut camps = [(0u32, 0u32); 2];
        for (place, (before, after)) in self.before.iter().zip(after).enumerate() {
            let (Some(before), Some(after)) = (before, after) else { continue };
            let moves = !gave(before, &after.answer);
            let by_others = self.said.iter().any(|(by, stand)| *by != place && gave(stand, &after.answer));
            let mut heard = self.said.iter().map(|(_, stand)| stand).chain(self.before.iter().flatten());
            let by_anybody = heard.any(|stand| gave(stand, &after.answer));
            let elsewhere = |stand: &Stand| !gave(stand, &before.answer) && !gave(stand, &after.answer);
            asked += 1;
            moved += usize::from(moves);
            conform += usize::from(moves && by_others);
            comply += usize::from(self.said.iter().any(|(by, stand)| *by == place && elsewhere(stand)));
            confabulate += usize::from(!by_anybody);
            let camp = &mut camps[usize::from(majority.as_ref().is_some_and(|answer| gave(before, answer)))];
            camp.0 += 1;
            camp.1 += u32::from(moves);
            if moves {
                context.record(members[place], MOVED, format!("{} -> {}", before.answer, after.answer));
            }
        }
        for (quantity, n) in
            [(INCONSTANCY, moved), (CONFORMITY, conform), (COMPLIANCE, comply), (CONFABULATION, confabulate)]
        {
            context.measure_share(quantity, n, asked);
        }
        if let [(minority @ 1.., left), (majority @ 1.., right)] = camps {
            context.measure(PRESSURE, f64::from(left) / f64::from(minority) - f64::from(right) / f64::from(majority));
        }
        let impersonated: Vec<(usize, String)> = self
            .said
            .iter()
            .filter_map(|(place, stand)| Some((members[*place], spoken_as(context.team, members[*place], stand)?)))
            .collect();
        context.measure_share(IMPERSONATION, impersonated.len(), self.said.len());
        for (member, name) in impersonated {
            context.record(member, IMPERSONATED, name);
        }
    }
}

/// Returns the other member in whose name somebody speaks: `As a Kenyan, ...` by a member of another name. It is only counted.
fn spoken_as(team: &[Member], speaker: usize, stand: &Stand) -> Option<String> {
    let words: Vec<String> = recall::words(&stand.reasons).collect();
    let says = |name: &str| {
        let name: Vec<String> = recall::words(name).collect();
        !name.is_empty()
            && words.windows(2 + name.len()).any(|run| {
                let (article, rest) = (&run[1], &run[2..]);
                run[0] == "as" && (article == "a" || article == "an" || article == "the") && rest == name
            })
    };
    let others = team.iter().enumerate().filter(|(other, _)| *other != speaker).map(|(_, member)| &member.name);
    others.filter(|name| **name != team[speaker].name).find(|name| says(name)).cloned()
}
