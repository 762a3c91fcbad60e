use super::*;
use crate::disk::{RealDisk, SimDisk};
use proptest::prelude::*;

/// Gives three segments for the 12 records of most tests.
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

/// The `n`th record: lengths from 0 to 40, including zero bytes.
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

/// Reads, appends record `n` and reads it back, as every resume does.
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

    // The same numbers and lengths, from a run with different records.
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
    // A sparse file: long, but without data on disk.
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

/// Checks a disk after a crash: it has at least `least` and at most `most` records, all correct, and can continue.
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

/// Records read after a kill may be acted upon, so a later power loss must not lose them.
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
    /// Whatever the folder holds: no panic, and reading twice gives the same result.
    #[test]
    fn arbitrary_files_are_read_or_refused(
        files in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..4),
        spliced in proptest::option::of((0usize..3, 0usize..200)),
    ) {
        let disk = three_segments();
        for (n, bytes) in files.iter().enumerate() {
            let path = path(n as u32 + 1);
            // Some keep a valid start, so that the bytes after it are examined.
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
