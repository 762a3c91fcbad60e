//! The report of a sweep, from its folder alone.

use super::columns::{Columns, Contrast, cannot_differ, numbers, texts};
use super::expected;
use super::reliability::{Evidence, sections as reliability};
use crate::failure::{Exit, Failure};
use crate::story::methods;
use polity_arena::report::{Chart, DataTable, Figure, Panel, Report, Section, Series, measured};
use polity_driver::results;
use polity_driver::sweep::SweepManifest;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Arm, Expectation, Reading};
use polity_kernel::tree::Node;
use polity_stats::{Estimate, FEW, student};
use polity_store::disk::Disk;
use polity_store::tables::TableError;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum metrics in the report.
const MOST_METRICS: usize = 60;

/// Maximum arms that are drawn over the rounds, and runs that are read for it.
const MOST_ARMS: usize = 12;
const MOST_RUNS: usize = 2_000;

/// A metric's mean by arm, with its interval.
type ByArm = BTreeMap<String, (f64, Option<(f64, f64)>)>;

/// The report of a sweep, from its folder alone.
pub fn report_of(disk: &dyn Disk, dir: &Path, registry: &Registry) -> Result<Report, Failure> {
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
    let results = Results {
        manifest: &manifest,
        summary: read("summary")?,
        contrasts: read("contrasts")?,
        alarms: read("health")?,
    };
    let evidence = Evidence::of(disk, dir, &manifest, &read("runs")?);
    Ok(results.report(curves(disk, dir, &manifest), evidence.as_ref(), registry))
}

/// The results of a sweep.
struct Results<'a> {
    manifest: &'a SweepManifest,
    summary: Columns,
    contrasts: Columns,
    alarms: Columns,
}

