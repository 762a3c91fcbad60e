//! Snapshots on disk. A state is split into content-defined chunks. A snapshot is a file with the chunks that no earlier file holds, and
//! a table of all chunks. Unchanged chunks are not written again, and only one chunk of a state is held in memory.
//!
//! A file is named by the round at which its snapshot begins, and never changes. It is kept as long as a kept snapshot refers to it: the
//! newest and the one before.

use crate::digest_of;
use crate::disk::{Disk, Replacement};
use crate::{DriveError, Fault};
use polity_kernel::digest::{Digest, Kind, RowHash};
use polity_kernel::machine::Machine;
use polity_kernel::saved::Sink;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Minimum and maximum chunk size in bytes. In between, a chunk ends at one of 2^[`BITS`] bytes on average.
const LEAST: usize = 4 << 10;
const MOST: usize = 64 << 10;
const BITS: u32 = 14;
/// Snapshots kept in addition to the newest.
pub const OLDER: usize = 1;
/// Maximum number of files a snapshot refers to, including its own.
const FILES: usize = 32;
/// Bytes per write.
const AT_ONCE: usize = 1 << 20;
/// Bytes at the end of a file: the length of the table before them, and its digest.
const TRAILER: usize = 8 + 16;

/// The file of the snapshot that begins at `round`.
#[must_use]
pub fn snapshot_name(round: u32) -> String {
    format!("snapshot-{round:010}.bin")
}

/// The round of the snapshot with this file name; `None` for other files.
pub fn is_snapshot(name: &str) -> Option<u32> {
    let round = name.strip_prefix("snapshot-")?.strip_suffix(".bin")?.parse().ok()?;
    (snapshot_name(round) == name).then_some(round)
}

/// The rounds of the snapshots in a journal folder, ascending.
fn rounds(disk: &dyn Disk, dir: &Path) -> Result<Vec<u32>, DriveError> {
    let names = disk.list(dir).map_err(DriveError::disk(dir))?;
    let mut rounds: Vec<u32> = names.iter().filter_map(|name| is_snapshot(name)).collect();
    rounds.sort_unstable();
    Ok(rounds)
}

/// Location of a piece of a state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Chunk {
    digest: Digest,
    /// The round in the name of its file, its offset there, and its length in bytes.
    file: u32,
    at: u64,
    len: u32,
}

impl Chunk {
    /// Its bytes within its file.
    fn of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.at).ok()?;
        let bytes = file.get(start..start.checked_add(self.len as usize)?)?;
        (digest_of(bytes) == self.digest).then_some(bytes)
    }
}

/// All chunks of a state, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Table {
    chunks: Vec<Chunk>,
    /// Chunk bytes in each of the referenced files.
    files: BTreeMap<u32, u64>,
}

impl Table {
    /// Reads it from the end of its file.
    fn read(file: &[u8]) -> Option<Table> {
        let (rest, trailer) = file.split_last_chunk::<TRAILER>()?;
        let len = usize::try_from(u64::from_le_bytes(*trailer.first_chunk()?)).ok()?;
        let table = &rest[rest.len().checked_sub(len)?..];
        if digest_of(table).0 != u128::from_le_bytes(*trailer.last_chunk()?) {
            return None;
        }
        postcard::from_bytes(table).ok()
    }

    /// Reads it from the end of the file of `round`, if the whole file is as it was written.
    fn of_whole(file: &[u8], round: u32) -> Option<Table> {
        let table = Table::read(file)?;
        let mut own: Vec<&Chunk> = table.chunks.iter().filter(|chunk| chunk.file == round).collect();
        own.sort_unstable_by_key(|chunk| chunk.at);
        own.dedup();
        let mut end = 0;
        for chunk in own {
            (chunk.at == end && chunk.of(file).is_some()).then_some(())?;
            end += u64::from(chunk.len);
        }
        let rest = table.written().ok()?.len() as u64;
        (end + rest == file.len() as u64).then_some(table)
    }

