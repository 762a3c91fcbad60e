//! `polity sweep`: the runs of a design, and their results.

mod columns;
mod evaluation;
mod expected;
mod interactions;
mod reliability;
mod report;
mod search;
mod sensitivity;

pub use report::report_of;

use super::args::{Answering, Common, Spending, SweepLimits};
use super::engine::{continues_with, with_engine};
use super::failure::{Exit, Failure, Source, failure, is_full};
use super::output::{self, note, print_line};
use super::save_report;
use super::workers::{raise, short_of, tell_plan};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polity_driver::health::meaning;
use polity_driver::run::new_folder;
use polity_driver::run::seed_of;
use polity_driver::run::{Engine, Prepared, RunStatus};
use polity_driver::sweep::{
    self, ContrastRow, EvaluationRow, Limits, Stopping, SweepManifest, SweepSummary, WatchSweep, is_sweep,
};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Design, Factor};
use polity_stats::{FEW, Verdict};
use polity_store::DriveError;
use polity_store::printable::counted;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum rows of a table on the terminal; the sweep's tables hold all.
const MOST_ROWS: usize = 40;

impl SweepLimits {
    pub(super) fn limits(self, common: &Common) -> Limits {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Limits { jobs: self.jobs.or(common.threads).unwrap_or_else(cores) }
    }
}

/// Number of finished runs, and the time left.
pub(super) struct RunsBar {
    bar: ProgressBar,
    began: Instant,
    told: Instant,
    /// Runs already done at this process's first report.
    before: Option<usize>,
}

impl RunsBar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new(0);
        if !output::draws() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        // The template is a constant; a wrong one falls back to the default look.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len} runs  {elapsed}, {eta} left") {
            bar.set_style(style);
        }
        RunsBar { bar, began: Instant::now(), told: Instant::now(), before: None }
    }

    /// Removes it from the terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl WatchSweep for RunsBar {
    fn progress(&mut self, done: usize, runs: usize) {
        self.bar.set_length(runs as u64);
        self.bar.set_position(done as u64);
        let before = *self.before.get_or_insert(done.saturating_sub(1));
        if self.bar.is_hidden() && self.told.elapsed() >= output::between_lines() && done < runs {
            self.told = Instant::now();
            let each = self.began.elapsed().as_secs_f64() / (done - before).max(1) as f64;
            let left = (runs - done) as f64 * each;
            let numbers = serde_json::json!({ "done": done, "runs": runs, "eta_s": left });
            output::note_with(&format!("{done} of {runs} runs done, about {} left", output::span(left)), &numbers);
        }
    }
}

/// `polity sweep FILE`.
pub fn sweep(
    (prepared, source): &(Prepared, Source),
    common: &Common,
    answering: &Answering,
    limits: SweepLimits,
    out: Option<PathBuf>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, _| {
        let out = folder_of(engine, prepared, out)?;
        let mut bar = RunsBar::new();
        continues_with("sweep", &out);
        let begun = sweep::begin(engine, prepared, &out, limits.limits(common), &mut bar);
        bar.clear();
        finish(begun, &out, common, engine, Some(source))
    })
}

/// The folder of a sweep: that of --out, or a new one.
fn folder_of(engine: &Engine<'_>, prepared: &Prepared, out: Option<PathBuf>) -> Result<PathBuf, DriveError> {
    match out {
        Some(out) => Ok(out),
        None => new_folder(engine.disk.as_ref(), &format!("{}-sweep", prepared.name), seed_of(&prepared.tree)),
    }
}

/// `polity sweep FILE --plan`.
pub fn plan(
    (prepared, source): &(Prepared, Source),
    common: &Common,
    answering: &Answering,
    out: Option<PathBuf>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, _| {
        let out = folder_of(engine, prepared, out)?;
        let planned = sweep::plan(engine, prepared, &out).map_err(|error| failure(&error, Some(source)))?;
        Ok(tell_plan("sweep", &out, planned, common))
    })
}

/// `polity resume` on the folder of a sweep.
pub fn resume(
    dir: &Path,
    common: &Common,
    answering: &Answering,
    limits: SweepLimits,
    spending: Spending,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, _| {
        raise(engine, dir, spending)?;
        let mut bar = RunsBar::new();
        continues_with("sweep", dir);
        let resumed = sweep::resume(engine, dir, limits.limits(common), &mut bar);
        bar.clear();
        finish(resumed, dir, common, engine, None)
    })
}

