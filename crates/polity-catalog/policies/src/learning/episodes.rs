//! Whole episodes, which some learners wait for.

use super::{Experience, Rollout, Seen};
use polity_kernel::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent's first whole episode since some moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// It has not begun: the agent is in the midst of an episode that began before.
    Waiting,
    /// It began at this time.
    Playing(u32),
    /// It began at the first time, and the next one at the second.
    Played(u32, u32),
}

/// The first whole episode of each agent since some moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts(BTreeMap<AgentId, Part>);

impl Parts {
    /// Notes whose episodes have begun and ended. Returns whether every agent has played a whole one. `now`: the time, in rounds since that
    /// moment; `first`: whether all episodes begin now.
    pub fn note(&mut self, seen: &Seen, now: u32, first: bool) -> bool {
        self.0.retain(|who, _| seen.row(*who).is_some());
        for (row, who) in seen.agents.iter().enumerate() {
            let begins = first || seen.ended[row];
            let part = self.0.entry(*who).or_insert(Part::Waiting);
            *part = match *part {
                Part::Waiting if begins => Part::Playing(now),
                Part::Playing(from) if seen.ended[row] => Part::Played(from, now),
                same => same,
            };
        }
        !self.0.is_empty() && self.0.values().all(|part| matches!(part, Part::Played(..)))
    }

    /// Returns whether an agent is in its first whole episode.
    #[must_use]
    pub fn is_playing(&self, who: AgentId) -> bool {
        matches!(self.0.get(&who), Some(Part::Playing(_)))
    }

    /// Returns when the first whole episode of each agent began and ended, of those who have played one.
    pub fn played(&self) -> impl Iterator<Item = (AgentId, u32, u32)> {
        self.0.iter().filter_map(|(who, part)| match part {
            Part::Played(from, to) => Some((*who, *from, *to)),
            _ => None,
        })
    }
}

/// The rounds since the last update, and which of them are whole episodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Episodes {
    /// The rounds.
    pub rollout: Rollout,
    /// The first whole episode of each agent in them.
    pub parts: Parts,
}

impl Episodes {
    /// Notes whose episodes have begun and ended. Returns whether every agent has played a whole one. `updates`: those so far.
    pub fn note(&mut self, seen: &Seen, updates: u32) -> bool {
        let (now, first) = (self.rollout.len() as u32, updates == 0 && self.rollout.is_empty());
        self.parts.note(seen, now, first)
    }

    /// Returns about how many bytes an agent takes, if what it sees in a round takes so many. How long episodes are is not known.
    #[must_use]
    pub fn bytes(row: usize) -> usize {
        500 * (row + 8)
    }
}

impl Experience for Episodes {
    type Decision = u16;

    fn decided(&self, who: AgentId) -> Option<u16> {
        self.rollout.decided(who)
    }
}
