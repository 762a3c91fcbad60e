//! `polity sweep`: the runs of a design, and their results.

use super::args::{Answering, Common, SweepLimits};
use super::engine::with_engine;
use super::failure::{Exit, Failure, Source, failure, is_full};
use super::output::{self, note, print_line};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polity_arena::report::{Bar, DataTable, Figure, Report, Section, render};
use polity_driver::results;
use polity_driver::run::new_folder;
use polity_driver::run::seed_of;
use polity_driver::run::{Prepared, RunStatus};
use polity_driver::sweep::{self, ContrastRow, Limits, SweepManifest, SweepSummary, WatchSweep, is_sweep};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Reading;
use polity_kernel::tree::Node;
use polity_stats::FEW;
use polity_store::DriveError;
use polity_store::disk::{Disk, write_atomically};
use polity_store::tables::{ColumnData, TableError};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum rows of a table on the terminal; the sweep's tables hold all.
const MOST_ROWS: usize = 40;
/// Maximum figures in the report.
const MOST_FIGURES: usize = 60;

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

/// Writes `report.html` of a sweep from its folder alone.
pub fn write_report(disk: &dyn Disk, dir: &Path) -> Result<PathBuf, Failure> {
    let manifest = SweepManifest::of(disk, dir)?;
    let tables = results::open(disk, dir)?;
    let read = |name: &str| {
        tables.table(name, &[], usize::MAX).map_err(|error| match error {
            TableError::Rounds { .. } => {
                let how = format!(
                    "a sweep has tables only after all its runs have ended; continue with: polity resume {}",
                    dir.display()
                );
                Failure::new(Exit::Folder, format!("{error}; {how}"))
            }
            error => error.into(),
        })
    };
    let page = render(&report(&manifest, &read("summary")?, &read("contrasts")?, &read("health")?));
    let path = dir.join("report.html");
    write_atomically(disk, &path, page.as_bytes())
        .map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
    Ok(path)
}

type Columns = Vec<(String, ColumnData)>;

fn report(manifest: &SweepManifest, summary: &Columns, contrasts: &Columns, alarms: &Columns) -> Report {
    let design = &manifest.design;
    let seeds = design.arms.first().map_or(0, |arm| arm.seeds.len());
    let yes_no = |yes| if yes { "yes" } else { "no" };
    let mut facts = vec![
        ("runs".into(), design.runs().to_string()),
        ("arms".into(), design.arms.len().to_string()),
        ("seeds per arm".into(), seeds.to_string()),
        ("common random numbers".into(), yes_no(design.common_random_numbers).into()),
        ("metrics are read".into(), reading(design.read)),
    ];
    for factor in design.factors.iter().filter(|factor| factor.path.is_some()) {
        facts.push((factor.name.clone(), factor.levels.join(", ")));
    }
    if !manifest.models.is_empty() {
        facts.push(("models".into(), manifest.models.join(", ")));
    }
    facts.push(("build".into(), format!("polity {} ({})", manifest.build.version, manifest.build.target)));
    let text = |key: &str| manifest.scenario.get(key).and_then(|v| v.as_str()).map(str::to_string);
    let set = design.arms.get(design.baseline).map_or(String::new(), |arm| {
        let one = |(path, value): &(String, Node)| format!(" -P '{path}={}'", value.to_json());
        let seed = arm.seeds.first().map_or(String::new(), |seed| format!(" --seed {seed}"));
        let of_run = |word: &&String| !word.starts_with("-P seed=") && !word.contains("design.");
        let edits = manifest.edits.iter().filter(of_run).map(|word| format!(" {word}"));
        edits.chain(arm.set.iter().map(one)).collect::<String>() + &seed
    });
    Report {
        kind: "Sweep report".into(),
        title: manifest.name.clone(),
        description: text("description"),
        simulated: manifest.simulated,
        status: "finished".into(),
        facts,
        sections: vec![means(summary, seeds), differences(manifest, contrasts), health(alarms)],
        scenario_yaml_or_json: serde_json::to_string_pretty(&manifest.scenario).unwrap_or_default(),
        reproduce: vec![
            [format!("polity sweep {}", manifest.source)]
                .into_iter()
                .chain(manifest.edits.clone())
                .collect::<Vec<_>>()
                .join(" "),
            format!("polity run {}{set}    # the first run of the baseline", manifest.source),
        ],
        methods: methods(manifest, seeds),
    }
}

fn reading(read: Reading) -> String {
    match read {
        Reading::Last => "at the end".into(),
        Reading::Round(round) => format!("in round {round}"),
        Reading::MeanOfLast(k) => format!("mean of the last {k} rounds"),
    }
}

fn column<'a>(columns: &'a Columns, name: &str) -> Option<&'a ColumnData> {
    columns.iter().find(|(n, _)| n == name).map(|(_, data)| data)
}

