//! Flips, cuts, deletes, swaps, copies and forges every kind of file in a run's folder. Every verb must then refuse with an error that
//! names the file, or print exactly what it prints for the intact run.
//!
//! The long form: `bash scripts/campaigns.sh damage`.

use crate::harness;

use crate::harness::{Tables, arg, copy_folder, from_env, platform, prepared, scratch, tables, team, write_scenario};
use polity_driver::drive::Unwatched;
use polity_driver::results;
use polity_driver::run::Engine;
use polity_driver::verify::verify;
use polity_kernel::event::Event;
use polity_kernel::registry::Registry;
use polity_kernel::rng::{Draws, Stream};
use polity_store::disk::{Disk, RealDisk, SimDisk};
use polity_store::journal::{JournalWriter, read_all};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Number of damages per run in the short form.
const FEW: u32 = 15;
/// Number of damaged runs.
const RUNS: u32 = 6;
/// Threads that cause damage, each in its own folder.
const THREADS: usize = 2;

// ------------------------------------------------------------------ runs

/// A society whose agents act, and send each other messages.
fn society() -> Value {
    json!({
        "name": "talkers", "seed": 4, "rounds": 9, "agents": 40,
        "topology": {"kind": "ring", "neighbours": 4},
        "world": {"kind": "opinion"},
        "cohorts": [{"policy": {"kind": "deffuant-weisbuch", "epsilon": 0.4}}],
        "metrics": [{"kind": "mean", "of": "opinion"}, {"kind": "variance", "of": "opinion"}],
        "record": {"messages": true},
        "snapshot": {"rounds": 2},
    })
}

/// A team that works on items, which are an input.
fn evaluation(folder: &Path) -> Value {
    let mut scenario = team(folder, "debate", 12, 3);
    scenario["max_concurrent"] = 3.into();
    scenario
}

fn files(dir: &Path) -> Vec<PathBuf> {
    fn below(dir: &Path, within: &Path, found: &mut Vec<PathBuf>) {
        for name in RealDisk.list(&dir.join(within)).unwrap() {
            let path = within.join(name);
            match dir.join(&path).is_dir() {
                true => below(dir, &path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    below(dir, Path::new(""), &mut found);
    found
}

/// Writes a folder of a simulated disk as a real one.
fn unload(disk: &SimDisk, from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in disk.list(from).unwrap() {
        let (from, to) = (from.join(&name), to.join(&name));
        match disk.read(&from) {
            Ok(bytes) => fs::write(to, bytes).unwrap(),
            Err(_) => unload(disk, &from, &to),
        }
    }
}

/// An engine whose registry was made once.
fn engine(disk: Arc<dyn Disk>) -> Engine<'static> {
    static REGISTRY: std::sync::OnceLock<Registry> = std::sync::OnceLock::new();
    Engine { registry: REGISTRY.get_or_init(polity::registry), ..harness::engine(disk, 1, None) }
}

/// A run that was killed after its second snapshot, with rows in no closed part.
fn killed(scenario: &Value, folder: &Path, to: &Path) {
    let prepared = prepared(scenario, folder);
    let out = Path::new("run");
    let run = |crash: Option<u64>| {
        let disk = SimDisk::default();
        if let Some(crash) = crash {
            disk.crash_at(crash);
        }
        let done = engine(Arc::new(disk.clone())).run(&prepared, out, &mut Unwatched);
        assert_eq!(done.is_err(), crash.is_some(), "{done:?}");
        disk
    };
    let operations = run(None).operations();
    let crash = (0..operations).find(|at| {
        let disk = run(Some(*at)).after_kill();
        let Ok((events, _)) = harness::events(Arc::new(disk), out) else { return false };
        let snapshots = events.iter().filter(|event| matches!(event, Event::Snapshot { .. })).count();
        snapshots == 2 && matches!(events.last(), Some(Event::Round { .. } | Event::Answers(_)))
    });
    unload(&run(crash).after_kill(), out, to);
}

// ------------------------------------------------------------------ what verbs say

/// The output of a verb, without what differs between processes.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    code: Option<i32>,
    /// Its main output: standard output, a report, a run's summary.
    result: String,
    /// Standard error.
    notes: String,
}

fn polity(args: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).env_remove("POLITY_OUT").env("POLITY_THREADS", "1").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), result: text(&output.stdout), notes: text(&output.stderr) }
}

