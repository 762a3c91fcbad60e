//! The report of a sweep, from its folder alone.

use super::columns::{Columns, Contrast, cannot_differ, numbers, texts};
use super::reliability::{Evidence, sections as reliability};
use super::{evaluation, expected, interactions, search, sensitivity};
use crate::failure::{Exit, Failure};
use crate::story::methods;
use polity_arena::report::{Chart, DataTable, Figure, Panel, Report, Section, Series, measured};
use polity_driver::results;
use polity_driver::sweep::SweepManifest;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Arm, Design, Expectation, Factor, Intervals, Reading, Until};
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
        sensitivity: if manifest.design.sample.is_some() { read("sensitivity")? } else { Columns::new() },
        // Sweeps of older builds have none, and most designs name no metric.
        evaluation: if tables.names().iter().any(|name| name == "evaluation") {
            read("evaluation")?
        } else {
            Columns::new()
        },
        points: if manifest.design.search.is_some() { read("search")? } else { Columns::new() },
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
    /// Empty in a design that names no metric.
    evaluation: Columns,
    /// Empty in a design without a sample.
    sensitivity: Columns,
    /// The points of a search; empty in another design.
    points: Columns,
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
            ("seeds per arm".into(), self.seeds_words()),
            ("common random numbers".into(), yes_no(design.common_random_numbers).into()),
            ("metrics are read".into(), reading(design.read)),
        ];
        facts.extend(design.sample.map(|sample| ("sample".into(), sample.words())));
        facts.extend(design.search.as_ref().map(|search| ("search".into(), search.words())));
        facts.extend(design.fraction.as_ref().map(|fraction| ("fraction".into(), fraction.words())));
        for factor in design.factors.iter().filter(|factor| factor.path.is_some()) {
            facts.push((factor.name.clone(), levels(factor)));
        }
        if !manifest.models.is_empty() {
            facts.push(("models".into(), manifest.models.join(", ")));
        }
        facts.push(("build".into(), format!("polity {} ({})", manifest.build.version, manifest.build.target)));
        let contrasts = self.contrasts();
        let judged = expected::judged(design, &|of| self.estimate(of, &contrasts));
        let metric = self.main_metric(&contrasts);
        let mut sections = match (&design.search, design.sample) {
            (Some(search), _) => vec![search::section(design, search, &self.points)],
            (None, Some(_)) => sensitivity::sections(design, &self.sensitivity, evidence, metric.as_deref()),
            (None, None) => vec![self.means()],
        };
        sections.extend(expected::section(&judged));
        sections.extend(self.differences(&contrasts, evidence, metric.as_deref()));
        sections.extend(evidence.into_iter().flat_map(|evidence| reliability(evidence, manifest, &contrasts)));
        sections.extend(evaluation::section(design, &self.evaluation, evidence));
        sections.extend(curves);
        sections.extend([self.health(), self.runs()]);
        Report {
            kind: "Sweep report".into(),
            title: manifest.name.clone(),
            description: manifest.scenario.get("description").and_then(|v| v.as_str()).map(str::to_string),
            finding: self.finding(&contrasts, metric.as_deref()),
            simulated: manifest.simulated,
            status: "finished".into(),
            facts,
            sections,
            scenario_yaml_or_json: serde_json::to_string_pretty(&manifest.scenario).unwrap_or_default(),
            reproduce: reproduce(manifest),
            methods: methods(manifest, self.seeds(), registry),
        }
    }

    /// The number of seeds, and why there are so many if a rule decided.
    fn seeds_words(&self) -> String {
        let Some(until) = &self.manifest.design.until else { return self.seeds().to_string() };
        let table = match until.of {
            Intervals::Arms => &self.summary,
            Intervals::Differences => &self.contrasts,
        };
        let (metrics, kind) = (texts(table, "metric"), texts(table, "contrast"));
        let (low, high) = (numbers(table, "low"), numbers(table, "high"));
        let counts = |row: &usize| {
            let of_arm = until.of == Intervals::Arms || kind.get(*row).and_then(Option::as_deref) == Some("arm");
            of_arm && metrics[*row].as_ref() == Some(&until.metric)
        };
        let interval = |row: usize| low[row].zip(high[row]);
        let widest = until.widest((0..metrics.len()).filter(counts).map(interval));
        let (seeds, widest) = (self.seeds(), widest.filter(|widest| *widest <= until.halfwidth));
        match widest {
            Some(_) => format!("{seeds}, where the rule stopped the sweep: {}", rule(until)),
            None => format!("{seeds}, the maximum: the rule did not stop the sweep before: {}", rule(until)),
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
        let x_label = axis.map_or("arm", |f| Factor::words(&design.factors[f].name));
        let others = design.factors.iter().enumerate().filter(|(f, _)| Some(*f) != axis);
        let others: Vec<&str> = others.map(|(_, factor)| Factor::words(&factor.name)).collect();
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
        let level = |(f, factor): (usize, &Factor)| {
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
        let (difference, low, high, p_holm) = (number("difference"), number("low"), number("high"), number("p_holm"));
        let (with, with_level, with_reference) = (text("with_factor"), text("with_level"), text("with_reference"));
        let aliases = text("aliases");
        let at = |column: &[Option<String>], i: usize| column.get(i).cloned().flatten();
        (0..metric.len())
            .map(|i| Contrast {
                factor: at(&factor, i).filter(|factor| !factor.is_empty()),
                level: at(&level, i).unwrap_or_default(),
                reference: at(&reference, i).unwrap_or_default(),
                with: at(&with, i).zip(at(&with_level, i)).zip(at(&with_reference, i)).map(|((a, b), c)| [a, b, c]),
                p_holm: p_holm.get(i).copied().flatten(),
                aliases: at(&aliases, i),
                metric: at(&metric, i).unwrap_or_default(),
                difference: difference.get(i).copied().flatten().unwrap_or(f64::NAN),
                interval: low.get(i).copied().flatten().zip(high.get(i).copied().flatten()),
                n: at(&n, i).unwrap_or_default(),
                verdict: at(&verdict, i).unwrap_or_default(),
            })
            .collect()
    }

    /// For each factor, the effect on the first metric, and the stable interaction that is largest; without factors, that of the arms.
    fn finding(&self, contrasts: &[Contrast], main: Option<&str>) -> Vec<String> {
        let Some(main) = main else { return Vec::new() };
        if contrasts.is_empty() {
            return sensitivity::told(&self.sensitivity, main).into_iter().collect();
        }
        let of_factors = contrasts.iter().any(|row| row.factor.is_some());
        let rows = contrasts.iter().filter(|row| row.metric == main && row.difference.is_finite());
        let (interactions, rows): (Vec<&Contrast>, Vec<&Contrast>) =
            rows.filter(|row| row.factor.is_some() == of_factors).partition(|row| row.with.is_some());
        let mut largest: BTreeMap<Option<&String>, &Contrast> = BTreeMap::new();
        for row in rows {
            let best = largest.entry(row.factor.as_ref()).or_insert(row);
            if row.difference.abs() > best.difference.abs() {
                *best = row;
            }
        }
        let mut rows: Vec<&Contrast> = largest.into_values().collect();
        rows.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        let size = |row: &Contrast| {
            let size = row.interval.map(|(low, high)| if row.difference > 0.0 { (low, high) } else { (-high, -low) });
            let interval = size.map_or(String::new(), |(low, high)| {
                format!(" (95 % interval {} to {})", measured(low, size), measured(high, size))
            });
            (measured(row.difference.abs(), size), interval)
        };
        let told = |row: &&Contrast| {
            let what = row.factor.as_ref().map_or(String::new(), |factor| format!("{} ", Factor::words(factor)));
            let (level, reference) = (&row.level, &row.reference);
            match row.verdict.as_str() {
                "stable" => {
                    let verb = if row.difference > 0.0 { "raises" } else { "lowers" };
                    let (by, interval) = size(row);
                    format!("{what}{level} instead of {reference} {verb} {main} by {by}{interval}.")
                }
                "the same" => format!(
                    "{what}{level} and {reference} {}.",
                    cannot_differ(self.manifest.simulated).replace("no value", &format!("no {main}"))
                ),
                _ => format!("{what}{level} instead of {reference}: no stable difference in {main}."),
            }
        };
        let stable = interactions.into_iter().filter(|row| row.verdict == "stable");
        let interaction = stable.max_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs())).and_then(|row| {
            let (by, interval) = size(row);
            interactions::told(row, main, &by, &interval)
        });
        rows.iter().take(3).map(told).chain(interaction).collect()
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
        // A design that only samples ranges has no contrasts.
        let metrics: Vec<String> = match contrasts.is_empty() {
            true => texts(&self.sensitivity, "metric").into_iter().flatten().collect(),
            false => contrasts.iter().map(|row| row.metric.clone()).collect(),
        };
        let known = |wanted: &String| metrics.iter().find(|metric| metric.starts_with(wanted.as_str()));
        wanted.iter().find_map(known).or_else(|| metrics.first()).cloned()
    }

    fn differences(&self, contrasts: &[Contrast], evidence: Option<&Evidence>, metric: Option<&str>) -> Vec<Section> {
        let design = &self.manifest.design;
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
        let aliased = design.fraction.as_ref().map_or(String::new(), |fraction| {
            let names: Vec<&str> = design.factors.iter().map(|factor| factor.name.as_str()).collect();
            format!(
                " This is a fraction, {}; what stands between equal signs cannot be told apart: {}.",
                fraction.words(),
                fraction.groups(&names).join("; ")
            )
        });
        let words = format!(
            "A difference is stable if its 95 % interval excludes 0 and its corrected p value is below 0.05: with other seeds it would most likely have the same \
             sign. It is seed noise if the interval contains 0, and “the same” if no run differs. The verdict is about seeds alone: it says nothing about \
             other parameters, models or the world outside. P values are corrected by Holm's method for all contrasts of the same \
             kind (arms, main effects, interactions) and metric: “not after Holm” says that the interval excludes 0, but that \
             with so many contrasts this may be chance. {paired}{few}{aliased}"
        );
        let (main, arms): (Vec<&Contrast>, Vec<&Contrast>) = contrasts.iter().partition(|row| row.factor.is_some());
        let (interactions, main): (Vec<&Contrast>, Vec<&Contrast>) =
            main.into_iter().partition(|row| row.with.is_some());
        let section = |title: &str, text: Option<String>, rows: &[&Contrast], caption: &str| {
            let table = differences(rows, caption);
            (!rows.is_empty()).then(|| Section { title: title.into(), text, table: Some(table), ..Section::default() })
        };
        let effects = "The main effect of every factor: the mean over the arms with a level, minus that over the arms with the \
                       factor's first level.";
        let first = section("Effects of the factors", Some(words.clone()), &main, effects);
        let more = if first.is_some() { None } else { Some(words) };
        let second = section("Arms against the baseline", more, &arms, "Every arm minus the baseline.");
        let caption = "Every interaction of two factors: the effect of a level at a level of the other, minus that at the other's first.";
        let between = interactions::section(design, evidence, metric, differences(&interactions, caption));
        first.into_iter().chain(between).chain(second).collect()
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
            row.p_holm.map_or("–".into(), |p| if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }),
            row.n.clone(),
        ]
    };
    DataTable {
        columns: ["difference of", "metric", "difference", "95 % interval", "verdict", "p (Holm)", "seeds"]
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
            for (name, points) in
                metrics.into_iter().filter(|(name, _)| !name.contains(".histogram.") && design.reads(name))
            {
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
    let learning = all.keys().any(|metric| evaluation::names(design, metric));
    let panel = |(metric, arms): (String, Vec<BTreeMap<u32, Vec<f64>>>)| {
        let of_arms = design.arms.iter().zip(arms);
        let (note, series) = match evaluation::names(design, &metric) {
            true => (
                "interquartile mean, 95 % interval",
                of_arms.map(|(arm, rounds)| evaluation::learning_curve(&arm.name, &rounds)).collect(),
            ),
            false => ("", of_arms.map(series).collect()),
        };
        Panel { title: metric, note: note.into(), chart: Chart::Lines(series) }
    };
    let panels: Vec<Panel> = all.into_iter().take(MOST_METRICS).map(panel).collect();
    let figure = Figure::Panels {
        title: "Over the rounds".into(),
        x_label: "round".into(),
        panels,
        marks: Vec::new(),
        shade: String::new(),
        caption: match learning {
            true => {
                "Over the seeds of each arm: for metrics that the design names, interquartile means with their 95 % intervals \
                 (stratified bootstrap), else means; the horizontal axis is the round."
            }
            false => "Mean over the seeds of each arm; the horizontal axis is the round.",
        }
        .into(),
    };
    Some(Section { title: "Over the rounds".into(), figures: vec![figure], ..Section::default() })
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

/// The values of a factor: those listed, or their range.
fn levels(factor: &Factor) -> String {
    factor.range.as_ref().map_or_else(|| factor.levels.join(", "), sensitivity::range_words)
}

/// A rule that stops a sweep, in words.
fn rule(until: &Until) -> String {
    let of = match until.of {
        Intervals::Arms => "mean",
        Intervals::Differences => "difference from the baseline",
    };
    format!(
        "batches of {} seeds were added until the 95 % interval of every {of} of {} had a half-width of at most {}, or to {} seeds; \
         intervals at such a stop are slightly too narrow",
        until.batch, until.metric, until.halfwidth, until.max
    )
}

/// The design in words: what was combined with what.
fn crossed(design: &Design) -> String {
    let names = |ranges: bool| {
        let of = design.factors.iter().filter(|factor| factor.range.is_some() == ranges);
        of.filter_map(|factor| Some(format!("{} ({})", factor.path.as_ref()?, levels(factor)))).collect::<Vec<_>>()
    };
    let (listed, ranges) = (names(false), names(true));
    let listed = match (&design.fraction, listed.is_empty()) {
        (_, true) => String::new(),
        (Some(fraction), _) => {
            format!(", a fractional factorial design ({}) over {}", fraction.words(), listed.join(" and "))
        }
        (None, _) => format!(", a full factorial design over {}", listed.join(" and ")),
    };
    let sampled =
        design.sample.map_or(String::new(), |sample| format!(", {} over {}", sample.words(), ranges.join(" and ")));
    let searched = design
        .search
        .as_ref()
        .map_or(String::new(), |search| format!(", {} over {}", search.words(), ranges.join(" and ")));
    listed + &sampled + &searched
}

/// The paragraph for a paper's methods section.
fn methods(manifest: &SweepManifest, seeds: usize, registry: &Registry) -> String {
    let design = &manifest.design;
    // Points of ranges alone are not compared with each other.
    let compared = design.factors.is_empty() || design.factors.iter().any(|factor| factor.range.is_none());
    let (numbers, pairs, unpaired) = match design.common_random_numbers {
        true => ("common random numbers (the same seeds in each arm)", "; differences were paired by seed", ""),
        false => ("separate seeds for each arm", "", "; for differences between arms they are Welch's"),
    };
    let (pairs, unpaired) = if compared { (pairs, unpaired) } else { ("", "") };
    let agents = manifest.arms.iter().map(|arm| f64::from(arm.agents)).fold(0.0, f64::max);
    let of_runs = methods::of_each(&manifest.scenario, &manifest.models, manifest.simulated, agents, registry);
    let sources = methods::sources_of(&manifest.scenario, registry);
    let stopped = design
        .until
        .as_ref()
        .map_or(String::new(), |until| format!(" Their number followed from a rule: {}.", rule(until)));
    let corrected = match compared && design.arms.len() > 2 {
        true => {
            " P values were corrected for multiple comparisons by Holm's method, within each metric and kind of contrast."
        }
        false => "",
    };
    format!(
        "We ran {} arms{}, with {seeds} seeds each and {numbers}{pairs}.{stopped} Metrics were read {}. Intervals are Student's, 95 %, over \
         seeds{unpaired}.{corrected} In each run: {of_runs}All runs and intervals can be recomputed exactly with polity {}.{sources}",
        design.arms.len(),
        crossed(design),
        reading(design.read),
        manifest.build.version
    )
}
