//! The summary of a run.

use crate::drive::Totals;
use crate::health::Alarm;
use polity_store::memory;
use serde::Serialize;

/// How a run, a sweep or a check of systems ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// It ran to its end.
    Done,
    /// A person stopped it; it can be resumed.
    Stopped,
    /// A limit stopped it; it can be resumed with a higher one.
    Budget,
    /// A replay gave the recorded digest.
    Same,
    /// A replay gave another digest.
    Different,
    /// Only its design was requested.
    #[serde(rename = "not run")]
    NotRun,
}

impl RunStatus {
    /// Its name, in the output of commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Stopped => "stopped",
            RunStatus::Budget => "budget",
            RunStatus::Same => "same",
            RunStatus::Different => "different",
            RunStatus::NotRun => "not run",
        }
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The summary of a run: the last line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How it ended.
    pub status: RunStatus,
    /// The run folder.
    pub run: String,
    /// Digest of the run, or of the rounds so far if stopped; empty if this process completed none.
    pub digest: String,
    /// Agents at the start (members of the team in an evaluation).
    pub agents: u32,
    /// Rounds completed.
    pub rounds: u32,
    /// Seconds this process took.
    pub wall_seconds: f64,
    /// Totals of the run's answers, over all processes.
    #[serde(flatten)]
    pub totals: Totals,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Whether the prices of all its models are known.
    #[serde(skip)]
    pub is_priced: bool,
    /// Commits of the journal in this process.
    pub commits: u64,
    /// In a replay: the first round that differs from the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<Option<u32>>,
    /// Why the run ended before the planned number of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Signs that the run is uninformative, from the rounds in its tables.
    pub health: Vec<Alarm>,
    /// Median milliseconds per round.
    pub round_ms: f64,
    /// Peak memory of this process, in MB (10^6 bytes); 0 if the system does not report it.
    pub peak_memory_mb: f64,
}

impl Summary {
    /// Returns it as JSON. What the run cost is null if it is not known.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::to_value(self).unwrap_or_default();
        object["cost_usd"] = self.totals.known_usd(self.is_priced).into();
        object
    }
}

/// Linux reports it in `/proc`; other systems would need unsafe calls.
pub(super) fn peak_memory_mb() -> f64 {
    memory::entry_mb("/proc/self/status", "VmHWM:").unwrap_or(0.0)
}
