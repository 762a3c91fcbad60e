//! The journal on disk: appended and synced by one writer, read back segment by segment.
//!
//! What [`JournalWriter::append`] took survives the death of the process; what [`JournalWriter::commit`] took survives a
//! power loss. The run's folder is to be locked by whoever writes here; see [`Disk::lock`].

use crate::disk::{Disk, DiskFile, create_dir_durably};
use polity_kernel::journal::{
    FIRST_SEGMENT, FormatError, MAX_PAYLOAD, Place, RECORD_HEADER, Record, SEGMENT_HEADER, begin_segment,
    check_payload, push_record, records, scan, segment_name, segment_number,
};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// A segment is closed, and the next one begun, once it is this long (bytes).
const SEGMENT_TARGET: u64 = 64 << 20;
/// A batch of records is written in pieces of about this size (bytes).
const PIECE: usize = 1 << 20;
/// The longest segment that a writer can make: at its target, and then one piece that ends in the longest record.
const MAX_SEGMENT: u64 = SEGMENT_TARGET + (PIECE + RECORD_HEADER + MAX_PAYLOAD) as u64;

/// Why a journal can not be read, or not be written any further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A segment is not as it was written.
    #[error("{}: {source}", dir.display())]
    Format {
        /// The journal's folder.
        dir: PathBuf,
        /// What is wrong, where, and what to do.
        source: FormatError,
    },
    /// A segment is missing between others.
    #[error(
        "{}: segment {} is missing, though later ones are there. Restore the file from a copy, or run the scenario \
         again; nothing of a damaged journal is used", dir.display(), segment_name(*.segment)
    )]
    Missing {
        /// The journal's folder.
        dir: PathBuf,
        /// Number of the missing segment.
        segment: u32,
    },
    /// A segment is longer than any writer makes it; it is not read.
    #[error(
        "{}: segment {} has {len} bytes, above the limit of {MAX_SEGMENT}; it is no segment of this journal. Restore \
         the file from a copy, or run the scenario again", dir.display(), segment_name(*.segment)
    )]
    TooLong {
        /// The journal's folder.
        dir: PathBuf,
        /// Number of the segment.
        segment: u32,
        /// Its length in bytes.
        len: u64,
    },
    /// A new journal was to be made where one is.
    #[error("{}: there is a journal already. Continue its run with `polity resume {}`, or choose another folder",
        dir.display(), run(dir).display())]
    AlreadyStarted {
        /// The journal's folder.
        dir: PathBuf,
    },
    /// No space is left; the writer takes nothing more.
    #[error(
        "the disk is full ({source}). Everything up to the last commit is kept: free some space, then continue with \
         `polity resume {}`", run(dir).display()
    )]
    DiskFull {
        /// The journal's folder.
        dir: PathBuf,
        /// The disk's own words, which name the file.
        source: io::Error,
    },
    /// The disk failed; a writer takes nothing more after this.
    #[error(
        "the disk failed ({source}). Everything up to the last commit is kept: once the disk works again, continue with \
         `polity resume {}`", run(dir).display()
    )]
    Disk {
        /// The journal's folder.
        dir: PathBuf,
        /// The disk's own words, which name the file.
        source: io::Error,
    },
    /// The writer was used again after it had failed.
    #[error(
        "the journal {} takes nothing more after it failed to write once. Everything up to the last commit is kept: \
         continue with `polity resume {}`", dir.display(), run(dir).display()
    )]
    Stopped {
        /// The journal's folder.
        dir: PathBuf,
    },
}

/// The run's folder, which holds the journal's.
fn run(dir: &Path) -> &Path {
    dir.parent().unwrap_or(dir)
}

/// Makes the errors of one journal.
fn format_error(dir: &Path) -> impl Fn(FormatError) -> JournalError {
    move |source| JournalError::Format { dir: dir.to_owned(), source }
}

