//! Memory that a scenario takes, estimated part by part before it is taken: a society that can not fit is refused in words, instead of being
//! ended by the system when half of it stands.

use std::fmt::Write as _;

/// What every agent takes besides its state and its row of the world: what it sees, its acts, its place in blocks, and rows that wait for the disk.
/// Measured on societies of a million agents by rules (`crates/polity/tests/memory.rs`).
const AGENT: f64 = 100.0;
/// Bytes that the process takes without any agent.
pub const PROCESS: u64 = 40_000_000;
/// Rows of tables on their way to the disk, of an agent, and of all: then they wait.
const ROWS: f64 = 800.0;
const MOST_ROWS: f64 = 60e6;
/// An arc of a topology, with what is needed to make it.
pub(super) const ARC: f64 = 8.0;
/// A letter: in its bucket, and sorted in the arena of its recipient.
const LETTER: f64 = 36.0;

/// Room for a scenario: what there is, and what its parts take.
#[derive(Clone, Debug)]
pub struct Room {
    /// Bytes that there are; `None`: nobody knows.
    limit: Option<f64>,
    parts: Vec<(&'static str, f64)>,
}

impl Room {
    /// So many bytes; `None`: as much as it takes.
    #[must_use]
    pub fn of(bytes: Option<u64>) -> Self {
        Room { limit: bytes.map(|bytes| bytes as f64), parts: vec![("the process", PROCESS as f64)] }
    }

    /// Bytes of all parts so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum::<f64>() as u64
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> f64 {
        self.limit.map_or(f64::INFINITY, |limit| limit - self.taken() as f64)
    }

    /// Takes room for a part; an error in words if there is not as much.
    pub(super) fn take(&mut self, part: &'static str, bytes: f64) -> Result<(), String> {
        self.parts.push((part, bytes));
        match self.limit {
            Some(limit) if self.taken() as f64 > limit => Err(self.words(limit)),
            _ => Ok(()),
        }
    }

    pub(super) fn take_agents(&mut self, agents: u32) -> Result<(), String> {
        let agents = f64::from(agents);
        self.parts.push(("rows that wait for the disk", (agents * ROWS).min(MOST_ROWS)));
        self.take("agents", agents * AGENT)
    }

    pub(super) fn take_letters(&mut self, arcs: u64) -> Result<(), String> {
        self.take("letters of a round", arcs as f64 * LETTER)
    }

    fn words(&self, limit: f64) -> String {
        let mut parts: Vec<_> = self.parts.iter().filter(|(_, bytes)| *bytes >= 1e6).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut words = format!(
            "it needs about {} of memory, and {} are available: ",
            bytes_in_words(self.taken() as f64),
            bytes_in_words(limit)
        );
        for (i, (part, bytes)) in parts.into_iter().enumerate() {
            // Writing into a String does not fail.
            let _ = write!(words, "{}{part} {}", if i > 0 { ", " } else { "" }, bytes_in_words(*bytes));
        }
        words
    }
}

/// Bytes as a person reads them: `16.4 GB`, `3 MB`. A GB is 10^9 bytes; below one, numbers are rounded up.
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
        let mut room = Room::of(Some(1_000_000_000));
        room.take_agents(1_000_000).unwrap();
        assert_eq!(room.left(), 800e6);
        room.take("population", 10.0).unwrap();
        let told = room.take_letters(100_000_000).unwrap_err();
        assert_eq!(
            told,
            "it needs about 3.8 GB of memory, and 1.0 GB are available: letters of a round 3.6 GB, agents 100 MB, rows that wait for the disk 60 MB, the process 40 MB"
        );
        let mut free = Room::of(None);
        assert!(free.take_letters(u64::MAX).is_ok() && free.left() == f64::INFINITY);
    }

    #[test]
    fn bytes_are_shown_with_their_unit() {
        let shown = [1.0, 2_500_000.0, 1e9, 16_400_000_000.0, 2e12].map(bytes_in_words);
        assert_eq!(shown, ["1 kB", "3 MB", "1.0 GB", "16.4 GB", "2.0 TB"]);
    }
}