    /// Its encoding at the end of a file.
    fn written(&self) -> io::Result<Vec<u8>> {
        let mut bytes = postcard::to_allocvec(self).map_err(io::Error::other)?;
        let (len, digest) = (bytes.len() as u64, digest_of(&bytes).0);
        bytes.extend(len.to_le_bytes());
        bytes.extend(digest.to_le_bytes());
        Ok(bytes)
    }

    /// The digest of the state, independent of where its chunks are stored.
    fn digest(&self) -> Digest {
        let head = RowHash::new(Kind::Input, 1).word(self.chunks.len() as u64);
        let add = |hash: RowHash, Chunk { digest: Digest(digest), len, .. }: &Chunk| {
            hash.words(*digest as u64, (digest >> 64) as u64).word(u64::from(*len))
        };
        Digest(self.chunks.iter().fold(head, add).finish())
    }

    /// Chunks that the next snapshot need not write, by digest. It must not refer to files less than half used, nor to too many files:
    /// their used chunks are written once more, and the files removed.
    fn known(&self, round: u32) -> BTreeMap<Digest, Chunk> {
        let mut known: BTreeMap<Digest, Chunk> = BTreeMap::new();
        let mut used: BTreeMap<u32, u64> = BTreeMap::new();
        for chunk in &self.chunks {
            if known.insert(chunk.digest, *chunk).is_none() {
                *used.entry(chunk.file).or_default() += u64::from(chunk.len);
            }
        }
        let bytes = |file: &u32| self.files.get(file).copied().unwrap_or(u64::MAX);
        let mut files: Vec<(u64, u32)> = used.into_iter().map(|(file, used)| (used, file)).collect();
        files.retain(|(used, file)| *file != round && used.saturating_mul(2) >= bytes(file));
        files.sort_unstable_by(|a, b| b.cmp(a));
        let kept: BTreeSet<u32> = files.into_iter().take(FILES - 1).map(|(_, file)| file).collect();
        known.retain(|_, chunk| kept.contains(&chunk.file));
        known
    }
}

/// Pseudo-random numbers, one per byte value (SplitMix64).
const GEAR: [u64; 256] = {
    let (mut gear, mut i, mut state) = ([0; 256], 0, 0u64);
    while i < gear.len() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = state;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        gear[i] = x ^ x >> 31;
        i += 1;
    }
    gear
};

/// Where the chunk at the start of these bytes ends, determined by the preceding 64 bytes alone: an insertion or removal moves only the
/// borders around it (Xia et al., "FastCDC", 2016, without its normalisation). `None`: beyond these bytes.
fn end_of_chunk(bytes: &[u8]) -> Option<usize> {
    let mut hash = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(MOST).skip(LEAST - 64) {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash >> (64 - BITS) == 0 && i + 1 >= LEAST {
            return Some(i + 1);
        }
    }
    (bytes.len() >= MOST).then_some(MOST)
}

/// Writes a snapshot's file as its bytes arrive.
struct Packer<'a> {
    file: BufWriter<Replacement<'a>>,
    round: u32,
    known: BTreeMap<Digest, Chunk>,
    table: Table,
    /// Bytes not yet in a chunk.
    pending: Vec<u8>,
    /// Chunk bytes written.
    written: u64,
    failed: Option<io::Error>,
}

