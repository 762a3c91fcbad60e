//! Orders given to a run from outside, and what was ordered.

use super::letters::*;
use crate::results;
use crate::run::Folder;
use polity_kernel::event::Order;
use polity_store::DriveError;
use polity_store::clock::now_ms;
use polity_store::disk::{Disk, create_dir_durably};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// A run's reply to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it was refused; nothing has changed then.
    pub refused: bool,
    /// The result in words.
    pub words: String,
}

/// Sends an order to a run, and waits until it is taken: at the next answer, or at the end of its round.
///
/// # Errors
/// [`DriveError::Folder`] for a folder without a run, [`DriveError::Input`] for a run that is not active or ends before it takes the
/// order.
pub fn order(disk: Arc<dyn Disk>, run: &Path, order: Order) -> Result<Said, DriveError> {
    let taken = send(disk, run, Wish::Order(order))?;
    Ok(Said { refused: taken.refused, words: taken.words })
}

/// Asks a run how far it is, and waits for its reply as [`order`] does. `since`: the first round whose metrics are wanted.
///
/// # Errors
/// Those of [`order`].
pub fn status(disk: Arc<dyn Disk>, run: &Path, since: u32) -> Result<Status, DriveError> {
    let words = || DriveError::Input(format!("{} was started by an older build, which tells no status", run.display()));
    send(disk, run, Wish::Status { since })?.status.ok_or_else(words)
}

fn send(disk: Arc<dyn Disk>, run: &Path, wish: Wish) -> Result<Taken, DriveError> {
    Folder::read(disk.clone(), run)?;
    if !under_way(disk.as_ref(), run) {
        return Err(DriveError::Input(not_under_way(disk.as_ref(), run)));
    }
    let folder = folder(run);
    create_dir_durably(disk.as_ref(), &folder).map_err(DriveError::disk(&folder))?;
    let (letter, taken) = (folder.join("order.json"), folder.join("taken.json"));
    let _alone = loop {
        match disk.lock(&folder.join("lock")) {
            Ok(lock) => break lock,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(error) => return Err(DriveError::disk(&folder)(error)),
        }
    };
    let id = format!("{}-{}", std::process::id(), now_ms());
    remove(disk.as_ref(), &taken)?;
    let wanted = Letter { id: id.clone(), wish };
    write(disk.as_ref(), &letter, &wanted)?;
    loop {
        // Check both before the reply: a process that has ended or removed the order may have replied.
        let gone = !under_way(disk.as_ref(), run);
        let there = disk.exists(&letter).map_err(DriveError::disk(&letter))?;
        if let Some(found) = read::<Taken>(disk.as_ref(), &taken).filter(|taken| taken.id == id) {
            remove(disk.as_ref(), &taken)?;
            return Ok(found);
        }
        if gone {
            remove(disk.as_ref(), &letter)?;
            return Err(DriveError::Input(without_process(
                disk.as_ref(),
                run,
                "ended or was killed before it took the order",
            )));
        }
        if !there {
            // A process that was just starting dropped it as one without a sender.
            write(disk.as_ref(), &letter, &wanted)?;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a process works on a run, that is, holds its lock. Checks by trying to lock it for a moment.
pub fn under_way(disk: &dyn Disk, run: &Path) -> bool {
    matches!(disk.lock(&run.join("lock")), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Says why a run that is not [`under_way`] takes no order, and which command continues it.
#[must_use]
pub fn not_under_way(disk: &dyn Disk, run: &Path) -> String {
    without_process(disk, run, "is not under way")
}

fn without_process(disk: &dyn Disk, run: &Path, what: &str) -> String {
    let at = run.display();
    // What cannot be read is not done; `polity resume` says what is wrong with it.
    match results::of_run(disk, run).is_ok_and(|run| run.ended.is_some()) {
        true => format!(
            "{at} {what}: the run is done. `polity fork {at} --at ROUND` starts a new run from one of its rounds"
        ),
        false => format!("{at} {what}: no process is working on it. `polity resume {at}` continues it"),
    }
}

/// The orders that a run has received, from its journal.
pub fn recorded(disk: Arc<dyn Disk>, run: &Path) -> Result<Vec<Recorded>, DriveError> {
    Ok(results::of_run(disk.as_ref(), run)?.orders)
}