/// Shows the results of a sweep.
fn finish(
    result: Result<SweepSummary, DriveError>,
    dir: &Path,
    common: &Common,
    engine: &Engine<'_>,
    source: Option<&Source>,
) -> Result<Exit, Failure> {
    let disk = engine.disk.as_ref();
    let summary = result.map_err(|error| {
        let mut failure = failure(&error, source);
        let how = format!("polity resume {}", dir.display());
        if is_full(&error) && is_sweep(disk, dir) && !failure.message.contains(&how) {
            failure.message.push_str(&format!("\nfree some space, then: {how}"));
        }
        failure
    })?;
    let stopped = summary.status == RunStatus::Stopped;
    if !stopped {
        let design = SweepManifest::of(disk, dir)?.design;
        show(&summary, &design);
        if let Some(fraction) = &design.fraction {
            note(&format!("design: {}", fraction.words()));
            let factors = design.factors.iter().map(|factor| factor.name.as_str());
            fraction.groups(&factors.collect::<Vec<_>>()).iter().for_each(|group| note(&format!("aliased: {group}")));
        }
        summary.stopping.iter().for_each(|stopping| note(&stopped_by(stopping)));
        let judged = expected::judged(&design, &|of| expected::in_summary(&summary, of));
        judged.iter().for_each(|one| note(&one.line()));
    }
    note(&format!("{}: {} of {} runs, {:.2} s", summary.status, summary.done, summary.runs, summary.wall_seconds));
    if !summary.digest.is_empty() {
        note(&format!("digest {}", summary.digest));
    }
    note(&format!("sweep folder {}", summary.sweep));
    if summary.held > 0 {
        note(&format!("{} were being made by other processes", counted(summary.held, "run")));
    }
    if let Some(short) = &summary.short {
        note(&short_of("sweep", short));
    }
    if stopped {
        note(&format!("continue with: polity resume {}", summary.sweep));
    } else if !common.no_report {
        let report = report_of(disk, dir, engine.registry)?;
        note(&format!("report {}", save_report(disk, dir, &report)?.display()));
    }
    if common.json {
        print_line(&output::json(&summary));
    }
    Ok(if stopped { Exit::Stopped } else { Exit::Done })
}

