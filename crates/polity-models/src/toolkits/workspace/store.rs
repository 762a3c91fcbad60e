//! The store of a workspace: immutable objects on disk, each found by the SHA-256 of its bytes.
//!
//! The objects that a call adds are written as one *pack*: to a temporary name, synced, renamed, and the folder synced. So a call's objects are
//! all there or none, and a call waits for the disk once, however many files it changed. A pack is the length of its header in
//! eight bytes, the header (a JSON list of hash and length of each object), and the objects. It is named by the hash of its header.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

const PACK: &str = "pack";
const TEMPORARY: &str = "new-";
const LOCK: &str = "lock";
/// Tries to get the lock, 10 ms apart: a process that is just being started by this program may still hold it for a moment.
const TRIES: usize = 100;

/// The SHA-256 of bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Hash([u8; 32]);

impl Hash {
    pub(super) fn of(bytes: &[u8]) -> Hash {
        let mut hash = [0; 32];
        hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
        Hash(hash)
    }
}

impl Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Hash, String> {
        let wrong = || format!("`{text}` is not 64 hexadecimal digits");
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        for (i, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Hash(hash))
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Hash, String> {
        text.parse()
    }
}

/// Why objects were not added.
pub(super) enum NotAdded {
    /// The store would become larger than it may.
    Full,
    /// The disk failed.
    Disk(String),
}

/// Where an object lies.
#[derive(Clone)]
struct Place {
    pack: Arc<Path>,
    at: u64,
    length: u64,
}

#[derive(Default)]
struct Index {
    places: BTreeMap<Hash, Place>,
    /// Of all packs.
    bytes: u64,
}

/// The store, which one process has open at a time.
pub(super) struct Store {
    folder: PathBuf,
    /// Bytes of all packs together.
    most: u64,
    index: Mutex<Index>,
    /// Numbers temporary names.
    next: AtomicU64,
    /// Locked while the store is open.
    _lock: File,
}

impl Store {
    /// Opens a store, or makes one where there is no folder.
    pub(super) fn open(folder: &Path, most: u64) -> Result<Store, String> {
        let about = |error: io::Error| format!("the store `{}` cannot be opened: {error}", folder.display());
        fs::create_dir_all(folder).map_err(about)?;
        let lock = lock(folder)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(about)? {
            names.push(entry.map_err(about)?.path());
        }
        names.sort();
        let mut index = Index::default();
        for path in names {
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY)) {
                // Of a call that died.
                fs::remove_file(&path).map_err(about)?;
            } else if path.extension().is_some_and(|extension| extension == PACK) {
                index.enter(&path)?;
            }
        }
        let index = Mutex::new(index);
        Ok(Store { folder: folder.into(), most, index, next: AtomicU64::new(0), _lock: lock })
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds objects; those that are there already are not written again.
    pub(super) fn add(&self, objects: Vec<Vec<u8>>) -> Result<(), NotAdded> {
        let mut new: BTreeMap<Hash, Vec<u8>> = objects.into_iter().map(|bytes| (Hash::of(&bytes), bytes)).collect();
        let header = {
            let mut index = self.index();
            new.retain(|hash, _| !index.places.contains_key(hash));
            if new.is_empty() {
                return Ok(());
            }
            let lengths: Vec<(Hash, u64)> = new.iter().map(|(hash, bytes)| (*hash, bytes.len() as u64)).collect();
            let header = serde_json::to_vec(&lengths).map_err(|error| NotAdded::Disk(error.to_string()))?;
            let size = 8 + header.len() as u64 + lengths.iter().map(|(_, length)| length).sum::<u64>();
            if index.bytes + size > self.most {
                return Err(NotAdded::Full);
            }
            index.bytes += size;
            header
        };
        let path = self.folder.join(format!("{}.{PACK}", Hash::of(&header)));
        self.write(&path, &header, new.values()).map_err(|error| {
            NotAdded::Disk(format!("the store `{}` cannot be written: {error}", self.folder.display()))
        })?;
        let pack: Arc<Path> = path.into();
        let mut index = self.index();
        let mut at = 8 + header.len() as u64;
        for (hash, bytes) in new {
            let length = bytes.len() as u64;
            index.places.insert(hash, Place { pack: pack.clone(), at, length });
            at += length;
        }
        Ok(())
    }

    fn write<'a>(&self, path: &Path, header: &[u8], objects: impl Iterator<Item = &'a Vec<u8>>) -> io::Result<()> {
        let temporary = self.folder.join(format!("{TEMPORARY}{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let mut file = io::BufWriter::new(File::create(&temporary)?);
        file.write_all(&(header.len() as u64).to_be_bytes())?;
        file.write_all(header)?;
        for object in objects {
            file.write_all(object)?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&temporary, path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Returns the bytes of an object; or says that it is missing or damaged.
    pub(super) fn read(&self, hash: Hash) -> Result<Vec<u8>, String> {
        let place = self.index().places.get(&hash).cloned().ok_or_else(|| {
            format!(
                "the store `{}` has no object {hash}; it belongs to another run, or files were removed from it",
                self.folder.display()
            )
        })?;
        let about = |what: &dyn Display| format!("object {hash} in `{}`: {what}", place.pack.display());
        let mut bytes = Vec::new();
        let mut file = File::open(&place.pack).map_err(|error| about(&error))?;
        file.seek(SeekFrom::Start(place.at)).map_err(|error| about(&error))?;
        file.take(place.length).read_to_end(&mut bytes).map_err(|error| about(&error))?;
        if Hash::of(&bytes) != hash {
            return Err(about(&"it is damaged: its bytes have another hash. Restore the file from a copy"));
        }
        Ok(bytes)
    }
}

/// Locks the store; the file must be kept.
fn lock(folder: &Path) -> Result<File, String> {
    let path = folder.join(LOCK);
    let about = |what: &dyn Display| format!("the store `{}` cannot be locked: {what}", folder.display());
    let file = File::create(&path).map_err(|error| about(&error))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(about(&error)),
        }
    }
    Err(about(&"another process has it open"))
}

impl Index {
    /// Enters the objects of a pack.
    fn enter(&mut self, path: &Path) -> Result<(), String> {
        let about = |what: &dyn Display| format!("the store's file `{}`: {what}", path.display());
        let damaged = || about(&"it is damaged: its header does not fit its name. Restore the file from a copy");
        let mut file = File::open(path).map_err(|error| about(&error))?;
        let size = file.metadata().map_err(|error| about(&error))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| damaged())?;
        let length = u64::from_be_bytes(length);
        let mut header = Vec::new();
        (&mut file).take(length).read_to_end(&mut header).map_err(|error| about(&error))?;
        if path.file_stem().is_none_or(|name| *name != *Hash::of(&header).to_string()) {
            return Err(damaged());
        }
        let objects: Vec<(Hash, u64)> = serde_json::from_slice(&header).map_err(|_| damaged())?;
        let pack: Arc<Path> = path.into();
        let mut at = 8 + length;
        for (hash, length) in objects {
            self.places.insert(hash, Place { pack: pack.clone(), at, length });
            at += length;
        }
        self.bytes += size;
        Ok(())
    }
}
