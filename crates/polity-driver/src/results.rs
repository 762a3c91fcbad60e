//! Access to the results of runs and sweeps: tables with every part verified against its record.

use crate::control::Recorded;
use crate::run::{self, Manifest};
use crate::sweep::{is_sweep, tables};
use polity_kernel::machine::Outcome;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::tables::Reader;
use std::path::{Path, PathBuf};

/// Opens the tables of a run or sweep. The run may be active.
///
/// # Errors
/// [`DriveError::Folder`] for a folder that holds neither, or whose manifest was changed; [`DriveError::Journal`] for a damaged one.
pub fn open<'a>(disk: &'a dyn Disk, folder: &Path) -> Result<Reader<'a>, DriveError> {
    match is_sweep(disk, folder) {
        true => tables(disk, folder),
        false => Ok(of_run(disk, folder)?.tables),
    }
}

/// The results of a run.
pub struct Run<'a> {
    /// The folder.
    pub folder: PathBuf,
    /// What the run is.
    pub manifest: Manifest,
    /// Its tables.
    pub tables: Reader<'a>,
    /// Orders during the run.
    pub orders: Vec<Recorded>,
    /// Rounds that are complete.
    pub rounds: u32,
    /// How the run ended, if it has.
    pub ended: Option<Outcome>,
}

/// Opens the results of a run, which may be active.
///
/// # Errors
/// As [`open`].
pub fn of_run<'a>(disk: &'a dyn Disk, folder: &Path) -> Result<Run<'a>, DriveError> {
    let (manifest, inventory) = run::inventory(disk, folder)?;
    let tables = inventory.results(disk, folder);
    Ok(Run {
        folder: folder.to_path_buf(),
        manifest,
        tables,
        orders: inventory.orders,
        rounds: inventory.rounds,
        ended: inventory.ended,
    })
}
