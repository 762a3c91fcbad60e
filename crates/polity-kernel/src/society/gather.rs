//! What a process shows the process of shard 0 of its agents between two rounds, for tables and alarms.

use super::shard::Shard;
use super::state::{Society, Stage};
use crate::interface::{Actions, NumberSlot};
use crate::layout::{Layout, decode, encode};
use crate::messages::Arena;
use crate::{AgentId, Bug};
use serde::{Deserialize, Serialize};

/// What is gathered from all processes after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// The acts of the round.
    pub acts: bool,
    /// The messages delivered at its end.
    pub messages: bool,
    /// All columns.
    pub columns: bool,
    /// The numbers that agents saw in the round.
    pub seen: bool,
}

impl Gather {
    /// Whether anything is gathered.
    #[must_use]
    pub fn any(self) -> bool {
        self.acts || self.messages || self.columns || self.seen
    }
}

/// What a process has shown.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Shown {
    /// By block.
    pub(super) acts: Vec<Actions>,
    /// By block, with its first agent.
    pub(super) inboxes: Vec<(AgentId, Arena)>,
    pub(super) columns: Vec<Vec<f64>>,
    /// By number of the observation.
    pub(super) seen: Vec<Vec<f64>>,
}

impl Society {
    /// How the society is cut, and which shards this process computes.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether its last round is over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }

    /// Returns what this process shows of its agents, as bytes for [`Society::take_shown`] in the process of shard 0.
    ///
    /// # Errors
    /// Values that cannot be written: a defect.
    pub fn show(&self, what: Gather) -> Result<Vec<u8>, Bug> {
        let blocks = || self.shards.iter().flat_map(Shard::blocks);
        let mut shown = Shown::default();
        if what.acts {
            shown.acts.extend(blocks().map(|block| block.acts.clone()));
        }
        if what.messages {
            shown.inboxes.extend(blocks().map(|block| (block.first, block.inbox.clone())));
        }
        if what.columns {
            shown.columns.extend((0..self.interface.columns.len()).map(|column| self.own_column(column)));
        }
        if what.seen {
            shown.seen.extend((0..self.interface.numbers().count()).map(|slot| self.own_seen(NumberSlot(slot))));
        }
        encode(&shown)
    }

    /// Takes what the other processes show, in order of shards. It is forgotten when the next round begins.
    ///
    /// # Errors
    /// Bytes that [`Society::show`] has not made.
    pub fn take_shown<'a>(&mut self, others: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Bug> {
        self.elsewhere = others.into_iter().map(decode).collect::<Result<_, _>>()?;
        Ok(())
    }
}
