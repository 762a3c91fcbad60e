//! Begins a sweep, goes on with it, and checks it before.

use super::arms::Arms;
use super::contrasts::{ContrastRow, is_narrow};
use super::evaluation::EvaluationRow;
use super::folder::{SweepFolder, SweepManifest};
use super::limits::Limits;
use super::mark::is_sweep;
use super::pool::{HealthRow, Outcomes, Runs};
use super::results::{ArmRow, Results};
use super::search::{self, Found, Place};
use super::sensitivity::SensitivityRow;
use super::{limits, pool, work};
use crate::run::{Engine, Extent, Prepared, RunStatus};
use crate::workers::{Planning, planned, planned_otherwise, sharing};
use polity_kernel::scenario::Design;
use polity_kernel::tree::{Node, Origin, TreeError, Value, nearest};
use polity_store::DriveError;
use polity_store::memory::entry_mb;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// Receives the progress of a sweep.
pub trait WatchSweep {
    /// Called after every run.
    fn progress(&mut self, done: usize, runs: usize);
}

/// The summary of a sweep: the last line of `--json`.
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
    /// Runs that other processes were working on.
    pub held: usize,
    /// Why the sweep's budget let no further run begin, if so.
    pub short: Option<String>,
    /// Means with intervals by arm and metric; empty unless all runs have ended.
    pub arms: Vec<ArmRow>,
    /// Differences between arms, main effects of factors, and their interactions.
    pub contrasts: Vec<ContrastRow>,
    /// Interquartile means and probabilities of improvement of the metrics that the design names, by arm.
    pub evaluation: Vec<EvaluationRow>,
    /// How far factors with ranges move the metrics; empty in a design without a sample.
    pub sensitivity: Vec<SensitivityRow>,
    /// How the rule that adds seeds ended; null without one, and before it has ended.
    pub stopping: Option<Stopping>,
    /// What a search found; null without one, and before it has ended.
    pub search: Option<Found>,
    /// Alarms of the runs, by arm and kind.
    pub health: Vec<HealthRow>,
    /// Answers received by the runs.
    pub answers: u64,
    /// Tokens of their requests.
    pub tokens_in: u64,
    /// Tokens of the replies.
    pub tokens_out: u64,
    /// US dollars of all runs; null if nothing was paid as far as is known, and the price of a model is not known.
    pub cost_usd: Option<f64>,
    /// Digest of all runs' digests in order of arm and seed; empty unless all have ended.
    pub digest: String,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Maximum number of concurrent runs.
    pub jobs: usize,
    /// Seconds this process took.
    pub wall_seconds: f64,
    /// Peak memory of this process, in MB (10^6 bytes); 0 if the system does not report it.
    pub peak_memory_mb: f64,
}

/// How a rule that adds seeds ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stopping {
    /// The metric.
    pub metric: String,
    /// Half of the width that intervals may have.
    pub halfwidth: f64,
    /// Half of the width of the widest interval; null if one is missing.
    pub widest: Option<f64>,
    /// Whether all are narrow enough; otherwise the maximum number of seeds stopped it.
    pub narrow: bool,
    /// Seeds of each arm.
    pub seeds: usize,
}

/// Checks every arm of a scenario's design, if it has one, without running it; returns the number of arms.
pub fn check(engine: &Engine<'_>, scenario: &Prepared, extent: Extent) -> Result<usize, DriveError> {
    match &scenario.design {
        Some(_) => Ok(Arms::read(engine, scenario, extent)?.prepared.len()),
        None => Ok(0),
    }
}

