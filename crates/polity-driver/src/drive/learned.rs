//! What cohorts have learned, as files beside a run's tables.

use polity_kernel::scenario::{Assembled, WEIGHTS};
use polity_store::DriveError;
use polity_store::disk::{Disk, create_dir_durably, write_atomically};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a run that holds the weights of its cohorts.
pub(crate) const LEARNED: &str = "weights";

/// Where the weights of a run go when it ends: a file for each cohort that has learned some, by its number. They are a function of the
/// run's state, so they are written again if the run was killed before its end was recorded.
pub(crate) struct Learned {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

impl Learned {
    /// Those of a run, by its folder.
    pub fn new(disk: Arc<dyn Disk>, run: &Path) -> Self {
        Learned { disk, folder: run.join(LEARNED) }
    }

    /// Writes the weights of all cohorts that have some.
    pub fn write(&self, machine: &Assembled, seed: u64) -> Result<(), DriveError> {
        let Some(society) = machine.society() else { return Ok(()) };
        for (cohort, bytes) in society.weights().map_err(|bug| DriveError::Bug { seed, bug })? {
            create_dir_durably(self.disk.as_ref(), &self.folder).map_err(DriveError::disk(&self.folder))?;
            let path = self.folder.join(format!("cohort-{cohort}.{WEIGHTS}"));
            write_atomically(self.disk.as_ref(), &path, &bytes).map_err(DriveError::disk(&path))?;
        }
        Ok(())
    }
}
