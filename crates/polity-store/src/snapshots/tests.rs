//! Snapshots of made-up states on a simulated disk: read back, damaged, deleted, cleared, truncated.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::*;
use crate::disk::SimDisk;
use polity_kernel::Bug;
use polity_kernel::ask::{Answer, Effect};
use polity_kernel::machine::Step;
use polity_kernel::rng::{Draws, Stream};
use proptest::prelude::*;

const DIR: &str = "run/journal";

/// A machine that consists only of its state; it yields pieces of uneven lengths.
struct State {
    round: u32,
    bytes: Vec<u8>,
}

impl Machine for State {
    fn poll(&mut self, _: Vec<Answer>) -> Result<Step, Bug> {
        Err(Bug::Internal("it does nothing".into()))
    }

    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug> {
        self.bytes.chunks(10_007).for_each(|piece| to.take(piece));
        Ok(())
    }

    fn next_round(&self) -> u32 {
        self.round
    }

    fn open_effects(&self) -> Vec<Effect> {
        Vec::new()
    }
}

fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut draws = Draws::new(seed, Stream::Driver, 0, 0);
    (0..n).map(|_| draws.below(256) as u8).collect()
}

/// A run's snapshots, and their entries in its journal.
struct Run {
    disk: SimDisk,
    store: Snapshots,
    named: Vec<(u32, Digest)>,
}

fn store(disk: &SimDisk) -> Snapshots {
    Snapshots::new(Arc::new(disk.clone()), DIR.into())
}

impl Run {
    fn new() -> Run {
        let disk = SimDisk::default();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        disk.settle();
        Run { store: store(&disk), disk, named: Vec::new() }
    }

    fn save(&mut self, round: u32, bytes: &[u8]) {
        let digest = self.store.save(&State { round, bytes: bytes.to_vec() }, 1).unwrap();
        self.named.push((round, digest));
        self.store.clear().unwrap();
    }

    fn files(&self) -> Vec<u32> {
        rounds(&self.disk, Path::new(DIR)).unwrap()
    }

    fn len(&self, round: u32) -> u64 {
        self.disk.len(&self.store.path(round)).unwrap()
    }

    /// What a new process finds.
    fn found(&self) -> Result<Option<(u32, Vec<u8>)>, String> {
        // It removes what it cannot use, here from a copy.
        store(&self.disk.after_kill()).newest(&self.named).map_err(|error| error.to_string())
    }

    /// What a new process finds after a round's file was changed or, with `None`, deleted.
    fn found_with(&self, round: u32, bytes: Option<&[u8]>) -> Result<Option<(u32, Vec<u8>)>, String> {
        let disk = self.disk.after_kill();
        let path = self.store.path(round);
        match bytes {
            Some(bytes) => disk.create(&path).unwrap().write_all(bytes).unwrap(),
            None => disk.remove_file(&path).unwrap(),
        }
        store(&disk).newest(&self.named).map_err(|error| error.to_string())
    }
}

/// A change of a state: position (relative to its length), number of bytes, and whether they are inserted, removed or overwritten.
#[derive(Clone, Debug)]
struct Change(f64, usize, u8);

