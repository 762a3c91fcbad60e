//! `polity status`: how far the runs in a folder are. It only reads; a run that is under way is also asked, but not waited for.

use super::failure::{Exit, Failure};
use super::output::{self, json, note, print_text};
use super::progress::si;
use polity_arena::arena::{is_comparison, is_planned, members, planned_runs};
use polity_driver::control::{self, Status};
use polity_driver::results::{self, Run};
use polity_driver::run::{Engine, RunStatus};
use polity_driver::sweep::{SweepManifest, is_sweep};
use polity_driver::systems::{CheckPlan, is_check};
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk};
use polity_store::listing::Listing;
use polity_store::printable::on_one_line;
use polity_view::is_run;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How deep runs are looked for below the folder.
const DEPTH: usize = 6;
/// How long to wait until active runs say how far they are. A run in a long round does not answer in time, so its journal is read.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run as the output shows it.
#[derive(Debug, Default, Serialize)]
struct Row {
    run: String,
    name: String,
    /// `running`, `paused`, `stopped`, `budget`, `done` or `damaged`.
    state: &'static str,
    rounds: u32,
    planned: u32,
    /// Items with a verdict and all items, of an active evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<(usize, usize)>,
    agents: u32,
    /// Actions of agents per second, of an active society.
    #[serde(skip_serializing_if = "Option::is_none")]
    acts_per_s: Option<f64>,
    /// Seconds until the planned end.
    #[serde(skip_serializing_if = "Option::is_none")]
    eta_s: Option<f64>,
    answers: u64,
    /// US dollars; null if a price is not known.
    cost_usd: Option<f64>,
    simulated: bool,
    /// What it waits for, why it ended early, or what is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// A sweep as the output shows it.
#[derive(Debug, Serialize)]
struct Group {
    sweep: String,
    name: String,
    state: &'static str,
    done: usize,
    runs: usize,
}

/// A comparison as the output shows it.
#[derive(Debug, Serialize)]
struct Compared {
    comparison: String,
    /// `running`, `paused`, `stopped`, `budget`, `done` or `damaged`.
    state: &'static str,
    done: usize,
    runs: usize,
    /// How to continue it, or what is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// A planned check as the output shows it.
#[derive(Debug, Serialize)]
struct Check {
    check: String,
    /// `planned`, `running`, `stopped`, `done` or `damaged`.
    state: &'static str,
    done: usize,
    runs: usize,
}

/// The folders that were found.
#[derive(Debug, Default)]
struct Found {
    /// Runs by folder, and whether each belongs to a sweep or a comparison.
    runs: Vec<(PathBuf, bool)>,
    sweeps: Vec<PathBuf>,
    comparisons: Vec<PathBuf>,
    checks: Vec<PathBuf>,
}

pub fn status(folder: &Path, as_json: bool) -> Result<Exit, Failure> {
    if !folder.is_dir() {
        let message =
            format!("there is no folder `{}`; name the folder of a run, or one that holds runs", folder.display());
        return Err(Failure::new(Exit::Input, message));
    }
    let mut found = Found::default();
    look(folder, DEPTH, false, &mut found);
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let mut runs = rows(&found, &disk);
    let sweeps: Vec<Group> = found.sweeps.iter().map(|sweep| group(sweep, &runs, disk.as_ref())).collect();
    let comparisons: Vec<Compared> =
        found.comparisons.iter().map(|comparison| compared(comparison, &mut runs, disk.as_ref())).collect();
    let checks: Vec<Check> = found.checks.iter().map(|check| checked(check, &runs, disk.as_ref())).collect();
    if as_json {
        let runs: Vec<&Row> = runs.iter().map(|(row, _)| row).collect();
        let all = serde_json::json!({ "sweeps": sweeps, "comparisons": comparisons, "checks": checks, "runs": runs });
        output::print_line(&json(&all));
        return Ok(Exit::Done);
    }
    show(&runs, &sweeps, &comparisons, &checks);
    if found.runs.is_empty() && sweeps.is_empty() && comparisons.is_empty() && checks.is_empty() {
        note(&format!("there are no runs in {}", folder.display()));
    }
    Ok(Exit::Done)
}

/// Collects the runs, sweeps and comparisons at and below a folder, by name. Links may lead elsewhere, so they are not followed.
fn look(folder: &Path, depth: usize, within: bool, found: &mut Found) {
    if is_run(folder) {
        found.runs.push((folder.to_path_buf(), within));
        return;
    }
    let sweep = is_sweep(&RealDisk, folder);
    if sweep {
        found.sweeps.push(folder.to_path_buf());
    }
    let comparison = is_comparison(&RealDisk, folder);
    if comparison {
        found.comparisons.push(folder.to_path_buf());
    }
    let check = is_check(&RealDisk, folder);
    if check {
        found.checks.push(folder.to_path_buf());
    }
    // Its own runs count, however deep it is: runs/ARM/SEED, runs/MODEL/TASK/METHOD/SEED, SYSTEM/RUN.
    let depth = match () {
        () if comparison => depth.max(5),
        () if sweep => depth.max(3),
        () if check => depth.max(2),
        () => depth,
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if depth > 0 && !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            look(&entry.path(), depth - 1, within || sweep || comparison || check, found);
        }
    }
}

/// What active runs say about themselves within some time; `None` for runs that are not active, or busy.
fn live(found: &Found, disk: &Arc<dyn Disk>) -> Vec<(bool, Option<Status>)> {
    let (say, said) = mpsc::channel();
    let mut all: Vec<(bool, Option<Status>)> = Vec::new();
    for (i, (run, _)) in found.runs.iter().enumerate() {
        let active = control::under_way(disk.as_ref(), run);
        all.push((active, None));
        if active {
            let (say, disk, run) = (say.clone(), disk.clone(), run.clone());
            // It may wait for the end of a long round; then it ends with this process.
            thread::spawn(move || {
                let status = control::status(disk, &run, u32::MAX);
                // Nobody listens after the time is up.
                let _ = say.send((i, status.ok()));
            });
        }
    }
    drop(say);
    let deadline = Instant::now() + PATIENCE;
    while let Ok((i, status)) = said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if let Some(entry) = all.get_mut(i) {
            entry.1 = status;
        }
    }
    all
}

