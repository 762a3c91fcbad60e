//! What the tables need of a disk: few enough calls that a test can fail every one of them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// One file being written.
pub trait DiskFile: Write + Send {
    /// Returns once everything written so far would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// The part of a disk that tables use; paths are as the caller gave them.
pub trait Disk: Send + Sync {
    /// Creates the file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// The whole content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Puts `from` in the place of `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes one file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and those above it; content with one that is there.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// The names in a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals in this folder survive a power cut.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// The machine's own file system.
pub struct RealDisk;

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}
