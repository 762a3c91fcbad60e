//! The results of runs and sweeps, for whoever reads them: tables whose every part is compared with its record.

use crate::DriveError;
use crate::control::Recorded;
use crate::disk::Disk;
use crate::run::{self, Manifest};
use crate::sweep::{self, is_sweep};
use crate::tables::Reader;
use std::path::{Path, PathBuf};

/// The tables of a run or a sweep. The run may be under way.
///
/// # Errors
/// [`DriveError::Folder`] for a folder that holds neither, or whose manifest was changed; [`DriveError::Journal`] for a damaged one.
pub fn open<'a>(disk: &'a dyn Disk, folder: &Path) -> Result<Reader<'a>, DriveError> {
    match is_sweep(disk, folder) {
        true => sweep::tables(disk, folder),
        false => Ok(of_run(disk, folder)?.tables),
    }
}

/// What a run's folder tells of it.
pub struct Run<'a> {
    /// The folder.
    pub folder: PathBuf,
    /// What the run is.
    pub manifest: Manifest,
    /// Its tables.
    pub tables: Reader<'a>,
    /// What was ordered while it was under way.
    pub orders: Vec<Recorded>,
}

/// What is told of a run, which may be under way.
///
/// # Errors
/// As [`open`].
pub fn of_run<'a>(disk: &'a dyn Disk, folder: &Path) -> Result<Run<'a>, DriveError> {
    let (manifest, inventory) = run::inventory(disk, folder)?;
    let tables = inventory.results(disk, folder);
    Ok(Run { folder: folder.to_path_buf(), manifest, tables, orders: inventory.orders })
}