fn rows(found: &Found, disk: &Arc<dyn Disk>) -> Vec<(Row, bool)> {
    let live = live(found, disk);
    let rows = found.runs.iter().zip(live).map(|((run, within), (active, status))| {
        let row = row(run, active, status, disk).unwrap_or_else(|error| damaged(run, &error));
        (row, *within)
    });
    rows.collect()
}

/// A run, from what it says itself, else from its journal.
fn row(folder: &Path, active: bool, status: Option<Status>, disk: &Arc<dyn Disk>) -> Result<Row, DriveError> {
    let run = results::of_run(disk.as_ref(), folder)?;
    let manifest = &run.manifest;
    let planned = manifest.scenario.get("rounds").and_then(Value::as_u64).unwrap_or(0) as u32;
    let mut row = Row {
        run: folder.display().to_string(),
        name: manifest.name.clone(),
        state: if active { "running" } else { "done" },
        rounds: run.rounds,
        planned,
        simulated: manifest.simulated,
        ..Row::default()
    };
    match status {
        Some(status) => from_itself(&mut row, &status, manifest.is_priced()),
        None => from_its_journal(&mut row, &run, active, disk)?,
    }
    Ok(row)
}

fn from_itself(row: &mut Row, status: &Status, is_priced: bool) {
    row.state = if status.paused { "paused" } else { "running" };
    (row.rounds, row.planned, row.agents) = (status.rounds, status.planned, status.agents);
    row.items = Some(status.items).filter(|items| items.1 > 0);
    row.acts_per_s = status.steps_per_s.filter(|_| row.items.is_none()).map(|steps| steps * f64::from(status.agents));
    row.eta_s = status.seconds_left;
    row.answers = status.totals.answers;
    row.cost_usd = is_priced.then_some(status.totals.cost_usd);
    row.why.clone_from(&status.waiting);
}

fn from_its_journal(row: &mut Row, run: &Run<'_>, active: bool, disk: &Arc<dyn Disk>) -> Result<(), DriveError> {
    let registry = Registry::default();
    let engine = Engine { disk: disk.clone(), ..Engine::new(&registry) };
    let summary = engine.summed_up(&run.folder)?;
    row.agents = summary.agents;
    row.answers = summary.totals.answers;
    row.cost_usd = run.manifest.is_priced().then_some(summary.totals.cost_usd);
    row.why = summary.reason;
    if !active {
        row.state = summary.status.name();
    }
    if row.state == RunStatus::Stopped.name() && row.why.is_none() {
        row.why = Some(format!("polity resume {}", run.folder.display()));
    }
    Ok(())
}

fn damaged(folder: &Path, error: &DriveError) -> Row {
    Row {
        run: folder.display().to_string(),
        name: folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        state: "damaged",
        why: Some(error.to_string()),
        ..Row::default()
    }
}

fn group(sweep: &Path, runs: &[(Row, bool)], disk: &dyn Disk) -> Group {
    let own = |row: &&(Row, bool)| Path::new(&row.0.run).starts_with(sweep);
    let done = runs.iter().filter(own).filter(|row| row.0.state == "done").count();
    // Workers make runs without the lock of the sweep.
    let has_workers = runs.iter().filter(own).any(|row| row.0.state == "running");
    let folder = sweep.display().to_string();
    match SweepManifest::of(disk, sweep) {
        Ok(manifest) => {
            let planned = manifest.design.runs();
            let state = match () {
                () if has_workers || control::under_way(disk, sweep) => "running",
                () if done == planned => "done",
                () if !runs.iter().any(|row| own(&row)) => "planned",
                () => "stopped",
            };
            Group { sweep: folder, name: manifest.name, state, done, runs: planned }
        }
        Err(_) => Group { sweep: folder, name: String::new(), state: "damaged", done, runs: done },
    }
}

