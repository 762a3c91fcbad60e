//! The runs of a sweep, several at once. Threads and timing affect no result.

use super::arms::seed;
use super::folder::{SweepManifest, run_folder};
use crate::drive::Totals;
use crate::health::{Alarm, alarms};
use crate::run::{Engine, Made, Prepared, Whole};
use crate::workers::{Allowance, whole_within};
use polity_kernel::scenario::Design;
use polity_store::DriveError;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A run of a design: indices of its arm and of its seed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunId {
    pub arm: usize,
    pub seed: usize,
}

/// The results of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    /// Its digest.
    pub digest: String,
    /// The names of all that it measured.
    pub measured: Vec<String>,
    /// Signs that it is uninformative.
    pub health: Vec<Alarm>,
    /// Totals of its answers.
    pub totals: Totals,
    /// What the design reads, by metric.
    pub values: BTreeMap<String, f64>,
}

/// The results of runs, in the order of the design.
pub(super) struct Outcomes {
    done: Vec<Vec<Option<Done>>>,
    count: usize,
}

impl Outcomes {
    pub(super) fn new(design: &Design) -> Outcomes {
        Outcomes { done: design.arms.iter().map(|arm| vec![None; arm.seeds.len()]).collect(), count: 0 }
    }

    pub(super) fn put(&mut self, run: RunId, done: Done) {
        if let Some(place) = self.done.get_mut(run.arm).and_then(|arm| arm.get_mut(run.seed)) {
            self.count += usize::from(place.is_none());
            *place = Some(done);
        }
    }

    /// Number of finished runs.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Number of arms with a finished run.
    pub(super) fn arms_begun(&self) -> usize {
        self.done.iter().filter(|arm| arm.iter().any(Option::is_some)).count()
    }

    fn ended(&self) -> impl Iterator<Item = &Done> {
        self.done.iter().flatten().flatten()
    }

    /// Names of all that runs measured.
    pub(super) fn measured(&self) -> BTreeSet<&str> {
        self.ended().flat_map(|done| done.measured.iter().map(String::as_str)).collect()
    }

    /// Totals of the answers of all runs.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.ended().for_each(|done| totals.add(&done.totals));
        totals
    }

    /// Alarms by arm, kind and subject.
    pub(super) fn health(&self, manifest: &SweepManifest) -> Vec<HealthRow> {
        let mut rows = Vec::new();
        for (arm, runs) in manifest.arms.iter().zip(&self.done) {
            let mut counts: BTreeMap<(&'static str, &str), usize> = BTreeMap::new();
            for alarm in runs.iter().flatten().flat_map(|done| &done.health) {
                *counts.entry((alarm.kind, &alarm.subject)).or_default() += 1;
            }
            rows.extend(counts.into_iter().map(|((kind, subject), runs)| HealthRow {
                arm: arm.name.clone(),
                kind,
                subject: subject.to_string(),
                runs,
            }));
        }
        rows
    }

    pub(super) fn left_by_arm(&self) -> Vec<usize> {
        self.done.iter().map(|arm| arm.iter().filter(|done| done.is_none()).count()).collect()
    }

    /// The values of a metric in the runs that have ended, by arm and seed, of the first seeds of each arm.
    pub(super) fn values(&self, metric: &str, seeds: usize) -> Vec<Vec<Option<f64>>> {
        let value = |done: &Option<Done>| done.as_ref().and_then(|done| done.values.get(metric).copied());
        self.done.iter().map(|arm| arm.iter().take(seeds).map(value).collect()).collect()
    }

    /// Makes room for the arms that were added to the design.
    pub(super) fn grow(&mut self, design: &Design) {
        let added = design.arms.iter().skip(self.done.len()).map(|arm| vec![None; arm.seeds.len()]);
        self.done.extend(added.collect::<Vec<_>>());
    }

    /// Keeps the first seeds of each arm only.
    pub(super) fn keep(&mut self, seeds: usize) {
        self.done.iter_mut().for_each(|arm| arm.truncate(seeds));
    }

    /// All results, by arm and seed, once all runs have ended.
    pub(super) fn all(self) -> Option<Vec<Vec<Done>>> {
        self.done.into_iter().map(|arm| arm.into_iter().collect()).collect()
    }
}