impl Packer<'_> {
    fn chunk(&mut self, bytes: &[u8]) {
        let digest = digest_of(bytes);
        let len = bytes.len() as u32;
        let chunk = match self.known.get(&digest).filter(|known| known.len == len) {
            Some(known) => *known,
            None => {
                let chunk = Chunk { digest, file: self.round, at: self.written, len };
                if let Err(error) = self.file.write_all(bytes) {
                    self.failed.get_or_insert(error);
                }
                self.written += u64::from(len);
                self.known.insert(digest, chunk);
                chunk
            }
        };
        self.table.chunks.push(chunk);
    }

    /// Finishes the file with the remaining bytes and the table. `before`: the table of the snapshot whose chunks are reused.
    fn finish(mut self, before: &Table) -> io::Result<Table> {
        let rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.chunk(&rest);
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let files: BTreeSet<u32> = self.table.chunks.iter().map(|chunk| chunk.file).collect();
        let bytes = |file: u32| if file == self.round { Some(self.written) } else { before.files.get(&file).copied() };
        self.table.files = files.into_iter().filter_map(|file| Some((file, bytes(file)?))).collect();
        self.file.write_all(&self.table.written()?)?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
        Ok(self.table)
    }
}

impl Sink for Packer<'_> {
    fn take(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(len) = end_of_chunk(&pending[start..]) {
            self.chunk(&pending[start..start + len]);
            start += len;
        }
        pending.drain(..start);
        self.pending = pending;
    }
}

/// The snapshots of a run.
pub struct Snapshots {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The kept snapshots, newest last: the round at which each begins, and its table.
    kept: VecDeque<(u32, Table)>,
}

