//! How a society is cut into shards, and which of them this process computes.

use crate::{BLOCK, Bug};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;

/// Bytes from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Sending shard.
    pub from: usize,
    /// Receiving shard.
    pub to: usize,
    /// The content, of a type that both ends know from the phase of the round.
    pub bytes: Vec<u8>,
}

/// Shards of a society, and those that this process computes: all of them, or one.
///
/// Results do not depend on it. Several shards in one process are a device for tests: they only cost time, because threads share a
/// shard's work anyway.
///
/// ```
/// use polity_kernel::layout::Layout;
/// assert_eq!(Layout::default(), Layout::shards(1));
/// assert_eq!(Layout::process(1, 3).own(), 1..2);
/// // Shards are cut between blocks of 4,096 agents.
/// assert_eq!(Layout::process(1, 3).agents(1, 30_000), 8192..20_480);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    shards: usize,
    process: Option<usize>,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::shards(1)
    }
}

impl Layout {
    /// All of `n` shards in this process; at least one.
    #[must_use]
    pub fn shards(n: usize) -> Self {
        Layout { shards: n.max(1), process: None }
    }

    /// One shard for each of `of` processes; this is process `index`, from 0. A society in one process is not spread.
    ///
    /// # Panics
    /// If `index` is not below `of`.
    #[must_use]
    pub fn process(index: usize, of: usize) -> Self {
        assert!(index < of, "process {index} of {of} processes");
        Layout { shards: of, process: (of > 1).then_some(index) }
    }

    /// Returns the number of shards, in all processes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shards
    }

    /// Returns the shards that this process computes.
    #[must_use]
    pub fn own(&self) -> Range<usize> {
        self.process.map_or(0..self.shards, |index| index..index + 1)
    }

    /// Whether the society is spread over several processes.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        self.process.is_some()
    }

    /// Whether this process computes shard 0, and so decides what only one process may decide.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.process.is_none_or(|index| index == 0)
    }

    /// Returns the shards that take part in a reduction: one for each process.
    pub(crate) fn leaders(&self) -> Range<usize> {
        if self.is_spread() { 0..self.shards } else { 0..1 }
    }

    /// Returns the ids of a shard's agents at the beginning, of `agents` in total.
    #[must_use]
    pub fn agents(&self, shard: usize, agents: u32) -> Range<u32> {
        let blocks = self.range(shard, (agents as usize).div_ceil(BLOCK).max(1));
        let id = |block: usize| u32::try_from(block * BLOCK).unwrap_or(u32::MAX).min(agents);
        id(blocks.start)..id(blocks.end)
    }

    /// Returns the blocks of a shard, of `blocks` in total.
    pub(crate) fn range(&self, shard: usize, blocks: usize) -> Range<usize> {
        blocks * shard / self.shards..blocks * (shard + 1) / self.shards
    }
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Bug> {
    postcard::to_allocvec(value).map_err(|e| Bug::Transport(e.to_string()))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Bug> {
    postcard::from_bytes(bytes).map_err(|e| Bug::Transport(e.to_string()))
}
