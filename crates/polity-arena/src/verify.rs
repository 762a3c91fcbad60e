//! Verifies folders with everything in them: what the driver wrote, and the reports and scenarios beside it.

use crate::arena::scenario_fault;
use crate::report::is_as_written;
use polity_driver::run::Manifest;
use polity_driver::verify::{Verified, verify as look};
use polity_store::disk::Disk;
use polity_store::{DriveError, Fault};
use std::path::Path;
use std::sync::Arc;

/// Verifies a run, sweep or comparison and everything below its folder, reports included.
///
/// # Errors
/// [`DriveError::Folder`] if it holds nothing of Polity's, [`DriveError::Disk`] for unreadable files.
pub fn verify(disk: &Arc<dyn Disk>, folder: &Path) -> Result<Vec<Verified>, DriveError> {
    look(disk, folder, &|folder, manifest| beside(disk.as_ref(), folder, manifest))
}

/// Checks files beside a run, sweep or comparison that are derived from it.
fn beside(disk: &dyn Disk, folder: &Path, manifest: Option<&Manifest>) -> Result<Vec<Fault>, DriveError> {
    let mut faults = Vec::new();
    let report = folder.join("report.html");
    if disk.exists(&report).map_err(DriveError::disk(&report))? {
        let page = disk.read(&report).map_err(DriveError::disk(&report))?;
        if !is_as_written(&page) {
            let what = "it was changed after it was written; `polity report` writes it again";
            faults.push(Fault::new(report, what));
        }
    }
    if let Some(manifest) = manifest {
        faults.extend(scenario_fault(disk, folder, manifest)?);
    }
    Ok(faults)
}