/// Returns the run's part of a summary.
fn of_the_run(said: &Outcome) -> String {
    let last: Value = serde_json::from_str(said.result.lines().last().unwrap_or_default()).unwrap_or_default();
    let kept = ["status", "digest", "rounds", "agents", "answers", "first_difference", "health", "simulated"];
    kept.map(|key| format!("{key}: {}\n", last[key])).concat()
}

/// Returns the report without its last line, which is its digest, and with another folder name.
fn report(at: &Path) -> String {
    let page = fs::read_to_string(at.join("report.html")).unwrap_or_default();
    let page = page.replace(arg(at), "RUN");
    page.rsplit_once("<!--").map_or(page.clone(), |(page, _)| page.to_string())
}

/// Runs all verbs on the folder; the last resumes the run, or sums it up.
fn verbs(at: &Path, names: &[String]) -> BTreeMap<String, Outcome> {
    let run = arg(at);
    let mut said = BTreeMap::new();
    said.insert("verify".to_string(), polity(&["verify", run, "--json"]));
    for table in names {
        said.insert(format!("export {table}"), polity(&["export", run, "--table", table, "--format", "jsonl"]));
    }
    said.insert("calls".into(), polity(&["calls", run, "--json"]));
    let replayed = polity(&["replay", run, "--json"]);
    said.insert("replay".into(), Outcome { result: of_the_run(&replayed), ..replayed });
    let written = polity(&["report", run]);
    let result = if written.code == Some(0) { report(at) } else { String::new() };
    said.insert("report".into(), Outcome { result, ..written });
    let resumed = polity(&["resume", run, "--json", "--no-report"]);
    said.insert("resume".into(), Outcome { result: of_the_run(&resumed), ..resumed });
    said
}

// ------------------------------------------------------------------ damage

#[derive(Clone, Debug)]
enum Damage {
    Flip(PathBuf, usize, u8),
    Cut(PathBuf, usize),
    Delete(PathBuf),
    Swap(PathBuf, PathBuf),
    /// Copies the first over the second.
    Copy(PathBuf, PathBuf),
    /// Copies under another name.
    Add(PathBuf, PathBuf),
    /// Changes the value of a key of manifest.json.
    Forge(String),
}

impl Damage {
    /// Returns the affected files, one of which an error must name.
    fn files(&self) -> Vec<&Path> {
        match self {
            Damage::Flip(file, ..) | Damage::Cut(file, _) | Damage::Delete(file) => vec![file],
            Damage::Swap(a, b) => vec![a, b],
            Damage::Copy(_, to) | Damage::Add(_, to) => vec![to],
            Damage::Forge(_) => vec![Path::new("manifest.json")],
        }
    }

    /// Returns whether it affects only files that are not results: the lock, orders, questions to people.
    fn is_beside(&self) -> bool {
        self.files().iter().all(|file| ["lock", "control", "people"].iter().any(|beside| file.starts_with(beside)))
    }

