//! Errors from outside that can stop a run, with advice on what to do.

use crate::journal::JournalError;
use crate::tables::TableError;
use polity_kernel::Bug;
use polity_kernel::tree::TreeError;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that is not as Polity wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Its path.
    pub path: PathBuf,
    /// What is wrong and what to do.
    pub what: String,
}

impl Fault {
    /// Creates a fault for a path.
    pub fn new(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Fault { path: path.into(), what: what.into() }
    }
}

impl From<Fault> for DriveError {
    fn from(Fault { path, what }: Fault) -> Self {
        DriveError::Folder(format!("{}: {what}", path.display()))
    }
}

/// Why a run could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The scenario is wrong.
    #[error("{0}")]
    Scenario(#[from] TreeError),
    /// A file named by the scenario cannot be read.
    #[error("{0}")]
    Input(String),
    /// A run folder is not what it should be.
    #[error("{0}")]
    Folder(String),
    /// Another process is working on a run or a sweep.
    #[error("another process is working on {0}; wait until it has ended, or stop it")]
    Held(String),
    /// A folder that should have become a run's holds a run already.
    #[error("{0} already holds a run; resume it (polity resume {0}), or choose another --out")]
    Begun(String),
    /// A model cannot be called.
    #[error("{0}")]
    Model(String),
    /// No model can answer any more. Replies so far are recorded.
    #[error("no model can answer: {0}")]
    Lost(String),
    /// Another process of the run is lost or could not be joined. What is recorded is kept.
    #[error("{0}")]
    Peers(String),
    /// The journal failed.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// The tables failed.
    #[error("{0}")]
    Tables(#[from] TableError),
    /// The disk failed.
    #[error("{}", on_disk(path, source))]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The run contradicts its record.
    #[error("{0}")]
    Differs(String),
    /// A run of a sweep failed.
    #[error("in the run {run}: {error}")]
    InRun {
        /// Its folder.
        run: String,
        /// What stopped it.
        error: Box<DriveError>,
    },
    /// The machine cannot continue.
    #[error("the run stopped at a defect (seed {seed}): {bug}")]
    Bug {
        /// The seed that reproduces it.
        seed: u64,
        /// The defect.
        bug: Bug,
    },
}

/// The system's words, with the path, which a disk's own errors already name.
fn on_disk(path: &Path, source: &io::Error) -> String {
    let (path, why) = (path.display().to_string(), source.to_string());
    if why.contains(&path) { why } else { format!("{path}: {why}") }
}

impl DriveError {
    /// Wraps a failed operation on a path.
    pub fn disk(path: &Path) -> impl FnOnce(io::Error) -> DriveError + '_ {
        move |source| DriveError::Disk { path: path.to_path_buf(), source }
    }
}
