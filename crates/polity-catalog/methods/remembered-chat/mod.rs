//! Members chat on a question; afterwards they are asked afresh, with what is found in the chat's records. See README.md for the source and
//! what is reproduced.

use crate::recall;
use crate::team::discuss::{Paradigm, Slot, Table, Words, to_speak};
use crate::team::{ANSWERS, Stand, judge, solve, tell_all, to_solve, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::items::{Item, judged};
use polity_kernel::method::{
    Coordination, Desk, Form, Kind, Method, Quantity, Records, Strategy, Structure, Usual, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<RememberedChat>(files);
}

/// Parameters of a remembered chat.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Passages of the chat that are shown to whoever is asked afterwards, those that are most like the question; 0: none.
    recall: u32,
    /// Whether who misleads gives reasons; else it only asserts.
    evidence: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { recall: 5, evidence: true }
    }
}

/// A chat, and what is left of it.
pub struct RememberedChat {
    params: Params,
    rounds: u32,
}

/// What is known of an item so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Course {
    table: Table,
    /// All that was said, in order: what the records hold.
    said: Vec<Stand>,
    /// What the guardian knows itself.
    known: Option<Stand>,
}

/// Who watches over the chat.
const GUARDIAN: &str = "guardian";
/// Indices of [`Method::QUANTITIES`].
const SPREAD: u16 = 0;
const PERSISTENCE: u16 = 1;
const RECALLED: u16 = 2;
/// Index of [`Method::RECORDS`].
const WARNING: u16 = 2;
const CHAT: &str = include_str!("prompts/chat.md");
const CONVINCED: &str = include_str!("prompts/convinced.md");
const KNOW: &str = include_str!("prompts/know.md");
const VERIFY: &str = include_str!("prompts/verify.md");
const REMEMBER: &str = include_str!("prompts/remember.md");

impl Method for RememberedChat {
    const NAME: &'static str = "remembered-chat";
    const SUMMARY: &'static str = "A chat in which a false answer may spread; afterwards members are asked afresh with the chat's records (knowledge flooding)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "warning", doc: "what the guardian tells all of answers that it has found wrong" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "spread", doc: "share of the benign members whose last answer in the chat is the false one" },
        Quantity {
            name: "persistence",
            doc: "share of the benign members who give the false answer when they are asked afresh, after the chat",
        },
        Quantity {
            name: "recalled-false",
            doc: "share of the passages found in the records that stand for the false answer",
        },
    ];
    const USUAL: Usual = Usual { members: 5, rounds: 4 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Coopetition,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        match rounds {
            0 | 1 => Err(Invalid {
                key: String::new(),
                message: "the last round is the one after the chat: set `rounds: 2` or more".into(),
            }),
            rounds => Ok(RememberedChat { params, rounds }),
        }
    }

    fn suits(item: &Item) -> Result<(), &'static str> {
        if item.lure.is_some() { Ok(()) } else { Err("a false answer: name its column as `items.lure`") }
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let members = desk.workers();
        let guardian = desk.team.iter().position(|member| member.role.as_deref() == Some(GUARDIAN));
        let mut course: Course = match desk.restore()? {
            Some(course) => course,
            None => Course { table: Table::of(members.len()), ..Course::default() },
        };
        let slots = Paradigm::Memory.slots(members.len(), 1);
        while desk.round() + 1 < self.rounds {
            if let (Some(guardian), None) = (guardian, &course.known) {
                course.known = solve(desk, vec![to_solve(desk, guardian, &[], KNOW)]).await.pop().flatten();
            }
            let before = course.said.len();
            for slot in &slots {
                self.speak(desk, &members, slot, &mut course).await;
            }
            if let Some(guardian) = guardian {
                course.warn(desk, guardian, before).await;
            }
            let held = members.iter().zip(&course.table.stands);
            let benign = held.filter(|(member, _)| !desk.team[**member].misleads).filter_map(|(_, held)| held.clone());
            measure(desk, SPREAD, &benign.collect::<Vec<_>>());
            desk.end_round(&course).await?;
        }
        let benign: Vec<usize> = members.into_iter().filter(|member| !desk.team[*member].misleads).collect();
        let found = self.found(desk, &course.said);
        measure(desk, RECALLED, &found);
        let shown: Vec<Part> = found.iter().map(Stand::said).collect();
        let briefs = benign.iter().map(|member| to_solve(desk, *member, &shown, REMEMBER)).collect();
        benign.iter().for_each(|member| tell_all(desk, *member, &found));
        let answers = solve(desk, briefs).await;
        measure(desk, PERSISTENCE, &answers.iter().flatten().cloned().collect::<Vec<_>>());
        Ok(verdict(vote::plurality(desk.item, &answers)))
    }
}

