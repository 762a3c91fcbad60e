//! Full disks, damaged, foreign and tampered run folders, two processes at once, forks, and Ctrl-C.

use crate::harness;

use crate::harness::{
    Said, contents, copy_folder, forget_the_unrecorded, run, said, scratch, tables, team, verify, write_scenario,
};
use crate::harness::{
    arg, assert_asked_once, assert_same_tables, command, engine, events, oracles, polity, prepared, resume, rules,
};
use polity_kernel::ask::{Asker, EffectId, Outcome};
use polity_kernel::digest::Digest;
use polity_kernel::event::Event;
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk, SimDisk};
use polity_store::journal::{JournalError, JournalWriter};
use polity_store::tables::{ColumnData, TableError};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

// ------------------------------------------------------------------ runs, and what is done to them

/// Runs a scenario to its end with the command.
fn whole(folder: &Path, scenario: &serde_json::Value) -> (PathBuf, Said) {
    let file = write_scenario(folder, scenario);
    let out = folder.join("run");
    let said = polity(&["run", arg(&file), "--out", arg(&out)]);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{said:?}");
    (out, said)
}

fn recorded(run: &Path) -> Vec<Event> {
    events(Arc::new(RealDisk), run).unwrap().0
}

/// Rewrites the journal of a run, with valid checksums.
fn rewrite(run: &Path, change: impl FnOnce(&mut Vec<Event>)) {
    let mut events = recorded(run);
    change(&mut events);
    fs::remove_dir_all(run.join("journal-old")).ok();
    for entry in fs::read_dir(run.join("journal")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|x| x == "journal") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let mut writer = JournalWriter::create(Arc::new(RealDisk), &run.join("journal")).unwrap();
    for event in &events {
        writer.append(event.kind(), &event.encode().unwrap()).unwrap();
    }
    writer.commit().unwrap();
}

/// Makes a run look as if it had been killed right after this round.
fn stop_after(run: &Path, last: u32) {
    rewrite(run, |events| {
        let end = events.iter().position(|e| matches!(e, Event::Round { round, .. } if *round == last)).unwrap();
        events.truncate(end + 1);
    });
    forget_the_unrecorded(run);
}

fn segment(run: &Path) -> PathBuf {
    run.join("journal").join("00000001.journal")
}

