//! The journal on disk: appended and synced by one writer, read back segment by segment.
//!
//! Records taken by [`JournalWriter::append`] survive the death of the process; those taken by [`JournalWriter::commit`] survive a power
//! loss. The writer must hold the lock of the run's folder; see [`Disk::lock`].

use crate::disk::{Disk, DiskFile, create_dir_durably};
use polity_kernel::journal::{
    FIRST_SEGMENT, FormatError, MAX_PAYLOAD, Place, RECORD_HEADER, Record, SEGMENT_HEADER, begin_segment,
    check_payload, push_record, records, scan, segment_name, segment_number,
};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// A segment is closed, and the next one started, at this length (bytes).
const SEGMENT_TARGET: u64 = 64 << 20;
/// Batches of records are written in pieces of about this size (bytes).
const PIECE: usize = 1 << 20;
/// Length limit of a segment: the target, plus one piece that ends with the longest record.
const MAX_SEGMENT: u64 = SEGMENT_TARGET + (PIECE + RECORD_HEADER + MAX_PAYLOAD) as u64;

/// Why a journal cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A segment was changed after it was written.
    #[error("{}: {source}", dir.display())]
    Format {
        /// The journal's folder.
        dir: PathBuf,
        /// What is wrong, where, and what to do.
        source: FormatError,
    },
    /// A segment is missing between others.
    #[error(
        "{}: segment {} is missing, though later ones exist. Restore the file from a copy, or run the scenario again; \
         no part of a damaged journal is used", dir.display(), segment_name(*.segment)
    )]
    Missing {
        /// The journal's folder.
        dir: PathBuf,
        /// Number of the missing segment.
        segment: u32,
    },
    /// A segment is longer than any writer makes it; it is not read.
    #[error(
        "{}: segment {} has {len} bytes, above the limit of {MAX_SEGMENT}; it is not a segment of this journal. \
         Restore the file from a copy, or run the scenario again", dir.display(), segment_name(*.segment)
    )]
    TooLong {
        /// The journal's folder.
        dir: PathBuf,
        /// Number of the segment.
        segment: u32,
        /// Its length in bytes.
        len: u64,
    },
    /// A new journal was requested where one exists.
    #[error("{}: there is a journal already. Continue its run with `polity resume {}`, or choose another folder",
        dir.display(), run(dir).display())]
    AlreadyStarted {
        /// The journal's folder.
        dir: PathBuf,
    },
    /// The disk is full; the writer accepts nothing more.
    #[error(
        "the disk is full ({source}). Everything up to the last commit is kept: free some space, then continue with \
         `polity resume {}`", run(dir).display()
    )]
    DiskFull {
        /// The journal's folder.
        dir: PathBuf,
        /// The disk's error, which names the file.
        source: io::Error,
    },
    /// The disk failed; the writer accepts nothing more.
    #[error(
        "the disk failed ({source}). Everything up to the last commit is kept: once the disk works again, continue with \
         `polity resume {}`", run(dir).display()
    )]
    Disk {
        /// The journal's folder.
        dir: PathBuf,
        /// The disk's error, which names the file.
        source: io::Error,
    },
    /// The writer was used again after a failure.
    #[error(
        "the journal {} accepts nothing more after a failed write. Everything up to the last commit is kept: continue \
         with `polity resume {}`", dir.display(), run(dir).display()
    )]
    Stopped {
        /// The journal's folder.
        dir: PathBuf,
    },
}

/// The run's folder, the parent of the journal's.
fn run(dir: &Path) -> &Path {
    dir.parent().unwrap_or(dir)
}

/// Wraps format errors of one journal.
fn format_error(dir: &Path) -> impl Fn(FormatError) -> JournalError {
    move |source| JournalError::Format { dir: dir.to_owned(), source }
}

fn disk_error(dir: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::DiskFull { dir: dir.to_owned(), source },
        _ => JournalError::Disk { dir: dir.to_owned(), source },
    }
}

/// Where a fully read journal continues. Made only by [`JournalReader::next_segment`] at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    segment: u32,
    valid_len: u64,
    torn: bool,
    /// Chain of the segment before the last.
    previous: u32,
    chain: u32,
}

impl End {
    /// Whether the journal's end is torn, so that [`JournalWriter::open_at_end`] will cut it.
    #[must_use]
    pub fn torn(&self) -> bool {
        self.torn
    }

    /// Whether the last segment is whole and empty, as [`JournalWriter::close`] leaves it.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.segment > FIRST_SEGMENT && self.valid_len == SEGMENT_HEADER as u64 && !self.torn
    }

    /// The file name of the last segment.
    #[must_use]
    pub fn segment_name(&self) -> String {
        segment_name(self.segment)
    }
}

