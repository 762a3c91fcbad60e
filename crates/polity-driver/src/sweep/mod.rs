//! Sweeps: all runs of a design, many at once, each in a run folder of its own below one folder; their table, intervals, contrasts.
//!
//! What a sweep knows lies in its folder: `sweep.json` says which runs there are, and the run folders say how far they are. Going on
//! after a kill is therefore the same as beginning: runs that have ended are read, those under way are resumed, the others begun.
//! Tables are written once all runs have ended, from the run folders in order of arm and seed, whatever order they ended in.

mod folder;
mod limits;
mod pool;
mod results;

pub use folder::{ArmEntry, SWEEP_FILE, SweepManifest, is_sweep};
pub(crate) use folder::{run_folder, tables};
pub use limits::Limits;
pub use results::{ArmRow, ContrastRow};

use crate::DriveError;
use crate::memory::entry_mb;
use crate::run::{Engine, Planned, Prepared, RunStatus, SetKey, Survey, within};
use folder::SweepFolder;
use polity_kernel::scenario::{Arm, Design, Reading, Scenario};
use polity_kernel::tree::{Node, Origin, TreeError, Value, nearest};
use pool::{Outcomes, Runs};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// Told of what happens in a sweep.
pub trait WatchSweep {
    /// Called after every run.
    fn progress(&mut self, done: usize, runs: usize);
}

/// What a sweep came to: the last line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct SweepSummary {
    /// Whether all runs have ended: [`RunStatus::Done`] or [`RunStatus::Stopped`].
    pub status: RunStatus,
    /// The sweep's folder.
    pub sweep: String,
    /// Runs of the design.
    pub runs: usize,
    /// Runs that have ended.
    pub done: usize,
    /// Means with intervals by arm and metric; empty unless all runs have ended.
    pub arms: Vec<ArmRow>,
    /// Differences between arms, and main effects of factors.
    pub contrasts: Vec<ContrastRow>,
    /// Alarms of the runs, by arm and kind.
    pub health: Vec<HealthRow>,
    /// Answers that the runs have had.
    pub answers: u64,
    /// Tokens of their requests.
    pub tokens_in: u64,
    /// Tokens of the replies.
    pub tokens_out: u64,
    /// US dollars of all runs.
    pub cost_usd: f64,
    /// Digest of all runs' digests in order of arm and seed; empty unless all have ended.
    pub digest: String,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Runs that were under way at once, at most.
    pub jobs: usize,
    /// Seconds this process took.
    pub wall_seconds: f64,
    /// The most memory this process held so far, in MB (10^6 bytes); 0 where the system does not tell.
    pub peak_memory_mb: f64,
}

/// How many runs of an arm raise an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthRow {
    /// The arm.
    pub arm: String,
    /// Kind of the alarm.
    pub kind: &'static str,
    /// What it is of: a cohort or the run.
    pub subject: String,
    /// Runs of the arm that raise it, of those that have ended.
    pub runs: usize,
}

/// The arms of a design, each ready to be run, with what is known of it before.
struct Arms {
    design: Design,
    base: Prepared,
    prepared: Vec<Prepared>,
    surveys: Vec<Survey>,
}

/// The scenario's number for `--seed` and the like.
fn whole(n: u64) -> Node {
    Node::built(Value::Int(n as i64))
}

impl Arms {
    /// Works the design of a scenario out and checks every arm.
    fn read(engine: &Engine<'_>, scenario: &Prepared) -> Result<Arms, DriveError> {
        let Some(Planned { node, reach }) = &scenario.design else {
            return Err(DriveError::Scenario(TreeError {
                message: "there is no `design:`, which says what a sweep runs".into(),
                path: String::new(),
                origin: scenario.tree.origin.clone(),
                help: Some("for instance `design: {factors: {world.fraction: [0.5, 0.7]}, seeds: 30}`".into()),
            }));
        };
        let mut base = Prepared { design: None, ..scenario.clone() };
        base.record_little()?;
        let design = Design::read(node, &base.tree)?;
        let read_at = node.get("read").map_or(&node.origin, |node| &node.origin);
        let (mut prepared, mut surveys) = (Vec::new(), Vec::new());
        for arm in &design.arms {
            let ready = base.with(arm.applied(&base.tree)?, &within(reach)).map_err(|e| blame(arm, e))?;
            refuse_unread(&design, arm, Scenario::read(&ready.tree)?.rounds, read_at)?;
            surveys.push(engine.survey(&ready).map_err(|e| blame(arm, e))?);
            base.share(&ready);
            prepared.push(ready);
        }
        Ok(Arms { design, base, prepared, surveys })
    }

