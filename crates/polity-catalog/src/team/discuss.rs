//! Turns of a discussion: who speaks when and who hears it, as data; and when it ends.

use super::{Stand, solve, to_solve, vote};
use polity_kernel::ask::{Message, Part, Role};
use polity_kernel::method::{Brief, Desk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const JOIN: &str = include_str!("prompts/join.md");
const OPEN: &str = include_str!("prompts/alone.md");

/// Who speaks when, and who hears it (the paradigms of Becker et al., MALLM, 2025).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Paradigm {
    /// One after the other, all hear all.
    #[default]
    Memory,
    /// The first tells all; what the others say only it hears.
    Report,
    /// Each is heard only by the next, in a ring.
    Relay,
    /// The first tells all; the others go round in a ring, and in the last round of it all hear them.
    Debate,
}

/// One speech: who speaks, and who hears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Who speaks, by place in the discussion.
    pub speaker: usize,
    /// Who hears it, the speaker left out.
    pub hearers: Vec<usize>,
}

impl Paradigm {
    /// The speeches of one turn among `n`, where a debate goes round `rounds` times.
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
                    slots.extend((1..n).map(|i| if round == rounds { all(i) } else { one(i, ring(i)) }));
                }
                slots
            }
        }
    }
}

/// What is on the table, and who has heard what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// What each said last.
    pub stands: Vec<Option<Stand>>,
    /// What each has heard and not answered yet, in order.
    pub heard: Vec<Vec<Stand>>,
    /// The proposal that is discussed.
    pub draft: Option<Stand>,
    /// Who has spoken since it was made and agreed, whoever made it included; each once.
    pub agreeing: Vec<usize>,
    /// How often each has put a new proposal on the table.
    pub turned: Vec<u32>,
}

impl Table {
    /// An empty table for `n`.
    #[must_use]
    pub fn of(n: usize) -> Self {
        Table { stands: vec![None; n], heard: vec![Vec::new(); n], turned: vec![0; n], ..Table::default() }
    }

    /// Notes a speech: it agrees with the draft, or puts another one on the table.
    pub fn said(&mut self, desk: &Desk<'_>, slot: &Slot, stand: Stand) {
        let agrees = self.draft.as_ref().is_some_and(|draft| desk.item.same(&draft.answer, &stand.answer));
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

    /// Whether at least this share of all agrees with the draft.
    #[must_use]
    pub fn agreed(&self, share: f64) -> bool {
        self.draft.is_some() && self.agreeing.len() as f64 >= share * self.stands.len() as f64
    }

    /// The answer of most.
    #[must_use]
    pub fn plurality(&self, desk: &Desk<'_>) -> Option<String> {
        vote::plurality(desk.item, &self.stands)
    }
}

/// What speakers are told to do.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Who has heard nobody yet.
    pub open: &'a str,
    /// Who has, or has taken a stand before.
    pub join: &'a str,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Words { open: OPEN, join: JOIN }
    }
}

/// A question to the speaker where it stands now, which is shown what it has heard since it last spoke.
pub fn to_speak(desk: &mut Desk<'_>, members: &[usize], slot: &Slot, table: &mut Table, words: Words<'_>) -> Brief {
    let member = members[slot.speaker];
    let heard = std::mem::take(&mut table.heard[slot.speaker]);
    let brief = match &table.stands[slot.speaker] {
        // Nobody has spoken to it yet.
        None if heard.is_empty() => to_solve(desk, member, &[], words.open),
        None => to_solve(desk, member, &heard.iter().map(Stand::said).collect::<Vec<Part>>(), words.join),
        Some(before) => {
            let mut brief = to_solve(desk, member, &[], words.open);
            brief.messages.push(before.own());
            let mut parts: Vec<Part> = heard.iter().map(Stand::said).collect();
            parts.push(Part::Text(words.join.trim_end().into()));
            brief.messages.push(Message { role: Role::User, parts });
            brief
        }
    };
    super::tell_all(desk, member, &heard);
    brief
}

/// One speech, which is noted: what was said, unless the speaker gave no answer.
pub async fn speak(
    desk: &mut Desk<'_>,
    members: &[usize],
    slot: &Slot,
    table: &mut Table,
    words: Words<'_>,
) -> Option<Stand> {
    let brief = to_speak(desk, members, slot, table, words);
    let said = solve(desk, vec![brief]).await.pop().flatten()?;
    table.said(desk, slot, said.clone());
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
        for paradigm in [Paradigm::Memory, Paradigm::Report, Paradigm::Relay, Paradigm::Debate] {
            assert!(paradigm.slots(1, 2).iter().all(|slot| slot.speaker == 0 && slot.hearers.is_empty()));
        }
    }
}