/// How the rule that adds seeds ended, in words.
fn stopped_by(Stopping { metric, halfwidth, widest, narrow, seeds }: &Stopping) -> String {
    let widest = widest.map_or("an interval is missing".into(), |widest| format!("the widest has {widest:.4}"));
    match narrow {
        true => format!(
            "seeds: {seeds} for each arm, because then every interval of {metric} had a half-width of {halfwidth} or less ({widest}); \
             intervals at such a stop are slightly too narrow"
        ),
        false => format!(
            "seeds: {seeds} for each arm, the maximum; not every interval of {metric} has a half-width of {halfwidth} or less ({widest})"
        ),
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".into(), |x| format!("{x:.4}"))
}

/// The tables on the terminal.
fn show(summary: &SweepSummary, design: &Design) {
    let print = |header: &[&str], rows: Vec<Vec<String>>, file: &str| {
        if output::is_json() {
            let table = serde_json::json!({ "table": file, "columns": header, "rows": rows });
            output::note_with(&format!("values in {file}"), &table);
            return;
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(header);
        let all = rows.len();
        table.add_rows(rows.into_iter().take(MOST_ROWS));
        note(&table.to_string());
        if all > MOST_ROWS {
            note(&format!(" ... {} more rows in {file}", all - MOST_ROWS));
        }
    };
    if summary.simulated {
        note("simulated models: these numbers are no evidence about any real model");
    }
    if let Some(found) = &summary.search {
        let rows = search::rows(design, found).into_iter().map(Vec::from).collect();
        let kind = if found.posterior.is_empty() { "best" } else { "posterior mean" };
        print(&["factor", kind, "low", "high"], rows, "search.csv");
        note(&search::line(found));
    } else if summary.sensitivity.is_empty() {
        let arms = summary.arms.iter().map(|row| {
            let n = row.n.to_string();
            vec![row.arm.clone(), row.metric.clone(), shown(row.mean), shown(row.low), shown(row.high), n]
        });
        print(&["arm", "metric", "mean", "low", "high", "n"], arms.collect(), "summary.csv");
    } else {
        let rows = summary.sensitivity.iter().map(|row| {
            let at = row.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
            let factor = format!("{}{at}", row.factor);
            vec![factor, row.metric.clone(), row.index.into(), shown(row.value), shown(row.low), shown(row.high)]
        });
        print(&["factor", "metric", "index", "value", "low", "high"], rows.collect(), "sensitivity.csv");
    }
    // The arms against the baseline are in the tables; main effects, if any, are more informative.
    let main: Vec<&ContrastRow> = summary.contrasts.iter().filter(|row| row.factor.is_some()).collect();
    let rows = if main.is_empty() { summary.contrasts.iter().collect() } else { main };
    let rows: Vec<Vec<String>> = rows.into_iter().map(contrast).collect();
    if !rows.is_empty() {
        print(&["contrast", "metric", "difference", "low", "high", "verdict (Holm)"], rows, "contrasts.csv");
    }
    for (name, of_all) in same(&summary.contrasts) {
        if of_all {
            note(&format!("{name}: they {}", columns::cannot_differ(summary.simulated)));
        }
    }
    let evaluated: Vec<Vec<String>> = summary.evaluation.iter().map(|row| evaluated(row).to_vec()).collect();
    if !evaluated.is_empty() {
        print(
            &["arm or level", "metric", "IQM", "low", "high", "P(improvement)", "low", "high"],
            evaluated,
            "evaluation.csv",
        );
    }
    // The points of a sample or a search are not compared with each other.
    let compared = summary.search.is_none() && summary.sensitivity.is_empty();
    if let Some(n) = summary.arms.iter().map(|row| row.n).filter(|n| *n > 0 && compared).min()
        && n < FEW
    {
        let seeds = if n == 1 { "1 seed is few: it does".to_owned() } else { format!("{n} seeds are few: they do") };
        note(&format!("{seeds} not show whether a difference is stable"));
    }
    for row in &summary.health {
        note(&format!(
            "health: {} ({}) in {} of the arm {}: {}",
            row.kind,
            row.subject,
            counted(row.runs, "run"),
            row.arm,
            meaning(row.kind)
        ));
    }
    if summary.answers > 0 {
        note(&format!(
            "{} answers{}, {} tokens in, {} out, {}",
            summary.answers,
            if summary.simulated { " from simulated models" } else { "" },
            summary.tokens_in,
            summary.tokens_out,
            summary
                .cost_usd
                .map_or_else(|| "at an unknown price (--price sets it)".into(), |usd| format!("{usd:.4} USD")),
        ));
    }
}

/// A row of the table of evaluations.
fn evaluated(row: &EvaluationRow) -> [String; 8] {
    let factor = row.factor.as_deref().map_or(String::new(), |factor| format!("{} ", Factor::words(factor)));
    let against = row.reference.as_deref().map_or(String::new(), |reference| format!(" against {reference}"));
    [
        format!("{factor}{}{against}", row.level),
        row.metric.clone(),
        shown(row.iqm),
        shown(row.iqm_low),
        shown(row.iqm_high),
        shown(row.improvement),
        shown(row.improvement_low),
        shown(row.improvement_high),
    ]
}

/// What is subtracted from what.
fn difference(row: &ContrastRow) -> String {
    let with = row.with_factor.as_deref().zip(row.with_level.as_deref()).zip(row.with_reference.as_deref());
    let with = with.map(|((factor, level), reference)| [factor, level, reference]);
    columns::words(row.factor.as_deref(), &row.level, &row.reference, with)
}

/// Each pair of arms or levels that is compared, and whether it is the same in all metrics. Where an interaction is 0, arms may still
/// differ.
fn same(contrasts: &[ContrastRow]) -> BTreeMap<String, bool> {
    let mut all: BTreeMap<String, bool> = BTreeMap::new();
    for row in contrasts.iter().filter(|row| row.with_factor.is_none()) {
        *all.entry(difference(row)).or_insert(true) &= row.verdict == Verdict::Same;
    }
    all
}

fn contrast(row: &ContrastRow) -> Vec<String> {
    vec![
        difference(row),
        row.metric.clone(),
        shown(row.difference),
        shown(row.low),
        shown(row.high),
        row.verdict.word().into(),
    ]
}