fn disk_error(dir: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::DiskFull { dir: dir.to_owned(), source },
        _ => JournalError::Disk { dir: dir.to_owned(), source },
    }
}

/// Where a journal that was read to its end goes on. Made only by [`JournalReader::next_segment`] at that end.
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
}

/// Reads a journal, holding one segment at a time in memory.
pub struct JournalReader {
    disk: Arc<dyn Disk>,
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
    /// Its whole records, in the order in which they were appended.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        records(&self.verified)
    }
}

impl JournalReader {
    /// Finds the segments of the journal in `dir`; files that are no segments are left alone.
    ///
    /// # Errors
    /// [`JournalError`] when the folder can not be read, holds no segment, or lacks one between others.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, JournalError> {
        let segments = segments(&*disk, dir)?;
        let last = *segments.last().ok_or_else(|| format_error(dir)(FormatError::NeverStarted))?;
        match (FIRST_SEGMENT..).zip(&segments).find(|(expected, found)| expected != *found) {
            Some((segment, _)) => Err(JournalError::Missing { dir: dir.to_owned(), segment }),
            None => Ok(JournalReader { disk, dir: dir.to_owned(), last, next: FIRST_SEGMENT, chain: 0, end: None }),
        }
    }

    /// Reads and verifies the next segment; `None` after the last.
    ///
    /// # Errors
    /// [`JournalError`] when it can not be read or is not as it was written. The reader stays before it.
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

    /// Where the journal ends; `None` until its last segment was read.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }
}

/// A record that owns its bytes: kind and payload.
pub type OwnedRecord = (u8, Vec<u8>);

/// Reads a whole journal into memory: kinds and payloads in order, and where it ends. For journals known to be small; a
/// [`JournalReader`] holds one segment at a time.
///
/// # Errors
/// Those of [`JournalReader`].
pub fn read_all(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Vec<OwnedRecord>, End), JournalError> {
    let mut reader = JournalReader::open(disk, dir)?;
    let mut all = Vec::new();
    while let Some(segment) = reader.next_segment()? {
        all.extend(segment.records().map(|record| (record.kind, record.payload.to_vec())));
    }
    let end = reader.end().ok_or_else(|| format_error(dir)(FormatError::NeverStarted))?;
    Ok((all, end))
}

/// The numbers of the segments in a folder, sorted; none when there is no folder.
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

/// Appends to a journal. After its first failure it takes nothing more: what then lies at the end of the file is unknown
/// until it is read again.
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

/// A journal that several threads append to. What fails in another thread than the one that drives the run is told to that one, with its
/// next operation.
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
        // A writer that panicked has not said that it stopped; what it wrote is checked when it is read.
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

    /// The same for a thread that does not drive the run: whether it was appended. Why not, is told to the one that does.
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

    /// See [`JournalWriter::commits`].
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).writer.commits()
    }
}

/// A commit under way.
pub struct Commit(std::sync::mpsc::Receiver<io::Result<()>>);