/// One figure per metric: means with intervals by arm.
fn means(summary: &Columns, seeds: usize) -> Section {
    let text = |name: &str| column(summary, name).map(ColumnData::texts).unwrap_or_default();
    let number = |name: &str| column(summary, name).map(ColumnData::numbers).unwrap_or_default();
    let (arms, metrics) = (text("arm"), text("metric"));
    let (mean, low, high) = (number("mean"), number("low"), number("high"));
    let mut by_metric: BTreeMap<String, Vec<Bar>> = BTreeMap::new();
    for (row, metric) in metrics.into_iter().enumerate() {
        let at = |values: &[Option<f64>]| values.get(row).copied().flatten();
        let bar = Bar {
            label: arms.get(row).cloned().flatten().unwrap_or_default(),
            value: at(&mean).unwrap_or(f64::NAN),
            interval: at(&low).zip(at(&high)),
        };
        by_metric.entry(metric.unwrap_or_default()).or_default().push(bar);
    }
    let all = by_metric.len();
    let figure = |(metric, bars): (String, Vec<Bar>)| Figure::Bars {
        title: format!("{metric} by arm"),
        x_label: "arm".into(),
        y_label: metric.clone(),
        bars,
        caption: format!("Mean of {metric} over {seeds} seeds, with 95 % intervals, by arm."),
    };
    let more = (all > MOST_FIGURES).then(|| format!("The first {MOST_FIGURES} of {all} metrics; summary.csv has all."));
    let figures = by_metric.into_iter().take(MOST_FIGURES).map(figure).collect();
    Section { title: "Means by arm".into(), text: more, figures, table: None }
}

/// Alarms by arm.
fn health(alarms: &Columns) -> Section {
    let data: Vec<Vec<Option<String>>> = alarms.iter().map(|(_, data)| data.texts()).collect();
    let rows: Vec<Vec<String>> = (0..data.first().map_or(0, Vec::len))
        .map(|row| data.iter().map(|column| column.get(row).cloned().flatten().unwrap_or_default()).collect())
        .collect();
    let text = match rows.is_empty() {
        true => "No run raises an alarm.",
        false => "Signs that runs, or parts of them, are uninformative; the report of each run says what was checked.",
    };
    let columns = alarms.iter().map(|(name, _)| name.clone()).collect();
    let table = (!rows.is_empty()).then(|| DataTable { columns, rows, caption: "Alarms by arm.".into() });
    Section { title: "Health".into(), text: Some(text.into()), figures: Vec::new(), table }
}

fn differences(manifest: &SweepManifest, contrasts: &Columns) -> Section {
    let cells = |name: &str| column(contrasts, name).map(ColumnData::texts).unwrap_or_default();
    let number = |name: &str| -> Vec<Option<String>> {
        let values = column(contrasts, name).map(ColumnData::numbers).unwrap_or_default();
        values.into_iter().map(|x| x.map(|x| format!("{x:.6}"))).collect()
    };
    let columns = ["contrast", "factor", "level", "reference", "metric", "difference", "low", "high", "n", "verdict"];
    let data: Vec<Vec<Option<String>>> = columns
        .iter()
        .map(|name| match *name {
            "difference" | "low" | "high" => number(name),
            name => cells(name),
        })
        .collect();
    let rows = (0..data.first().map_or(0, Vec::len))
        .map(|row| data.iter().map(|column| column.get(row).cloned().flatten().unwrap_or_default()).collect())
        .collect();
    let paired = match manifest.design.common_random_numbers {
        true => "All arms were run with the same seeds, and differences were taken seed by seed.",
        false => "Every arm was run with its own seeds.",
    };
    let few = match manifest.design.arms.iter().map(|arm| arm.seeds.len()).min() {
        Some(n) if n < FEW => {
            format!(" With {n} seeds (fewer than {FEW}), the results do not show whether a difference is stable.")
        }
        _ => String::new(),
    };
    let words = format!(
        "A difference is stable if its 95 % interval excludes 0: with other seeds it would most likely have the same \
         sign. It is seed noise if the interval contains 0. The verdict is about seeds alone: it says nothing about \
         other parameters, models or the world outside. No correction was made for the number of comparisons. \
         {paired}{few}"
    );
    let table = DataTable {
        columns: columns.map(str::to_string).to_vec(),
        rows,
        caption: "Every arm minus the baseline, and the main effect of every factor: the mean over the arms with a \
                  level, minus that over the arms with the factor's first level."
            .into(),
    };
    Section { title: "Differences".into(), text: Some(words), figures: Vec::new(), table: Some(table) }
}

/// The paragraph for a paper's methods section.
fn methods(manifest: &SweepManifest, seeds: usize) -> String {
    let design = &manifest.design;
    let factors: Vec<String> = design
        .factors
        .iter()
        .filter_map(|factor| Some(format!("{} ({})", factor.path.as_ref()?, factor.levels.join(", "))))
        .collect();
    let crossed = match factors.is_empty() {
        true => String::new(),
        false => format!(", a full factorial design over {}", factors.join(" and ")),
    };
    let numbers = match design.common_random_numbers {
        true => "common random numbers (the same seeds in each arm); differences were paired by seed",
        false => "separate seeds for each arm",
    };
    let unpaired = match design.common_random_numbers {
        true => "",
        false => "; for differences between arms they are Welch's",
    };
    format!(
        "We ran {} arms{crossed}, with {seeds} seeds each and {numbers}. Metrics were read {}. Intervals are Student's, 95 %, over \
         seeds{unpaired}. All runs and intervals can be recomputed exactly with polity {}.",
        design.arms.len(),
        reading(design.read),
        manifest.build.version
    )
}
