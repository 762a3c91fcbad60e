//! A worker of a sweep: makes runs of its folder beside other processes, on this or on other machines that see the folder.
//!
//! A run is made by the process that holds the lock of its folder. Workers need no coordinator and no order: what is done depends on the
//! folder alone, so the same command again heals whatever was lost with a process.

use super::begin::{WatchSweep, memory_of, sharing};
use super::folder::{SweepFolder, SweepManifest};
use super::limits::Limits;
use super::pool::{RunId, Runs};
use crate::run::{Engine, RunStatus};
use polity_store::DriveError;
use serde::Serialize;
use std::path::Path;

/// A share of the runs: those whose number in the order of the sweep leaves the rest `index` when it is divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub index: usize,
    /// Number of parts; at least 1.
    pub of: usize,
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(Part { index, of }),
            _ => Err("it must be I/N: part I of N parts, from 0/N to (N-1)/N".into()),
        }
    }
}

/// What a worker did: the last line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct WorkSummary {
    /// [`RunStatus::Done`] if all runs of the part have ended, else [`RunStatus::Stopped`].
    pub status: RunStatus,
    /// The sweep's folder.
    pub sweep: String,
    /// Runs of the part.
    pub runs: usize,
    /// Those that have ended, also in other processes.
    pub done: usize,
    /// Those that other processes were working on.
    pub held: usize,
    /// Why the sweep's budget lets no further run begin, if so.
    pub short: Option<String>,
}

/// Refuses a design whose runs decide which others follow: one process must see all of them.
pub(super) fn refuse_decisions(manifest: &SweepManifest) -> Result<(), DriveError> {
    let what = match (&manifest.design.until, &manifest.design.search) {
        (None, None) => return Ok(()),
        (Some(_), _) => "its rule for seeds (`design.seeds.until`)",
        (_, Some(_)) => "its search (`design.search`)",
    };
    Err(DriveError::Input(format!(
        "workers cannot share this sweep: {what} decides which runs follow from all runs so far; `polity sweep` makes it \
         in one process"
    )))
}

/// Makes the runs of a part that nobody has made. A run that another process is working on is left to it. If that process ends without
/// finishing it, the run is taken over, as long as this worker has other runs to make; after that the same command again takes it over.
///
/// # Errors
/// [`DriveError::Input`] for a design whose runs decide which others follow; those of runs.
pub fn work(
    engine: &Engine<'_>,
    dir: &Path,
    part: Part,
    limits: Limits,
    watch: &mut dyn WatchSweep,
) -> Result<WorkSummary, DriveError> {
    let engine = &sharing(engine, dir);
    let (sweep, manifest) = SweepFolder::open_for_runs(engine.disk.clone(), dir)?;
    refuse_decisions(&manifest)?;
    let prepared = sweep.prepared(&manifest, &manifest.design.arms)?;
    let runs = Runs::new(engine, sweep.path(), &manifest, &prepared);
    let of_part = |(number, run): (usize, RunId)| (number % part.of.max(1) == part.index).then_some(run);
    let own: Vec<RunId> = runs.order().into_iter().enumerate().filter_map(of_part).collect();
    let mut jobs = limits.jobs(memory_of(engine, &manifest, &prepared)?, None, engine.memory).min(own.len().max(1));
    if !manifest.models.is_empty() {
        // A run with calls needs at least one connection.
        jobs = jobs.min(engine.connections);
    }
    let (mut left, mut held, mut patient) = (own.clone(), 0, false);
    // Until a pass that waits for locks finishes nothing: what is left then is held by others, or a person stopped it.
    while !left.is_empty() && !engine.stop.asked() {
        let mut ended = Vec::new();
        let mut hear = |run, _| {
            ended.push(run);
            watch.progress(own.len() - left.len() + ended.len(), own.len());
            Ok(())
        };
        held = match patient {
            true => runs.drive(&left, jobs, &mut hear)?,
            false => runs.drive_free(&left, jobs, &mut hear)?,
        };
        left.retain(|run| !ended.contains(run));
        if ended.is_empty() && patient {
            break;
        }
        patient = ended.is_empty();
    }
    Ok(WorkSummary {
        status: if left.is_empty() { RunStatus::Done } else { RunStatus::Stopped },
        sweep: dir.display().to_string(),
        runs: own.len(),
        done: own.len() - left.len(),
        held: held.min(left.len()),
        short: runs.short().filter(|_| !left.is_empty()),
    })
}
