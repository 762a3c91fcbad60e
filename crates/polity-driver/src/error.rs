//! What can stop a run from outside, with what to do about it.

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
    /// Which.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl Fault {
    /// Says what is wrong with a path.
    pub fn new(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Fault { path: path.into(), what: what.into() }
    }
}

impl From<Fault> for DriveError {
    fn from(Fault { path, what }: Fault) -> Self {
        DriveError::Folder(format!("{}: {what}", path.display()))
    }
}

/// Why a run could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The scenario is wrong.
    #[error("{0}")]
    Scenario(#[from] TreeError),
    /// A file that the scenario names can not be read.
    #[error("{0}")]
    Input(String),
    /// A run folder is not what it should be.
    #[error("{0}")]
    Folder(String),
    /// A model can not be asked.
    #[error("{0}")]
    Model(String),
    /// No answer can be had, whatever is asked. What has come is recorded.
    #[error("no answer can be had: {0}")]
    Lost(String),
    /// The journal.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// The tables.
    #[error("{0}")]
    Tables(#[from] TableError),
    /// The disk.
    #[error("{path}: {source}")]
    Disk {
        /// Which file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The run contradicts its record.
    #[error("{0}")]
    Differs(String),
    /// One run of a sweep.
    #[error("in the run {run}: {error}")]
    InRun {
        /// Its folder.
        run: String,
        /// What stopped it.
        error: Box<DriveError>,
    },
    /// The machine can not go on.
    #[error("the run stopped at a defect (seed {seed}): {bug}")]
    Bug {
        /// The seed that shows it.
        seed: u64,
        /// The defect.
        bug: Bug,
    },
}

impl DriveError {
    /// A failed operation on a path.
    pub fn disk(path: &Path) -> impl FnOnce(io::Error) -> DriveError + '_ {
        move |source| DriveError::Disk { path: path.to_path_buf(), source }
    }
}
