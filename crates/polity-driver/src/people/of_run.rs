//! The mailbox of a run that is under way.

use super::mailbox::Mailbox;
use crate::control::under_way;
use crate::run::Folder;
use polity_kernel::event::Event;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::journal::JournalReader;
use std::path::Path;
use std::sync::Arc;

/// The questions of an active or finished run, for answering them.
///
/// # Errors
/// [`DriveError::Folder`] for a folder without a run, [`DriveError::Input`] for a run that has ended.
pub fn of_run(disk: Arc<dyn Disk>, run: &Path) -> Result<Mailbox, DriveError> {
    let folder = Folder::read(disk.clone(), run)?;
    if !under_way(disk.as_ref(), run) {
        let mut reader = JournalReader::open(disk.as_ref(), &folder.journal())?;
        while let Some(segment) = reader.next_segment()? {
            if segment.records().any(|record| record.kind == Event::ENDED) {
                return Err(DriveError::Input(format!("{} has ended; it accepts no more answers", run.display())));
            }
        }
    }
    Ok(Mailbox::of(disk, run))
}
