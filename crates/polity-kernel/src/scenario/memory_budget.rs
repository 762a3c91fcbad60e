//! Estimates memory part by part, before it is allocated. A society that does not fit is refused with an error instead of being
//! killed by the system.

use std::fmt::Write as _;

/// Bytes of an agent besides its state and its row of the world: what it sees, its acts, its place in blocks.
/// Measured with `cargo run --release -p polity --example bench`, column "bytes an agent".
const AGENT: f64 = 100.0;
/// Bytes of the process without any agent.
pub const PROCESS_BYTES: u64 = 40_000_000;
/// Bytes of rows waiting to be written to disk: per agent, and at most.
const ROWS: f64 = 800.0;
const MOST_ROWS: f64 = 60e6;
/// Bytes of an arc of a topology, with the memory for building it.
pub(super) const ARC: f64 = 8.0;
/// Bytes of a message: in its bucket, and sorted in the arena of its recipient.
const LETTER: f64 = 36.0;

/// The memory of a scenario: the available memory, and the estimates of its parts.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    /// Bytes available; `None`: unknown.
    limit: Option<f64>,
    parts: Vec<(&'static str, f64)>,
}

impl MemoryBudget {
    /// Makes a budget of this many bytes; `None`: no limit.
    #[must_use]
    pub fn of(bytes: Option<u64>) -> Self {
        MemoryBudget { limit: bytes.map(|bytes| bytes as f64), parts: vec![("the process", PROCESS_BYTES as f64)] }
    }

    /// Makes a budget without limit, to sum up an estimate.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of(None)
    }

    /// Returns the bytes of all parts so far.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum::<f64>() as u64
    }

    /// Returns the bytes that are not reserved.
    pub(super) fn remaining(&self) -> f64 {
        self.limit.map_or(f64::INFINITY, |limit| limit - self.reserved() as f64)
    }

    /// Reserves memory for a part.
    ///
    /// # Errors
    /// A sentence that lists the parts, if they exceed the budget.
    pub(super) fn reserve(&mut self, part: &'static str, bytes: f64) -> Result<(), String> {
        self.parts.push((part, bytes));
        match self.limit {
            Some(limit) if self.reserved() as f64 > limit => Err(self.words(limit)),
            _ => Ok(()),
        }
    }

    pub(super) fn reserve_agents(&mut self, agents: u32) -> Result<(), String> {
        let agents = f64::from(agents);
        self.parts.push(("rows waiting for the disk", (agents * ROWS).min(MOST_ROWS)));
        self.reserve("agents", agents * AGENT)
    }

    pub(super) fn reserve_messages(&mut self, arcs: u64) -> Result<(), String> {
        self.reserve("messages of a round", arcs as f64 * LETTER)
    }

    fn words(&self, limit: f64) -> String {
        let mut parts: Vec<_> = self.parts.iter().filter(|(_, bytes)| *bytes >= 1e6).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut words = format!(
            "it needs about {} of memory, but only {} is available: ",
            bytes_in_words(self.reserved() as f64),
            bytes_in_words(limit)
        );
        for (i, (part, bytes)) in parts.into_iter().enumerate() {
            // Writing into a String does not fail.
            let _ = write!(words, "{}{part} {}", if i > 0 { ", " } else { "" }, bytes_in_words(*bytes));
        }
        words
    }
}

/// Formats bytes for people: `16.4 GB`, `3 MB`. A GB is 10^9 bytes; below one, numbers are rounded up.
#[must_use]
pub fn bytes_in_words(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.0} MB", (bytes / 1e6).ceil()),
        bytes => format!("{:.0} kB", (bytes / 1e3).ceil()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_by_its_parts() {
        let mut memory = MemoryBudget::of(Some(1_000_000_000));
        memory.reserve_agents(1_000_000).unwrap();
        assert_eq!(memory.remaining(), 800e6);
        memory.reserve("population", 10.0).unwrap();
        let told = memory.reserve_messages(100_000_000).unwrap_err();
        assert_eq!(
            told,
            "it needs about 3.8 GB of memory, but only 1.0 GB is available: messages of a round 3.6 GB, agents 100 MB, rows waiting for the disk 60 MB, the process 40 MB"
        );
        let mut free = MemoryBudget::unlimited();
        assert!(free.reserve_messages(u64::MAX).is_ok() && free.remaining() == f64::INFINITY);
    }

    #[test]
    fn bytes_are_shown_with_their_unit() {
        let shown = [1.0, 2_500_000.0, 1e9, 16_400_000_000.0, 2e12].map(bytes_in_words);
        assert_eq!(shown, ["1 kB", "3 MB", "1.0 GB", "16.4 GB", "2.0 TB"]);
    }
}