fn changed(bytes: &mut Vec<u8>, changes: &[Change], seed: u64) {
    for (i, Change(at, n, kind)) in changes.iter().enumerate() {
        let at = (at * bytes.len() as f64) as usize;
        let end = (at + n).min(bytes.len());
        let new = noise(seed ^ i as u64, *n);
        match kind {
            0 => drop(bytes.splice(at..at, new)),
            1 => drop(bytes.drain(at..end)),
            _ => bytes[at..end].copy_from_slice(&new[..end - at]),
        }
    }
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec((0.0..1.0, 1..30_000usize, 0..3u8).prop_map(|(at, n, kind)| Change(at, n, kind)), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After any change, the newest is what was saved last, the one before exists, and no unneeded file exists.
    #[test]
    fn what_was_saved_is_read_back(start in 0..300_000usize, all in proptest::collection::vec(any_changes(), 1..12), seed: u64) {
        let mut run = Run::new();
        let mut bytes = noise(seed, start);
        let mut saved: Vec<(u32, Vec<u8>)> = Vec::new();
        for (i, changes) in all.iter().enumerate() {
            let round = 3 * i as u32 + 1;
            changed(&mut bytes, changes, seed ^ u64::from(round) << 32);
            run.save(round, &bytes);
            prop_assert_eq!(run.found().unwrap(), Some((round, bytes.clone())));
            // A process that starts here writes the same bytes.
            let mut resumed = Run { disk: run.disk.after_kill(), store: store(&run.disk.after_kill()), named: run.named.clone() };
            resumed.store = store(&resumed.disk);
            prop_assert_eq!(resumed.store.newest(&run.named).unwrap(), Some((round, bytes.clone())));
            resumed.save(round + 1, &bytes);
            prop_assert_eq!(resumed.found().unwrap(), Some((round + 1, bytes.clone())));
            prop_assert_eq!(&resumed.named[i + 1].1, &run.named[i].1, "the same state has the same digest wherever it lies");
            // Each file is needed: without it, one of the two kept snapshots is lost.
            let files = run.files();
            for file in &files {
                let without = run.found_with(*file, None).unwrap();
                let lost_newest = without.as_ref().is_none_or(|(found, _)| *found != round);
                let before_needs = saved.last().is_some_and(|before| {
                    let older = Run { named: run.named[..i].to_vec(), disk: run.disk.clone(), store: store(&run.disk) };
                    older.found_with(*file, None).unwrap().as_ref() != Some(before)
                });
                prop_assert!(lost_newest || before_needs, "nobody needs {} of {:?}", file, files);
                prop_assert!(!lost_newest || without.is_none_or(|found| saved.contains(&found)), "something else is found");
            }
            saved.push((round, bytes.clone()));
        }
    }
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let mut run = Run::new();
    let mut bytes = noise(7, 3_000_000);
    run.save(10, &bytes);
    assert!(run.len(10) > 3_000_000 && run.len(10) < 3_010_000, "{}", run.len(10));
    // Unchanged: only a table.
    run.save(20, &bytes);
    let table = run.len(20);
    assert!(table < 10_000, "{table}");
    // A byte overwritten, inserted near the start, or removed: affects one or two chunks.
    bytes[1_000_000] ^= 1;
    run.save(30, &bytes);
    bytes.insert(100, 5);
    run.save(40, &bytes);
    bytes.remove(2_000_000);
    run.save(50, &bytes);
    for round in [30, 40, 50] {
        assert!(run.len(round) < table + 2 * MOST as u64 + 100, "{round}: {}", run.len(round));
    }
    // Appended at the end, removed at the start, like a moving window.
    bytes.drain(..200_000);
    bytes.extend(noise(8, 200_000));
    run.save(60, &bytes);
    assert!(run.len(60) < table + 200_000 + 3 * MOST as u64, "{}", run.len(60));
    assert_eq!(run.found().unwrap(), Some((60, bytes.clone())));
    // Repeated content is written once.
    let twice = [bytes.as_slice(), bytes.as_slice()].concat();
    let mut other = Run::new();
    other.save(1, &twice);
    assert!(other.len(1) < bytes.len() as u64 + 4 * MOST as u64);
    assert_eq!(other.found().unwrap(), Some((1, twice)));
}

#[test]
fn chunks_have_about_the_length_that_they_should() {
    let bytes = noise(1, 4_000_000);
    let (mut at, mut lengths) = (0, Vec::new());
    while let Some(len) = end_of_chunk(&bytes[at..]) {
        lengths.push(len);
        at += len;
    }
    let mean = at / lengths.len();
    assert!(lengths.iter().all(|len| (LEAST..=MOST).contains(len)), "{lengths:?}");
    assert!((17_000..23_000).contains(&mean), "{mean}");
    // Without a content border, the maximum length ends the chunk.
    assert_eq!(end_of_chunk(&vec![0; MOST + 5]), Some(MOST));
    assert_eq!(end_of_chunk(&vec![0; MOST - 1]), None);
}

#[test]
fn the_disk_holds_no_more_after_many_snapshots_than_after_some() {
    let mut draws = Draws::new(4, Stream::Driver, 1, 0);
    for part in [0.003, 0.1, 1.0] {
        let mut run = Run::new();
        let mut bytes = noise(2, 600_000);
        for round in 1..=150 {
            // This share of it changes, in spots of a hundred bytes.
            for _ in 0..(part * 6_000.0) as u32 {
                let at = draws.below(599_900) as usize;
                bytes[at..at + 100].copy_from_slice(&noise(draws.u64(), 100));
            }
            run.save(round, &bytes);
            let (files, held) = (run.files().len(), run.files().iter().map(|round| run.len(*round)).sum::<u64>());
            assert!(files <= FILES + 2 && held < 4 * 600_000, "round {round}, {part}: {files} files, {held} bytes");
        }
        assert_eq!(run.found().unwrap(), Some((150, bytes)));
    }
}

#[test]
fn damage_anywhere_is_refused_and_names_the_file() {
    let mut run = Run::new();
    let mut bytes = noise(3, 120_000);
    run.save(1, &bytes);
    bytes[60_000] ^= 1;
    run.save(2, &bytes);
    bytes.extend(noise(5, 20_000));
    run.save(3, &bytes);
    assert_eq!(run.files(), [1, 2, 3]);
    let whole = run.found().unwrap();
    let (mut refused, mut draws) = (0, Draws::new(3, Stream::Driver, 2, 0));
    for file in run.files() {
        let held = run.disk.read(&run.store.path(file)).unwrap();
        // Every byte near the ends of the file, and some of the others.
        let ends = (0..200).chain(held.len() - 400..held.len());
        let some: Vec<usize> = ends.chain((0..400).map(|_| draws.below(held.len() as u64) as usize)).collect();
        for at in some {
            let mut bad = held.clone();
            bad[at] ^= 1 << draws.below(8);
            match run.found_with(file, Some(&bad)) {
                Ok(found) => assert!(found == whole && file != 3, "byte {at} of {file}: it was not needed"),
                Err(error) => {
                    assert!(error.contains(&snapshot_name(file)) && error.contains("damaged: delete it"), "{error}");
                    refused += 1;
                }
            }
        }
        for cut in [0, 1, TRAILER, held.len() / 2, held.len() - 1] {
            let found = run.found_with(file, Some(&held[..cut]));
            assert!(found.as_ref().is_ok_and(|found| file < 3 && *found == whole) || found.is_err(), "{file} at {cut}");
        }
        // Deleting it, as the message advises, resolves the error.
        let older = run.found_with(file, None).unwrap();
        assert!(older.is_none_or(|(round, _)| round < 3 || file == 2), "{file}");
    }
    assert!(refused > 1_500, "{refused}");
    // Another file's content under its name.
    let other = run.disk.read(&run.store.path(2)).unwrap();
    assert!(run.found_with(3, Some(&other)).unwrap_err().contains(&snapshot_name(3)));
}

#[test]
fn names_that_will_be_used_again_are_free() {
    let mut run = Run::new();
    let bytes = noise(6, 200_000);
    for round in [2, 4, 6] {
        run.save(round, &[&bytes[..], &[round as u8]].concat());
    }
    // 6 lost a chunk that only 4 holds: only 2 is left to continue from, if it still exists.
    let mut four = noise(9, 50_000);
    four.extend(&bytes);
    run.save(8, &four);
    run.save(10, &[&four[..], &[1]].concat());
    run.disk.remove_file(&run.store.path(8)).unwrap();
    let mut resumed = store(&run.disk);
    let found = resumed.newest(&run.named).unwrap().map(|(round, _)| round);
    assert!(found.is_none_or(|round| round < 8));
    // The snapshots that refer to it are removed for good before another file takes its name.
    let files = rounds(&run.disk, Path::new(DIR)).unwrap();
    assert!(files.iter().all(|round| *round < 8), "{files:?}");
    resumed.save(&State { round: 8, bytes: four.clone() }, 1).unwrap();
    let cut = run.disk.cuts(2).remove(0);
    assert_eq!(store(&run.disk.after_power_loss(&cut)).newest(&run.named).unwrap(), Some((8, four)));
}

#[test]
fn a_full_disk_and_a_power_loss_leave_the_one_before() {
    let bytes = noise(11, 300_000);
    let next = [&noise(12, 9_000)[..], &bytes].concat();
    let first = || {
        let mut run = Run::new();
        run.save(1, &bytes);
        run.save(2, &bytes);
        run.disk.settle();
        run
    };
    let mut run = first();
    let used: u64 = run.files().iter().map(|round| run.len(*round)).sum();
    run.disk.set_capacity(used + 5_000);
    let error = run.store.save(&State { round: 3, bytes: next.clone() }, 1).unwrap_err();
    assert!(matches!(&error, DriveError::Disk { .. }) && error.to_string().contains("snapshot-0000000003"), "{error}");
    assert_eq!(run.found().unwrap(), Some((2, bytes.clone())));
    assert_eq!(run.disk.list(Path::new(DIR)).unwrap().len(), run.files().len(), "nothing half is left");
    // And it can continue once there is space.
    run.disk.set_capacity(u64::MAX);
    run.save(3, &next);
    assert_eq!(run.found().unwrap(), Some((3, next.clone())));

    let whole = first();
    let before = whole.disk.operations();
    let after = {
        let mut run = first();
        run.save(3, &next);
        run.disk.operations()
    };
    for at in before..=after {
        let mut run = first();
        run.disk.crash_at(at);
        let saved = run.store.save(&State { round: 3, bytes: next.clone() }, 1);
        if let Ok(digest) = &saved {
            run.named.push((3, *digest));
            let _ = run.store.clear();
        }
        for disk in run.disk.cuts(6).iter().map(|cut| run.disk.after_power_loss(cut)) {
            let found = store(&disk).newest(&run.named).unwrap();
            let expected = if saved.is_ok() { (3, &next) } else { (2, &bytes) };
            assert_eq!(found.as_ref().map(|(round, bytes)| (*round, bytes)), Some(expected), "power lost at {at}");
        }
    }
}
