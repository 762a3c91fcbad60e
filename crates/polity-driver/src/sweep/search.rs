//! Searches: designs that choose their next points by the runs so far, as batches of ordinary runs.
//!
//! Which points are next follows from the losses of all points before ([`polity_stats::search`]), so a search that continues after a kill
//! reads the finished runs and asks for the same points again.

use super::begin::{SweepSummary, WatchSweep, check_metrics, summed};
use super::folder::{SweepFolder, SweepManifest};
use super::limits::{Limits, Space};
use super::pool::{Outcomes, RunId, Runs};
use super::results::Values;
use crate::run::{Engine, Extent};
use polity_kernel::scenario::{Arm, By, Design, Factor, Search};
use polity_kernel::tree::Node;
use polity_stats::mean;
use polity_stats::search::step;
use polity_store::DriveError;
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// How it proceeded.
    pub by: By,
    /// Points that were run.
    pub evaluations: usize,
    /// The point with the smallest loss; null if none has one.
    pub best: Option<SearchRow>,
    /// The posterior distribution of each factor; empty for an optimiser.
    pub posterior: Vec<PosteriorRow>,
}

/// A point of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchRow {
    /// Its arm.
    pub arm: String,
    /// The values of the factors, in their order.
    pub values: Vec<f64>,
    /// How far its metrics are from the targets; null if one is missing.
    pub loss: Option<f64>,
    /// Its weight in the posterior distribution; null outside of it, and for an optimiser.
    pub weight: Option<f64>,
}

/// The posterior distribution of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PosteriorRow {
    /// The factor.
    pub factor: String,
    /// Its mean.
    pub mean: f64,
    /// Its 2.5 % quantile.
    pub low: f64,
    /// Its 97.5 % quantile.
    pub high: f64,
}

/// Where a search runs, and within which limits.
pub(super) struct Place<'a> {
    pub engine: &'a Engine<'a>,
    pub folder: &'a SweepFolder,
    pub limits: Limits,
    /// Bytes of memory of a run of the first point.
    pub memory: u64,
}

/// Runs points until the search ends. `manifest`: the sweep as it began; `wanted`: the design as it is written.
pub(super) fn go(
    place: &Place<'_>,
    mut manifest: SweepManifest,
    wanted: Option<&Node>,
    watch: &mut dyn WatchSweep,
) -> Result<SweepSummary, DriveError> {
    let Place { engine, folder, limits, memory } = place;
    let mut memory = *memory;
    let mut prepared = folder.prepared(&manifest, &manifest.design.arms)?;
    let mut outcomes = Outcomes::new(&manifest.design);
    let (mut first, mut most_jobs) = (0, 1);
    loop {
        let runs = Runs::new(engine, folder.path(), &manifest, &prepared);
        let order: Vec<RunId> = runs.order().into_iter().filter(|run| run.arm >= first).collect();
        let mut jobs = limits.jobs(memory, None, engine.memory).min(order.len().max(1));
        if !manifest.models.is_empty() {
            // A run with calls needs at least one connection.
            jobs = jobs.min(engine.connections);
        }
        most_jobs = most_jobs.max(jobs);
        let planned = manifest.design.runs();
        let mut space = Space::new(&runs);
        runs.drive(&order, jobs, &mut |run, done| {
            outcomes.put(run, done);
            watch.progress(outcomes.count(), planned);
            space.learn(run, &outcomes)
        })?;
        if first == 0 && outcomes.count() > 0 {
            check_metrics(&manifest.design, outcomes.measured(), wanted)?;
        }
        let Some(search) = manifest.design.search.as_ref().filter(|_| outcomes.count() == planned) else { break };
        let losses = losses(search, manifest.design.arms.len(), &|metric| outcomes.values(metric, usize::MAX));
        let next = step(search, manifest.design.factors.len(), &losses).next;
        if next.is_empty() {
            break;
        }
        first = manifest.design.arms.len();
        manifest.design.add_points(&next);
        // The scenario that began runs, so its folder is kept whatever is wrong with a later point.
        let in_run = |run: String| move |error: DriveError| DriveError::InRun { run, error: Box::new(error) };
        let name = |arms: &[Arm], at: usize| arms.get(at).map_or(String::new(), |arm| arm.name.clone());
        let (one, last) = (name(&manifest.design.arms, first), name(&manifest.design.arms, first + next.len() - 1));
        let batch = if one == last { one } else { format!("{one} to {last}") };
        let ready = folder.prepared(&manifest, &manifest.design.arms[first..]).map_err(in_run(batch))?;
        for (at, ready) in (first..).zip(ready) {
            let arm = name(&manifest.design.arms, at);
            let survey = engine.survey(&ready, Extent::Whole).map_err(in_run(arm))?;
            memory = memory.max(survey.memory);
            manifest.add_entry(survey.agents);
            prepared.push(ready);
        }
        outcomes.grow(&manifest.design);
    }
    let runs = Runs::new(engine, folder.path(), &manifest, &prepared);
    summed(&runs, &manifest, outcomes, most_jobs)
}