    /// Applies the damage; returns whether anything changed.
    fn apply(&self, at: &Path) -> bool {
        let read = |file: &Path| fs::read(at.join(file)).unwrap();
        let write = |file: &Path, bytes: &[u8]| fs::write(at.join(file), bytes).unwrap();
        match self {
            Damage::Flip(file, byte, bit) => {
                let mut bytes = read(file);
                let Some(byte) = bytes.get_mut(*byte) else { return false };
                *byte ^= 1 << bit;
                write(file, &bytes);
            }
            Damage::Cut(file, length) => {
                let bytes = read(file);
                if *length >= bytes.len() {
                    return false;
                }
                write(file, &bytes[..*length]);
            }
            Damage::Delete(file) => fs::remove_file(at.join(file)).unwrap(),
            Damage::Swap(a, b) => {
                let (one, other) = (read(a), read(b));
                write(a, &other);
                write(b, &one);
                return one != other;
            }
            Damage::Copy(from, to) => {
                let (one, other) = (read(from), read(to));
                write(to, &one);
                return one != other;
            }
            Damage::Add(from, to) => {
                if at.join(to).exists() {
                    return false;
                }
                write(to, &read(from));
            }
            Damage::Forge(key) => {
                let mut manifest: Value = serde_json::from_slice(&read(Path::new("manifest.json"))).unwrap();
                forge(manifest.pointer_mut(key).unwrap());
                write(Path::new("manifest.json"), (serde_json::to_string_pretty(&manifest).unwrap() + "\n").as_bytes());
            }
        }
        true
    }
}

/// Another value of the same type.
fn forge(value: &mut Value) {
    *value = match &*value {
        Value::Null => "forged".into(),
        Value::Bool(yes) => (!yes).into(),
        Value::Number(number) => match number.as_u64() {
            Some(number) => (number + 1).into(),
            None => (number.as_f64().unwrap() + 0.5).into(),
        },
        Value::String(text) => format!("{text}x").into(),
        Value::Array(_) => json!(["forged"]),
        Value::Object(_) => json!({"forged": 1}),
    };
}

/// Pointers to all values that hold no others.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{key}"), found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(i, value)| leaves(value, &format!("{path}/{i}"), found));
        }
        _ => found.push(path.to_string()),
    }
}

// ------------------------------------------------------------------ a run and its damages

struct Case {
    name: String,
    /// The undamaged run, and a folder for copies of it.
    whole: PathBuf,
    copies: PathBuf,
    finished: bool,
    files: Vec<PathBuf>,
    /// Its tables, by name.
    names: Vec<String>,
    /// Outputs of verbs on it, and the tables after the last of them.
    said: BTreeMap<String, Outcome>,
    after: Tables,
}

#[derive(Debug, Default)]
struct Tally {
    refused: AtomicUsize,
    same: AtomicUsize,
    /// Number of verbs that reported the state of an earlier kill.
    earlier: AtomicUsize,
}

impl Case {
    fn new(name: &str, finished: bool) -> Case {
        let folder = scratch(&format!("damage-{name}"));
        let scenario = match name.split('-').next() {
            Some("society") => society(),
            Some("platform") => platform(120, 9),
            _ => evaluation(&folder),
        };
        let whole = folder.join("whole");
        match finished {
            true => {
                let file = write_scenario(&folder, &scenario);
                let done = polity(&["run", arg(&file), "--out", arg(&whole)]);
                assert_eq!(done.code, Some(0), "{done:?}");
            }
            false => killed(&scenario, &folder, &whole),
        }
        for beside in ["control/taken.json", "people/0-0-0-0.question.json"] {
            fs::create_dir_all(whole.join(beside).parent().unwrap()).unwrap();
            fs::write(whole.join(beside), "{\"id\": \"1\", \"refused\": false, \"words\": \"no result\"}").unwrap();
        }
        let names = RealDisk.list(&whole.join("tables")).unwrap();
        let copies = folder.join("copies");
        let at = copies.join("0");
        copy_folder(&whole, &at);
        let said = verbs(&at, &names);
        let expected =
            |verb: &str| if verb.starts_with("export") && !finished { [Some(0), Some(3)] } else { [Some(0); 2] };
        for (verb, said) in &said {
            // A table may have no closed part yet.
            assert!(expected(verb).contains(&said.code), "{name}: {verb}: {said:?}");
        }
        let exported = said.iter().filter(|(verb, said)| verb.starts_with("export") && said.code == Some(0)).count();
        assert!(exported >= 5, "{name}: {exported} tables");
        let parts = files(&whole).iter().filter(|file| file.starts_with("tables/acts")).count();
        assert!(parts >= 2, "{name}: {parts} parts of acts");
        let after = tables(&RealDisk, &at);
        Case { name: name.into(), files: files(&whole), whole, copies, finished, names, said, after }
    }