impl Commit {
    /// How it ended, once it has; for [`JournalWriter::committed`].
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
    /// Begins a journal in `dir`, which is made durably if missing (see [`create_dir_durably`]).
    ///
    /// # Errors
    /// [`JournalError::AlreadyStarted`] when there is one, otherwise those of the disk.
    pub fn create(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, JournalError> {
        if !segments(&*disk, dir)?.is_empty() {
            return Err(JournalError::AlreadyStarted { dir: dir.to_owned() });
        }
        create_dir_durably(&*disk, dir).map_err(disk_error(dir))?;
        Self::begin(disk, dir, FIRST_SEGMENT, 0)
    }

    /// Continues a journal where reading it ended: cuts a torn end, and makes durable everything that was read.
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

    /// Makes a segment with nothing but its header, durably.
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

    /// Closes segments at another length than 64 MiB (at most that), such as in tests that want many of them.
    #[must_use]
    pub fn with_segment_target(mut self, bytes: u64) -> Self {
        self.target = bytes.min(SEGMENT_TARGET);
        self
    }

    /// Appends one record. Once this returns, killing the process does not lose it; a power loss may.
    ///
    /// # Errors
    /// As [`JournalWriter::append_batch`].
    pub fn append(&mut self, kind: u8, payload: &[u8]) -> Result<(), JournalError> {
        self.append_batch(&[(kind, payload)])
    }

    /// Appends records (kind and payload) with as few writes as possible: one for each MiB begun.
    ///
    /// # Errors
    /// When a payload is too long, nothing of the batch is appended and the writer stays usable. When the disk fails,
    /// records before the last commit are kept and the writer stops; some of the batch may be found again on reading.
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

    /// Makes everything appended so far durable. Costs nothing when nothing was appended since the last time.
    ///
    /// # Errors
    /// Those of the disk; what was appended since the last commit may then be lost, and the writer stops.
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

    /// Begins to make everything appended so far durable, while more may be appended: it is once [`Commit::wait`] has told so. Without a
    /// thread for it (or a disk that can not) it is done before this returns. `None`: nothing is left to be done.
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
            // Nobody hears it where the run has ended meanwhile.
            let _ = told.send(sync());
        });
        if thread.is_err() {
            return self.commit().map(|()| None);
        }
        self.unsynced = false;
        Ok(Some(Commit(hears)))
    }

    /// Takes in how a commit ended.
    ///
    /// # Errors
    /// As [`JournalWriter::commit`].
    pub fn committed(&mut self, synced: io::Result<()>) -> Result<(), JournalError> {
        self.or_stop(synced)?;
        self.commits += 1;
        Ok(())
    }

    /// How many commits had something to sync, since this writer was made.
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
        // One long record should not hold its memory for the rest of the run.
        self.buffer.shrink_to(2 * PIECE);
        Ok(())
    }

    /// Begins the next segment. The one before is synced first, so that only a last segment can ever be torn.
    fn roll(&mut self) -> Result<(), JournalError> {
        let rolled = self.file.sync().and_then(|()| begin_file(&*self.disk, &self.dir, self.segment + 1, self.chain));
        (self.file, self.len, self.chain) = self.or_stop(rolled)?;
        self.segment += 1;
        self.unsynced = false;
        Ok(())
    }
}

/// Makes a segment's file with its header, durably; returns it with its length and chain.
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
mod tests {
    use super::*;
    use crate::disk::{RealDisk, SimDisk};
    use proptest::prelude::*;

    /// Makes three segments of the 12 records that most tests write.
    const SHORT: u64 = 160;

