//! Versions of a database: whole copies in a folder, each named by its digest and never changed.

use super::NAME;
use super::database::{Database, WRITABLE};
use crate::models::ProviderError;
use polity_kernel::digest::{Digest, FileHash};
use polity_store::disk::{Disk, RealDisk, create_dir_durably, write_atomically};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub(super) struct Versions {
    folder: PathBuf,
    /// The name of the version that a session begins with.
    first: String,
    /// Two calls that reach the same version must not write it at the same time.
    writing: Mutex<()>,
}

impl Versions {
    /// Begins with the version in a file.
    pub(super) fn begin(file: &Path, folder: &Path) -> Result<Self, String> {
        let file = file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?;
        let length = RealDisk.len(&file).map_err(|error| error.to_string())?;
        if length > WRITABLE as u64 {
            return Err(format!(
                "{} has {length} bytes, but every change makes a whole copy, so a database with `write: true` may have \
                 {WRITABLE} bytes at most",
                file.display()
            ));
        }
        let bytes = RealDisk.read(&file).map_err(|error| error.to_string())?;
        create_dir_durably(&RealDisk, folder).map_err(|error| error.to_string())?;
        let mut versions = Versions { folder: folder.to_path_buf(), first: String::new(), writing: Mutex::new(()) };
        versions.first = versions.keep(&bytes).map_err(|error| error.to_string())?;
        Ok(versions)
    }

    /// Returns the database of a session's state; the empty state is the first version.
    pub(super) fn database(&self, state: &str) -> Result<Database, ProviderError> {
        let fatal = |why: String| ProviderError::Fatal { why: format!("`{NAME}`: {why}") };
        let name = if state.is_empty() { &self.first } else { state };
        if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(fatal(format!("the session's state `{name}` is no version of the database")));
        }
        let path = self.path(name);
        let bytes =
            RealDisk.read(&path).map_err(|error| fatal(format!("a version of the database is missing: {error}")))?;
        if name_of(&bytes) != *name {
            return Err(fatal(format!("{} is damaged: it is not what was written", path.display())));
        }
        Database::open_bytes(bytes).map_err(|error| fatal(error.to_string()))
    }

    /// Keeps a version; returns its name.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<String, ProviderError> {
        let name = name_of(bytes);
        let path = self.path(&name);
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = RealDisk.exists(&path).and_then(|exists| match exists {
            true => Ok(()),
            false => write_atomically(&RealDisk, &path, bytes),
        });
        kept.map_err(|error| ProviderError::Fatal { why: format!("`{NAME}`: a version cannot be kept: {error}") })?;
        Ok(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.db"))
    }
}

fn name_of(bytes: &[u8]) -> String {
    let Digest(number) = FileHash::of(bytes);
    format!("{number:032x}")
}