/// Reads a journal, holding one segment at a time in memory.
pub struct JournalReader<'a> {
    disk: &'a dyn Disk,
    dir: PathBuf,
    /// Number of the last segment.
    last: u32,
    next: u32,
    chain: u32,
    end: Option<End>,
}

/// A verified segment.
pub struct Segment {
    verified: Vec<u8>,
}

impl Segment {
    /// Its whole records, in append order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        records(&self.verified)
    }
}

impl<'a> JournalReader<'a> {
    /// Finds the segments of the journal in `dir`; ignores other files.
    ///
    /// # Errors
    /// [`JournalError`] if the folder cannot be read, has no segment, or lacks one between others.
    pub fn open(disk: &'a dyn Disk, dir: &Path) -> Result<Self, JournalError> {
        let segments = segments(disk, dir)?;
        let last = *segments.last().ok_or_else(|| format_error(dir)(FormatError::NeverStarted))?;
        match (FIRST_SEGMENT..).zip(&segments).find(|(expected, found)| expected != *found) {
            Some((segment, _)) => Err(JournalError::Missing { dir: dir.to_owned(), segment }),
            None => Ok(JournalReader { disk, dir: dir.to_owned(), last, next: FIRST_SEGMENT, chain: 0, end: None }),
        }
    }

    /// Reads and verifies the next segment; `None` after the last.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be read or was changed after it was written. The reader then stays before it.
    pub fn next_segment(&mut self) -> Result<Option<Segment>, JournalError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let segment = self.next;
        let path = self.dir.join(segment_name(segment));
        let len = self.disk.len(&path).map_err(disk_error(&self.dir))?;
        if len > MAX_SEGMENT {
            return Err(JournalError::TooLong { dir: self.dir.clone(), segment, len });
        }
        let mut bytes = self.disk.read(&path).map_err(disk_error(&self.dir))?;
        let previous = self.chain;
        let last = segment == self.last;
        let scan = scan(Place { segment, previous, last }, &bytes).map_err(format_error(&self.dir))?;
        bytes.truncate(scan.valid_len);
        if last {
            self.end =
                Some(End { segment, valid_len: scan.valid_len as u64, torn: scan.torn, previous, chain: scan.chain });
        } else {
            self.next = segment + 1;
            self.chain = scan.chain;
        }
        Ok(Some(Segment { verified: bytes }))
    }

    /// Where the journal ends; `None` until the last segment has been read.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }
}

/// An owned record: kind and payload.
pub type OwnedRecord = (u8, Vec<u8>);

/// Reads a whole journal into memory: kinds and payloads in order, and where it ends. Only for small journals; a [`JournalReader`] holds
/// one segment at a time.
///
/// # Errors
/// Those of [`JournalReader`].
pub fn read_all(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Vec<OwnedRecord>, End), JournalError> {
    let mut reader = JournalReader::open(disk.as_ref(), dir)?;
    let mut all = Vec::new();
    while let Some(segment) = reader.next_segment()? {
        all.extend(segment.records().map(|record| (record.kind, record.payload.to_vec())));
    }
    let end = reader.end().ok_or_else(|| format_error(dir)(FormatError::NeverStarted))?;
    Ok((all, end))
}

/// The segment numbers in a folder, sorted; empty if the folder is missing.
fn segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<u32>, JournalError> {
    let names = match disk.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(disk_error(dir)(error)),
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Appends to a journal. After the first failure it accepts nothing more, since the end of the file is unknown until it is read again.
pub struct JournalWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: Box<dyn DiskFile>,
    segment: u32,
    /// Length of the segment's file.
    len: u64,
    chain: u32,
    target: u64,
    buffer: Vec<u8>,
    /// Whether something was appended since the last sync.
    unsynced: bool,
    stopped: bool,
    commits: u64,
}

/// A journal shared by several threads. A failure in another thread is reported to the driving thread with its next operation.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<Shared>>);

struct Shared {
    writer: JournalWriter,
    failed: Option<JournalError>,
}

impl From<JournalWriter> for Journal {
    fn from(writer: JournalWriter) -> Self {
        Journal(Arc::new(Mutex::new(Shared { writer, failed: None })))
    }
}

impl Journal {
    fn with<T>(&self, work: impl FnOnce(&mut JournalWriter) -> Result<T, JournalError>) -> Result<T, JournalError> {
        // A writer that panicked has not reported that it stopped; its output is checked when read.
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.failed.take() {
            Some(error) => Err(error),
            None => work(&mut shared.writer),
        }
    }

    /// See [`JournalWriter::append`].
    ///
    /// # Errors
    /// Those of [`JournalWriter::append`].
    pub fn append(&self, kind: u8, payload: &[u8]) -> Result<(), JournalError> {
        self.with(|writer| writer.append(kind, payload))
    }