    fn dir() -> &'static Path {
        Path::new("runs/one/journal")
    }

    fn on(disk: &SimDisk) -> Arc<dyn Disk> {
        Arc::new(disk.clone())
    }

    fn path(segment: u32) -> PathBuf {
        dir().join(segment_name(segment))
    }

    fn read(disk: &SimDisk) -> Result<(Vec<OwnedRecord>, End), JournalError> {
        read_all(on(disk), dir())
    }

    /// The `n`th record: lengths from 0 to 40, and zeros among them.
    fn record(n: usize) -> OwnedRecord {
        (n as u8, (0..n * 11 % 41).map(|i| (i * n) as u8).collect())
    }

    fn first(n: usize) -> Vec<OwnedRecord> {
        (0..n).map(record).collect()
    }

    fn append(writer: &mut JournalWriter, n: usize) -> Result<(), JournalError> {
        let (kind, payload) = record(n);
        writer.append(kind, &payload)
    }

    /// A journal of `n` committed records in short segments.
    fn journal(n: usize, target: u64) -> SimDisk {
        let disk = SimDisk::default();
        let mut writer = JournalWriter::create(on(&disk), dir()).unwrap().with_segment_target(target);
        (0..n).for_each(|n| append(&mut writer, n).unwrap());
        writer.commit().unwrap();
        disk
    }

    fn three_segments() -> SimDisk {
        let disk = journal(12, SHORT);
        assert_eq!(segments(&disk, dir()).unwrap(), [1, 2, 3]);
        assert_eq!(read(&disk).unwrap().0, first(12));
        disk
    }

    fn overwrite(disk: &SimDisk, path: &Path, bytes: &[u8]) {
        disk.create(path).unwrap().write_all(bytes).unwrap();
    }

    /// Reads, then appends record `n` and reads it back: what every resume does.
    fn resume(disk: &SimDisk) -> Result<Vec<OwnedRecord>, JournalError> {
        let (before, end) = read(disk)?;
        let mut writer = JournalWriter::open_at_end(on(disk), dir(), end)?.with_segment_target(SHORT);
        writer.append(77, b"resumed")?;
        writer.commit()?;
        let (mut after, end) = read(disk)?;
        assert!(!end.torn());
        assert_eq!(after.pop(), Some((77, b"resumed".to_vec())));
        assert_eq!(after, before);
        Ok(before)
    }

    #[test]
    fn a_flip_of_any_byte_is_refused_and_its_segment_named() {
        let disk = three_segments();
        for segment in 1..=3 {
            let bytes = disk.read(&path(segment)).unwrap();
            for at in 0..bytes.len() {
                for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= mask;
                    overwrite(&disk, &path(segment), &flipped);
                    let error = read(&disk).expect_err("a flip went unnoticed").to_string();
                    assert!(error.contains(&segment_name(segment)), "byte {at} of {segment}: {error}");
                }
            }
            overwrite(&disk, &path(segment), &bytes);
        }
        assert_eq!(read(&disk).unwrap().0, first(12));
    }

    #[test]
    fn a_cut_at_any_byte_of_the_last_segment_keeps_the_whole_records() {
        let disk = three_segments();
        let bytes = disk.read(&path(3)).unwrap();
        let mut kept = Vec::new();
        for cut in 0..=bytes.len() {
            let disk = disk.after_kill();
            overwrite(&disk, &path(3), &bytes[..cut]);
            let records = resume(&disk).unwrap();
            assert_eq!(records, first(records.len()), "cut at {cut}");
            kept.push(records.len());
        }
        let in_earlier = kept[0];
        assert!((1..12).contains(&in_earlier));
        assert!(kept.is_sorted());
        kept.dedup();
        assert_eq!(kept, (in_earlier..=12).collect::<Vec<_>>(), "each record appears as soon as it is whole");
    }

    #[test]
    fn a_cut_in_an_earlier_segment_is_refused() {
        let disk = three_segments();
        for segment in 1..=2 {
            let bytes = disk.read(&path(segment)).unwrap();
            for cut in 0..bytes.len() {
                overwrite(&disk, &path(segment), &bytes[..cut]);
                let error = read(&disk).expect_err("a lost record went unnoticed").to_string();
                assert!(error.contains(&segment_name(segment)), "cut at {cut} of {segment}: {error}");
            }
            overwrite(&disk, &path(segment), &bytes);
        }
    }

    #[test]
    fn missing_strange_and_foreign_segments() {
        let disk = three_segments();
        disk.rename(&path(2), &dir().join("00000002.journal.old")).unwrap();
        assert!(matches!(read(&disk), Err(JournalError::Missing { segment: 2, .. })));
        disk.rename(&path(1), &path(2)).unwrap();
        assert!(matches!(read(&disk), Err(JournalError::Missing { segment: 1, .. })));

        // The same numbers and lengths, from a run whose records differ.
        let (disk, other) = (three_segments(), SimDisk::default());
        let mut writer = JournalWriter::create(on(&other), dir()).unwrap().with_segment_target(SHORT);
        for n in 0..12 {
            let (kind, payload) = record(n);
            writer.append(kind, &vec![9; payload.len()]).unwrap();
        }
        overwrite(&disk, &path(2), &other.read(&path(2)).unwrap());
        let error = read(&disk).unwrap_err();
        assert!(matches!(error, JournalError::Format { source: FormatError::Detached { segment: 2 }, .. }), "{error}");
    }

    #[test]
    fn a_newer_version_is_refused_with_both_versions() {
        let disk = three_segments();
        let mut bytes = disk.read(&path(1)).unwrap();
        bytes[8] = 3;
        overwrite(&disk, &path(1), &bytes);
        let error = read(&disk).unwrap_err().to_string();
        assert!(error.contains("version 3") && error.contains("up to 1"), "{error}");
    }

    #[test]
    fn a_journal_that_never_started() {
        let disk = SimDisk::default();
        let never =
            |disk: &SimDisk| matches!(read(disk), Err(JournalError::Format { source: FormatError::NeverStarted, .. }));
        assert!(never(&disk), "no folder");
        disk.create_dir_all(dir()).unwrap();
        assert!(never(&disk), "an empty folder");
        overwrite(&disk, &path(1), b"PLTY");
        assert!(never(&disk), "half a header");
    }

    #[test]
    fn a_second_journal_in_one_folder_is_refused() {
        let error = JournalWriter::create(on(&three_segments()), dir()).err().unwrap().to_string();
        assert!(error.contains("polity resume runs/one"), "{error}");
    }

    #[test]
    fn a_segment_longer_than_any_writer_makes_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(segment_name(1));
        // A file with a hole: long, but nothing on the disk.
        std::fs::File::create(&path).unwrap().set_len(MAX_SEGMENT + 1).unwrap();
        let error = read_all(Arc::new(RealDisk), folder.path()).unwrap_err();
        assert!(matches!(error, JournalError::TooLong { segment: 1, .. }), "{error}");
    }

    #[test]
    fn batches_are_one_write_and_commits_one_sync() {
        let disk = journal(0, 1 << 20);
        let (_, end) = read(&disk).unwrap();
        let mut writer = JournalWriter::open_at_end(on(&disk), dir(), end).unwrap();
        let before = disk.operations();
        let all = first(50);
        let batch: Vec<(u8, &[u8])> = all.iter().map(|(kind, payload)| (*kind, payload.as_slice())).collect();
        writer.append_batch(&batch).unwrap();
        assert_eq!(disk.operations() - before, 1);
        assert_eq!(read(&disk.after_kill()).unwrap().0, all, "a kill loses nothing that was appended");
        writer.commit().unwrap();
        writer.commit().unwrap();
        writer.append_batch(&[]).unwrap();
        writer.commit().unwrap();
        assert_eq!((disk.operations() - before, writer.commits()), (2, 1));
    }

    #[test]
    fn long_batches_are_written_in_pieces_over_several_segments() {
        let disk = SimDisk::default();
        let mut writer = JournalWriter::create(on(&disk), dir()).unwrap().with_segment_target(3 << 20);
        let payloads: Vec<Vec<u8>> = (0..9).map(|n| vec![n; 700 << 10]).collect();
        let batch: Vec<(u8, &[u8])> = payloads.iter().map(|payload| (5, payload.as_slice())).collect();
        writer.append_batch(&batch).unwrap();
        writer.commit().unwrap();
        assert_eq!(segments(&disk, dir()).unwrap(), [1, 2]);
        let read = read(&disk).unwrap().0;
        assert!(read.iter().map(|(_, payload)| payload).eq(&payloads));
    }

    #[test]
    fn too_long_a_record_leaves_the_writer_as_it_was() {
        let disk = SimDisk::default();
        let mut writer = JournalWriter::create(on(&disk), dir()).unwrap();
        let refused = writer.append_batch(&[(1, b"a"), (2, &vec![0; MAX_PAYLOAD + 1])]);
        assert!(matches!(refused, Err(JournalError::Format { source: FormatError::TooLarge { .. }, .. })));
        append(&mut writer, 0).unwrap();
        assert_eq!(read(&disk).unwrap().0, first(1));
    }

    #[test]
    fn a_full_disk_stops_the_writer_and_loses_nothing_committed() {
        let whole: u64 = (1..=3).map(|segment| three_segments().len(&path(segment)).unwrap()).sum();
        for capacity in SEGMENT_HEADER as u64..whole {
            let disk = SimDisk::default();
            disk.set_capacity(capacity);
            let mut writer = JournalWriter::create(on(&disk), dir()).unwrap().with_segment_target(SHORT);
            let mut committed = 0;
            let error = (0..12)
                .find_map(|n| {
                    let failed = append(&mut writer, n).and_then(|()| writer.commit()).err();
                    committed += usize::from(failed.is_none());
                    failed
                })
                .unwrap();
            let text = error.to_string();
            assert!(matches!(error, JournalError::DiskFull { .. }), "{text}");
            assert!(text.contains("disk is full") && text.contains("polity resume runs/one"), "{text}");
            disk.set_capacity(u64::MAX);
            assert!(matches!(append(&mut writer, 0), Err(JournalError::Stopped { .. })));
            assert!(matches!(writer.commit(), Err(JournalError::Stopped { .. })));
            assert_eq!(resume(&disk).unwrap(), first(committed), "capacity {capacity}");
        }
    }

    #[test]
    fn a_failed_sync_stops_the_writer() {
        let disk = SimDisk::default();
        let mut writer = JournalWriter::create(on(&disk), dir()).unwrap();
        append(&mut writer, 0).unwrap();
        disk.fail_at(disk.operations(), ErrorKind::Other);
        assert!(matches!(writer.commit(), Err(JournalError::Disk { .. })));
        assert!(matches!(writer.commit(), Err(JournalError::Stopped { .. })));
        assert_eq!(writer.commits(), 0);
    }

    /// Writes 12 records in short segments, committed after every third; stops at the first error.
    /// Returns how many records were appended and how many committed.
    fn write(disk: &SimDisk) -> (usize, usize) {
        let (mut appended, mut committed) = (0, 0);
        let mut work = || {
            let mut writer = JournalWriter::create(on(disk), dir())?.with_segment_target(SHORT);
            for n in 0..12 {
                append(&mut writer, n)?;
                appended = n + 1;
                if appended % 3 == 0 {
                    writer.commit()?;
                    committed = appended;
                }
            }
            Ok::<(), JournalError>(())
        };
        let result = work();
        assert_eq!(result.is_ok(), committed == 12);
        (appended, committed)
    }

    /// Checks one disk after a crash: it has at least `least` and at most `most` records, all right, and goes on.
    fn check(disk: &SimDisk, least: usize, most: usize, what: &str) {
        match resume(disk) {
            Ok(records) => {
                assert!((least..=most).contains(&records.len()), "{what}: {} of {least}..={most}", records.len());
                assert_eq!(records, first(records.len()), "{what}");
            }
            Err(JournalError::Format { source: FormatError::NeverStarted, .. }) => assert_eq!(least, 0, "{what}"),
            Err(error) => panic!("{what}: {error}"),
        }
    }

    #[test]
    fn committed_records_survive_a_crash_at_any_operation_and_every_power_loss() {
        let whole = SimDisk::with_strict_names();
        assert_eq!(write(&whole), (12, 12));
        let mut states = 0;
        for at in 0..=whole.operations() {
            let disk = SimDisk::with_strict_names();
            disk.crash_at(at);
            let (appended, committed) = write(&disk);
            check(&disk.after_kill(), appended, appended, &format!("killed at {at}"));
            for cut in disk.cuts(2000) {
                states += 1;
                check(&disk.after_power_loss(&cut), committed, appended, &format!("{cut:?} at {at}"));
            }
        }
        assert!(states > 500, "{states} states are too few to mean much");
    }

    #[test]
    fn a_new_journal_is_durable_once_made() {
        let disk = SimDisk::with_strict_names();
        create_dir_durably(&disk, dir()).unwrap();
        let _writer = JournalWriter::create(on(&disk), dir()).unwrap();
        for cut in disk.cuts(1000) {
            assert_eq!(read(&disk.after_power_loss(&cut)).unwrap().0, []);
        }
    }

    #[test]
    fn a_crash_while_resuming_loses_nothing_either() {
        // A torn record, and a torn header of a fresh segment.
        for (segment, tail) in [(3, &b"half a rec"[..]), (4, &b"PLTYJR"[..])] {
            let start = || {
                let disk = three_segments();
                disk.append(&path(segment)).unwrap().write_all(tail).unwrap();
                disk.settle();
                disk.after_kill()
            };
            let whole = start();
            assert_eq!(resume(&whole).unwrap(), first(12));
            for at in 0..whole.operations() {
                let disk = start();
                disk.crash_at(at);
                resume(&disk).unwrap_err();
                for cut in disk.cuts(2000) {
                    let (mut records, _) = read(&disk.after_power_loss(&cut)).unwrap();
                    let resumed = records.split_off(12.min(records.len()));
                    assert_eq!(records, first(12), "{cut:?} at {at}");
                    assert!(resumed.is_empty() || resumed == [(77, b"resumed".to_vec())]);
                }
            }
        }
    }

    /// What is read after a kill may be acted on, so it must not be lost by a power loss after that.
    #[test]
    fn opening_makes_durable_what_was_read() {
        let disk = journal(0, SHORT);
        let mut writer = JournalWriter::open_at_end(on(&disk), dir(), read(&disk).unwrap().1).unwrap();
        append(&mut writer, 0).unwrap();
        let killed = disk.after_kill();
        let (_, end) = read(&killed).unwrap();
        let _writer = JournalWriter::open_at_end(on(&killed), dir(), end).unwrap();
        for cut in killed.cuts(100) {
            assert_eq!(read(&killed.after_power_loss(&cut)).unwrap().0, first(1));
        }
    }

    #[test]
    fn the_same_on_a_real_disk() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run/journal");
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let mut writer = JournalWriter::create(disk.clone(), &dir).unwrap().with_segment_target(SHORT);
        (0..12).for_each(|n| append(&mut writer, n).unwrap());
        writer.commit().unwrap();
        drop(writer);
        let last = dir.join(segment_name(3));
        disk.truncate(&last, disk.len(&last).unwrap() - 1).unwrap();
        let (records, end) = read_all(disk.clone(), &dir).unwrap();
        assert_eq!((records, end.torn()), (first(11), true));
        let mut writer = JournalWriter::open_at_end(disk.clone(), &dir, end).unwrap();
        append(&mut writer, 11).unwrap();
        writer.commit().unwrap();
        let (records, end) = read_all(disk, &dir).unwrap();
        assert_eq!((records, end.torn()), (first(12), false));
    }

    proptest! {
        /// Whatever lies in the folder: no panic, and reading twice says the same.
        #[test]
        fn arbitrary_files_are_read_or_refused(
            files in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..4),
            spliced in proptest::option::of((0usize..3, 0usize..200)),
        ) {
            let disk = three_segments();
            for (n, bytes) in files.iter().enumerate() {
                let path = path(n as u32 + 1);
                // Some keep a true beginning, so that what follows it is looked at.
                let mut content = match spliced {
                    Some((which, keep)) if which == n => {
                        let mut old = disk.read(&path).unwrap();
                        old.truncate(keep);
                        old
                    }
                    Some(_) => continue,
                    None => Vec::new(),
                };
                content.extend_from_slice(bytes);
                overwrite(&disk, &path, &content);
            }
            let (once, twice) = (read(&disk), read(&disk));
            prop_assert_eq!(once.as_ref().ok(), twice.as_ref().ok());
            if let Ok((records, _)) = once {
                prop_assert!(records.len() <= 12);
                prop_assert_eq!(&records, &first(records.len()));
            }
        }
    }
}