/// The segment that closes the journal of an ended run.
fn closing(run: &Path) -> PathBuf {
    run.join("journal").join("00000002.journal")
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

fn refused(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(said.text("status"), "error", "{said:?}");
    assert_eq!(said.json["exit_code"], code, "{said:?}");
    for word in words {
        assert!(said.notes.contains(word), "{word} is not in: {}", said.notes);
        assert!(said.text("error").contains(word), "{word} is not in the JSON: {said:?}");
    }
}

/// Resumes a run and compares it with an uninterrupted one.
fn goes_on(run: &Path, like: &Path, digest: &str, what: &str) {
    let before = recorded(run);
    let said = polity(&["resume", arg(run)]);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{what}: {said:?}");
    assert_eq!(said.text("digest"), digest, "{what}");
    assert_same_tables(&tables(&RealDisk, run), &tables(&RealDisk, like), what);
    assert_asked_once(&before, &recorded(run), what);
    let verified = verify(run);
    assert_eq!(verified.code, Some(0), "{what}: {verified:?}");
}

// ------------------------------------------------------------------ full disks

fn used(disk: &dyn Disk, path: &Path) -> u64 {
    match disk.list(path) {
        Ok(names) => names.iter().map(|name| used(disk, &path.join(name))).sum(),
        Err(_) => disk.len(path).unwrap(),
    }
}

#[test]
fn a_disk_that_fills_up_anywhere() {
    let folder = scratch("faults-full");
    let out = Path::new("runs/one");
    for scenario in [rules(40, 5), oracles(12, 4, 0)] {
        let prepared = prepared(&scenario, &folder);
        let start = |disk: &SimDisk| run(&engine(Arc::new(disk.clone()), 1, None), &prepared, out);
        let whole = SimDisk::default();
        let digest = start(&whole).unwrap().digest;
        let (expected, most) = (tables(&whole, out), used(&whole, Path::new("runs")));
        let (mut full, mut resumed) = (0, 0);
        for capacity in (0..=most + 40_000).step_by((most / 60).max(1) as usize) {
            let disk = SimDisk::default();
            disk.set_capacity(capacity);
            match start(&disk) {
                Ok(summary) => assert_eq!(summary.digest, digest, "capacity {capacity}"),
                Err(error) => {
                    let said_so = match &error {
                        DriveError::Journal(JournalError::DiskFull { .. })
                        | DriveError::Tables(TableError::Full { .. }) => true,
                        DriveError::Disk { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
                        _ => false,
                    };
                    assert!(said_so, "capacity {capacity}: {error}");
                    full += 1;
                }
            }
            let disk = disk.after_kill();
            disk.set_capacity(u64::MAX);
            let summary = match disk.exists(&out.join("manifest.json")).unwrap() {
                true => {
                    resumed += 1;
                    resume(&engine(Arc::new(disk.clone()), 1, None), out)
                }
                false => start(&disk),
            };
            let summary = summary.unwrap_or_else(|e| panic!("capacity {capacity}: {e}"));
            assert_eq!(summary.digest, digest, "capacity {capacity}");
            assert_same_tables(&tables(&disk, out), &expected, &format!("capacity {capacity}"));
        }
        assert!(full > 20 && resumed > 10, "full {full}, resumed {resumed}");
    }
}

/// A file system of the given size, gone when dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(at: &Path, size: &str) -> Option<Tmpfs> {
        fs::create_dir_all(at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Tmpfs(at.to_path_buf()))
    }

    fn grow(&self, size: &str) {
        let grown = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).status().unwrap();
        assert!(grown.success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_real_disk_that_is_full() {
    let folder = scratch("faults-tmpfs");
    let scenario = rules(2000, 10);
    let (like, said) = whole(&folder, &scenario);
    let Some(small) = Tmpfs::mount(&folder.join("small"), "96k") else {
        eprintln!("skipped: no tmpfs can be mounted here");
        return;
    };
    let out = small.0.join("run");
    let full = polity(&["run", arg(&folder.join("scenario.yaml")), "--out", arg(&out)]);
    refused(&full, 4, &["full", "polity resume"]);
    small.grow("64m");
    goes_on(&out, &like, said.text("digest"), "after the disk was full");
}

// ------------------------------------------------------------------ folders that are taken

/// A child process that is killed when the test ends.
struct Running(Child);

impl Running {
    fn start(args: &[&str]) -> Running {
        Running(command(args).spawn().unwrap())
    }

    fn wait_for(&mut self, what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(self.0.try_wait().unwrap().is_none(), "the run ended too early");
            assert!(began.elapsed() < Duration::from_secs(60), "the run does not get there");
            sleep(Duration::from_millis(1));
        }
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn journal_len(run: &Path) -> u64 {
    fs::metadata(segment(run)).map_or(0, |m| m.len())
}

#[test]
fn two_processes_on_one_folder() {
    let folder = scratch("faults-two");
    let file = write_scenario(&folder, &rules(20_000, 100_000));
    let out = folder.join("run");
    let mut first = Running::start(&["run", arg(&file), "--out", arg(&out)]);
    first.wait_for(|| out.join("manifest.json").exists());
    refused(&polity(&["resume", arg(&out)]), 3, &["another process is working on", arg(&out)]);
    refused(&polity(&["run", arg(&file), "--out", arg(&out)]), 3, &["already holds a run", "polity resume"]);
    drop(first);
    // A lock ends with its process.
    let mut second = Running::start(&["resume", arg(&out)]);
    let before = journal_len(&out);
    second.wait_for(|| journal_len(&out) > before);
}

/// Contents of a folder, by path.
#[test]
fn a_folder_of_others_is_refused_and_left_alone() {
    let folder = scratch("faults-mine");
    let file = write_scenario(&folder, &rules(20, 2));
    fs::write(
        folder.join("design.yaml"),
        fs::read_to_string(&file).unwrap().replacen('{', "{\"design\": {\"seeds\": 2},", 1),
    )
    .unwrap();
    let design = folder.join("design.yaml");
    let items = folder.join("items.jsonl");
    fs::write(&items, "{\"question\": \"1 + 1\", \"answer\": \"2\"}\n".repeat(5)).unwrap();
    let mine = folder.join("project");
    let task = ["--task", arg(&items), "--model", "sim/medium"];
    let verbs: [Vec<&str>; 6] = [
        vec!["run", arg(&file)],
        vec!["sweep", arg(&design)],
        [&["eval", "--method", "single"][..], &task].concat(),
        [&["eval", "--method", "single", "--repeats", "2"][..], &task].concat(),
        [&["compare", "single", "debate"][..], &task].concat(),
        vec!["systems", "check", "debate", "--quick"],
    ];
    let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    // A usual project; one with a file called lock; one with only our file names, but not our files; and leftovers of a crash with a
    // user's file among them.
    let projects: [&[(&str, &str)]; 4] = [
        &[("inputs/my-survey.csv", "1,2"), ("tables/thesis-table.tex", "a & b"), ("journal/2026.md", "dear diary")],
        &[("lock", "combination 1234"), ("inspect/log.json", "{}"), ("runs/notes.txt", "mine")],
        &[("journal/00000001.journal", "dear diary"), ("inputs/0-survey.csv", "1,2")],
        &[
            ("lock", "polity\n"),
            ("journal/00000001.journal", "x"),
            ("inputs/0-items.csv", "1"),
            ("tables/acts/mine.csv", "1"),
        ],
    ];
    for project in projects {
        for verb in &verbs {
            let _ = fs::remove_dir_all(&mine);
            for (name, text) in project {
                fs::create_dir_all(mine.join(name).parent().unwrap()).unwrap();
                fs::write(mine.join(name), text).unwrap();
            }
            let for_several = ["compare", "systems"].contains(&verb[0]) || verb.contains(&"--repeats");
            let shared = for_several && project[0].1 == "polity\n";
            if shared {
                // Folders for several runs accept such leftovers. No user file in them is removed.
                let systems = if verb[0] == "systems" { &["--systems", arg(&systems)][..] } else { &[] };
                polity(&[&verb[..], &["--out", arg(&mine)], systems].concat());
                assert_eq!(fs::read(mine.join("tables/acts/mine.csv")).unwrap(), b"1", "{verb:?}");
                continue;
            }
            let before = contents(&mine);
            let mut args = [&verb[..], &["--out", arg(&mine)]].concat();
            if verb[0] == "systems" {
                args.extend(["--systems", arg(&systems)]);
            }
            let said = polity(&args);
            assert_eq!(said.code, Some(3), "{verb:?} {project:?}: {said:?}");
            let named = project.iter().any(|(name, _)| name.split('/').any(|part| said.notes.contains(part)));
            assert!(said.notes.contains("is not empty") && named, "{verb:?} {project:?}: {}", said.notes);
            assert_eq!(contents(&mine), before, "{verb:?} {project:?}");
        }
    }
    // Leftovers of our own crash are no obstacle, and neither is an empty folder.
    let _ = fs::remove_dir_all(&mine);
    for left in [&[][..], &["lock"], &["lock", "journal/00000001.journal", "inputs/0-items.csv", "manifest.json.tmp"]] {
        let _ = fs::remove_dir_all(&mine);
        fs::create_dir_all(&mine).unwrap();
        for name in left {
            fs::create_dir_all(mine.join(name).parent().unwrap()).unwrap();
            fs::write(mine.join(name), if *name == "lock" { "polity\n" } else { "cut off" }).unwrap();
        }
        let said = polity(&["run", arg(&file), "--out", arg(&mine)]);
        assert_eq!(said.code, Some(0), "{left:?}: {said:?}");
        assert!(!mine.join("inputs/0-items.csv").exists());
        assert_eq!(verify(&mine).code, Some(0));
    }
}

#[test]
fn folders_that_hold_something_else() {
    let folder = scratch("faults-folder");
    let (out, _) = whole(&folder, &rules(40, 3));
    let file = folder.join("scenario.yaml");
    refused(&polity(&["run", arg(&file), "--out", arg(&out)]), 3, &["already holds a run"]);
    let other = folder.join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("thesis.txt"), "years of work").unwrap();
    refused(&polity(&["run", arg(&file), "--out", arg(&other)]), 3, &["not empty", "thesis.txt"]);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "nothing was written there");
    refused(&polity(&["resume", arg(&other)]), 3, &["no run that began"]);
    refused(&polity(&["resume", arg(&folder.join("none"))]), 3, &["does not exist"]);
}

// ------------------------------------------------------------------ damage

#[test]
fn a_torn_journal_goes_on() {
    for (name, scenario) in [("rules", 0), ("debate", 1)] {
        let folder = scratch(&format!("faults-torn-{name}"));
        let scenario = if scenario == 0 { rules(200, 8) } else { team(&folder, "debate", 12, 3) };
        let (like, said) = whole(&folder, &scenario);
        let len = journal_len(&like);
        for cut in [1, 5, 40, 200, len / 3, len / 2] {
            let torn = folder.join("torn");
            copy_folder(&like, &torn);
            // The end of the run is removed with the segment that closes its journal, and everything recorded in it.
            fs::remove_file(closing(&torn)).unwrap();
            let file = fs::OpenOptions::new().write(true).open(segment(&torn)).unwrap();
            file.set_len(len - cut).unwrap();
            forget_the_unrecorded(&torn);
            goes_on(&torn, &like, said.text("digest"), &format!("{name}: {cut} bytes less"));
        }
        // No crash removes the first record: it was durable before the manifest existed.
        let torn = folder.join("torn");
        copy_folder(&like, &torn);
        fs::remove_file(closing(&torn)).unwrap();
        let file = fs::OpenOptions::new().write(true).open(segment(&torn)).unwrap();
        file.set_len(30).unwrap();
        refused(&polity(&["resume", arg(&torn)]), 3, &["lost its first record"]);
    }
}

#[test]
fn a_damaged_journal_is_refused() {
    let folder = scratch("faults-flip");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let len = journal_len(&like) as usize;
    for at in [1, 13, 30, 60, len / 3, len / 2, len - 3] {
        let bad = folder.join("bad");
        copy_folder(&like, &bad);
        flip(&segment(&bad), at);
        for verb in ["resume", "replay"] {
            refused(&polity(&[verb, arg(&bad)]), 3, &["00000001.journal"]);
        }
        assert_eq!(journal_len(&bad) as usize, len, "a damaged journal is left as it is");
    }
    let newer = folder.join("newer");
    copy_folder(&like, &newer);
    let mut bytes = fs::read(segment(&newer)).unwrap();
    bytes[8] = 9;
    fs::write(segment(&newer), bytes).unwrap();
    refused(&polity(&["resume", arg(&newer)]), 3, &["version 9", "up to 1"]);
}

#[test]
fn a_damaged_snapshot_is_refused_and_an_older_state_goes_on() {
    let folder = scratch("faults-snapshot");
    let (like, said) = whole(&folder, &rules(200, 9));
    let bad = folder.join("bad");
    copy_folder(&like, &bad);
    stop_after(&bad, 7);
    let snapshot = |round: u32| bad.join("journal").join(format!("snapshot-{round:010}.bin"));
    // The journal now ends before the record of the snapshot of round 8; the one of round 6 is the newest valid one.
    assert!(snapshot(8).exists() && snapshot(6).exists());
    flip(&snapshot(6), 20);
    refused(&polity(&["resume", arg(&bad)]), 3, &["snapshot-0000000006.bin", "damaged"]);
    fs::remove_file(snapshot(6)).unwrap();
    goes_on(&bad, &like, said.text("digest"), "without its snapshots");
}

#[test]
fn a_changed_manifest_or_input_is_refused() {
    let folder = scratch("faults-manifest");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let bad = folder.join("bad");
    let spoil = |file: &Path, from: &str, to: &str| {
        copy_folder(&like, &bad);
        stop_after(&bad, 0);
        let text = fs::read_to_string(bad.join(file)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(bad.join(file), text.replacen(from, to, 1)).unwrap();
    };
    let fork = folder.join("fork");
    let verbs: [&[&str]; 3] =
        [&["resume", arg(&bad)], &["replay", arg(&bad)], &["fork", arg(&bad), "--at", "1", "--out", arg(&fork)]];
    for verb in verbs {
        spoil(Path::new("manifest.json"), "\"seed\": 11,\n    \"rounds\"", "\"seed\": 12,\n    \"rounds\"");
        refused(&polity(verb), 3, &["manifest", "was changed after the run began"]);
        spoil(Path::new("inputs/0-items.jsonl"), "What is 3", "What is 4");
        refused(&polity(verb), 3, &["0-items.jsonl", "was changed after the run began"]);
        assert!(!fork.exists());
    }
    let manifest: Value = serde_json::from_slice(&fs::read(like.join("manifest.json")).unwrap()).unwrap();
    let now = manifest["format"].as_u64().unwrap();
    let written = |format: u64| format!("\"format\": {format}");
    spoil(Path::new("manifest.json"), &written(now), &written(now + 1));
    refused(&polity(&["resume", arg(&bad)]), 3, &[&format!("format {}", now + 1), &format!("up to {now}")]);
    spoil(Path::new("manifest.json"), &written(now), &written(1));
    let reads = format!("this build reads {now}");
    refused(&polity(&["resume", arg(&bad)]), 3, &["format 1", &reads, "the build that began"]);
}

#[test]
fn a_manifest_that_changes_by_right_is_journaled_and_no_other_change_is_taken() {
    let folder = scratch("faults-manifest-changes");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let run = folder.join("changed");
    copy_folder(&like, &run);
    stop_after(&run, 0);
    let before = fs::read_to_string(run.join("manifest.json")).unwrap();
    let said = polity(&["resume", arg(&run), "--batch"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let after = fs::read_to_string(run.join("manifest.json")).unwrap();
    assert!(!before.contains("\"batch\"") && after.contains("\"batch\": true"), "{after}");
    let texts: Vec<String> = recorded(&run)
        .into_iter()
        .filter_map(|event| match event {
            Event::Manifest(text) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [before.clone(), after.clone()], "word for word, and before it is in the file");
    assert_eq!(verify(&run).code, Some(0));
    // The earlier content is no longer valid.
    fs::write(run.join("manifest.json"), &before).unwrap();
    for verb in ["replay", "resume"] {
        refused(&polity(&[verb, arg(&run)]), 3, &["manifest.json", "`batch` is gone"]);
    }
    refused_by_verify(&run, &["manifest.json", "`batch` is gone"]);
    // But if a kill came between the record and the file, resuming repairs it.
    stop_after(&run, 1);
    let verified = verify(&run);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(polity(&["resume", arg(&run)]).code, Some(0));
    assert_eq!(fs::read_to_string(run.join("manifest.json")).unwrap(), after);
}

fn refused_by_verify(run: &Path, words: &[&str]) {
    let said = verify(run);
    assert_eq!((said.code, said.text("status")), (Some(3), "damaged"), "{said:?}");
    for word in words {
        assert!(said.notes.contains(word) && said.json.to_string().contains(word), "{word} is not in {said:?}");
    }
}

/// Changes manifest.json and the journal's copy of it in the same way.
fn forge(run: &Path, from: &str, to: &str) {
    rewrite(run, |events| {
        let Some(Event::Manifest(text)) = events.first_mut() else { panic!("it begins with the manifest") };
        assert!(text.contains(from), "{text}");
        *text = text.replacen(from, to, 1);
        fs::write(run.join("manifest.json"), text).unwrap();
    });
}

#[test]
fn what_follows_from_the_scenario_is_not_taken_from_the_manifest() {
    let folder = scratch("faults-derived");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let bad = folder.join("bad");
    let forgeries = [
        ("\"simulated\": true", "\"simulated\": false", "`simulated` is false"),
        ("\"models\": [\n    \"sim/medium\"", "\"models\": [\n    \"openai/gpt-5\"", "`models` is [\"openai/gpt-5\"]"),
        ("\"seed\": 11,\n  \"build\"", "\"seed\": 42,\n  \"build\"", "`seed` is 42"),
        ("\"activation\": null", "\"activation\": \"random-order\"", "`activation` is Some(RandomOrder)"),
    ];
    for (from, to, says) in forgeries {
        copy_folder(&like, &bad);
        forge(&bad, from, to);
        for verb in ["resume", "replay"] {
            refused(&polity(&[verb, arg(&bad)]), 3, &["manifest.json", says]);
        }
    }
    // Another build is reported, but not refused.
    copy_folder(&like, &bad);
    forge(&bad, &format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")), "\"version\": \"9.9.9\"");
    for verb in ["replay", "resume"] {
        let said = polity(&[verb, arg(&bad)]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.notes.contains("was begun by polity 9.9.9"), "{said:?}");
        let own = polity(&[verb, arg(&like)]);
        assert!(!own.notes.contains("was begun by"), "{own:?}");
    }
}

#[test]
fn inputs_that_are_gone_or_were_added_are_named() {
    let folder = scratch("faults-inputs");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let bad = folder.join("bad");
    copy_folder(&like, &bad);
    stop_after(&bad, 0);
    fs::write(bad.join("inputs/1-more.csv"), "a,b").unwrap();
    for verb in ["resume", "replay"] {
        refused(&polity(&[verb, arg(&bad)]), 3, &["inputs/1-more.csv", "the run does not read this file"]);
    }
    refused_by_verify(&bad, &["inputs/1-more.csv"]);
    fs::remove_file(bad.join("inputs/1-more.csv")).unwrap();
    fs::remove_file(bad.join("inputs/0-items.jsonl")).unwrap();
    for verb in ["resume", "replay"] {
        refused(&polity(&[verb, arg(&bad)]), 3, &["inputs/0-items.jsonl", "it is gone"]);
    }
    refused_by_verify(&bad, &["inputs/0-items.jsonl"]);
}

/// Runs a command; hanging is a failure of the test.
fn in_time(args: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    let streams = (Stdio::null(), Stdio::piped(), Stdio::piped());
    let mut running = Running(command.args(args).stdin(streams.0).stdout(streams.1).stderr(streams.2).spawn().unwrap());
    let began = Instant::now();
    while running.0.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{args:?} hangs");
        sleep(Duration::from_millis(2));
    }
    ended(running)
}

#[test]
#[cfg(unix)]
fn links_pipes_and_devices_in_a_run_folder_are_refused_at_once() {
    use std::os::unix::fs::symlink;
    let folder = scratch("faults-irregular");
    let (like, _) = whole(&folder, &team(&folder, "debate", 5, 2));
    let outside = folder.join("outside");
    copy_folder(&like.join("tables/acts"), &outside);
    fs::write(outside.join("part-000900-000901.parquet"), "somebody's").unwrap();
    let before = contents(&outside);
    let bad = folder.join("bad");
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let (manifest, input, acts) = ("manifest.json", "inputs/0-items.jsonl", "tables/acts");
    type Make<'a> = &'a dyn Fn(&Path);
    let crafted: [(&str, Make<'_>); 8] = [
        (manifest, &|path| fifo(path)),
        (input, &|path| fifo(path)),
        (manifest, &|path| symlink("/dev/zero", path).unwrap()),
        (input, &|path| symlink("/dev/zero", path).unwrap()),
        (input, &|path| symlink("/etc/passwd", path).unwrap()),
        (acts, &|path| symlink(&outside, path).unwrap()),
        ("journal/00000003.journal", &|path| fifo(path)),
        ("people", &|path| symlink(&outside, path).unwrap()),
    ];
    for (name, make) in crafted {
        copy_folder(&like, &bad);
        stop_after(&bad, 0);
        let path = bad.join(name);
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        make(&path);
        let fork = folder.join("fork");
        let verbs: [&[&str]; 7] = [
            &["resume", arg(&bad)],
            &["replay", arg(&bad)],
            &["fork", arg(&bad), "--at", "0", "--out", arg(&fork)],
            &["verify", arg(&bad)],
            &["export", arg(&bad), "--table", "acts"],
            &["report", arg(&bad)],
            &["calls", arg(&bad)],
        ];
        for verb in verbs {
            let said = in_time(verb);
            assert_eq!(said.code, Some(3), "{name}: {verb:?}: {said:?}");
            assert!(said.notes.contains(name), "{name}: {verb:?}: {said:?}");
        }
        assert_eq!(contents(&outside), before, "{name}: nothing outside is touched");
        assert!(!fork.exists(), "{name}");
    }
}

#[test]
fn a_table_is_a_table_of_the_run() {
    let folder = scratch("faults-tables");
    let (one, _) = whole(&folder, &rules(20, 3));
    for table in ["../../run/tables/acts", "../tables/acts", "/etc", "acts/../acts", "nothing", ""] {
        let mut export = Command::new(env!("CARGO_BIN_EXE_polity"));
        let said = export.args(["export", arg(&one), "--table", table]).output().unwrap();
        let notes = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(3) && notes.contains("has no table"), "{table}: {notes}");
        assert!(said.stdout.is_empty());
    }
}

// ------------------------------------------------------------------ tampering

fn differs(said: &Said, round: u32) {
    assert_eq!((said.code, said.text("status")), (Some(5), "different"), "{said:?}");
    assert_eq!(said.json["first_difference"], round, "{said:?}");
    assert!(said.notes.contains(&format!("round {round} is the first")), "{said:?}");
}

#[test]
fn a_tampered_digest_is_named() {
    let folder = scratch("faults-digest");
    let (like, said) = whole(&folder, &rules(100, 8));
    let clean = polity(&["replay", arg(&like)]);
    assert_eq!((clean.code, clean.text("status"), clean.text("digest")), (Some(0), "same", said.text("digest")));
    assert!(clean.json["first_difference"].is_null());
    let bad = folder.join("bad");
    copy_folder(&like, &bad);
    let tamper = |events: &mut Vec<Event>| {
        for event in events {
            if let Event::Round { round: 3, sum, .. } = event {
                *sum = Digest::default();
            }
        }
    };
    rewrite(&bad, tamper);
    differs(&polity(&["replay", arg(&bad)]), 3);
    // A run that is resumed before the tampered round stops there. (From the snapshot after it, it would not see it.)
    stop_after(&bad, 4);
    for entry in fs::read_dir(bad.join("journal")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("snapshot") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    refused(&polity(&["resume", arg(&bad)]), 5, &["round 3 differs from its record"]);
}

fn with_answers(events: &mut Vec<Event>, mut change: impl FnMut(&mut Vec<polity_kernel::ask::Answer>)) {
    for event in events {
        if let Event::Answers(answers) = event {
            change(answers);
        }
    }
}

#[test]
fn tampered_answers_are_named() {
    let folder = scratch("faults-answer");
    let (like, _) = whole(&folder, &team(&folder, "debate", 8, 4));
    let bad = folder.join("bad");
    // Answers of round 1 are read by the others in round 2, so later questions differ from the recorded ones.
    for round in [1, 3] {
        copy_folder(&like, &bad);
        let id = EffectId { item: 2, round, actor: 1, asker: Asker::Member, n: 0 };
        let mut found = false;
        rewrite(&bad, |events| {
            with_answers(events, |answers| {
                for answer in answers.iter_mut().filter(|a| a.id == id) {
                    found = true;
                    answer.outcome = Outcome::Refused { raw: "I never said that.".into() };
                }
            });
        });
        assert!(found);
        differs(&polity(&["replay", arg(&bad)]), round);
    }

    copy_folder(&like, &bad);
    let id = EffectId { item: 5, round: 2, actor: 0, asker: Asker::Member, n: 0 };
    rewrite(&bad, |events| with_answers(events, |answers| answers.retain(|a| a.id != id)));
    refused(&polity(&["replay", arg(&bad)]), 5, &["no answer to the request", &id.to_string(), "makes no calls"]);

    copy_folder(&like, &bad);
    rewrite(&bad, |events| {
        with_answers(events, |answers| {
            for answer in answers.iter_mut().filter(|a| a.id == id) {
                answer.request.sample += 1;
            }
        });
    });
    refused(&polity(&["replay", arg(&bad)]), 5, &["recorded for another request", &id.to_string()]);
    // Resuming it gives the same error, and asks no model.
    stop_after(&bad, 1);
    rewrite(&bad, |events| {
        let all = recorded(&like);
        events.extend(all.into_iter().filter(|event| matches!(event, Event::Answers(_))));
        with_answers(events, |answers| {
            for answer in answers.iter_mut().filter(|a| a.id.round == 2) {
                answer.request.sample += 1;
            }
        });
    });
    refused(&polity(&["resume", arg(&bad)]), 5, &["recorded for another request"]);
}

// ------------------------------------------------------------------ forks

fn digests(run: &Path) -> Vec<String> {
    let tables = tables(&RealDisk, run);
    match tables["rounds"].iter().find(|(name, _)| name == "digest") {
        Some((_, ColumnData::Text(texts))) => texts.iter().map(|text| text.clone().unwrap()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Forks, compares with the parent, and puts the fork through a kill, a resume and a replay.
fn forked(parent: &Path, at: usize, change: &str, stop: u32) {
    let folder = parent.parent().unwrap();
    let out = folder.join("fork");
    let number = at.to_string();
    let args = ["fork", arg(parent), "--at", &number, "-P", change, "--out", arg(&out)];
    let said = polity(&args);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{said:?}");
    let (old, new) = (digests(parent), digests(&out));
    assert_eq!(old[..at], new[..at], "rounds before the fork");
    assert!(old[at..] != new[at..], "a change that changes nothing");
    let past = |events: &[Event]| {
        let mut answers = harness::answers(events);
        answers.retain(|id, _| (id.round as usize) < at);
        answers
    };
    assert_eq!(past(&recorded(parent)), past(&recorded(&out)), "the fork asked again what its parent knows");

    let replayed = polity(&["replay", arg(&out)]);
    assert_eq!((replayed.code, replayed.text("status")), (Some(0), "same"), "{replayed:?}");
    assert_eq!(replayed.text("digest"), said.text("digest"));

    let stopped = folder.join("fork-stopped");
    copy_folder(&out, &stopped);
    stop_after(&stopped, stop);
    goes_on(&stopped, &out, said.text("digest"), "a fork that was stopped");

    let killed = folder.join("fork-killed");
    let mut args = args;
    args[7] = arg(&killed);
    let mut child = Running::start(&args);
    while child.0.try_wait().unwrap().is_none() && !killed.join("manifest.json").exists() {
        sleep(Duration::from_micros(200));
    }
    drop(child);
    goes_on(&killed, &out, said.text("digest"), "a fork that was killed");
}

#[test]
fn a_fork_of_a_society() {
    let folder = scratch("faults-fork");
    let (parent, _) = whole(&folder, &rules(500, 10));
    forked(&parent, 4, "world.fraction=0.3", 6);
}

#[test]
fn a_fork_of_a_team() {
    let folder = scratch("faults-fork-team");
    // More items than the window holds.
    let (parent, _) = whole(&folder, &team(&folder, "debate", 9, 3));
    forked(&parent, 1, "method.show_reasons=false", 1);
}

#[test]
fn a_fork_beyond_the_record_is_refused() {
    let folder = scratch("faults-fork-far");
    let (parent, _) = whole(&folder, &rules(20, 3));
    let out = folder.join("fork");
    refused(&polity(&["fork", arg(&parent), "--at", "4", "--out", arg(&out)]), 2, &["3 complete rounds"]);
    assert!(!out.exists());
}

// ------------------------------------------------------------------ Ctrl-C

#[test]
fn ctrl_c_saves_and_the_run_goes_on() {
    let folder = scratch("faults-interrupt");
    let (like, said) = whole(&folder, &rules(4000, 40));
    let out = folder.join("stopped");
    let mut child = Running::start(&["run", arg(&folder.join("scenario.yaml")), "--out", arg(&out)]);
    child.wait_for(|| journal_len(&out) > 100);
    child.interrupt();
    let stopped = ended(child);
    assert_eq!((stopped.code, stopped.text("status")), (Some(6), "stopped"), "{stopped:?}");
    let rounds = stopped.json["rounds"].as_u64().unwrap();
    assert!((1..40).contains(&rounds), "{stopped:?}");
    // The stop saves the state before the next round, whatever the plan of snapshots says.
    assert!(out.join("journal").join(format!("snapshot-{rounds:010}.bin")).exists());
    assert_eq!(tables(&RealDisk, &out)["rounds"][0].1.rows() as u64, rounds, "the tables are up to date");
    let replayed = polity(&["replay", arg(&out)]);
    assert_eq!((replayed.code, replayed.text("status")), (Some(0), "same"), "{replayed:?}");
    assert_eq!(replayed.text("digest"), stopped.text("digest"));
    goes_on(&out, &like, said.text("digest"), "after Ctrl-C");
}

fn ended(mut child: Running) -> Said {
    let output = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            let read = |pipe: Option<&mut dyn std::io::Read>| {
                let mut bytes = Vec::new();
                pipe.map(|pipe| pipe.read_to_end(&mut bytes));
                bytes
            };
            let stdout = read(child.0.stdout.as_mut().map(|p| p as &mut dyn std::io::Read));
            let stderr = read(child.0.stderr.as_mut().map(|p| p as &mut dyn std::io::Read));
            break std::process::Output { status, stdout, stderr };
        }
        sleep(Duration::from_millis(1));
    };
    said(&output)
}

#[test]
fn ctrl_c_twice_stops_at_once() {
    let folder = scratch("faults-interrupt-twice");
    let file = write_scenario(&folder, &rules(400_000, 1000));
    let out = folder.join("run");
    // A round takes long enough that both usually fall into one.
    let at_once = (0..20).any(|_| {
        let _ = std::fs::remove_dir_all(&out);
        let mut child = Running::start(&["run", arg(&file), "--out", arg(&out)]);
        child.wait_for(|| journal_len(&out) > 100);
        child.interrupt();
        sleep(Duration::from_millis(2));
        child.interrupt();
        let stopped = ended(child);
        assert_eq!(stopped.code, Some(6), "{stopped:?}");
        let finished = recorded(&out).iter().any(|event| matches!(event, Event::Stopped { .. }));
        assert!(finished || stopped.notes.contains("stopped; `polity resume "), "{stopped:?}");
        !finished
    });
    assert!(at_once, "what was in flight was finished each time");
    // It can be resumed.
    let mut child = Running::start(&["resume", arg(&out)]);
    let before = journal_len(&out);
    child.wait_for(|| journal_len(&out) > before);
}
