//! A worker of a sweep: makes runs of its folder beside other processes.

use super::begin::{WatchSweep, memory_of};
use super::folder::{SweepFolder, SweepManifest};
use super::limits::Limits;
use super::pool::{RunId, Runs};
use crate::run::Engine;
use crate::workers::{Allowance, Part, Shared, Task, WorkSummary, sharing};
use polity_kernel::scenario::Limits as Budgets;
use polity_store::DriveError;
use polity_store::disk::Disk;
use std::path::Path;

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
    let mut jobs = limits.jobs(memory_of(engine, &manifest, &prepared)?, None, engine.memory);
    if !manifest.models.is_empty() {
        // A run with calls needs at least one connection.
        jobs = jobs.min(engine.connections);
    }
    let shared = Shared {
        engine,
        order: runs.order(),
        group: &|run: RunId| run.arm,
        folder: &|run| runs.folder(run),
        make: &|engine, run| runs.make(engine, run),
    };
    let worked = shared.work(Task { part, jobs }, &mut |done, of| watch.progress(done, of))?;
    Ok(WorkSummary::of(dir, worked, runs.short()))
}

/// Raises what all runs of a sweep may spend together, which its design limits. Workers see it before their next run.
///
/// # Errors
/// [`DriveError::Input`] for a limit that the design does not have, or one below the present one.
pub fn raise(disk: &dyn Disk, dir: &Path, to: &Budgets) -> Result<(), DriveError> {
    let planned = SweepManifest::of(disk, dir)?.design.budget.unwrap_or_default();
    Allowance::new(disk, dir, "sweep", &planned).raise(to)
}