/// The check in a folder.
fn checked(check: &Path, runs: &[(Row, bool)], disk: &dyn Disk) -> Check {
    let folder = check.display().to_string();
    let Ok(plan) = CheckPlan::read(disk, check) else {
        return Check { check: folder, state: "damaged", done: 0, runs: 0 };
    };
    let planned: BTreeSet<PathBuf> = plan.runs.iter().map(|run| check.join(run)).collect();
    let own = || runs.iter().map(|(row, _)| row).filter(|row| planned.contains(Path::new(&row.run)));
    let done = own().filter(|row| row.state == "done").count();
    let state = match () {
        () if own().any(|row| row.state == "running") => "running",
        () if done == planned.len() => "done",
        () if own().next().is_none() => "planned",
        () => "stopped",
    };
    Check { check: folder, state, done, runs: planned.len() }
}

/// The comparison in a folder. A stopped run of it is continued together with it, so the run's row then names that command.
fn compared(comparison: &Path, runs: &mut [(Row, bool)], disk: &dyn Disk) -> Compared {
    let folder = comparison.display().to_string();
    let (own, planned) = match members(disk, comparison).and_then(|own| Ok((own, planned_runs(disk, comparison)?))) {
        Ok(read) => read,
        Err(error) => {
            let why = Some(error.to_string());
            return Compared { comparison: folder, state: "damaged", done: 0, runs: 0, why };
        }
    };
    let own: BTreeSet<PathBuf> = own.iter().map(|run| comparison.join(&run.run)).collect();
    let resume = format!("polity resume {folder}");
    let (mut done, mut states) = (0, BTreeSet::new());
    for (row, _) in runs {
        if !Path::new(&row.run).starts_with(comparison) {
            continue;
        }
        states.insert(row.state);
        done += usize::from(row.state == "done" && own.contains(Path::new(&row.run)));
        if row.state == "stopped" && row.why.as_ref().is_some_and(|why| why.starts_with("polity resume ")) {
            row.why = Some(resume.clone());
        }
    }
    // Its results are written after its last run: first their list, then each of them.
    let is_there = |file: &str| disk.exists(&comparison.join(file)).unwrap_or(false);
    let results = Listing::read(disk, comparison).ok().flatten();
    let ended = done >= planned && results.is_some_and(|results| results.files().all(is_there));
    let (state, why) = match () {
        () if states.contains("running") => ("running", None),
        () if states.contains("paused") => ("paused", None),
        () if ended => ("done", None),
        () if states.is_empty() && is_planned(disk, comparison) => ("planned", Some(format!("polity work {folder}"))),
        () if states.contains("budget") => {
            ("budget", Some(format!("the budget is used up; `{resume}` continues with a higher limit")))
        }
        () => ("stopped", Some(resume)),
    };
    Compared { comparison: folder, state, done: done.min(planned), runs: planned, why }
}

/// The table on the terminal. Of the runs of a sweep, only those that are not done; of a comparison, only those that are under way or
/// damaged, since the others are continued together with it.
fn show(runs: &[(Row, bool)], sweeps: &[Group], comparisons: &[Compared], checks: &[Check]) {
    let mut table = output::table(["run", "state", "done", "acts/s", "left", "spent", ""].map(str::to_owned).to_vec());
    let mut rows = 0;
    for Check { check, state, done, runs } in checks {
        let done = format!("{done} of {runs} runs");
        table.add_row([check, *state, &done, "", "", "", ""].map(str::to_owned));
        rows += 1;
    }
    for Group { sweep, state, done, runs, .. } in sweeps {
        let done = format!("{done} of {runs} runs");
        table.add_row([sweep, *state, &done, "", "", "", ""].map(str::to_owned));
        rows += 1;
    }
    for Compared { comparison, state, done, runs, why } in comparisons {
        let done = format!("{done} of {runs} runs");
        let why = why.as_deref().map(|why| on_one_line(why).into_owned()).unwrap_or_default();
        table.add_row([comparison, *state, &done, "", "", "", &why].map(str::to_owned));
        rows += 1;
    }
    let of_a_comparison =
        |row: &Row| comparisons.iter().any(|shown| Path::new(&row.run).starts_with(&shown.comparison));
    for (row, within) in runs {
        if *within && row.state == "done" {
            continue;
        }
        if matches!(row.state, "stopped" | "budget") && of_a_comparison(row) {
            continue;
        }
        let done = match row.items {
            Some((done, all)) => format!("{done} of {all} items"),
            None => format!("round {} of {}", row.rounds, row.planned),
        };
        let spent = match (row.answers, row.cost_usd) {
            (0, _) => String::new(),
            (_, None) => "unknown price".into(),
            (_, Some(usd)) => format!("${usd:.4}{}", if row.simulated { " (simulated)" } else { "" }),
        };
        let why = row.why.as_deref().map(|why| on_one_line(why).into_owned()).unwrap_or_default();
        table.add_row([
            row.run.clone(),
            row.state.into(),
            done,
            row.acts_per_s.map(si).unwrap_or_default(),
            row.eta_s.map(output::span).unwrap_or_default(),
            spent,
            why,
        ]);
        rows += 1;
    }
    if rows > 0 {
        let lines: String = table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect();
        print_text(&lines);
    }
}
