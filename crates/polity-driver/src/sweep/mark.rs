//! How the folder of a sweep is recognised.

use polity_store::disk::Disk;
use std::path::Path;

/// The file that identifies a sweep folder.
pub const SWEEP_FILE: &str = "sweep.json";

/// Whether a folder holds a sweep.
pub fn is_sweep(disk: &dyn Disk, dir: &Path) -> bool {
    disk.exists(&dir.join(SWEEP_FILE)).unwrap_or(false)
}