impl Snapshots {
    /// For a run with its journal in `dir` that has no snapshot yet, or whose state was not restored from one.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf) -> Self {
        Snapshots { disk, dir, kept: VecDeque::new() }
    }

    fn path(&self, round: u32) -> PathBuf {
        self.dir.join(snapshot_name(round))
    }

    /// Saves a machine between two rounds: durable when this returns. Returns the digest of its state. Older snapshots stay until
    /// [`Snapshots::clear`].
    pub fn save(&mut self, machine: &dyn Machine, seed: u64) -> Result<Digest, DriveError> {
        let round = machine.next_round();
        let path = self.path(round);
        let none = Table::default();
        let before = self.kept.back().map_or(&none, |(_, table)| table);
        let file = Replacement::begin(self.disk.as_ref(), &path).map_err(DriveError::disk(&path))?;
        let mut packer = Packer {
            file: BufWriter::with_capacity(AT_ONCE, file),
            round,
            known: before.known(round),
            table: Table::default(),
            pending: Vec::new(),
            written: 0,
            failed: None,
        };
        machine.save(&mut packer).map_err(|bug| DriveError::Bug { seed, bug })?;
        let table = packer.finish(before).map_err(DriveError::disk(&path))?;
        let digest = table.digest();
        self.kept.retain(|(kept, _)| *kept != round);
        self.kept.push_back((round, table));
        Ok(digest)
    }

    /// Removes files that no kept snapshot needs. Call it once the journal names the newest.
    pub fn clear(&mut self) -> Result<(), DriveError> {
        self.kept.drain(..self.kept.len().saturating_sub(1 + OLDER));
        let files = |(round, table): &(u32, Table)| table.files.keys().copied().chain([*round]).collect::<Vec<u32>>();
        let needed: BTreeSet<u32> = self.kept.iter().flat_map(files).collect();
        self.remove(|round| !needed.contains(&round)).map(|_| ())
    }

    /// Removes the files of some rounds; returns whether there were any.
    fn remove(&self, gone: impl Fn(u32) -> bool) -> Result<bool, DriveError> {
        let mut some = false;
        for round in rounds(self.disk.as_ref(), &self.dir)?.into_iter().filter(|round| gone(*round)) {
            let path = self.path(round);
            self.disk.remove_file(&path).map_err(DriveError::disk(&path))?;
            some = true;
        }
        Ok(some)
    }

    /// Loads the newest complete snapshot among those named in the journal (each with its digest): the round at which it begins, and the
    /// bytes of its state. A damaged one is an error. Later ones are removed, since their names will be reused.
    pub fn newest(&mut self, named: &[(u32, Digest)]) -> Result<Option<(u32, Vec<u8>)>, DriveError> {
        let mut found = None;
        for (round, digest) in named.iter().rev() {
            if let Some((bytes, table)) = self.read(*round, *digest)? {
                self.kept = VecDeque::from([(*round, table)]);
                found = Some((*round, bytes));
                break;
            }
        }
        let last = found.as_ref().map_or(0, |(round, _)| *round);
        if self.remove(|round| round > last)? {
            self.disk.sync_dir(&self.dir).map_err(DriveError::disk(&self.dir))?;
        }
        Ok(found)
    }

    /// Removes leftovers of a kill: files that no snapshot named in the journal needs, if those can be read.
    pub fn tidy(&mut self, named: &[(u32, Digest)]) -> Result<(), DriveError> {
        let mut kept = VecDeque::new();
        for (round, digest) in named {
            let table = self.held(*round)?.and_then(|file| Table::read(&file));
            let Some(table) = table.filter(|table| table.digest() == *digest) else { return Ok(()) };
            kept.push_back((*round, table));
        }
        self.kept = kept;
        self.clear()
    }

    /// Faults of the snapshots named in the journal, and the rounds of all files they need.
    pub fn faults(&self, named: &[(u32, Digest)]) -> Result<(Vec<Fault>, BTreeSet<u32>), DriveError> {
        const GONE: &str = "it is gone; restore it from a copy, otherwise the run resumes from an older state";
        const DAMAGED: &str = "it is damaged; delete it, and the run resumes from an older state";
        let (mut needed, mut chunks, mut faults) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
        for (round, digest) in named {
            needed.insert(*round);
            if let Some(file) = self.held(*round)? {
                match Table::read(&file).filter(|table| table.digest() == *digest) {
                    Some(table) => {
                        needed.extend(table.files.keys());
                        chunks.extend(table.chunks);
                    }
                    None => drop(faults.insert(*round, DAMAGED)),
                }
            }
        }
        for round in &needed {
            match self.held(*round)? {
                None => drop(faults.insert(*round, GONE)),
                Some(file) => {
                    let mut of_file = chunks.iter().filter(|chunk| chunk.file == *round);
                    if Table::of_whole(&file, *round).is_none() || !of_file.all(|chunk| chunk.of(&file).is_some()) {
                        faults.insert(*round, DAMAGED);
                    }
                }
            }
        }
        Ok((faults.into_iter().map(|(round, what)| Fault::new(self.path(round), what)).collect(), needed))
    }

    /// The bytes of a file, if it exists.
    fn held(&self, round: u32) -> Result<Option<Vec<u8>>, DriveError> {
        let path = self.path(round);
        match self.disk.read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DriveError::disk(&path)(error)),
        }
    }

    /// Reads a snapshot; `None` if it, or a file it refers to, is missing.
    fn read(&self, round: u32, digest: Digest) -> Result<Option<(Vec<u8>, Table)>, DriveError> {
        let damaged = |round: u32| {
            let path = self.path(round);
            DriveError::Folder(format!(
                "{} is damaged: delete it, and the run resumes from an older state",
                path.display()
            ))
        };
        let Some(own) = self.held(round)? else { return Ok(None) };
        let table = Table::read(&own).filter(|table| table.digest() == digest).ok_or_else(|| damaged(round))?;
        let mut bytes = vec![0; table.chunks.iter().map(|chunk| chunk.len as usize).sum()];
        let mut own = Some(own);
        // One file at a time: together they may be longer than the state.
        for file in table.chunks.iter().map(|chunk| chunk.file).collect::<BTreeSet<u32>>() {
            let held = if file == round { own.take() } else { self.held(file)? };
            let Some(held) = held else { return Ok(None) };
            let mut rest = bytes.as_mut_slice();
            for chunk in &table.chunks {
                let (place, after) = rest.split_at_mut(chunk.len as usize);
                rest = after;
                if chunk.file == file {
                    place.copy_from_slice(chunk.of(&held).ok_or_else(|| damaged(file))?);
                }
            }
        }
        Ok(Some((bytes, table)))
    }
}

#[cfg(test)]
mod tests;
