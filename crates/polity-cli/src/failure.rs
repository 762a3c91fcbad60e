//! Errors as a person sees them, and the exit codes that go with them.

use super::output;
use polity_kernel::tree::TreeError;
use polity_store::DriveError;
use polity_store::files::{self, FileError};
use polity_store::printable::printable;
use polity_store::tables::TableError;

/// The exit codes of the process. The numbers are stable; docs/book/src/commands.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// The run stopped at a defect; its message names the seed.
    Defect = 1,
    /// Wrong input: a flag, a scenario, a file it names.
    Input = 2,
    /// A run folder that is damaged, in use, or not a run.
    Folder = 3,
    /// The disk is full or fails; the run can be resumed.
    Disk = 4,
    /// The run differs from its record.
    Differs = 5,
    /// Stopped by a person; the run can be resumed.
    Stopped = 6,
    /// The budget is used up; the run can be resumed with a greater one.
    Budget = 7,
    /// A model cannot be reached; the run can be resumed.
    Lost = 8,
    /// Claims do not have the expected outcome.
    Unmet = 9,
    /// Another process of the run is lost; the run goes on when all are started again.
    Peers = 75,
}

/// An error, ready to be shown.
#[derive(Debug)]
pub struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    /// Returns the exit code that goes with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns its message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: printable(&message.into()).into_owned() }
    }

    /// An error that is already rendered, perhaps with colours.
    fn rendered(exit: Exit, message: String) -> Self {
        Failure { exit, message }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::rendered(Exit::Input, error.render(output::colours()))
    }
}

/// For a scenario that is not in a file of the user's: `failure` points into the file.
impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        failure(&error, None)
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        DriveError::from(error).into()
    }
}

/// The file a scenario was read from, for errors that point into it.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn failure(&self, error: &TreeError) -> Failure {
        Failure::rendered(Exit::Input, files::render(error, &self.name, &self.text, output::colours()))
    }
}

/// Whether more space would help.
pub(crate) fn is_full(error: &DriveError) -> bool {
    use polity_store::journal::JournalError;
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        DriveError::Journal(JournalError::DiskFull { .. }) | DriveError::Tables(TableError::Full { .. }) => true,
        DriveError::Disk { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
        DriveError::InRun { error, .. } => is_full(error),
        _ => false,
    }
}

fn is_of_disk(error: &DriveError) -> bool {
    use polity_store::journal::JournalError;
    matches!(
        error,
        DriveError::Journal(JournalError::DiskFull { .. } | JournalError::Disk { .. })
            | DriveError::Tables(TableError::Full { .. } | TableError::Disk { .. })
            | DriveError::Disk { .. }
    )
}

/// Returns the exit code of an error.
#[must_use]
pub fn exit_of(error: &DriveError) -> Exit {
    match error {
        DriveError::InRun { error: inner, .. } => exit_of(inner),
        DriveError::Scenario(_) | DriveError::Input(_) | DriveError::Model(_) => Exit::Input,
        DriveError::Lost(_) => Exit::Lost,
        DriveError::Peers(_) => Exit::Peers,
        DriveError::Differs(_) => Exit::Differs,
        DriveError::Bug { .. } => Exit::Defect,
        error if is_of_disk(error) => Exit::Disk,
        _ => Exit::Folder,
    }
}

pub(crate) fn failure(error: &DriveError, source: Option<&Source>) -> Failure {
    match (error, source) {
        (DriveError::Scenario(tree), Some(source)) => source.failure(tree),
        _ => Failure::new(exit_of(error), error.to_string()),
    }
}