/// Writes the folder of a sweep and makes no run: workers make them. A folder in which the same sweep is planned, or begun, stays as it is.
///
/// # Errors
/// Those of [`begin`] before the first run; [`DriveError::Input`] for a design whose runs decide which others follow, and for a folder
/// that holds another sweep.
pub fn plan(engine: &Engine<'_>, scenario: &Prepared, out: &Path) -> Result<Planning, DriveError> {
    let arms = Arms::read(engine, scenario, Extent::Whole)?;
    let manifest = SweepManifest::new(&arms)?;
    work::refuse_decisions(&manifest)?;
    Runs::new(engine, out, &manifest, &arms.prepared).check_budget()?;
    let disk = &engine.disk;
    let there = || -> Result<bool, DriveError> {
        if !is_sweep(disk.as_ref(), out) {
            return Ok(false);
        }
        match manifest.differs_from(&SweepManifest::of(disk.as_ref(), out)?) {
            None => Ok(true),
            Some(why) => Err(planned_otherwise(out, "sweep", &why)),
        }
    };
    let write = || SweepFolder::create(disk.clone(), out, &manifest, &arms.base).map(drop);
    Ok(Planning { runs: manifest.design.runs(), already: planned(&there, &write)? })
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
    let engine = &sharing(engine, out);
    let arms = Arms::read(engine, scenario, Extent::Whole)?;
    limits::check_disk_before(engine.disk.as_ref(), out, &arms)?;
    let memory = arms.memory();
    let manifest = SweepManifest::new(&arms)?;
    Runs::new(engine, out, &manifest, &arms.prepared).check_budget()?;
    let sweep = SweepFolder::create(engine.disk.clone(), out, &manifest, &arms.base)?;
    let wanted = scenario.design.as_ref().map(|design| &design.node);
    let summary = match manifest.design.search {
        Some(_) => {
            let place = Place { engine, folder: &sweep, limits, memory };
            search::go(&place, manifest, wanted, watch)
        }
        None => {
            let runs = Runs::new(engine, sweep.path(), &manifest, &arms.prepared);
            go(&runs, wanted, limits, memory, watch)
        }
    };
    let summary = summary.map(|summary| timed(summary, began));
    if let Err(DriveError::Scenario(_)) = &summary {
        // A design that reads missing metrics must be rewritten: free its folder for that.
        sweep.discard()?;
    }
    summary
}

/// Continues a sweep that was killed or stopped. A finished one is only summarised.
pub fn resume(
    engine: &Engine<'_>,
    dir: &Path,
    limits: Limits,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let began = Instant::now();
    let engine = &sharing(engine, dir);
    let (sweep, manifest) = SweepFolder::open(engine.disk.clone(), dir)?;
    let prepared = sweep.prepared(&manifest, &manifest.design.arms)?;
    let memory = memory_of(engine, &manifest, &prepared)?;
    let summary = match manifest.design.search {
        Some(_) => search::go(&Place { engine, folder: &sweep, limits, memory }, manifest, None, watch),
        None => {
            let runs = Runs::new(engine, sweep.path(), &manifest, &prepared);
            go(&runs, None, limits, memory, watch)
        }
    };
    Ok(timed(summary?, began))
}

/// Bytes of memory of the largest run.
pub(super) fn memory_of(
    engine: &Engine<'_>,
    manifest: &SweepManifest,
    prepared: &[Prepared],
) -> Result<u64, DriveError> {
    let largest = manifest.arms.iter().zip(prepared).max_by_key(|(arm, _)| arm.agents);
    Ok(largest.map_or(Ok(0), |(_, prepared)| engine.memory_of(prepared))?)
}

/// The summary with what this process took.
fn timed(summary: SweepSummary, began: Instant) -> SweepSummary {
    SweepSummary {
        wall_seconds: began.elapsed().as_secs_f64(),
        peak_memory_mb: entry_mb("/proc/self/status", "VmHWM:").unwrap_or(0.0),
        ..summary
    }
}

/// Runs what has not ended, and summarises everything. `wanted`: the design as it is written; `memory`: bytes of the largest
/// run.
fn go(
    runs: &Runs<'_>,
    wanted: Option<&Node>,
    limits: Limits,
    memory: u64,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let manifest = runs.manifest;
    let mut outcomes = Outcomes::new(&manifest.design);
    let mut space = limits::Space::new(runs);
    let order = runs.order();
    let (first, others) = order.split_at(order.len().min(1));
    let before = entry_mb("/proc/self/status", "VmRSS:");
    let design = &manifest.design;
    // Runs up to the end of the batch. Each arm's first seed comes first, so a batch of seeds is a part of the order.
    let batch = design.until.as_ref().map_or(order.len(), |until| until.batch as usize * design.arms.len());
    let planned = Cell::new(batch.min(order.len()));
    // The first run is alone, to measure its size.
    let mut hear = |outcomes: &mut Outcomes, run, done: pool::Done| {
        let arms = outcomes.arms_begun();
        outcomes.put(run, done);
        if arms < manifest.arms.len() && outcomes.arms_begun() == manifest.arms.len() {
            check_metrics(design, outcomes.measured(), wanted)?;
        }
        watch.progress(outcomes.count(), planned.get());
        space.learn(run, outcomes)
    };
    let mut held = runs.drive(first, 1, &mut |run, done| hear(&mut outcomes, run, done))?;
    let peak = entry_mb("/proc/self/status", "VmHWM:");
    let measured = before.zip(peak).map(|(before, peak)| (peak - before).max(0.0));
    let mut jobs = limits.jobs(memory, measured, runs.engine.memory).min(others.len().max(1));
    if !manifest.models.is_empty() {
        // A run with calls needs at least one connection.
        jobs = jobs.min(runs.engine.connections);
    }
    let mut from = first.len();
    loop {
        let to = planned.get();
        held += runs.drive(&order[from..to], jobs, &mut |run, done| hear(&mut outcomes, run, done))?;
        let enough = || {
            let seeds = to / design.arms.len().max(1);
            design.until.as_ref().is_none_or(|until| is_narrow(design, until, &outcomes.values(&until.metric, seeds)))
        };
        if outcomes.count() < to || to == order.len() || enough() {
            break;
        }
        from = to;
        planned.set((to + batch).min(order.len()));
    }
    let mut ran = manifest.clone();
    if outcomes.count() == planned.get() {
        let seeds = planned.get() / design.arms.len().max(1);
        outcomes.keep(seeds);
        ran.design.arms.iter_mut().for_each(|arm| arm.seeds.truncate(seeds));
    }
    Ok(SweepSummary { held, ..summed(runs, &ran, outcomes, jobs)? })
}