    /// Appends from a thread that does not drive the run. Returns whether it succeeded; errors are reported to the driving thread.
    #[must_use]
    pub fn append_for_others(&self, kind: u8, payload: &[u8]) -> bool {
        let result = self.append(kind, payload);
        match result {
            Ok(()) => true,
            Err(error) => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).failed = Some(error);
                false
            }
        }
    }

    /// See [`JournalWriter::commit`].
    ///
    /// # Errors
    /// Those of [`JournalWriter::commit`].
    pub fn commit(&self) -> Result<(), JournalError> {
        self.with(JournalWriter::commit)
    }

    /// See [`JournalWriter::commit_beside`].
    ///
    /// # Errors
    /// Those of [`JournalWriter::commit_beside`].
    pub fn commit_beside(&self) -> Result<Option<Commit>, JournalError> {
        self.with(JournalWriter::commit_beside)
    }

    /// See [`JournalWriter::committed`].
    ///
    /// # Errors
    /// Those of [`JournalWriter::committed`].
    pub fn committed(&self, synced: io::Result<()>) -> Result<(), JournalError> {
        self.with(|writer| writer.committed(synced))
    }

    /// See [`JournalWriter::close`].
    ///
    /// # Errors
    /// Those of [`JournalWriter::close`].
    pub fn close(&self) -> Result<(), JournalError> {
        self.with(JournalWriter::close)
    }

    /// See [`JournalWriter::commits`].
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).writer.commits()
    }
}

/// A commit in progress.
pub struct Commit(std::sync::mpsc::Receiver<io::Result<()>>);

impl Commit {
    /// Returns its result once it is done; for [`JournalWriter::committed`].
    pub fn wait(&self, patience: std::time::Duration) -> Option<io::Result<()>> {
        use std::sync::mpsc::RecvTimeoutError;
        match self.0.recv_timeout(patience) {
            Ok(synced) => Some(synced),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::Error::other("the thread that synced is gone"))),
        }
    }
}

impl JournalWriter {
    /// Starts a journal in `dir`, which is created durably if missing (see [`create_dir_durably`]).
    ///
    /// # Errors
    /// [`JournalError::AlreadyStarted`] if one exists, otherwise those of the disk.
    pub fn create(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, JournalError> {
        if !segments(&*disk, dir)?.is_empty() {
            return Err(JournalError::AlreadyStarted { dir: dir.to_owned() });
        }
        create_dir_durably(&*disk, dir).map_err(disk_error(dir))?;
        Self::begin(disk, dir, FIRST_SEGMENT, 0)
    }

    /// Continues a journal at its end: cuts a torn end, and makes everything that was read durable.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open_at_end(disk: Arc<dyn Disk>, dir: &Path, end: End) -> Result<Self, JournalError> {
        if end.valid_len < SEGMENT_HEADER as u64 {
            return Self::begin(disk, dir, end.segment, end.previous);
        }
        let path = dir.join(segment_name(end.segment));
        let open = || {
            if end.torn {
                disk.truncate(&path, end.valid_len)?;
            }
            let mut file = disk.append(&path)?;
            file.sync()?;
            disk.sync_dir(dir)?;
            Ok(file)
        };
        let file = open().map_err(disk_error(dir))?;
        Ok(Self::with_file(disk, dir, file, end.segment, end.valid_len, end.chain))
    }

    /// Creates an empty segment with its header, durably.
    fn begin(disk: Arc<dyn Disk>, dir: &Path, segment: u32, previous: u32) -> Result<Self, JournalError> {
        let (file, len, chain) = begin_file(&*disk, dir, segment, previous).map_err(disk_error(dir))?;
        Ok(Self::with_file(disk, dir, file, segment, len, chain))
    }

    fn with_file(disk: Arc<dyn Disk>, dir: &Path, file: Box<dyn DiskFile>, segment: u32, len: u64, chain: u32) -> Self {
        JournalWriter {
            disk,
            dir: dir.to_owned(),
            file,
            segment,
            len,
            chain,
            target: SEGMENT_TARGET,
            buffer: Vec::new(),
            unsynced: false,
            stopped: false,
            commits: 0,
        }
    }

    /// Closes segments at another length than 64 MiB (at most that); for tests that need many segments.
    #[must_use]
    pub fn with_segment_target(mut self, bytes: u64) -> Self {
        self.target = bytes.min(SEGMENT_TARGET);
        self
    }

    /// Appends one record. Once this returns, it survives killing the process, but maybe not a power loss.
    ///
    /// # Errors
    /// As [`JournalWriter::append_batch`].
    pub fn append(&mut self, kind: u8, payload: &[u8]) -> Result<(), JournalError> {
        self.append_batch(&[(kind, payload)])
    }

