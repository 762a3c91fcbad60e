//! The tables of a sweep: one row per run and metric, means with intervals by arm, contrasts.

use super::begin::Stopping;
use super::contrasts::{self, ARM, ContrastRow};
use super::evaluation::{self, EvaluationRow};
use super::folder::{ARMS_FILE, SweepManifest, run_folder};
use super::mark::SWEEP_FILE;
use super::pool::{Done, HealthRow};
use super::search::{self, SearchRow};
use super::sensitivity::{self, SensitivityRow};
use polity_kernel::scenario::{Design, Factor, Intervals};
use polity_stats::{self as stats, Estimate};
use polity_store::disk::{Disk, create_dir_durably, write_atomically};
use polity_store::listing::Listing;
use polity_store::spreadsheet::inert;
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec, Tables, remove_parts_after};
use polity_store::{DriveError, digest_of};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The mean of a metric over the seeds of an arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmRow {
    /// The arm.
    pub arm: String,
    /// The metric.
    pub metric: String,
    /// Mean over its runs; null if none has it.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval; null with fewer than two runs.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Runs that have the metric.
    pub n: usize,
}

/// The results of a sweep.
pub(super) struct Results {
    pub arms: Vec<ArmRow>,
    pub contrasts: Vec<ContrastRow>,
    pub evaluation: Vec<EvaluationRow>,
    pub sensitivity: Vec<SensitivityRow>,
    pub search: Vec<SearchRow>,
    pub digest: String,
    metrics: Vec<String>,
}

/// Values of one metric: by arm and seed.
pub(super) type Values = Vec<Vec<Option<f64>>>;

/// The values of a metric in runs given by arm and seed.
pub(super) fn values_of(name: &str, runs: &[Vec<Done>]) -> Values {
    runs.iter().map(|arm| arm.iter().map(|run| run.values.get(name).copied()).collect()).collect()
}

impl Results {
    /// Summarises all runs, given by arm and seed.
    pub(super) fn of(design: &Design, runs: &[Vec<Done>]) -> Results {
        let metrics: BTreeSet<&String> = runs.iter().flatten().flat_map(|run| run.values.keys()).collect();
        let metrics: Vec<String> = metrics.into_iter().cloned().collect();
        let values: Vec<Values> = metrics.iter().map(|name| values_of(name, runs)).collect();
        let cells: Vec<(usize, usize)> =
            (0..design.arms.len()).flat_map(|arm| (0..metrics.len()).map(move |metric| (arm, metric))).collect();
        // Results are joined in order.
        let arms = cells
            .into_par_iter()
            .map(|(arm, metric)| {
                let own: Vec<f64> = values[metric][arm].iter().flatten().copied().collect();
                let Estimate { mean, low, high, n } = stats::student(&own);
                ArmRow { arm: design.arms[arm].name.clone(), metric: metrics[metric].clone(), mean, low, high, n }
            })
            .collect();
        let contrasts = contrasts::rows(design, &metrics, &values);
        let evaluation = evaluation::rows(design, &metrics, &values);
        let sensitivity = sensitivity::rows(design, &metrics, &values);
        let search = search::rows(design, &|name| values_of(name, runs));
        let digests: Vec<&str> = runs.iter().flatten().map(|run| run.digest.as_str()).collect();
        let digest = digest_of(digests.join("\n").as_bytes()).to_string();
        Results { arms, contrasts, evaluation, sensitivity, search, digest, metrics }
    }

    /// How the design's rule that adds seeds ended.
    pub(super) fn stopping(&self, design: &Design) -> Option<Stopping> {
        let until = design.until.as_ref()?;
        let interval = |low: Option<f64>, high: Option<f64>| low.zip(high);
        let widest = match until.of {
            Intervals::Arms => {
                let rows = self.arms.iter().filter(|row| row.metric == until.metric);
                until.widest(rows.map(|row| interval(row.low, row.high)))
            }
            Intervals::Differences => {
                let rows = self.contrasts.iter().filter(|row| row.contrast == ARM && row.metric == until.metric);
                until.widest(rows.map(|row| interval(row.low, row.high)))
            }
        };
        Some(Stopping {
            metric: until.metric.clone(),
            halfwidth: until.halfwidth,
            widest,
            narrow: widest.is_some_and(|widest| widest <= until.halfwidth),
            seeds: design.arms.first().map_or(0, |arm| arm.seeds.len()),
        })
    }

