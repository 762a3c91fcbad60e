//! Information from a run folder, without continuing the run.

use super::engine::{Engine, Recorded};
use super::folder::Folder;
use super::manifest::Manifest;
use super::summary::{RunStatus, Summary};
use crate::health::alarms;
use polity_store::DriveError;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde_json::Value;
use std::path::Path;

/// Agents at the start, as far as known from the tables and the scenario.
fn agents_of(manifest: &Manifest, tables: &Reader<'_>) -> Result<u32, TableError> {
    let scenario = &manifest.scenario;
    let written = |key: &str| scenario.get(key).filter(|value| !value.is_null());
    let number = || written("agents").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    if written("method").is_some() {
        let team = written("team").and_then(Value::as_array).map(|team| team.len() as u32);
        return Ok(team.or_else(number).unwrap_or_default());
    }
    let first = tables.closed("rounds", &["agents"], 1)?;
    let first = match first.first() {
        Some((_, ColumnData::U32(agents))) => agents.first().copied().flatten(),
        _ => None,
    };
    Ok(first.or_else(number).unwrap_or_default())
}

impl Engine<'_> {
    /// Summarises a recorded run from its journal and its tables. Nothing is run, locked or written; the run may be active in another
    /// process. An unfinished run has the status [`RunStatus::Stopped`], or [`RunStatus::Budget`] if its budget was used up.
    ///
    /// # Errors
    /// [`DriveError::Folder`] for a folder without a run, or whose parts do not match; [`DriveError::Journal`] and [`DriveError::Tables`]
    /// for damaged ones.
    pub fn summed_up(&self, dir: &Path) -> Result<Summary, DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { manifest, story, .. } = self.recorded(&folder)?;
        let tables = story.inventory.results(self.disk.as_ref(), folder.path());
        let (status, rounds, digest, reason) = match (&story.inventory.ended, &story.exhausted) {
            (Some(outcome), _) => (RunStatus::Done, outcome.rounds, outcome.digest.to_string(), outcome.reason.clone()),
            (None, exhausted) => {
                let last = story.past.rounds.last_key_value();
                let digest = last.map_or(String::new(), |(_, (_, chain))| chain.to_string());
                let status = if exhausted.is_some() { RunStatus::Budget } else { RunStatus::Stopped };
                (status, story.inventory.rounds, digest, exhausted.clone())
            }
        };
        Ok(Summary {
            status,
            run: dir.display().to_string(),
            digest,
            agents: agents_of(&manifest, &tables)?,
            rounds,
            wall_seconds: 0.0,
            totals: story.past.totals(),
            simulated: manifest.simulated,
            is_priced: manifest.is_priced(),
            commits: 0,
            first_difference: None,
            reason,
            health: alarms(&tables)?,
            round_ms: 0.0,
            peak_memory_mb: super::summary::peak_memory_mb(),
        })
    }
}