    /// Agents of each.
    fn agents(&self) -> Vec<u32> {
        self.surveys.iter().map(|survey| survey.agents).collect()
    }

    /// Bytes of memory of the largest run.
    fn memory(&self) -> u64 {
        self.surveys.iter().map(|survey| survey.memory).max().unwrap_or(0)
    }
}

/// Refuses to read metrics in rounds that an arm does not have.
fn refuse_unread(design: &Design, arm: &Arm, rounds: u32, at: &Origin) -> Result<(), DriveError> {
    let message = match design.read {
        Reading::Round(round) if round >= rounds => {
            format!("round {round} is never reached: a run has {rounds} rounds, the first is 0")
        }
        Reading::MeanOfLast(k) if k > rounds => format!("a run has {rounds} rounds, which is fewer than {k}"),
        _ => return Ok(()),
    };
    let error = TreeError { message, path: "design.read".into(), origin: at.clone(), help: None };
    Err(DriveError::Scenario(arm.blame(error)))
}

fn blame(arm: &Arm, error: DriveError) -> DriveError {
    match error {
        DriveError::Scenario(error) => DriveError::Scenario(arm.blame(error)),
        DriveError::Model(error) => DriveError::Model(format!("in the arm `{}`: {error}", arm.name)),
        other => other,
    }
}

/// Checks every arm of a scenario's design, if it has one, without running it; returns the number of arms.
pub fn check(engine: &Engine<'_>, scenario: &Prepared) -> Result<usize, DriveError> {
    match &scenario.design {
        Some(_) => Ok(Arms::read(engine, scenario)?.prepared.len()),
        None => Ok(0),
    }
}

/// Runs the design of a scenario in a new folder.
pub fn begin(
    engine: &Engine<'_>,
    scenario: &Prepared,
    out: &Path,
    limits: Limits,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let began = Instant::now();
    let arms = Arms::read(engine, scenario)?;
    limits::check_disk_before(engine.disk.as_ref(), out, &arms)?;
    let memory = arms.memory();
    let manifest = SweepManifest::new(&arms)?;
    let sweep = SweepFolder::create(engine.disk.clone(), out, &manifest, &arms.base)?;
    let wanted = scenario.design.as_ref().and_then(|design| design.node.get("metrics"));
    let runs = Runs { engine, path: sweep.path(), manifest: &manifest, prepared: &arms.prepared };
    let summary = go(&runs, wanted, limits, memory, began, watch);
    if let Err(DriveError::Scenario(_)) = &summary {
        // A design that reads what is not there has to be written anew: its folder is free for that.
        sweep.discard()?;
    }
    summary
}

/// Goes on with a sweep that was killed or stopped. One that has ended is only summed up.
pub fn resume(
    engine: &Engine<'_>,
    dir: &Path,
    limits: Limits,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let began = Instant::now();
    let (sweep, manifest) = SweepFolder::open(engine.disk.clone(), dir)?;
    let prepared = sweep.prepared(&manifest)?;
    let largest = manifest.arms.iter().zip(&prepared).max_by_key(|(arm, _)| arm.agents);
    let memory = largest.map_or(Ok(0), |(_, prepared)| engine.memory_of(prepared))?;
    let runs = Runs { engine, path: sweep.path(), manifest: &manifest, prepared: &prepared };
    go(&runs, None, limits, memory, began, watch)
}