    /// Appends records (kind and payload) with as few writes as possible: one per started MiB.
    ///
    /// # Errors
    /// If a payload is too long, nothing of the batch is appended and the writer stays usable. If the disk fails, records before the last
    /// commit are kept and the writer stops; part of the batch may be found on reading.
    pub fn append_batch(&mut self, batch: &[(u8, &[u8])]) -> Result<(), JournalError> {
        self.running()?;
        batch.iter().try_for_each(|(_, payload)| check_payload(payload)).map_err(format_error(&self.dir))?;
        for (kind, payload) in batch {
            if self.buffer.is_empty() && self.len >= self.target {
                self.roll()?;
            }
            push_record(*kind, payload, &mut self.chain, &mut self.buffer).map_err(format_error(&self.dir))?;
            if self.buffer.len() >= PIECE {
                self.write()?;
            }
        }
        self.write()
    }

    /// Makes everything appended so far durable. Free if nothing was appended since the last commit.
    ///
    /// # Errors
    /// Those of the disk. Records since the last commit may then be lost, and the writer stops.
    pub fn commit(&mut self) -> Result<(), JournalError> {
        self.running()?;
        if self.unsynced {
            let synced = self.file.sync();
            self.or_stop(synced)?;
            self.unsynced = false;
            self.commits += 1;
        }
        Ok(())
    }

    /// Starts to make everything appended so far durable while appending continues; [`Commit::wait`] reports the end. Without a thread
    /// for it (or disk support) it is done before this returns. `None`: nothing is left to do.
    ///
    /// # Errors
    /// As [`JournalWriter::commit`].
    pub fn commit_beside(&mut self) -> Result<Option<Commit>, JournalError> {
        self.running()?;
        let Some(sync) = self.file.sync_beside().filter(|_| self.unsynced) else {
            return self.commit().map(|()| None);
        };
        let (told, hears) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("polity-sync".into()).spawn(move || {
            // No receiver is left if the run has ended meanwhile.
            let _ = told.send(sync());
        });
        if thread.is_err() {
            return self.commit().map(|()| None);
        }
        self.unsynced = false;
        Ok(Some(Commit(hears)))
    }

    /// Takes the result of a commit.
    ///
    /// # Errors
    /// As [`JournalWriter::commit`].
    pub fn committed(&mut self, synced: io::Result<()>) -> Result<(), JournalError> {
        self.or_stop(synced)?;
        self.commits += 1;
        Ok(())
    }

    /// Makes everything durable and starts a segment that stays empty, so that a cut end is detected as damage rather than a tear. For
    /// finished runs.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn close(&mut self) -> Result<(), JournalError> {
        self.commit()?;
        self.roll()?;
        self.stopped = true;
        Ok(())
    }

    /// Number of commits that had something to sync, since this writer was created.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits
    }

    fn running(&self) -> Result<(), JournalError> {
        if self.stopped { Err(JournalError::Stopped { dir: self.dir.clone() }) } else { Ok(()) }
    }

    fn or_stop<T>(&mut self, result: io::Result<T>) -> Result<T, JournalError> {
        self.stopped |= result.is_err();
        result.map_err(disk_error(&self.dir))
    }

    fn write(&mut self) -> Result<(), JournalError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.buffer);
        self.or_stop(written)?;
        self.len += self.buffer.len() as u64;
        self.unsynced = true;
        self.buffer.clear();
        // Release the memory of a single long record.
        self.buffer.shrink_to(2 * PIECE);
        Ok(())
    }

    /// Starts the next segment. The one before is synced first, so that only the last segment can be torn.
    fn roll(&mut self) -> Result<(), JournalError> {
        let rolled = self.file.sync().and_then(|()| begin_file(&*self.disk, &self.dir, self.segment + 1, self.chain));
        (self.file, self.len, self.chain) = self.or_stop(rolled)?;
        self.segment += 1;
        self.unsynced = false;
        Ok(())
    }
}

/// Creates a segment's file with its header, durably; returns it with its length and chain.
fn begin_file(disk: &dyn Disk, dir: &Path, segment: u32, previous: u32) -> io::Result<(Box<dyn DiskFile>, u64, u32)> {
    let mut header = Vec::with_capacity(SEGMENT_HEADER);
    let chain = begin_segment(segment, previous, &mut header);
    let mut file = disk.create(&dir.join(segment_name(segment)))?;
    file.write_all(&header)?;
    file.sync()?;
    disk.sync_dir(dir)?;
    Ok((file, header.len() as u64, chain))
}

#[cfg(test)]
mod tests;