    fn length(&self, file: &Path) -> usize {
        fs::metadata(self.whole.join(file)).unwrap().len() as usize
    }

    /// Draws this many damages, of all kinds and of all files, from a seed.
    fn damages(&self, count: u32) -> Vec<Damage> {
        let mut draws = Draws::new(0xDA3A6E, Stream::Driver, self.name.len() as u32, u32::from(self.finished));
        let mut below = |n: usize| draws.below(n.max(1) as u64) as usize;
        let mut damages = Vec::new();
        let like = |file: &Path| -> Vec<PathBuf> {
            let others = self.files.iter().filter(|other| *other != file && other.extension() == file.extension());
            others.cloned().collect()
        };
        while damages.len() < count as usize {
            // Each file in turn, so that a part of a table is no rarer than a manifest.
            let file = self.files[below(self.files.len())].clone();
            let length = self.length(&file);
            let others = like(&file);
            damages.push(match damages.len() % 8 {
                0..=2 => Damage::Flip(file, below(length), below(8) as u8),
                3 => Damage::Cut(file, below(length)),
                4 => Damage::Delete(file),
                5 if !others.is_empty() => Damage::Swap(file, others[below(others.len())].clone()),
                6 if !others.is_empty() => Damage::Copy(others[below(others.len())].clone(), file),
                7 if file.starts_with("tables") => {
                    let to = file.with_file_name("part-000500-000501.parquet");
                    Damage::Add(file, to)
                }
                _ => Damage::Flip(file, below(length), below(8) as u8),
            });
        }
        damages
    }

    /// Returns a forgery of every value of the manifest.
    fn forgeries(&self) -> Vec<Damage> {
        let manifest: Value = serde_json::from_slice(&fs::read(self.whole.join("manifest.json")).unwrap()).unwrap();
        let mut found = Vec::new();
        leaves(&manifest, "", &mut found);
        assert!(found.len() > 20, "{found:?}");
        found.into_iter().map(Damage::Forge).collect()
    }