    /// Writes the tables, as Parquet and CSV, unless all exist unchanged.
    pub(super) fn write(
        &self,
        disk: &Arc<dyn Disk>,
        dir: &Path,
        manifest: &SweepManifest,
        runs: &[Vec<Done>],
        health: &[HealthRow],
    ) -> Result<(), DriveError> {
        let design = &manifest.design;
        let contrasts = contrasts::table(&self.contrasts);
        let mut tables = vec![self.runs_table(design, runs), self.summary_table(), contrasts, health_table(health)];
        if !self.evaluation.is_empty() {
            tables.push(evaluation::table(&self.evaluation));
        }
        if design.sample.is_some() {
            tables.push(sensitivity::table(&self.sensitivity));
        }
        if design.search.is_some() {
            tables.push(search::table(design, &self.search));
        }
        let listed = SweepManifest::checked(disk.as_ref(), dir)?.1;
        let mut listing = Listing::default();
        let began_with = listed.files().filter(|path| *path == SWEEP_FILE || path.starts_with("inputs/"));
        began_with.for_each(|path| listing.keep(path, &listed));
        for ((entry, arm), runs) in manifest.arms.iter().zip(&design.arms).zip(runs) {
            for (seed, run) in arm.seeds.iter().zip(runs) {
                listing.add_run(run_folder(Path::new(""), entry, *seed).to_string_lossy(), &run.digest);
            }
        }
        let mut texts = Vec::new();
        for (spec, batch) in &tables {
            let name = format!("{}.csv", spec.name);
            let text = csv(spec, batch)?;
            listing.add(name.as_str(), &text);
            texts.push((dir.join(name), text));
        }
        if manifest.decides() {
            let text = manifest.arms_file()?;
            listing.add(ARMS_FILE, &text);
            texts.push((dir.join(ARMS_FILE), text));
        }
        let folder = dir.join("tables");
        let parts = listed.parts();
        let mut with_parts = listing.clone();
        parts.values().flatten().for_each(|part| with_parts.add_part(part));
        let complete = tables.iter().all(|(spec, _)| parts.contains_key(&spec.name)) && with_parts == listed;
        let sound = || -> Result<bool, DriveError> {
            Ok(listed.faults(disk.as_ref(), dir)?.is_empty() && super::tables(disk.as_ref(), dir)?.check().is_ok())
        };
        if complete && sound()? {
            return Ok(());
        }
        // A kill may have left some of them; all are written again, from the runs.
        create_dir_durably(disk.as_ref(), &folder).map_err(DriveError::disk(&folder))?;
        remove_parts_after(disk.as_ref(), &folder, None)?;
        let specs = tables.iter().map(|(spec, _)| spec.clone()).collect();
        let mut parquet = Tables::open(disk.clone(), &folder, specs)?;
        for (at, (_, batch)) in tables.into_iter().enumerate() {
            parquet.push(at, batch)?;
        }
        parquet.close_parts(0, 0)?.iter().for_each(|part| listing.add_part(part));
        listing.write(disk.as_ref(), dir)?;
        parquet.publish(true)?;
        parquet.finish()?;
        for (path, text) in texts {
            write_atomically(disk.as_ref(), &path, &text).map_err(DriveError::disk(&path))?;
        }
        Ok(())
    }

