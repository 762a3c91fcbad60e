//! The only access to files, so that a whole program can run on a disk that loses power at a chosen moment.

mod real;
mod sim;

pub use real::RealDisk;
pub use sim::{Cut, SimDisk};

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files and folders. A change survives a power loss only after the `sync` named with its operation.
///
/// Errors name the path and keep the [`io::ErrorKind`] of their cause.
pub trait Disk: Send + Sync {
    /// Opens a file for writing, emptied if it exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for writing at its end; creates it if missing.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Reads the whole file, at its length when opened. Refuses anything but a regular file, such as a link or a FIFO. Check
    /// [`Disk::len`] first if the file may be untrusted.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The kind of the entry at this path; links are not followed.
    fn kind(&self, path: &Path) -> io::Result<EntryKind>;
    /// Length of the file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// Truncates the file (or extends it with zeros) to `len` bytes and syncs it.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()>;
    /// Moves a file or folder; a file at `to` is replaced in one step. Durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder and its contents; not atomic. Durable after [`Disk::sync_dir`] of its parent.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and its missing parents; see [`create_dir_durably`].
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Whether a file or folder exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The names in a folder, sorted; invalid Unicode in a name is replaced.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a folder durable: everything created, renamed or removed in it.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks a file (created if missing) for this process until the result is dropped or the process ends in any way.
    /// [`io::ErrorKind::WouldBlock`] if it is already locked.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
    /// Free bytes below an existing folder; `None` where the system does not report them.
    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        let _ = dir;
        Ok(None)
    }
}

/// The kind of a folder entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Something else, described in words: a link, a FIFO, a socket, a device.
    Other(&'static str),
}

/// A file open for writing at its end.
pub trait DiskFile: Write + Send {
    /// Makes the written bytes durable, and the file's own name in its folder.
    fn sync(&mut self) -> io::Result<()>;

    /// The same sync as work for another thread; `None` where not supported.
    fn sync_beside(&self) -> Option<SyncBeside> {
        None
    }
}

/// Makes durable what had been written when it was created.
pub type SyncBeside = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Replaces the content of `path` with `bytes` atomically: after a power loss it has its old content or the new one, and the new one once
/// this returns. Uses `PATH.tmp` as a temporary file.
///
/// # Errors
/// Those of the disk. The old content then stays, unless only the last sync failed.
pub fn write_atomically(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Replacement::begin(disk, path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// A file that will replace another one, written piece by piece; see [`write_atomically`]. If dropped before commit, it leaves nothing
/// behind.
pub struct Replacement<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    temporary: PathBuf,
    /// `None` once everything is written.
    file: Option<Box<dyn DiskFile>>,
    /// Whether it has been moved into place.
    placed: bool,
}

impl<'a> Replacement<'a> {
    /// Starts with an empty file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn begin(disk: &'a dyn Disk, path: &'a Path) -> io::Result<Self> {
        let mut temporary = OsString::from(path);
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let file = disk.create(&temporary)?;
        Ok(Replacement { disk, path, temporary, file: Some(file), placed: false })
    }

    fn file(&mut self) -> io::Result<&mut Box<dyn DiskFile>> {
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Moves it into place, durably.
    ///
    /// # Errors
    /// Those of the disk. The old content then stays, unless only the last sync failed.
    pub fn commit(mut self) -> io::Result<()> {
        self.file()?.sync()?;
        self.file = None;
        self.disk.rename(&self.temporary, self.path)?;
        self.placed = true;
        self.disk.sync_dir(parent(self.path))
    }
}

impl Write for Replacement<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.placed {
            self.file = None;
            // Free the space on a full disk; a failure to remove it changes nothing.
            let _ = self.disk.remove_file(&self.temporary);
        }
    }
}

/// Creates a folder and its missing parents, and makes their names durable. Existing folders are not synced.
///
/// # Errors
/// Those of the disk.
pub fn create_dir_durably(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let mut made = Vec::new();
    for folder in dir.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
        if disk.exists(folder)? {
            break;
        }
        made.push(folder);
    }
    disk.create_dir_all(dir)?;
    made.into_iter().rev().try_for_each(|folder| disk.sync_dir(parent(folder)))
}

/// The folder that holds `path`; `.` for a bare name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
