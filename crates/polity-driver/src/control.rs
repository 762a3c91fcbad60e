//! Orders to a run that is under way in another process: `control/order.json` in its folder, and what became of it in
//! `control/taken.json`. One order at a time; whoever gives it waits for the run's words.
//!
//! Files and no socket, as with people: they work wherever the run folder does, and what a killed process leaves is seen and removed.
//! `docs/decisions/orders-are-files.md`.

use crate::DriveError;
use crate::disk::{Disk, create_dir_durably, write_atomically};
use crate::people::now_ms;
use crate::results;
use crate::run::Folder;
use polity_kernel::event::Order;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often a run looks for an order, and whoever gives one for its answer.
const LOOK: Duration = Duration::from_millis(50);

/// An order on its way.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Letter {
    /// Tells orders apart.
    id: String,
    order: Order,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
struct Taken {
    id: String,
    /// Whether it was refused.
    refused: bool,
    words: String,
}

/// What a run that was ordered something says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it was refused; then nothing has changed.
    pub refused: bool,
    /// What became of it.
    pub words: String,
}

/// An order that a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What was ordered.
    pub order: Order,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Rounds that were complete.
    pub rounds: u32,
}

impl Recorded {
    /// When, in words: `Sat, 21 Nov 2026 12:00:00 GMT`.
    #[must_use]
    pub fn at(&self) -> String {
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(self.at_ms))
    }
}

fn folder(run: &Path) -> PathBuf {
    run.join("control")
}

/// The file, if it is there and whole. One that can not be read is no order.
fn read<T: for<'de> Deserialize<'de>>(disk: &dyn Disk, path: &Path) -> Option<T> {
    serde_json::from_slice(&disk.read(path).ok()?).ok()
}

fn write<T: Serialize>(disk: &dyn Disk, path: &Path, what: &T) -> Result<(), DriveError> {
    let bytes = serde_json::to_vec(what).map_err(|error| DriveError::Folder(error.to_string()))?;
    write_atomically(disk, path, &bytes).map_err(DriveError::disk(path))
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DriveError::disk(path)(error)),
        _ => Ok(()),
    }
}

/// The run's end of it.
pub(crate) struct Control {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    looked: Option<Instant>,
    /// The order that is being done.
    at_work: Option<String>,
}

impl Control {
    /// Of a run that this process has locked. What an earlier process has not taken nobody waits for any more.
    pub fn open(disk: Arc<dyn Disk>, run: &Path) -> Result<Self, DriveError> {
        let folder = folder(run);
        remove(disk.as_ref(), &folder.join("order.json"))?;
        Ok(Control { disk, folder, looked: None, at_work: None })
    }

    /// The next order, if there is one. It is looked for now and then only, so asking often costs nothing.
    pub fn next(&mut self) -> Option<Order> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        let Letter { id, order } = read(self.disk.as_ref(), &self.folder.join("order.json"))?;
        self.at_work = Some(id);
        Some(order)
    }

    /// Tells whoever gave the order what became of it.
    pub fn say(&mut self, refused: bool, words: String) -> Result<(), DriveError> {
        let Some(id) = self.at_work.take() else { return Ok(()) };
        write(self.disk.as_ref(), &self.folder.join("taken.json"), &Taken { id, refused, words })?;
        remove(self.disk.as_ref(), &self.folder.join("order.json"))
    }
}

/// Gives an order to a run, and waits until it is taken: at the next answer, or at the border of its round.
///
/// # Errors
/// [`DriveError::Folder`] for a folder that is no run, [`DriveError::Input`] for a run that is not under way or ends before it takes the
/// order.
pub fn order(disk: Arc<dyn Disk>, run: &Path, order: Order) -> Result<Said, DriveError> {
    Folder::read(disk.clone(), run)?;
    let not_under_way = |what: &str| {
        let at = run.display();
        Err(DriveError::Input(format!("{at} {what}: no process works on it. `polity resume {at}` goes on with it")))
    };
    if !under_way(disk.as_ref(), run) {
        return not_under_way("is not under way");
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
    let wanted = Letter { id: id.clone(), order };
    write(disk.as_ref(), &letter, &wanted)?;
    loop {
        // Both looked at before the words: a process that is gone, or has put the order away, may have spoken.
        let gone = !under_way(disk.as_ref(), run);
        let there = disk.exists(&letter).map_err(DriveError::disk(&letter))?;
        if let Some(found) = read::<Taken>(disk.as_ref(), &taken).filter(|taken| taken.id == id) {
            remove(disk.as_ref(), &taken)?;
            return Ok(Said { refused: found.refused, words: found.words });
        }
        if gone {
            remove(disk.as_ref(), &letter)?;
            return not_under_way("has ended, or was killed, before it took the order");
        }
        if !there {
            // A process that was just beginning took it for one that nobody waits for.
            write(disk.as_ref(), &letter, &wanted)?;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a process works on a run: that one holds its lock. This looks by trying to hold it, for a moment.
pub fn under_way(disk: &dyn Disk, run: &Path) -> bool {
    matches!(disk.lock(&run.join("lock")), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// The orders that a run has had, from its journal.
pub fn recorded(disk: Arc<dyn Disk>, run: &Path) -> Result<Vec<Recorded>, DriveError> {
    Ok(results::of_run(disk.as_ref(), run)?.orders)
}