    fn runs_table(&self, design: &Design, runs: &[Vec<Done>]) -> (TableSpec, Batch) {
        let mut columns = vec![ColumnSpec::new("arm", Kind::Text, "arm of the design")];
        for factor in &design.factors {
            let doc = match &factor.path {
                Some(path) => format!("level of the factor: the value of {path}"),
                None => "the named arm".to_string(),
            };
            let kind = if numbers(factor).is_some() { Kind::F64 } else { Kind::Text };
            columns.push(ColumnSpec::new(factor.name.clone(), kind, doc));
        }
        columns.push(ColumnSpec::new("seed", Kind::U64, "seed of the run"));
        columns.push(ColumnSpec::new("metric", Kind::Text, "quantity and metric"));
        columns.push(
            ColumnSpec::new("value", Kind::F64, "the value that the design reads; missing if the run has none")
                .nullable(),
        );
        columns.push(ColumnSpec::new("digest", Kind::Text, "digest of the run"));
        let each = || {
            let of_arm = |(at, arm): (usize, &'_ Vec<Done>)| (at, arm.len());
            let runs = runs.iter().enumerate().map(of_arm).flat_map(|(arm, n)| (0..n).map(move |seed| (arm, seed)));
            runs.flat_map(|(arm, seed)| (0..self.metrics.len()).map(move |metric| (arm, seed, metric)))
        };
        let text =
            |of: &dyn Fn(usize, usize, usize) -> String| Column::Text(each().map(|(a, s, m)| of(a, s, m)).collect());
        let mut data = vec![text(&|arm, _, _| design.arms[arm].name.clone())];
        for (f, factor) in design.factors.iter().enumerate() {
            data.push(match numbers(factor) {
                Some(numbers) => Column::F64(each().map(|(arm, _, _)| numbers[design.arms[arm].levels[f]]).collect()),
                None => text(&|arm, _, _| factor.levels[design.arms[arm].levels[f]].clone()),
            });
        }
        data.push(Column::U64(each().map(|(arm, seed, _)| design.arms[arm].seeds[seed]).collect()));
        data.push(text(&|_, _, metric| self.metrics[metric].clone()));
        let value = |(arm, seed, metric): (usize, usize, usize)| {
            let done: &Done = &runs[arm][seed];
            done.values.get(&self.metrics[metric]).copied()
        };
        data.push(Column::MaybeF64(each().map(value).collect()));
        data.push(text(&|arm, seed, _| runs[arm][seed].digest.clone()));
        let doc = "One row per run and metric, in order of arm and seed.".to_string();
        let spec = TableSpec { name: "runs".into(), doc, columns, volatile: false, only_with_rows: false };
        (spec, Batch { rows: each().count(), columns: data })
    }

    fn summary_table(&self) -> (TableSpec, Batch) {
        let rows = &self.arms;
        let columns = vec![
            ColumnSpec::new("arm", Kind::Text, "arm of the design"),
            ColumnSpec::new("metric", Kind::Text, "quantity and metric"),
            ColumnSpec::new("mean", Kind::F64, "mean over the arm's seeds").nullable(),
            ColumnSpec::new("low", Kind::F64, "lower end of the 95 % interval").nullable(),
            ColumnSpec::new("high", Kind::F64, "upper end of the 95 % interval").nullable(),
            ColumnSpec::new("n", Kind::U32, "runs that have the metric"),
        ];
        let data = vec![
            Column::Text(rows.iter().map(|row| row.arm.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.metric.clone()).collect()),
            Column::MaybeF64(rows.iter().map(|row| row.mean).collect()),
            Column::MaybeF64(rows.iter().map(|row| row.low).collect()),
            Column::MaybeF64(rows.iter().map(|row| row.high).collect()),
            Column::U32(rows.iter().map(|row| row.n as u32).collect()),
        ];
        let doc = "One row per arm and metric. Intervals: Student's, 95 %, of the mean over seeds.".to_string();
        (
            TableSpec { name: "summary".into(), doc, columns, volatile: false, only_with_rows: false },
            Batch { rows: rows.len(), columns: data },
        )
    }
}

fn health_table(rows: &[HealthRow]) -> (TableSpec, Batch) {
    let columns = vec![
        ColumnSpec::new("arm", Kind::Text, "arm of the design"),
        ColumnSpec::new("kind", Kind::Text, "kind of the alarm"),
        ColumnSpec::new("subject", Kind::Text, "the cohort, or `all`"),
        ColumnSpec::new("runs", Kind::U32, "runs of the arm that raise it"),
    ];
    let data = vec![
        Column::Text(rows.iter().map(|row| row.arm.clone()).collect()),
        Column::Text(rows.iter().map(|row| row.kind.to_string()).collect()),
        Column::Text(rows.iter().map(|row| row.subject.clone()).collect()),
        Column::U32(rows.iter().map(|row| row.runs as u32).collect()),
    ];
    let doc = "One row per arm and kind of alarm. Alarms are signs that runs are uninformative.".to_string();
    (
        TableSpec { name: "health".into(), doc, columns, volatile: false, only_with_rows: false },
        Batch { rows: rows.len(), columns: data },
    )
}

/// A factor's levels, if all are numbers.
fn numbers(factor: &Factor) -> Option<Vec<f64>> {
    factor.path.as_ref()?;
    factor.levels.iter().map(|level| level.parse().ok().filter(|x: &f64| x.is_finite())).collect()
}

/// The rows as CSV; numbers are written so that they read back unchanged.
fn csv(spec: &TableSpec, batch: &Batch) -> Result<Vec<u8>, DriveError> {
    let number = |x: f64| format!("{x}");
    let text = |text: &str| inert(text).into_owned();
    let failed =
        |error: &dyn std::fmt::Display| DriveError::Folder(format!("{}.csv cannot be written: {error}", spec.name));
    let cell = |column: &Column, row: usize| -> Result<String, DriveError> {
        Ok(match column {
            Column::Text(v) => text(&v[row]),
            Column::MaybeText(v) => v[row].as_deref().map_or(String::new(), text),
            Column::F64(v) => number(v[row]),
            Column::MaybeF64(v) => v[row].map_or(String::new(), number),
            Column::U32(v) => v[row].to_string(),
            Column::U64(v) => v[row].to_string(),
            Column::Bool(v) => v[row].to_string(),
            // An empty cell would mean a missing value.
            _ => return Err(failed(&"no table of a sweep has a column of this kind")),
        })
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(spec.columns.iter().map(|column| text(&column.name))).map_err(|e| failed(&e))?;
    for row in 0..batch.rows {
        let cells: Vec<String> = batch.columns.iter().map(|column| cell(column, row)).collect::<Result<_, _>>()?;
        writer.write_record(cells).map_err(|e| failed(&e))?;
    }
    writer.into_inner().map_err(|e| failed(&e))
}