/// The losses of so many points, given the values of a metric by arm and seed.
fn losses(search: &Search, arms: usize, values: &dyn Fn(&str) -> Values) -> Vec<Option<f64>> {
    let values: BTreeMap<&str, Values> =
        search.toward.iter().map(|target| (target.metric.as_str(), values(&target.metric))).collect();
    let mean_of = |arm: usize, metric: &str| {
        let seeds = values.get(metric)?.get(arm)?;
        mean(&seeds.iter().flatten().copied().collect::<Vec<_>>())
    };
    let loss = |arm: usize| search.loss(|metric| mean_of(arm, metric)).filter(|loss| loss.is_finite());
    (0..arms).map(loss).collect()
}

/// The points of a search, with their losses and weights; none in another design.
pub(super) fn rows(design: &Design, values: &dyn Fn(&str) -> Values) -> Vec<SearchRow> {
    let Some(search) = &design.search else { return Vec::new() };
    let losses = losses(search, design.arms.len(), values);
    let weights = step(search, design.factors.len(), &losses).weights;
    let number = |(factor, level): (&Factor, &usize)| {
        factor.levels.get(*level).and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
    };
    let mut rows = Vec::new();
    for ((arm, loss), weight) in design.arms.iter().zip(losses).zip(weights) {
        let values = design.factors.iter().zip(&arm.levels).map(number).collect();
        rows.push(SearchRow { arm: arm.name.clone(), values, loss, weight });
    }
    rows
}

/// What a search found; `None` in another design.
pub(super) fn found(design: &Design, rows: &[SearchRow]) -> Option<Found> {
    let search = design.search.as_ref()?;
    let with_loss = rows.iter().filter_map(|row| Some((row.loss?, row)));
    let best = with_loss.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row.clone());
    let of_factor = |(at, factor): (usize, &Factor)| {
        let mut weighted: Vec<(f64, f64)> =
            rows.iter().filter_map(|row| Some((row.values.get(at).copied()?, row.weight?))).collect();
        weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The first value with so much weight up to it.
        let quantile = |p: f64| {
            let mut sum = 0.0;
            let reached = weighted.iter().find(|(_, weight)| {
                sum += weight;
                sum >= p
            });
            reached.or(weighted.last()).map(|(value, _)| *value)
        };
        Some(PosteriorRow {
            factor: factor.name.clone(),
            mean: weighted.iter().map(|(value, weight)| value * weight).sum(),
            low: quantile(0.025)?,
            high: quantile(0.975)?,
        })
    };
    let posterior = design.factors.iter().enumerate().filter_map(of_factor).collect();
    Some(Found { by: search.by, evaluations: rows.len(), best, posterior })
}

/// The table of points.
pub(super) fn table(design: &Design, rows: &[SearchRow]) -> (TableSpec, Batch) {
    let mut columns = vec![ColumnSpec::new("arm", Kind::Text, "arm of the point, in the order of the search")];
    let mut data = vec![Column::Text(rows.iter().map(|row| row.arm.clone()).collect())];
    for (at, factor) in design.factors.iter().enumerate() {
        let doc = format!("value of the factor: of {}", factor.path.as_deref().unwrap_or_default());
        columns.push(ColumnSpec::new(factor.name.clone(), Kind::F64, doc));
        data.push(Column::F64(rows.iter().map(|row| row.values[at]).collect()));
    }
    let number = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc).nullable();
    columns.push(number("loss", "how far the metrics are from the targets; missing if one is"));
    columns.push(number("weight", "weight in the posterior distribution; missing outside of it"));
    data.push(Column::MaybeF64(rows.iter().map(|row| row.loss).collect()));
    data.push(Column::MaybeF64(rows.iter().map(|row| row.weight).collect()));
    let doc = "One row per point of the search.".to_string();
    (
        TableSpec { name: "search".into(), doc, columns, volatile: false, only_with_rows: false },
        Batch { rows: rows.len(), columns: data },
    )
}