/// Summarises the runs so far; if all of `ran` have ended, their tables are written.
pub(super) fn summed(
    runs: &Runs<'_>,
    ran: &SweepManifest,
    outcomes: Outcomes,
    jobs: usize,
) -> Result<SweepSummary, DriveError> {
    let totals = outcomes.totals();
    let mut summary = SweepSummary {
        status: RunStatus::Stopped,
        sweep: runs.path.display().to_string(),
        runs: ran.design.runs(),
        done: outcomes.count(),
        held: 0,
        short: runs.short().filter(|_| outcomes.count() < ran.design.runs()),
        arms: Vec::new(),
        contrasts: Vec::new(),
        evaluation: Vec::new(),
        sensitivity: Vec::new(),
        stopping: None,
        search: None,
        health: outcomes.health(ran),
        answers: totals.answers,
        tokens_in: totals.tokens_in,
        tokens_out: totals.tokens_out,
        cost_usd: totals.known_usd(ran.simulated || totals.calls == 0),
        digest: String::new(),
        simulated: ran.simulated,
        jobs,
        wall_seconds: 0.0,
        peak_memory_mb: 0.0,
    };
    if let Some(all) = outcomes.all() {
        let results = Results::of(&ran.design, &all);
        results.write(&runs.engine.disk, runs.path, ran, &all, &summary.health)?;
        summary.status = RunStatus::Done;
        summary.stopping = results.stopping(&ran.design);
        summary.search = search::found(&ran.design, &results.search);
        summary.digest = results.digest;
        summary.arms = results.arms;
        summary.contrasts = results.contrasts;
        summary.evaluation = results.evaluation;
        summary.sensitivity = results.sensitivity;
    }
    Ok(summary)
}

/// The names of metrics are known once a run of every arm has measured them.
pub(super) fn check_metrics(
    design: &Design,
    measured: BTreeSet<&str>,
    wanted: Option<&Node>,
) -> Result<(), DriveError> {
    let unmeasured = |name: &str, path: String, origin: Option<Origin>| {
        let known: Vec<&str> = measured.iter().copied().collect();
        let near = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        Err(DriveError::Scenario(TreeError {
            message: format!("no run measures `{name}`{near}"),
            path,
            origin: origin.unwrap_or(Origin::Built),
            help: Some(format!("measured: {}", known.join(", "))),
        }))
    };
    if let Some(until) = design.until.as_ref().filter(|until| !measured.contains(until.metric.as_str())) {
        let rule = wanted.and_then(|node| node.get("seeds")?.get("until")?.get("metric"));
        return unmeasured(&until.metric, "design.seeds.until.metric".into(), rule.map(|node| node.origin.clone()));
    }
    for target in design.search.iter().flat_map(|search| &search.toward) {
        if !measured.contains(target.metric.as_str()) {
            let toward = wanted.and_then(|node| node.get("search")?.get("toward"));
            return unmeasured(&target.metric, "design.search.toward".into(), toward.map(|node| node.origin.clone()));
        }
    }
    let written = |key: &str, i: usize| match wanted.and_then(|node| node.get(key)).map(|node| &node.value) {
        Some(Value::List(items)) => items.get(i),
        _ => None,
    };
    for (i, name) in design.metrics.iter().flatten().enumerate() {
        let one = Design { metrics: Some(vec![name.clone()]), ..design.clone() };
        if !measured.iter().any(|metric| one.reads(metric)) {
            let place = written("metrics", i).map(|node| node.origin.clone());
            return unmeasured(name, format!("design.metrics[{i}]"), place);
        }
    }
    for (i, expectation) in design.expect.iter().enumerate() {
        if !measured.contains(expectation.metric.as_str()) {
            let place = written("expect", i).and_then(|node| node.get("metric")).map(|node| node.origin.clone());
            return unmeasured(&expectation.metric, format!("design.expect[{i}].metric"), place);
        }
    }
    Ok(())
}
