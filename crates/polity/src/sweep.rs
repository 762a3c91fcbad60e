//! Sweeps: all runs of a design, and their tables.

use crate::environment::Environment;
use crate::error::Result;
use crate::events::StopHandle;
use arrow_array::RecordBatch;
use polity_driver::drive::Stop;
use polity_driver::results;
use polity_driver::run::RunStatus;
use polity_driver::source::Notes;
use polity_driver::sweep::{self, Limits, SweepManifest, SweepSummary, WatchSweep};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_store::tables::TableSpec;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Watches nothing.
pub(crate) struct Unwatched;

impl WatchSweep for Unwatched {
    fn progress(&mut self, _: usize, _: usize) {}
}

pub(crate) fn limits(jobs: Option<NonZeroUsize>) -> Limits {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Limits { jobs: jobs.unwrap_or_else(cores) }
}

/// The runs of a design, made by [`Simulation::sweep`](crate::Simulation::sweep), or opened. Its tables are `runs` (a row for each run and
/// metric), `summary` (a mean with its interval for each arm and metric), `contrasts`, `health`, and `sensitivity` or `search` of such designs; they are
/// written once all runs have ended.
#[derive(Clone)]
pub struct Sweep {
    folder: PathBuf,
    summary: Option<SweepSummary>,
    environment: Environment,
    stop: Stop,
}

impl std::fmt::Debug for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Sweep {
    pub(crate) fn of(summary: SweepSummary, environment: Environment) -> Sweep {
        Sweep { folder: PathBuf::from(&summary.sweep), summary: Some(summary), environment, stop: Stop::default() }
    }

    /// Opens the folder of a sweep. Nothing is run.
    ///
    /// # Errors
    /// [`Error::Run`](crate::Error::Run) for a folder without a sweep, or with a changed one.
    pub fn open(folder: impl AsRef<Path>) -> Result<Sweep> {
        let environment = Environment::default();
        SweepManifest::of(environment.disk.as_ref(), folder.as_ref())?;
        Ok(Sweep { folder: folder.as_ref().into(), summary: None, environment, stop: Stop::default() })
    }

    /// Returns the same sweep with the leaves of this registry, for [`Sweep::resume`].
    #[must_use]
    pub fn with_registry(mut self, registry: impl Into<Arc<Registry>>) -> Sweep {
        self.environment.registry = registry.into();
        self
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether all of its runs have ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.summary {
            Some(summary) => summary.status == RunStatus::Done,
            None => self.tables().is_ok_and(|tables| tables.iter().any(|name| name == "summary")),
        }
    }

    /// Returns the summary of what this process did; `None` for a sweep that was only opened.
    #[must_use]
    pub fn summary(&self) -> Option<&SweepSummary> {
        self.summary.as_ref()
    }

    /// Returns everything that determines it: its scenario and the expanded design.
    ///
    /// # Errors
    /// [`Error::Run`](crate::Error::Run) for a changed folder.
    pub fn manifest(&self) -> Result<SweepManifest> {
        Ok(SweepManifest::of(self.environment.disk.as_ref(), &self.folder)?)
    }

    /// Returns the names of its tables; none before all runs have ended.
    ///
    /// # Errors
    /// [`Error::Run`](crate::Error::Run) for a changed folder.
    pub fn tables(&self) -> Result<Vec<String>> {
        Ok(results::open(self.environment.disk.as_ref(), &self.folder)?.names())
    }

    /// Returns a table as Arrow record batches.
    ///
    /// # Errors
    /// [`Error::Run`](crate::Error::Run) for a missing table, or a damaged one.
    pub fn table(&self, name: &str) -> Result<Vec<RecordBatch>> {
        Ok(results::open(self.environment.disk.as_ref(), &self.folder)?.record_batches(name)?)
    }

    /// Returns what a table declares.
    ///
    /// # Errors
    /// As [`Sweep::table`].
    pub fn table_spec(&self, name: &str) -> Result<TableSpec> {
        Ok(results::open(self.environment.disk.as_ref(), &self.folder)?.spec(name)?)
    }

    /// Returns a handle that stops [`Sweep::resume`] from elsewhere in the program. Clones of a sweep share it.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.stop.clone())
    }

    /// Continues it: finished runs are read, started ones resumed, the others started.
    ///
    /// # Errors
    /// Those of [`Simulation::sweep`](crate::Simulation::sweep).
    pub fn resume(self, jobs: Option<NonZeroUsize>) -> Result<Sweep> {
        let engine = self.environment.engine(Budget::default(), self.stop.clone(), Notes::default());
        let summary = sweep::resume(&engine, &self.folder, limits(jobs), &mut Unwatched)?;
        drop(engine);
        Ok(Sweep::of(summary, self.environment))
    }
}