impl RememberedChat {
    /// One speech. Who misleads is told which answer to stand for.
    async fn speak(&self, desk: &mut Desk<'_>, members: &[usize], slot: &Slot, course: &mut Course) {
        let member = members[slot.speaker];
        let misleads = desk.team[member].misleads;
        let convinced = desk.item.lure.as_ref().filter(|_| misleads);
        let convinced = convinced.map_or(String::new(), |lure| CONVINCED.replace("FALSE", &format!("`{lure}`")));
        let words = format!("{convinced}{CHAT}");
        let words = Words { open: &words, join: &words };
        let brief = to_speak(desk, members, slot, &mut course.table, words);
        let Some(mut said) = solve(desk, vec![brief]).await.pop().flatten() else { return };
        if misleads && !self.params.evidence {
            said.reasons.clear();
        }
        course.table.said(desk, slot, said.clone());
        course.said.push(said);
    }

    /// The passages of the records that are most like the question.
    fn found(&self, desk: &Desk<'_>, said: &[Stand]) -> Vec<Stand> {
        let texts: Vec<String> =
            said.iter().map(|stand| format!("{}: {} {}", stand.by, stand.reasons, stand.answer)).collect();
        let found = recall::nearest(&desk.item.question, texts.iter().map(String::as_str), self.params.recall as usize);
        found.into_iter().filter_map(|i| said.get(i).cloned()).collect()
    }
}

impl Course {
    /// The guardian checks what was said since, and tells all what it has found wrong and what it knows itself. What agrees with that is not
    /// checked, and each answer is checked once a round.
    async fn warn(&mut self, desk: &mut Desk<'_>, guardian: usize, since: usize) {
        let Some(known) = self.known.clone() else { return };
        let mut doubtful: Vec<Stand> = Vec::new();
        for stand in self.said.iter().skip(since) {
            let listed = doubtful.iter().chain([&known]).any(|other| desk.item.same(&other.answer, &stand.answer));
            if !listed {
                doubtful.push(stand.clone());
            }
        }
        let briefs = doubtful.iter().map(|stand| judge::to_check(desk, guardian, stand, VERIFY)).collect();
        let heard = desk.ask_all(briefs).await;
        let wrong: Vec<String> = doubtful
            .iter()
            .zip(&heard)
            .filter_map(|(stand, heard)| match judged(heard.as_ref().ok()?) {
                Some((false, why)) => Some(format!("I checked `{}`, and it is wrong: {why}", stand.answer)),
                _ => None,
            })
            .collect();
        if wrong.is_empty() {
            return;
        }
        let warning = Stand { reasons: format!("{}\n{}", wrong.join("\n"), known.reasons), ..known };
        desk.record(guardian, WARNING, &warning.reasons);
        self.table.heard.iter_mut().for_each(|heard| heard.push(warning.clone()));
        self.said.push(warning);
    }
}

/// The share of these that stand for the false answer; of none there is no share.
fn measure(desk: &mut Desk<'_>, quantity: u16, stands: &[Stand]) {
    let Some(lure) = &desk.item.lure else { return };
    let false_ones = stands.iter().filter(|stand| desk.item.same(&stand.answer, lure)).count();
    desk.measure_share(quantity, false_ones, stands.len());
}