/// Runs what has not ended, and sums all up. `wanted`: where the design's metrics are written; `memory`: bytes of the largest run.
fn go(
    runs: &Runs<'_>,
    wanted: Option<&Node>,
    limits: Limits,
    memory: u64,
    began: Instant,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let manifest = runs.manifest;
    let mut outcomes = Outcomes::new(&manifest.design);
    let mut space = limits::Space::new(runs);
    let order = runs.order();
    let (first, others) = order.split_at(order.len().min(1));
    let held = entry_mb("/proc/self/status", "VmRSS:");
    // The first run is alone: what it takes says what the others will.
    let mut hear = |outcomes: &mut Outcomes, run, done: pool::Done| {
        let arms = outcomes.arms_begun();
        outcomes.put(run, done);
        if arms < manifest.arms.len() && outcomes.arms_begun() == manifest.arms.len() {
            check_metrics(&manifest.design, outcomes.measured(), wanted)?;
        }
        watch.progress(outcomes.count(), order.len());
        space.learn(run, outcomes)
    };
    runs.drive(first, 1, &mut |run, done| hear(&mut outcomes, run, done))?;
    let peak = entry_mb("/proc/self/status", "VmHWM:");
    let measured = held.zip(peak).map(|(held, peak)| (peak - held).max(0.0));
    let mut jobs = limits.jobs(memory, measured, runs.engine.memory).min(others.len().max(1));
    if !manifest.models.is_empty() {
        // A run that asks has a connection at least.
        jobs = jobs.min(runs.engine.connections);
    }
    runs.drive(others, jobs, &mut |run, done| hear(&mut outcomes, run, done))?;
    let totals = outcomes.totals();
    let mut summary = SweepSummary {
        status: RunStatus::Stopped,
        sweep: runs.path.display().to_string(),
        runs: order.len(),
        done: outcomes.count(),
        arms: Vec::new(),
        contrasts: Vec::new(),
        health: outcomes.health(manifest),
        answers: totals.answers,
        tokens_in: totals.tokens_in,
        tokens_out: totals.tokens_out,
        cost_usd: totals.cost_usd,
        digest: String::new(),
        simulated: manifest.simulated,
        jobs,
        wall_seconds: 0.0,
        peak_memory_mb: 0.0,
    };
    if let Some(all) = outcomes.all() {
        let results = results::Results::of(&manifest.design, &all);
        results.write(&runs.engine.disk, runs.path, manifest, &all, &summary.health)?;
        summary.status = RunStatus::Done;
        summary.digest = results.digest;
        summary.arms = results.arms;
        summary.contrasts = results.contrasts;
    }
    summary.wall_seconds = began.elapsed().as_secs_f64();
    summary.peak_memory_mb = entry_mb("/proc/self/status", "VmHWM:").unwrap_or(0.0);
    Ok(summary)
}

/// Names of metrics are known once a run of every arm has measured them.
fn check_metrics(design: &Design, measured: BTreeSet<&str>, wanted: Option<&Node>) -> Result<(), DriveError> {
    for (i, name) in design.metrics.iter().flatten().enumerate() {
        let one = Design { metrics: Some(vec![name.clone()]), ..design.clone() };
        if measured.iter().any(|metric| one.reads(metric)) {
            continue;
        }
        let known: Vec<&str> = measured.iter().copied().collect();
        let near = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        let place = match wanted.map(|node| &node.value) {
            Some(Value::List(items)) => items.get(i).map(|node| node.origin.clone()),
            _ => None,
        };
        return Err(DriveError::Scenario(TreeError {
            message: format!("no run measures `{name}`{near}"),
            path: format!("design.metrics[{i}]"),
            origin: place.unwrap_or(Origin::Built),
            help: Some(format!("measured: {}", known.join(", "))),
        }));
    }
    Ok(())
}

/// A seed as an edit of an arm's scenario.
fn seed(n: u64) -> SetKey {
    ("seed".into(), whole(n))
}