    /// Applies them, and returns silent errors.
    fn run(&self, damages: &[Damage], tally: &Tally) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let work = |number: usize| {
            let at = self.copies.join(number.to_string());
            let mut wrong = Vec::new();
            while let Some(damage) = damages.get(next.fetch_add(1, Ordering::SeqCst)) {
                copy_folder(&self.whole, &at);
                if damage.apply(&at) {
                    wrong.extend(self.judge(damage, &at, tally));
                }
            }
            wrong
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn judge(&self, damage: &Damage, at: &Path, tally: &Tally) -> Vec<String> {
        let said = verbs(at, &self.names);
        let mut wrong = Vec::new();
        let mut say = |verb: &str, what: &str, said: &Outcome| {
            wrong.push(format!("{}: {damage:?}: {verb}: {what}: {:?}\n{}", self.name, said.code, said.notes));
        };
        let named = |notes: &str| {
            damage.files().iter().any(|file| {
                // A missing segment is detected by the one after it.
                let journal = file.starts_with("journal") && notes.contains(arg(&at.join("journal")));
                journal || notes.contains(&file.display().to_string())
            })
        };
        for (verb, said) in &said {
            let whole = &self.said[verb];
            if verb == "verify" {
                let found = said.code == Some(3);
                // A missing report is reported, but is no damage.
                let must = self.finished
                    && !damage.is_beside()
                    && !matches!(damage, Damage::Delete(file) if *file == Path::new("report.html"));
                match found {
                    true if damage.is_beside() => say(verb, "what is no result is no damage", said),
                    true if !named(&said.notes) => say(verb, "the file is not named", said),
                    false if must => say(verb, "the damage was not found", said),
                    false if said.code != Some(0) => say(verb, "another error", said),
                    _ => {}
                }
                continue;
            }
            if said.code == whole.code && said.result == whole.result {
                tally.same.fetch_add(1, Ordering::SeqCst);
            } else if said.code == Some(0) || said.code == whole.code || damage.is_beside() {
                match self.is_earlier_kill(damage, verb, said) {
                    true => drop(tally.earlier.fetch_add(1, Ordering::SeqCst)),
                    false => say(verb, "SILENTLY WRONG", said),
                }
            } else if !named(&said.notes) {
                say(verb, "the file is not named", said);
            } else {
                tally.refused.fetch_add(1, Ordering::SeqCst);
            }
        }
        // The final result of a killed run is the usual one.
        let resumed = &said["resume"];
        if !self.finished && resumed.code == Some(0) {
            let found = std::panic::catch_unwind(|| tables(&RealDisk, at));
            if found.is_err() || found.is_ok_and(|found| found != self.after) {
                say("resume", "SILENTLY WRONG tables", resumed);
            }
        }
        wrong
    }

    /// In a run that has not ended, a shorter journal is indistinguishable from an earlier kill. A verb then reports what it would have
    /// reported at that time, and the run ends with the same result.
    fn is_earlier_kill(&self, damage: &Damage, verb: &str, said: &Outcome) -> bool {
        let cut = matches!(damage, Damage::Cut(file, _) if file.starts_with("journal"));
        if self.finished || !cut || said.code != Some(0) {
            return false;
        }
        match verb {
            "replay" => said.result.contains("\"same\""),
            "calls" => said.result.lines().all(|line| self.said["calls"].result.lines().any(|whole| whole == line)),
            _ => false,
        }
    }
}

fn withstand(name: &str, finished: bool) {
    let case = Case::new(name, finished);
    let tally = Tally::default();
    let mut damages = case.damages(from_env("POLITY_DAMAGE", RUNS * FEW) / RUNS);
    let forgeries = case.forgeries();
    // All of them in the long form; in the short one some of each run.
    let step = if from_env("POLITY_DAMAGE", 0) == 0 { 4 } else { 1 };
    damages.extend(forgeries.into_iter().step_by(step));
    let wrong = case.run(&damages, &tally);
    eprintln!("{name}: {} damages of {} files, {tally:?}, {} wrong", damages.len(), case.files.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tally.refused.into_inner() > damages.len() && tally.same.into_inner() > 0, "it proves little");
}

/// A reader never mistakes a run in progress for damage.
#[test]
fn a_run_that_is_under_way_is_read_at_any_time() {
    let folder = scratch("damage-live");
    let mut scenario = society();
    scenario["rounds"] = 150.into();
    scenario["snapshot"] = json!({"rounds": 1});
    let (file, out) = (write_scenario(&folder, &scenario), folder.join("run"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    let quiet = command.args(["run", arg(&file), "--out", arg(&out)]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut run = quiet.spawn().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let (mut read, mut seen) = (0, std::collections::BTreeSet::new());
    let status = loop {
        let ended = run.try_wait().unwrap();
        if out.join("manifest.json").exists() {
            let opened = results::open(disk.as_ref(), &out).unwrap_or_else(|error| panic!("{error}"));
            let rows = |table: &str| {
                let columns = opened.closed(table, &[], usize::MAX).unwrap_or_else(|error| panic!("{table}: {error}"));
                columns.first().map_or(0, |(_, column)| column.rows())
            };
            let rounds = rows("rounds");
            assert!(rows("metrics") >= 2 * rounds && rows("acts") >= 40 * rounds, "later tables are no older");
            opened.check().unwrap_or_else(|error| panic!("{error}"));
            let verified = verify(&disk, &out, &|_, _| Ok(Vec::new())).unwrap();
            assert!(verified[0].faults.is_empty(), "{:?}", verified[0].faults);
            seen.insert(rounds);
            read += 1;
        }
        if let Some(status) = ended {
            break status;
        }
    };
    assert!(status.success() && seen.contains(&150), "{status}");
    eprintln!("read {read} times, at {} different moments", seen.len());
}

/// The journal of an ended run is closed by a segment that stays empty.
#[test]
fn of_a_closed_journal_a_cut_is_damage() {
    let (disk, dir) = (SimDisk::default(), Path::new("run/journal"));
    let shared = || -> Arc<dyn Disk> { Arc::new(disk.clone()) };
    let mut writer = JournalWriter::create(shared(), dir).unwrap();
    (0..12).for_each(|n| writer.append(n, &vec![n; usize::from(n) * 7]).unwrap());
    assert!(!read_all(shared(), dir).unwrap().1.closed());
    writer.close().unwrap();
    let (records, end) = read_all(shared(), dir).unwrap();
    assert!(records.len() == 12 && end.closed() && !end.torn());
    let (first, last) = (dir.join("00000001.journal"), dir.join("00000002.journal"));
    let write = |path: &Path, bytes: &[u8]| disk.create(path).unwrap().write_all(bytes).unwrap();
    let bytes = disk.read(&first).unwrap();
    for cut in 0..bytes.len() {
        write(&first, &bytes[..cut]);
        let error = read_all(shared(), dir).expect_err("lost records went unnoticed").to_string();
        assert!(error.contains("00000001.journal"), "cut at {cut}: {error}");
    }
    write(&first, &bytes);
    // A crash leaves the last segment torn or missing: the journal is not closed, and can be.
    let closing = disk.read(&last).unwrap();
    for cut in 0..closing.len() {
        write(&last, &closing[..cut]);
        let (records, end) = read_all(shared(), dir).unwrap();
        assert!(records.len() == 12 && !end.closed(), "cut at {cut}");
    }
    disk.remove_file(&last).unwrap();
    let end = read_all(shared(), dir).unwrap().1;
    assert!(!end.closed());
    JournalWriter::open_at_end(shared(), dir, end).unwrap().close().unwrap();
    assert!(read_all(shared(), dir).unwrap().1.closed());
}

/// If the journal is intact, damaged tables can be rebuilt from it.
#[test]
fn tables_are_made_anew_from_the_journal() {
    let case = Case::new("evaluation-anew", true);
    let (at, anew) = (case.copies.join("0"), case.copies.join("anew"));
    copy_folder(&case.whole, &at);
    let part = files(&at).into_iter().find(|file| file.starts_with("tables/acts")).unwrap();
    fs::write(at.join(&part), "damaged").unwrap();
    let refused = polity(&["export", arg(&at), "--table", "acts"]);
    let how = refused.notes.split("polity fork ").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<&str> = ["fork"].into_iter().chain(how.split(' ')).chain(["--out", arg(&anew)]).collect();
    let forked = polity(&words);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert_eq!(tables(&RealDisk, &anew), case.after);
    assert_eq!(polity(&["verify", arg(&anew)]).code, Some(0));
}

#[test]
fn a_finished_society() {
    withstand("society-finished", true);
}

#[test]
fn a_killed_society() {
    withstand("society-killed", false);
}

#[test]
fn a_finished_evaluation() {
    withstand("evaluation-finished", true);
}

#[test]
fn a_killed_evaluation() {
    withstand("evaluation-killed", false);
}

/// Its snapshots refer to each other's files.
#[test]
fn a_finished_platform() {
    withstand("platform-finished", true);
}

#[test]
fn a_killed_platform() {
    withstand("platform-killed", false);
}