/// The runs of a sweep.
pub(super) struct Runs<'a> {
    pub engine: &'a Engine<'a>,
    /// The sweep's folder.
    pub path: &'a Path,
    pub manifest: &'a SweepManifest,
    pub prepared: &'a [Prepared],
    allowance: Option<Allowance<'a>>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        engine: &'a Engine<'a>,
        path: &'a Path,
        manifest: &'a SweepManifest,
        prepared: &'a [Prepared],
    ) -> Runs<'a> {
        let allowance =
            manifest.design.budget.as_ref().map(|limits| Allowance::new(engine.disk.as_ref(), path, "sweep", limits));
        Runs { engine, path, manifest, prepared, allowance }
    }

    /// Refuses a budget of the sweep that cannot hold, or allows no run.
    pub(super) fn check_budget(&self) -> Result<(), DriveError> {
        let Some(allowance) = &self.allowance else { return Ok(()) };
        self.prepared.iter().try_for_each(|prepared| allowance.most(prepared, &self.engine.budget).map(drop))
    }

    /// Why a run could not begin, if the sweep's budget did not allow it.
    pub(super) fn short(&self) -> Option<String> {
        self.allowance.as_ref().and_then(Allowance::short)
    }

    /// All runs, each arm's first seed first, so that the size of an arm is known early.
    pub(super) fn order(&self) -> Vec<RunId> {
        let arms = &self.manifest.design.arms;
        let most = arms.iter().map(|arm| arm.seeds.len()).max().unwrap_or(0);
        let of_seed = |seed| (0..arms.len()).map(move |arm| RunId { arm, seed });
        (0..most).flat_map(of_seed).filter(|run| run.seed < arms[run.arm].seeds.len()).collect()
    }

    fn seed(&self, run: RunId) -> u64 {
        self.manifest.design.arms[run.arm].seeds[run.seed]
    }

    pub(super) fn folder(&self, run: RunId) -> PathBuf {
        run_folder(self.path, &self.manifest.arms[run.arm], self.seed(run))
    }

    /// Makes runs on `jobs` threads and passes on their results as they end. Returns how many other processes are working on. Stops at the
    /// first error, or on a stop request.
    pub(super) fn drive(
        &self,
        runs: &[RunId],
        jobs: usize,
        hear: &mut dyn FnMut(RunId, Done) -> Result<(), DriveError>,
    ) -> Result<usize, DriveError> {
        self.engine.at_once(runs, jobs, &|engine, run| self.make(engine, run), hear)
    }

    /// Starts a run, resumes it, or reads its results.
    pub(super) fn make(&self, engine: &Engine<'_>, run: RunId) -> Result<Made<Done>, DriveError> {
        let dir = self.folder(run);
        let mut prepared = self.prepared[run.arm].clone();
        let (path, seed) = seed(self.seed(run));
        prepared.tree.edit(&path, seed)?;
        let name = format!("{}/{}", self.manifest.arms[run.arm].folder, self.seed(run));
        let named = (name.as_str(), "sweep.json");
        whole_within(engine, self.allowance.as_ref(), named, &prepared, &dir)?.and_then(|whole| self.done(whole, &dir))
    }

    fn done(&self, whole: Whole<'_>, dir: &Path) -> Result<Done, DriveError> {
        let Whole { digest, rounds, totals, metrics: mut measured, tables } = whole;
        let in_run =
            |error: TableError| DriveError::InRun { run: dir.display().to_string(), error: Box::new(error.into()) };
        measured.extend(distances(&tables, rounds).map_err(in_run)?);
        let health = alarms(&tables).map_err(in_run)?;
        let design = &self.manifest.design;
        if design.metrics.is_some() {
            measured.extend(used(&totals, rounds).into_iter().filter(|(name, _)| design.reads(name)));
        }
        let values = measured
            .iter()
            .filter(|(name, _)| design.reads(name))
            .filter_map(|(name, values)| Some((name.clone(), design.read.of(values, rounds)?)))
            .collect();
        Ok(Done { digest, measured: measured.into_keys().collect(), values, health, totals })
    }
}

/// Distances from data as metrics, `validation.OF.AT.DISTANCE`, in the last round, so that a design can read how well arms fit.
fn distances(tables: &Reader<'_>, rounds: u32) -> Result<BTreeMap<String, Vec<(u32, f64)>>, TableError> {
    let table = tables.closed("validation", &["at", "of", "distance", "value"], usize::MAX)?;
    let mut found = BTreeMap::new();
    let text = |name: &str| table.iter().find(|(column, _)| column == name).map(|(_, data)| data.texts());
    let value = table.iter().find(|(column, _)| column == "value").map(|(_, data)| data);
    if let (Some(at), Some(of), Some(distance), Some(ColumnData::F64(value))) =
        (text("at"), text("of"), text("distance"), value)
    {
        for (((at, of), distance), value) in at.iter().zip(of).zip(distance).zip(value) {
            if let (Some(at), Some(of), Some(distance), Some(value)) = (at, of, distance, value) {
                found.insert(format!("validation.{of}.{at}.{distance}"), vec![(rounds.saturating_sub(1), *value)]);
            }
        }
    }
    Ok(found)
}

/// What a run used as metrics in the last round, for designs that name them: requests and replies in tokens, and calls.
fn used(totals: &Totals, rounds: u32) -> [(String, Vec<(u32, f64)>); 2] {
    let last = rounds.saturating_sub(1);
    let tokens = totals.tokens_in + totals.tokens_out;
    [("run.tokens", tokens), ("run.calls", totals.calls)]
        .map(|(name, value)| (name.to_owned(), vec![(last, value as f64)]))
}

/// How many runs of an arm raise an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthRow {
    /// The arm.
    pub arm: String,
    /// Kind of the alarm.
    pub kind: &'static str,
    /// Its subject: a cohort or the run.
    pub subject: String,
    /// Number of finished runs of the arm that raise it.
    pub runs: usize,
}
