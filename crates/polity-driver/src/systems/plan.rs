//! The plan of a check whose runs workers share: `check.json` in its folder.

use super::check::Asked;
use crate::run::{as_read_back, difference};
use polity_store::DriveError;
use polity_store::disk::{Disk, write_atomically};
use polity_store::files::{from_there, plainly};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file that marks the folder of a planned check, and records what was asked for.
pub const CHECK_FILE: &str = "check.json";
/// Format version of the record.
const FORMAT: u32 = 1;

/// Whether a folder holds a planned check.
pub fn is_check(disk: &dyn Disk, dir: &Path) -> bool {
    disk.exists(&dir.join(CHECK_FILE)).unwrap_or(false)
}

/// A folder below another, with slashes.
pub(super) fn below(dir: &Path, folder: &Path) -> String {
    let below = folder.strip_prefix(dir).unwrap_or(folder);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// `check.json`: what was asked for, and all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    format: u32,
    /// The folder of all systems, from this one.
    systems: PathBuf,
    /// Names of the systems that are checked.
    pub names: Vec<String>,
    /// Whether it is a quick check.
    pub quick: bool,
    /// Whether mechanisms are also broken.
    pub breaks: bool,
    /// Additional folders whose files may be read, from this one.
    allowed: Vec<PathBuf>,
    /// Systems whose claims are not checked, by name: what the machine lacked that planned the check.
    pub lacking: BTreeMap<String, String>,
    /// The folders of all runs, from this one.
    pub runs: Vec<String>,
}

impl CheckPlan {
    pub(super) fn of(
        asked: &Asked<'_>,
        systems: &Path,
        lacking: BTreeMap<String, String>,
        runs: Vec<String>,
    ) -> CheckPlan {
        CheckPlan {
            format: FORMAT,
            systems: from_there(asked.out, systems),
            names: asked.entries.iter().map(|entry| entry.name.clone()).collect(),
            quick: asked.quick,
            breaks: asked.breaks,
            allowed: asked.allowed.iter().map(|folder| from_there(asked.out, folder)).collect(),
            lacking,
            runs,
        }
    }

    /// Reads the plan of a check.
    ///
    /// # Errors
    /// [`DriveError::Folder`] if it cannot be read, [`DriveError::Disk`] for a folder without one.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<CheckPlan, DriveError> {
        let path = dir.join(CHECK_FILE);
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let wrong = |why: String| DriveError::Folder(format!("{} cannot be read: {why}", path.display()));
        let plan: CheckPlan = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        match plan.format {
            FORMAT => Ok(plan),
            other => Err(wrong(format!("it has format {other}, but this build reads {FORMAT}"))),
        }
    }

    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<(), DriveError> {
        let path = dir.join(CHECK_FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| DriveError::Folder(error.to_string()))? + "\n";
        write_atomically(disk, &path, text.as_bytes()).map_err(DriveError::disk(&path))
    }

    /// Returns the folder of all systems. `dir`: the folder of the check.
    #[must_use]
    pub fn systems(&self, dir: &Path) -> PathBuf {
        plainly(dir.join(&self.systems))
    }

    /// Returns the additional folders whose files may be read.
    #[must_use]
    pub fn allowed(&self, dir: &Path) -> Vec<PathBuf> {
        self.allowed.iter().map(|folder| plainly(dir.join(folder))).collect()
    }

    /// Whether it is the plan of this check.
    pub(super) fn is_of(&self, asked: &Asked<'_>) -> bool {
        let names = asked.entries.iter().map(|entry| &entry.name);
        self.names.iter().eq(names) && (self.quick, self.breaks) == (asked.quick, asked.breaks)
    }

    /// The first difference from the plan in a folder.
    pub(super) fn differs_from(&self, there: &CheckPlan) -> Option<String> {
        let json = |plan: &CheckPlan| as_read_back(&serde_json::to_value(plan).unwrap_or_default());
        difference(&json(there), &json(self))
    }

    /// Refuses other runs than those that were planned.
    pub(super) fn check(&self, dir: &Path, runs: &[String]) -> Result<(), DriveError> {
        if self.runs == runs {
            return Ok(());
        }
        let new = runs.iter().find(|run| !self.runs.contains(run)).or(self.runs.iter().find(|run| !runs.contains(run)));
        Err(DriveError::Folder(format!(
            "the systems have changed since the check in {} was planned, so its runs are others ({}); put them back as they were, or \
             plan it again in another folder",
            dir.display(),
            new.map_or("their order", String::as_str)
        )))
    }
}
