//! Letters in the folder of a run: orders, and that they were taken.

use crate::drive::Totals;
use polity_kernel::event::Order;
use polity_store::DriveError;
use polity_store::disk::{Disk, write_atomically};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often a run checks for an order, and a sender for its reply.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// What a run is asked from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// Carry out an order, which is journaled.
    Order(Order),
    /// Tell how far the run is. Changes nothing.
    Status {
        /// First round whose metrics are wanted.
        since: u32,
    },
}

/// How far an active run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Rounds complete.
    pub rounds: u32,
    /// Rounds planned.
    pub planned: u32,
    /// Living agents, or items in progress.
    pub agents: u32,
    /// Items with a verdict, and all items; zeros in a society.
    pub items: (usize, usize),
    /// Totals of the run's calls.
    pub totals: Totals,
    /// Why nothing moves, if so.
    pub waiting: Option<String>,
    /// Whether an order paused it.
    pub paused: bool,
    /// Rounds per second of its process; in an evaluation items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_per_s: Option<f64>,
    /// Seconds until its planned end, at this pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// The metrics of the latest rounds, at most 1,000 of them, oldest first: those of rounds that no table has yet among them.
    pub metrics: Vec<(u32, Vec<(String, f64)>)>,
}

/// A pending letter.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Letter {
    /// Identifies the letter.
    pub(super) id: String,
    pub(super) wish: Wish,
}

/// The reply to a letter.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) id: String,
    /// Whether it was refused.
    pub(super) refused: bool,
    pub(super) words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
}

/// A journaled order.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The order.
    pub order: Order,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Rounds that were complete.
    pub rounds: u32,
}

impl Recorded {
    /// The time in words: `Sat, 21 Nov 2026 12:00:00 GMT`.
    #[must_use]
    pub fn at(&self) -> String {
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(self.at_ms))
    }
}

pub(super) fn folder(run: &Path) -> PathBuf {
    run.join("control")
}

/// The file, if it exists and is complete. An unreadable file is not an order.
pub(super) fn read<T: for<'de> Deserialize<'de>>(disk: &dyn Disk, path: &Path) -> Option<T> {
    serde_json::from_slice(&disk.read(path).ok()?).ok()
}

pub(super) fn write<T: Serialize>(disk: &dyn Disk, path: &Path, what: &T) -> Result<(), DriveError> {
    let bytes = serde_json::to_vec(what).map_err(|error| DriveError::Folder(error.to_string()))?;
    write_atomically(disk, path, &bytes).map_err(DriveError::disk(path))
}

pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DriveError::disk(path)(error)),
        _ => Ok(()),
    }
}

/// The run's side.
pub(crate) struct Control {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    looked: Option<Instant>,
    /// The order being carried out.
    at_work: Option<String>,
}

impl Control {
    /// Opens it for a run locked by this process. Orders left from an earlier process have no sender waiting, and are dropped.
    pub fn open(disk: Arc<dyn Disk>, run: &Path) -> Result<Self, DriveError> {
        let folder = folder(run);
        remove(disk.as_ref(), &folder.join("order.json"))?;
        Ok(Control { disk, folder, looked: None, at_work: None })
    }

    /// The next letter, if any. The file is checked only now and then, so calling this often is cheap.
    pub fn next(&mut self) -> Option<Wish> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        let Letter { id, wish } = read(self.disk.as_ref(), &self.folder.join("order.json"))?;
        self.at_work = Some(id);
        Some(wish)
    }

    /// Reports the result of an order to the sender.
    pub fn say(&mut self, refused: bool, words: String) -> Result<(), DriveError> {
        self.reply(refused, words, None)
    }

    /// Tells the sender how far the run is.
    pub fn tell(&mut self, status: Status) -> Result<(), DriveError> {
        self.reply(false, String::new(), Some(status))
    }

    fn reply(&mut self, refused: bool, words: String, status: Option<Status>) -> Result<(), DriveError> {
        let Some(id) = self.at_work.take() else { return Ok(()) };
        write(self.disk.as_ref(), &self.folder.join("taken.json"), &Taken { id, refused, words, status })?;
        remove(self.disk.as_ref(), &self.folder.join("order.json"))
    }
}