impl Results<'_> {
    fn seeds(&self) -> usize {
        self.manifest.design.arms.first().map_or(0, |arm| arm.seeds.len())
    }

    fn report(&self, curves: Option<Section>, evidence: Option<&Evidence>, registry: &Registry) -> Report {
        let manifest = self.manifest;
        let design = &manifest.design;
        let yes_no = |yes| if yes { "yes" } else { "no" };
        let mut facts = vec![
            ("runs".into(), design.runs().to_string()),
            ("arms".into(), design.arms.len().to_string()),
            ("seeds per arm".into(), self.seeds().to_string()),
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
        let contrasts = self.contrasts();
        let judged = expected::judged(design, &|of| self.estimate(of, &contrasts));
        let mut sections = vec![self.means()];
        sections.extend(expected::section(&judged));
        sections.extend(self.differences(&contrasts));
        sections.extend(evidence.into_iter().flat_map(|evidence| reliability(evidence, manifest, &contrasts)));
        sections.extend(curves);
        sections.extend([self.health(), self.runs()]);
        Report {
            kind: "Sweep report".into(),
            title: manifest.name.clone(),
            description: manifest.scenario.get("description").and_then(|v| v.as_str()).map(str::to_string),
            finding: self.finding(&contrasts),
            simulated: manifest.simulated,
            status: "finished".into(),
            facts,
            sections,
            scenario_yaml_or_json: serde_json::to_string_pretty(&manifest.scenario).unwrap_or_default(),
            reproduce: reproduce(manifest),
            methods: methods(manifest, self.seeds(), registry),
        }
    }

    /// The estimate that an expectation is about.
    fn estimate(&self, of: &Expectation, contrasts: &[Contrast]) -> Option<Estimate> {
        if of.minus.is_some() {
            let mut rows = contrasts.iter().filter(|row| row.factor.is_none() && row.level == of.arm);
            let row = rows.find(|row| row.metric == of.metric)?;
            let (low, high) = row.interval.unzip();
            return Some(Estimate { mean: Some(row.difference), low, high, n: row.n.parse().unwrap_or(0) });
        }
        let (arms, metrics) = (texts(&self.summary, "arm"), texts(&self.summary, "metric"));
        let is = |(arm, metric): (&Option<String>, &Option<String>)| {
            arm.as_ref() == Some(&of.arm) && metric.as_ref() == Some(&of.metric)
        };
        let row = arms.iter().zip(&metrics).position(is)?;
        let [mean, low, high, n] =
            ["mean", "low", "high", "n"].map(|name| numbers(&self.summary, name).get(row).copied().flatten());
        Some(Estimate { mean, low, high, n: n.unwrap_or(0.0) as usize })
    }

    /// Means with intervals, one chart a metric: lines are the levels of one factor, the axis has those of the other.
    fn means(&self) -> Section {
        let design = &self.manifest.design;
        let (arms, metrics) = (texts(&self.summary, "arm"), texts(&self.summary, "metric"));
        let [mean, low, high] = ["mean", "low", "high"].map(|name| numbers(&self.summary, name));
        let mut by_metric: BTreeMap<String, ByArm> = BTreeMap::new();
        for (row, (metric, arm)) in metrics.into_iter().zip(arms).enumerate() {
            let at = |values: &[Option<f64>]| values.get(row).copied().flatten();
            let value = (at(&mean).unwrap_or(f64::NAN), at(&low).zip(at(&high)));
            by_metric.entry(metric.unwrap_or_default()).or_default().insert(arm.unwrap_or_default(), value);
        }
        // The factor with the most levels is on the axis.
        let axis = (0..design.factors.len()).rev().max_by_key(|f| design.factors[*f].levels.len());
        let names = match axis {
            Some(f) => design.factors[f].levels.clone(),
            None => design.arms.iter().map(|arm| arm.name.clone()).collect(),
        };
        let joined = axis.is_some_and(|f| design.factors[f].path.is_some());
        let all = by_metric.len();
        let panel = |(metric, values): (String, ByArm)| {
            let mut series: Vec<Series> = Vec::new();
            for (at, arm) in design.arms.iter().enumerate() {
                let Some((mean, interval)) = values.get(&arm.name) else { continue };
                let x = axis.map_or(at, |f| arm.levels.get(f).copied().unwrap_or(0)) as f64;
                let name = self.other_levels(arm, axis);
                let own = series.iter().position(|series| series.name == name).unwrap_or_else(|| {
                    series.push(Series { name, band: Some(Vec::new()), ..Series::default() });
                    series.len() - 1
                });
                series[own].points.push((x, *mean));
                series[own].band.get_or_insert_default().extend(interval.map(|(low, high)| (x, low, high)));
            }
            Panel { title: metric, note: String::new(), chart: Chart::Levels { names: names.clone(), series, joined } }
        };
        let panels: Vec<Panel> = by_metric.into_iter().take(MOST_METRICS).map(panel).collect();
        let x_label = axis.map_or("arm", |f| design.factors[f].name.as_str());
        let others = design.factors.iter().enumerate().filter(|(f, _)| Some(*f) != axis);
        let others: Vec<&str> = others.map(|(_, factor)| factor.name.as_str()).collect();
        let lines = match others.as_slice() {
            [] => String::new(),
            names => format!(
                " Each colour is a level of {}; lines that are not parallel are an interaction.",
                names.join(" and ")
            ),
        };
        let figure = Figure::Panels {
            title: "Means by arm".into(),
            x_label: x_label.into(),
            panels,
            marks: Vec::new(),
            shade: String::new(),
            caption: format!("Mean over {} seeds with its 95 % interval, by {x_label}.{lines}", self.seeds()),
        };
        let text =
            (all > MOST_METRICS).then(|| format!("The first {MOST_METRICS} of {all} metrics; summary.csv has all."));
        Section { title: "Means by arm".into(), text, figures: vec![figure], table: None }
    }

    /// The levels of an arm that are not on the axis, in words.
    fn other_levels(&self, arm: &Arm, axis: Option<usize>) -> String {
        let factors = self.manifest.design.factors.iter().enumerate().filter(|(f, _)| Some(*f) != axis);
        let level = |(f, factor): (usize, &polity_kernel::scenario::Factor)| {
            let level = factor.levels.get(*arm.levels.get(f)?)?;
            Some(if factor.path.is_some() { format!("{} {level}", factor.name) } else { level.clone() })
        };
        factors.filter_map(level).collect::<Vec<_>>().join(", ")
    }

    fn contrasts(&self) -> Vec<Contrast> {
        let text = |name: &str| texts(&self.contrasts, name);
        let number = |name: &str| numbers(&self.contrasts, name);
        let (factor, level, reference) = (text("factor"), text("level"), text("reference"));
        let (metric, n, verdict) = (text("metric"), text("n"), text("verdict"));
        let (difference, low, high) = (number("difference"), number("low"), number("high"));
        let at = |column: &[Option<String>], i: usize| column.get(i).cloned().flatten();
        (0..metric.len())
            .map(|i| Contrast {
                factor: at(&factor, i).filter(|factor| !factor.is_empty()),
                level: at(&level, i).unwrap_or_default(),
                reference: at(&reference, i).unwrap_or_default(),
                metric: at(&metric, i).unwrap_or_default(),
                difference: difference.get(i).copied().flatten().unwrap_or(f64::NAN),
                interval: low.get(i).copied().flatten().zip(high.get(i).copied().flatten()),
                n: at(&n, i).unwrap_or_default(),
                verdict: at(&verdict, i).unwrap_or_default(),
            })
            .collect()
    }

    /// For each factor, the effect on the first metric; without factors, that of the arms.
    fn finding(&self, contrasts: &[Contrast]) -> Vec<String> {
        let Some(main) = self.main_metric(contrasts) else { return Vec::new() };
        let of_factors = contrasts.iter().any(|row| row.factor.is_some());
        let rows = contrasts.iter().filter(|row| row.metric == main && row.factor.is_some() == of_factors);
        let mut largest: BTreeMap<Option<&String>, &Contrast> = BTreeMap::new();
        for row in rows.filter(|row| row.difference.is_finite()) {
            let best = largest.entry(row.factor.as_ref()).or_insert(row);
            if row.difference.abs() > best.difference.abs() {
                *best = row;
            }
        }
        let mut rows: Vec<&Contrast> = largest.into_values().collect();
        rows.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        let told = |row: &&Contrast| {
            let what = row.factor.as_ref().map_or(String::new(), |factor| format!("{factor} "));
            let (level, reference) = (&row.level, &row.reference);
            match row.verdict.as_str() {
                "stable" => {
                    let verb = if row.difference > 0.0 { "raises" } else { "lowers" };
                    let size =
                        row.interval.map(|(low, high)| if row.difference > 0.0 { (low, high) } else { (-high, -low) });
                    let interval = size.map_or(String::new(), |(low, high)| {
                        format!(" (95 % interval {} to {})", measured(low, size), measured(high, size))
                    });
                    let by = measured(row.difference.abs(), size);
                    format!("{what}{level} instead of {reference} {verb} {main} by {by}{interval}.")
                }
                "the same" => format!(
                    "{what}{level} and {reference} {}.",
                    cannot_differ(self.manifest.simulated).replace("no value", &format!("no {main}"))
                ),
                _ => format!("{what}{level} instead of {reference}: no stable difference in {main}."),
            }
        };
        rows.iter().take(3).map(told).collect()
    }

    /// The metric that the finding is about: of those with a contrast, the first of the design or of the scenario.
    fn main_metric(&self, contrasts: &[Contrast]) -> Option<String> {
        let scenario = &self.manifest.scenario;
        let asked = scenario.get("metrics").and_then(|metrics| metrics.as_array()).into_iter().flatten();
        let name = |metric: &serde_json::Value| {
            Some(format!("{}.{}", metric.get("of")?.as_str()?, metric.get("kind")?.as_str()?))
        };
        let wanted: Vec<String> =
            self.manifest.design.metrics.iter().flatten().cloned().chain(asked.filter_map(name)).collect();
        let known = |wanted: &String| contrasts.iter().find(|row| row.metric.starts_with(wanted.as_str()));
        wanted.iter().find_map(known).or_else(|| contrasts.first()).map(|row| row.metric.clone())
    }

    fn differences(&self, contrasts: &[Contrast]) -> Vec<Section> {
        let paired = match self.manifest.design.common_random_numbers {
            true => "All arms were run with the same seeds, and differences were taken seed by seed.",
            false => "Every arm was run with its own seeds.",
        };
        let few = match self.manifest.design.arms.iter().map(|arm| arm.seeds.len()).min() {
            Some(n) if n < FEW => {
                format!(" With {n} seeds (fewer than {FEW}), the results do not show whether a difference is stable.")
            }
            _ => String::new(),
        };
        let words = format!(
            "A difference is stable if its 95 % interval excludes 0: with other seeds it would most likely have the same \
             sign. It is seed noise if the interval contains 0, and “the same” if no run differs. The verdict is about seeds alone: it says nothing about \
             other parameters, models or the world outside. No correction was made for the number of comparisons. \
             {paired}{few}"
        );
        let (main, arms): (Vec<&Contrast>, Vec<&Contrast>) = contrasts.iter().partition(|row| row.factor.is_some());
        let section = |title: &str, text: Option<String>, rows: &[&Contrast], caption: &str| {
            let table = differences(rows, caption);
            (!rows.is_empty()).then(|| Section { title: title.into(), text, table: Some(table), ..Section::default() })
        };
        let effects = "The main effect of every factor: the mean over the arms with a level, minus that over the arms with the \
                       factor's first level.";
        let first = section("Effects of the factors", Some(words.clone()), &main, effects);
        let more = if first.is_some() { None } else { Some(words) };
        let second = section("Arms against the baseline", more, &arms, "Every arm minus the baseline.");
        first.into_iter().chain(second).collect()
    }

    /// Alarms by arm.
    fn health(&self) -> Section {
        let data: Vec<Vec<Option<String>>> = self.alarms.iter().map(|(_, data)| data.texts()).collect();
        let rows: Vec<Vec<String>> = (0..data.first().map_or(0, Vec::len))
            .map(|row| data.iter().map(|column| column.get(row).cloned().flatten().unwrap_or_default()).collect())
            .collect();
        let text = match rows.is_empty() {
            true => "No run raises an alarm.",
            false => {
                "Signs that runs, or parts of them, are uninformative; the report of each run says what was checked."
            }
        };
        let columns = self.alarms.iter().map(|(name, _)| name.clone()).collect();
        let table = DataTable { columns, rows, caption: "Alarms by arm.".into(), links: Vec::new() };
        let table = (!table.rows.is_empty()).then_some(table);
        Section { title: "Health".into(), text: Some(text.into()), figures: Vec::new(), table }
    }

    /// The runs, with links to their folders.
    fn runs(&self) -> Section {
        let arms = self.manifest.arms.iter().zip(&self.manifest.design.arms);
        let row = |(entry, arm): (&polity_driver::sweep::ArmEntry, &Arm)| {
            let seeds = match arm.seeds.as_slice() {
                [first, .., last] => format!("{first} to {last}, {} in all", arm.seeds.len()),
                seeds => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            };
            vec![arm.name.clone(), entry.agents.to_string(), seeds, format!("runs/{}/", entry.folder)]
        };
        let rows = arms.map(row).collect();
        let links = self.manifest.arms.iter().map(|entry| format!("runs/{}/", entry.folder)).collect();
        let table = DataTable {
            columns: ["arm", "agents", "seeds", "folder"].map(str::to_owned).to_vec(),
            rows,
            caption: "The runs, a folder a seed.".into(),
            links,
        };
        let text =
            "Every run is a run folder of its own; “polity report” makes its report, and every other command reads it.";
        Section { title: "Runs".into(), text: Some(text.into()), figures: Vec::new(), table: Some(table) }
    }
}

