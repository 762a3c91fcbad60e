//! Letters in the folder of a run: orders, and that they were taken.

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

/// A pending order.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Letter {
    /// Identifies the order.
    pub(super) id: String,
    pub(super) order: Order,
}

/// The result of an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) id: String,
    /// Whether it was refused.
    pub(super) refused: bool,
    pub(super) words: String,
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

    /// The next order, if any. The file is checked only now and then, so calling this often is cheap.
    pub fn next(&mut self) -> Option<Order> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        let Letter { id, order } = read(self.disk.as_ref(), &self.folder.join("order.json"))?;
        self.at_work = Some(id);
        Some(order)
    }

    /// Reports the result to the sender.
    pub fn say(&mut self, refused: bool, words: String) -> Result<(), DriveError> {
        let Some(id) = self.at_work.take() else { return Ok(()) };
        write(self.disk.as_ref(), &self.folder.join("taken.json"), &Taken { id, refused, words })?;
        remove(self.disk.as_ref(), &self.folder.join("order.json"))
    }
}
