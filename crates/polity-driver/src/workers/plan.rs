//! Plans: folders that say which runs belong there, and hold none yet.

use polity_store::DriveError;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Tries for a folder that another process is planning, and the wait before each.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// What `--plan` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planning {
    /// Number of runs.
    pub runs: usize,
    /// Whether the same was planned there before, so that nothing was changed.
    pub already: bool,
}

/// Writes a plan, unless the same is there. Several processes may do so at the same time. `there`: whether the same plan is there, an error
/// for another one. Returns whether it was there.
///
/// # Errors
/// Those of both.
pub fn planned(
    there: &dyn Fn() -> Result<bool, DriveError>,
    write: &dyn Fn() -> Result<(), DriveError>,
) -> Result<bool, DriveError> {
    for _ in 0..TRIES {
        if there()? {
            return Ok(true);
        }
        match write() {
            Ok(()) => return Ok(false),
            // Another process is writing it.
            Err(DriveError::Held(_)) => sleep(PAUSE),
            // It may have been written in between.
            Err(error) => return if there()? { Ok(true) } else { Err(error) },
        }
    }
    write().map(|()| false)
}

/// The error of a folder that holds another plan. `what`: a sweep, a comparison, a check; `why`: the first difference.
#[must_use]
pub fn planned_otherwise(folder: &Path, what: &str, why: &str) -> DriveError {
    let at = folder.display();
    DriveError::Folder(format!("{at} holds another {what}: {why}; nothing was changed. Choose another --out"))
}
