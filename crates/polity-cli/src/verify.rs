//! `polity verify`: check that folders are as Polity wrote them.

use super::failure::{Exit, Failure};
use super::output::{self, print_line, wrong};
use polity_arena::arena::scenario_fault;
use polity_arena::report::is_as_written;
use polity_driver::run::Manifest;
use polity_driver::verify::{Verified, verify as look};
use polity_store::disk::{Disk, RealDisk};
use polity_store::{DriveError, Fault};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub fn verify(folder: &Path, as_json: bool) -> Result<Exit, Failure> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let found = look(&disk, folder, &|folder, manifest| beside(disk.as_ref(), folder, manifest))?;
    let damaged = found.iter().any(|verified| !verified.faults.is_empty());
    let status = |damaged: bool| if damaged { "damaged" } else { "sound" };
    for Verified { folder, words, faults, notes, .. } in &found {
        if !as_json {
            let words = if words.is_empty() { String::new() } else { format!("  {words}") };
            print_line(&format!("{:7}  {}{words}", status(!faults.is_empty()), folder.display()));
            notes.iter().for_each(|note| print_line(&format!("         {note}")));
        }
        faults.iter().for_each(|Fault { path, what }| wrong(&format!("{}: {what}", path.display())));
    }
    if as_json {
        print_line(&output::json(&json!({ "status": status(damaged), "folders": found })));
    }
    Ok(if damaged { Exit::Folder } else { Exit::Done })
}

/// Checks files beside a run, sweep or comparison that are derived from it.
fn beside(disk: &dyn Disk, folder: &Path, manifest: Option<&Manifest>) -> Result<Vec<Fault>, DriveError> {
    let mut faults = Vec::new();
    let report = folder.join("report.html");
    if disk.exists(&report).map_err(DriveError::disk(&report))? {
        let page = disk.read(&report).map_err(DriveError::disk(&report))?;
        if !is_as_written(&page) {
            let what = "it was changed after it was written; `polity report` writes it again (for a comparison, repeat \
                        the command that made it)";
            faults.push(Fault::new(report, what));
        }
    }
    if let Some(manifest) = manifest {
        faults.extend(scenario_fault(disk, folder, manifest)?);
    }
    Ok(faults)
}
