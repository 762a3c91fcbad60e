//! `polity sweep`: the runs of a design, and their results.

mod columns;
mod expected;
mod reliability;
mod report;

pub use report::write_report;

use super::args::{Answering, Common, SweepLimits};
use super::engine::{continues_with, with_engine};
use super::failure::{Exit, Failure, Source, failure, is_full};
use super::output::{self, note, print_line};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polity_driver::run::new_folder;
use polity_driver::run::seed_of;
use polity_driver::run::{Prepared, RunStatus};
use polity_driver::sweep::{self, ContrastRow, Limits, SweepManifest, SweepSummary, WatchSweep, is_sweep};
use polity_kernel::registry::Registry;
use polity_stats::FEW;
use polity_store::DriveError;
use polity_store::disk::Disk;
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
        if self.bar.is_hidden() && self.told.elapsed() >= output::BETWEEN_LINES && done < runs {
            self.told = Instant::now();
            let each = self.began.elapsed().as_secs_f64() / (done - before).max(1) as f64;
            let left = (runs - done) as f64 * each;
            let numbers = serde_json::json!({ "done": done, "runs": runs, "seconds_left": left });
            output::progress(&format!("{done} of {runs} runs done, about {left:.0} s left"), &numbers);
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
        let disk = engine.disk.as_ref();
        let out = match out {
            Some(out) => out,
            None => {
                let name = format!("{}-sweep", prepared.name);
                new_folder(disk, &name, seed_of(&prepared.tree))?
            }
        };
        let mut bar = RunsBar::new();
        continues_with(&out);
        let begun = sweep::begin(engine, prepared, &out, limits.limits(common), &mut bar);
        bar.clear();
        finish(begun, &out, common, disk, Some(source))
    })
}

/// `polity resume` on the folder of a sweep.
pub fn resume(
    dir: &Path,
    common: &Common,
    answering: &Answering,
    limits: SweepLimits,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, _| {
        let mut bar = RunsBar::new();
        continues_with(dir);
        let resumed = sweep::resume(engine, dir, limits.limits(common), &mut bar);
        bar.clear();
        finish(resumed, dir, common, engine.disk.as_ref(), None)
    })
}

/// Shows the results of a sweep.
fn finish(
    result: Result<SweepSummary, DriveError>,
    dir: &Path,
    common: &Common,
    disk: &dyn Disk,
    source: Option<&Source>,
) -> Result<Exit, Failure> {
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
        show(&summary);
        let design = SweepManifest::of(disk, dir)?.design;
        let judged = expected::judged(&design, &|of| expected::in_summary(&summary, of));
        judged.iter().for_each(|one| note(&one.line()));
    }
    note(&format!("{}: {} of {} runs, {:.2} s", summary.status, summary.done, summary.runs, summary.wall_seconds));
    if !summary.digest.is_empty() {
        note(&format!("digest {}", summary.digest));
    }
    note(&format!("sweep folder {}", summary.sweep));
    if stopped {
        note(&format!("continue with: polity resume {}", summary.sweep));
    } else if !common.no_report {
        note(&format!("report {}", write_report(disk, dir)?.display()));
    }
    if common.json {
        print_line(&output::json(&summary));
    }
    Ok(if stopped { Exit::Stopped } else { Exit::Done })
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".into(), |x| format!("{x:.4}"))
}

/// The tables on the terminal.
fn show(summary: &SweepSummary) {
    let print = |header: &[&str], rows: Vec<Vec<String>>, file: &str| {
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
    let arms = summary.arms.iter().map(|row| {
        let n = row.n.to_string();
        vec![row.arm.clone(), row.metric.clone(), shown(row.mean), shown(row.low), shown(row.high), n]
    });
    print(&["arm", "metric", "mean", "low", "high", "n"], arms.collect(), "summary.csv");
    // The arms against the baseline are in the tables; main effects, if any, are more informative.
    let main: Vec<&ContrastRow> = summary.contrasts.iter().filter(|row| row.factor.is_some()).collect();
    let rows = if main.is_empty() { summary.contrasts.iter().collect() } else { main };
    let rows: Vec<Vec<String>> = rows.into_iter().map(contrast).collect();
    if !rows.is_empty() {
        print(&["contrast", "metric", "difference", "low", "high", "verdict"], rows, "contrasts.csv");
    }
    if let Some(n) = summary.arms.iter().map(|row| row.n).filter(|n| *n > 0).min()
        && n < FEW
    {
        note(&format!(
            "{n} seeds are few: intervals are too narrow, and they do not show whether a difference is stable"
        ));
    }
    for row in &summary.health {
        note(&format!("health: {}: {} in {} runs of the arm {}", row.kind, row.subject, row.runs, row.arm));
    }
    if summary.answers > 0 {
        note(&format!(
            "{} answers{}, {} tokens in, {} out, {:.4} USD",
            summary.answers,
            if summary.simulated { " from simulated models" } else { "" },
            summary.tokens_in,
            summary.tokens_out,
            summary.cost_usd
        ));
    }
}

fn contrast(row: &ContrastRow) -> Vec<String> {
    let factor = row.factor.as_ref().map_or(String::new(), |factor| format!("{factor}: "));
    vec![
        format!("{factor}{} minus {}", row.level, row.reference),
        row.metric.clone(),
        shown(row.difference),
        shown(row.low),
        shown(row.high),
        row.verdict.word().into(),
    ]
}
