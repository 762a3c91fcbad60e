//! The folder of a comparison, as far as the driver knows it: the file that marks it, and its runs. `polity-arena` knows the rest.

use polity_store::DriveError;
use polity_store::disk::{Disk, EntryKind};
use polity_store::listing::Listing;
use std::io::ErrorKind;
use std::path::Path;

/// The file that marks the folder of a comparison, and records what was asked for.
pub const COMPARISON_FILE: &str = "comparison.json";
/// The folder of its runs.
pub const RUNS: &str = "runs";

/// Whether a folder holds a comparison.
pub fn is_comparison(disk: &dyn Disk, dir: &Path) -> bool {
    disk.exists(&dir.join(COMPARISON_FILE)).unwrap_or(false)
}

/// The folders of its runs, relative to its own and sorted, without those of pilots: the compared runs of a comparison that has ended, else
/// those that have begun.
///
/// # Errors
/// [`DriveError::Folder`] if its list of files was changed, [`DriveError::Disk`] for unreadable folders.
pub fn comparison_runs(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, DriveError> {
    let listing = Listing::read(disk, dir)?.unwrap_or_default();
    let mut found: Vec<String> =
        listing.runs().map(|(run, _)| run.to_owned()).filter(|run| run.starts_with(&format!("{RUNS}/"))).collect();
    if found.is_empty() {
        begun(disk, dir, RUNS, &mut found)?;
    }
    found.sort();
    Ok(found)
}

/// Collects the run folders below a folder.
fn begun(disk: &dyn Disk, dir: &Path, below: &str, found: &mut Vec<String>) -> Result<(), DriveError> {
    let path = dir.join(below);
    let names = match disk.list(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => names.map_err(DriveError::disk(&path))?,
    };
    if names.iter().any(|name| name == "manifest.json") {
        found.push(below.to_owned());
        return Ok(());
    }
    for name in names {
        let entry = path.join(&name);
        if disk.kind(&entry).map_err(DriveError::disk(&entry))? == EntryKind::Folder {
            begun(disk, dir, &format!("{below}/{name}"), found)?;
        }
    }
    Ok(())
}
