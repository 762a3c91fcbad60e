//! The one door to files, so that a whole program can run on a disk whose power fails at a chosen moment.

mod real;
mod sim;

pub use real::RealDisk;
pub use sim::{Cut, SimDisk};

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files and folders. What was changed survives a power loss only after the `sync` named with each operation.
///
/// Errors name the path and keep the [`io::ErrorKind`] of their cause.
pub trait Disk: Send + Sync {
    /// Opens a file for writing, emptied if it exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for writing at its end, made if missing.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// The whole file, as long as it is when it is opened. Refuses what is no regular file, such as a link or a FIFO; ask [`Disk::len`]
    /// first where the file may come from a stranger.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// What is there by this name; a link is not followed.
    fn kind(&self, path: &Path) -> io::Result<EntryKind>;
    /// Length of the file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// Cuts the file (or extends it with zeros) to `len` bytes and syncs it.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()>;
    /// Moves a file or folder; a file at `to` is replaced in one step. Durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder and all in it, not in one step. Durable after [`Disk::sync_dir`] of its parent.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder and its missing parents; see [`create_dir_durably`].
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Whether there is a file or folder.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The names in a folder, sorted; a name that is not Unicode has its strange parts replaced.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a folder durable: what was created, renamed and removed in it.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Holds a file (made if missing) for this process alone until the result is dropped or the process ends, however it
    /// ends. [`io::ErrorKind::WouldBlock`] when it is held already.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
    /// Bytes that may still be written below a folder that exists; `None` where the system does not tell.
    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        let _ = dir;
        Ok(None)
    }
}

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Something else, in words: a link, a FIFO, a socket, a device.
    Other(&'static str),
}

/// A file open for writing at its end.
pub trait DiskFile: Write + Send {
    /// Makes what was written durable, and the file's own name in its folder.
    fn sync(&mut self) -> io::Result<()>;

    /// The same for what has been written so far, as work for another thread; `None` where there is no such thing.
    fn sync_beside(&self) -> Option<SyncBeside> {
        None
    }
}

/// Makes durable what had been written when it was made.
pub type SyncBeside = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Makes `path` hold `bytes`: at any moment, and after any power loss, it has its old content or the new one, and the new
/// one once this returns. Uses `PATH.tmp` on the way.
///
/// # Errors
/// Those of the disk; the old content stays then, unless only the last sync failed.
pub fn write_atomically(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Replacement::begin(disk, path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// A file on its way to take another's place, written piece by piece; see [`write_atomically`]. Dropped before it is committed, it leaves
/// nothing behind.
pub struct Replacement<'a> {
    disk: &'a dyn Disk,
    path: &'a Path,
    temporary: PathBuf,
    /// `None` once all is written.
    file: Option<Box<dyn DiskFile>>,
    /// Whether it is where it belongs.
    placed: bool,
}

impl<'a> Replacement<'a> {
    /// Begins with an empty file.
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

    /// Puts it in its place, durably.
    ///
    /// # Errors
    /// Those of the disk; the old content stays then, unless only the last sync failed.
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
            // A full disk should not stay fuller for it; that this may fail as well changes nothing.
            let _ = self.disk.remove_file(&self.temporary);
        }
    }
}

/// Makes a folder and its missing parents, and all their names durable. Folders that existed are not synced.
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
