//! Workers: processes that make the runs of one folder together, on this or on other machines that see the folder. The folder is that of a
//! sweep, a comparison or a check of claims.
//!
//! A run is made by the process that holds the lock of its folder. Workers need no coordinator and no order: what is done depends on the
//! folder alone, so the same command again heals whatever was lost with a process.

mod allowance;
mod part;
mod plan;

pub use allowance::Allowance;
pub use part::Part;
pub use plan::{Planning, planned, planned_otherwise};

use crate::control::under_way;
use crate::run::{Engine, Made, Making, Prepared, RunStatus, Whole};
use crate::source::{Outside, SharedLimits};
use polity_store::DriveError;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a worker did: the last line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct WorkSummary {
    /// [`RunStatus::Done`] if all runs of the part have ended, else [`RunStatus::Stopped`].
    pub status: RunStatus,
    /// The folder.
    pub folder: String,
    /// Runs of the part.
    pub runs: usize,
    /// Those that have ended, also in other processes.
    pub done: usize,
    /// Those that other processes were working on.
    pub held: usize,
    /// Why the budget of all runs lets no further one begin, if so.
    pub short: Option<String>,
}

/// Called after every run, with the number of those that have ended, and of all.
pub type Progress<'a> = dyn FnMut(usize, usize) + 'a;

/// What a process may make of the runs of a folder.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Its share.
    pub part: Part,
    /// Maximum number of runs at once.
    pub jobs: usize,
}

/// The same engine, whose declared limits per minute hold for all processes that work in the folder.
#[must_use]
pub fn sharing<'a>(engine: &Engine<'a>, folder: &Path) -> Engine<'a> {
    let shared = Arc::new(SharedLimits::in_folder(engine.disk.clone(), folder.to_path_buf()));
    Engine { outside: Outside { shared, ..engine.outside.clone() }, ..engine.clone() }
}

/// Runs that workers share.
pub(crate) struct Shared<'a, T, D> {
    pub engine: &'a Engine<'a>,
    /// In the order in which they begin.
    pub order: Vec<T>,
    /// Runs that cost alike have the same group, for instance their arm: every part gets some of each.
    pub group: &'a dyn Fn(T) -> usize,
    pub folder: &'a (dyn Fn(T) -> PathBuf + Sync),
    pub make: &'a Making<'a, T, D>,
}

impl<T: Copy + Ord + Send + Sync, D: Send> Shared<'_, T, D> {
    /// Makes the runs of a part that nobody has made. A run that another process is working on is left to it. If that process ends without
    /// finishing it, the run is taken over, as long as this worker has other runs to make; after that the same command again takes it over.
    /// Returns the number of runs of the part, of those that have ended, and of those that others hold.
    pub(crate) fn work(&self, task: Task, progress: &mut Progress<'_>) -> Result<(usize, usize, usize), DriveError> {
        let own = task.part.of(&self.order, self.group);
        let jobs = task.jobs.min(own.len()).max(1);
        // Workers that waited for locks would go through short runs in step: each waits while the other makes a run.
        let free = |engine: &Engine<'_>, run| match under_way(engine.disk.as_ref(), &(self.folder)(run)) {
            true => Ok(Made::Held),
            false => (self.make)(engine, run),
        };
        let (mut left, mut held, mut patient) = (own.clone(), 0, false);
        // Until a pass that waits for locks finishes nothing: what is left then is held by others, or a person stopped it.
        while !left.is_empty() && !self.engine.stop.asked() {
            let mut ended = Vec::new();
            let mut hear = |run, _| {
                ended.push(run);
                progress(own.len() - left.len() + ended.len(), own.len());
                Ok(())
            };
            held = match patient {
                true => self.engine.at_once(&left, jobs, self.make, &mut hear)?,
                false => self.engine.at_once(&left, jobs, &free, &mut hear)?,
            };
            left.retain(|run| !ended.contains(run));
            if ended.is_empty() && patient {
                break;
            }
            patient = ended.is_empty();
        }
        Ok((own.len(), own.len() - left.len(), held.min(left.len())))
    }
}

impl WorkSummary {
    /// The summary of [`Shared::work`]. `short`: why no further run could begin.
    pub(crate) fn of(folder: &Path, (runs, done, held): (usize, usize, usize), short: Option<String>) -> WorkSummary {
        WorkSummary {
            status: if done == runs { RunStatus::Done } else { RunStatus::Stopped },
            folder: folder.display().to_string(),
            runs,
            done,
            held,
            short: short.filter(|_| done < runs),
        }
    }
}

/// A run within the budget of all: it begins only if the most that it may spend fits. `name`: as the ledger calls it; `says`: why the run
/// belongs into its folder, for errors.
pub(crate) fn whole_within<'a>(
    engine: &'a Engine<'_>,
    allowance: Option<&Allowance<'_>>,
    (name, says): (&str, &str),
    prepared: &Prepared,
    dir: &Path,
) -> Result<Made<Whole<'a>>, DriveError> {
    if let Some(allowance) = allowance
        && !allowance.begin(name, prepared, &engine.budget)?
    {
        return Ok(Made::Stopped);
    }
    let made = engine.whole(prepared, dir, says)?;
    if let (Some(allowance), Made::Done(whole)) = (allowance, &made) {
        allowance.settle(name, &whole.totals)?;
    }
    Ok(made)
}

/// A run that was planned.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Its folder, from that of all.
    pub name: String,
    /// Its scenario.
    pub prepared: Prepared,
    /// Runs that cost alike have the same group.
    pub group: usize,
}

/// Runs that were planned together, in their folder.
pub struct PlannedRuns<'a> {
    /// Their folder.
    pub folder: &'a Path,
    /// In the order in which they begin.
    pub runs: &'a [PlannedRun],
    /// What all of them may spend together.
    pub allowance: Option<&'a Allowance<'a>>,
    /// What says which runs belong there, for errors.
    pub says: &'a str,
}

impl PlannedRuns<'_> {
    /// Refuses a budget of all runs that cannot hold, or allows no run.
    ///
    /// # Errors
    /// [`DriveError::Input`] if a run has no limit of its own, or one above that of all.
    pub fn check_budget(&self, engine: &Engine<'_>) -> Result<(), DriveError> {
        let Some(allowance) = self.allowance else { return Ok(()) };
        self.runs.iter().try_for_each(|run| allowance.most(&run.prepared, &engine.budget).map(drop))
    }

    /// Makes those of a part that nobody has made.
    ///
    /// # Errors
    /// Those of runs.
    pub fn work(
        &self,
        engine: &Engine<'_>,
        task: Task,
        progress: &mut Progress<'_>,
    ) -> Result<WorkSummary, DriveError> {
        let engine = &sharing(engine, self.folder);
        let folder = |at: usize| self.folder.join(&self.runs[at].name);
        let make = |engine: &Engine<'_>, at: usize| {
            let PlannedRun { name, prepared, .. } = &self.runs[at];
            whole_within(engine, self.allowance, (name, self.says), prepared, &folder(at))?.and_then(|_| Ok(()))
        };
        let group = |at: usize| self.runs[at].group;
        let order = (0..self.runs.len()).collect();
        let worked = Shared { engine, order, group: &group, folder: &folder, make: &make }.work(task, progress)?;
        Ok(WorkSummary::of(self.folder, worked, self.allowance.and_then(Allowance::short)))
    }
}