/// Differences in the width of a page: the verdict after the interval, digits as the interval has them.
fn differences(rows: &[&Contrast], caption: &str) -> DataTable {
    let row = |row: &&Contrast| {
        let shown = |value: f64| measured(value, row.interval);
        vec![
            row.name(),
            row.metric.clone(),
            shown(row.difference),
            row.interval.map_or("–".into(), |(low, high)| format!("{} to {}", shown(low), shown(high))),
            row.verdict.clone(),
            row.n.clone(),
        ]
    };
    DataTable {
        columns: ["difference of", "metric", "difference", "95 % interval", "verdict", "seeds"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.iter().map(row).collect(),
        caption: caption.into(),
        links: Vec::new(),
    }
}

/// Means over the seeds of each arm, by round, from the runs of the sweep.
fn curves(disk: &dyn Disk, dir: &Path, manifest: &SweepManifest) -> Option<Section> {
    let design = &manifest.design;
    if design.arms.len() > MOST_ARMS || design.runs() > MOST_RUNS {
        return None;
    }
    // By metric, arm and round: the values of all seeds.
    let mut all: BTreeMap<String, Vec<BTreeMap<u32, Vec<f64>>>> = BTreeMap::new();
    for (at, (entry, arm)) in manifest.arms.iter().zip(&design.arms).enumerate() {
        for seed in &arm.seeds {
            let folder = dir.join("runs").join(&entry.folder).join(seed.to_string());
            // A run that cannot be read any more leaves no curve; `polity verify` names it.
            let metrics = results::of_run(disk, &folder).ok()?.tables.metrics().ok()?;
            for (name, points) in metrics.into_iter().filter(|(name, _)| is_read(design.metrics.as_deref(), name)) {
                let arms = all.entry(name).or_insert_with(|| vec![BTreeMap::new(); design.arms.len()]);
                points.into_iter().for_each(|(round, value)| arms[at].entry(round).or_default().push(value));
            }
        }
    }
    let series = |(arm, rounds): (&Arm, BTreeMap<u32, Vec<f64>>)| {
        let estimates = rounds.into_iter().map(|(round, values)| (f64::from(round), student(&values)));
        let points = estimates.filter_map(|(round, found)| Some((round, found.mean?))).collect();
        Series { name: arm.name.clone(), points, ..Series::default() }
    };
    let panel = |(metric, arms): (String, Vec<BTreeMap<u32, Vec<f64>>>)| {
        let series = design.arms.iter().zip(arms).map(series).collect();
        Panel { title: metric, note: String::new(), chart: Chart::Lines(series) }
    };
    let panels: Vec<Panel> = all.into_iter().take(MOST_METRICS).map(panel).collect();
    let figure = Figure::Panels {
        title: "Over the rounds".into(),
        x_label: "round".into(),
        panels,
        marks: Vec::new(),
        shade: String::new(),
        caption: "Mean over the seeds of each arm; the horizontal axis is the round.".into(),
    };
    Some(Section { title: "Over the rounds".into(), figures: vec![figure], ..Section::default() })
}

/// Whether a metric is one that the design reads.
fn is_read(wanted: Option<&[String]>, name: &str) -> bool {
    let of = |wanted: &String| {
        name == wanted || name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    !name.contains(".histogram.") && wanted.is_none_or(|wanted| wanted.iter().any(of))
}

/// The commands that make the sweep, and its first run, again.
fn reproduce(manifest: &SweepManifest) -> Vec<String> {
    let design = &manifest.design;
    let set = design.arms.get(design.baseline).map_or(String::new(), |arm| {
        let one = |(path, value): &(String, Node)| format!(" -P '{path}={}'", value.to_json());
        let seed = arm.seeds.first().map_or(String::new(), |seed| format!(" --seed {seed}"));
        let of_run = |word: &&String| !word.starts_with("-P seed=") && !word.contains("design.");
        let edits = manifest.edits.iter().filter(of_run).map(|word| format!(" {word}"));
        edits.chain(arm.set.iter().map(one)).collect::<String>() + &seed
    });
    let words = [format!("polity sweep {}", manifest.source)].into_iter().chain(manifest.edits.clone());
    vec![
        words.collect::<Vec<_>>().join(" "),
        format!("polity run {}{set}    # the first run of the baseline", manifest.source),
    ]
}

fn reading(read: Reading) -> String {
    match read {
        Reading::Last => "at the end".into(),
        Reading::Round(round) => format!("in round {round}"),
        Reading::MeanOfLast(k) => format!("mean of the last {k} rounds"),
    }
}

/// The paragraph for a paper's methods section.
fn methods(manifest: &SweepManifest, seeds: usize, registry: &Registry) -> String {
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
    let agents = manifest.arms.iter().map(|arm| f64::from(arm.agents)).fold(0.0, f64::max);
    let of_runs = methods::of_each(&manifest.scenario, &manifest.models, manifest.simulated, agents, registry);
    let sources = methods::sources_of(&manifest.scenario, registry);
    format!(
        "We ran {} arms{crossed}, with {seeds} seeds each and {numbers}. Metrics were read {}. Intervals are Student's, 95 %, over \
         seeds{unpaired}. In each run: {of_runs}All runs and intervals can be recomputed exactly with polity {}.{sources}",
        design.arms.len(),
        reading(design.read),
        manifest.build.version
    )
}
