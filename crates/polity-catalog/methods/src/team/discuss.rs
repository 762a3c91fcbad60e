//! Turns of a discussion: who speaks when, who hears it, and when it ends.

use super::{Instruction, Stand, solve_one, to_solve, vote};
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::method::{Brief, Prompt, TeamContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tells a speaker to go on with the discussion.
pub const JOIN: Prompt =
    Prompt::new("join", "tells a speaker to go on with the discussion", include_str!("prompts/join.md"));
/// Tells a speaker who has heard nobody yet to begin.
pub const OPEN: Prompt =
    Prompt::new("open", "tells a speaker who has heard nobody yet to begin", include_str!("prompts/alone.md"));

/// The order of speakers and hearers (the paradigms of Becker et al., MALLM, 2025).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Paradigm {
    /// All speak in turn and all hear all.
    #[default]
    Memory,
    /// The first speaks to all; the others speak only to the first.
    Report,
    /// All speak in a ring, each heard only by the next.
    Relay,
    /// The first speaks to all; the others speak in a ring, each heard by the next, and in its last round by the first, too.
    Debate,
}

/// One speech: who speaks, and who hears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The speaker, by position in the discussion.
    pub speaker: usize,
    /// The hearers, without the speaker.
    pub hearers: Vec<usize>,
}

impl Paradigm {
    /// Returns the speeches of one turn among `n`; a debate has `rounds` rounds of its ring.
    #[must_use]
    pub fn slots(self, n: usize, rounds: u32) -> Vec<Slot> {
        let all = |speaker: usize| Slot { speaker, hearers: (0..n).filter(|other| *other != speaker).collect() };
        let one =
            |speaker: usize, to: usize| Slot { speaker, hearers: if to == speaker { Vec::new() } else { vec![to] } };
        match self {
            Paradigm::Memory => (0..n).map(all).collect(),
            Paradigm::Report => (0..n).map(|i| if i == 0 { all(0) } else { one(i, 0) }).collect(),
            Paradigm::Relay => (0..n).map(|i| one(i, (i + 1) % n)).collect(),
            Paradigm::Debate => {
                let mut slots: Vec<Slot> = (0..n.min(1)).map(all).collect();
                for round in 1..=rounds {
                    let ring = |i: usize| if i + 1 < n { i + 1 } else { 1 };
                    slots.extend((1..n).map(|i| {
                        let mut slot = one(i, ring(i));
                        if round == rounds {
                            slot.hearers.insert(0, 0);
                        }
                        slot
                    }));
                }
                slots
            }
        }
    }
}

/// The state of a discussion: the draft, and who has heard what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Each member's last answer.
    pub stands: Vec<Option<Stand>>,
    /// Answers that each has heard but not yet replied to, in order.
    pub heard: Vec<Vec<Stand>>,
    /// The draft under discussion.
    pub draft: Option<Stand>,
    /// Members who have spoken and agreed since it was made, including its author; each once.
    pub agreeing: Vec<usize>,
    /// Number of new drafts by each.
    pub turned: Vec<u32>,
}

impl Table {
    /// Returns an empty state for `n` members.
    #[must_use]
    pub fn of(n: usize) -> Self {
        Table { stands: vec![None; n], heard: vec![Vec::new(); n], turned: vec![0; n], ..Table::default() }
    }

    /// Records a speech: it agrees with the draft or replaces it.
    pub fn said(&mut self, context: &TeamContext<'_>, slot: &Slot, stand: Stand) {
        let agrees = self.draft.as_ref().is_some_and(|draft| context.item.same(&draft.answer, &stand.answer));
        if !agrees {
            self.draft = Some(stand.clone());
            self.agreeing.clear();
            self.turned[slot.speaker] += 1;
        }
        if !self.agreeing.contains(&slot.speaker) {
            self.agreeing.push(slot.speaker);
        }
        for hearer in &slot.hearers {
            self.heard[*hearer].push(stand.clone());
        }
        self.stands[slot.speaker] = Some(stand);
    }

    /// Returns whether at least this share of all agrees with the draft.
    #[must_use]
    pub fn agreed(&self, share: f64) -> bool {
        self.draft.is_some() && self.agreeing.len() as f64 >= share * self.stands.len() as f64
    }

    /// Returns the most common answer.
    #[must_use]
    pub fn plurality(&self, context: &TeamContext<'_>) -> Option<String> {
        vote::plurality(context.item, &self.stands)
    }
}

/// Instructions to speakers.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// For speakers who have heard nobody yet.
    pub open: Instruction<'a>,
    /// For speakers who have heard others or answered before.
    pub join: Instruction<'a>,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Words { open: OPEN.into(), join: JOIN.into() }
    }
}

/// Builds a question to the current speaker, with what it has heard since it last spoke.
pub fn to_speak(
    context: &mut TeamContext<'_>,
    members: &[usize],
    slot: &Slot,
    table: &mut Table,
    words: Words<'_>,
) -> Brief {
    let member = members[slot.speaker];
    let heard = std::mem::take(&mut table.heard[slot.speaker]);
    let brief = match &table.stands[slot.speaker] {
        // Nobody has spoken to it yet.
        None if heard.is_empty() => to_solve(context, member, &[], words.open),
        None => to_solve(context, member, &heard.iter().map(Stand::said).collect::<Vec<Part>>(), words.join),
        Some(before) => {
            let mut brief = to_solve(context, member, &[], words.open);
            brief.messages.push(before.own());
            let mut parts: Vec<Part> = heard.iter().map(Stand::said).collect();
            parts.push(Part::Text(words.join.words(context)));
            brief.messages.push(ChatMessage { role: Role::User, parts });
            brief
        }
    };
    super::tell_all(context, member, &heard);
    brief
}

/// Runs one speech and records it. Returns what was said, or nothing if the speaker gave no answer.
pub async fn speak(
    context: &mut TeamContext<'_>,
    members: &[usize],
    slot: &Slot,
    table: &mut Table,
    words: Words<'_>,
) -> Option<Stand> {
    let brief = to_speak(context, members, slot, table, words);
    let said = solve_one(context, brief).await?;
    table.said(context, slot, said.clone());
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_as_the_paradigms_have_them() {
        let heard = |paradigm: Paradigm| -> Vec<(usize, Vec<usize>)> {
            paradigm.slots(3, 2).into_iter().map(|slot| (slot.speaker, slot.hearers)).collect()
        };
        assert_eq!(heard(Paradigm::Memory), [(0, vec![1, 2]), (1, vec![0, 2]), (2, vec![0, 1])]);
        assert_eq!(heard(Paradigm::Report), [(0, vec![1, 2]), (1, vec![0]), (2, vec![0])]);
        assert_eq!(heard(Paradigm::Relay), [(0, vec![1]), (1, vec![2]), (2, vec![0])]);
        assert_eq!(
            heard(Paradigm::Debate),
            [(0, vec![1, 2]), (1, vec![2]), (2, vec![1]), (1, vec![0, 2]), (2, vec![0, 1])]
        );
        let last = Paradigm::Debate.slots(4, 1).pop().map(|slot| slot.hearers);
        assert_eq!(last, Some(vec![0, 1]), "the first and the next");
        for paradigm in [Paradigm::Memory, Paradigm::Report, Paradigm::Relay, Paradigm::Debate] {
            assert!(paradigm.slots(1, 2).iter().all(|slot| slot.speaker == 0 && slot.hearers.is_empty()));
        }
    }
}
