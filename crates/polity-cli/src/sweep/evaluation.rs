//! The report's section on learners: interquartile means, probabilities of improvement, performance profiles and learning curves, by the
//! definitions of rliable.

use super::columns::{Columns, numbers, texts};
use super::reliability::Evidence;
use polity_arena::report::{Chart, DataTable, Figure, Panel, Section, Series, measured};
use polity_kernel::scenario::{Design, Factor};
use polity_stats::Estimate;
use polity_stats::evaluation::{interquartile_mean, performance_profile};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Thresholds of a performance profile, and points of a learning curve, whose intervals take time.
const THRESHOLDS: usize = 41;
const MOST_POINTS: usize = 60;
/// Maximum arms and metrics that are drawn.
const MOST_ARMS: usize = 12;
const MOST_METRICS: usize = 6;

/// Whether the design names a metric in full, so that arms are evaluated by it.
pub(super) fn names(design: &Design, metric: &str) -> bool {
    design.metrics.iter().flatten().any(|named| named == metric)
}

/// The section; `None` if the sweep has no such table.
pub(super) fn section(design: &Design, rows: &Columns, evidence: Option<&Evidence>) -> Option<Section> {
    let metrics = texts(rows, "metric");
    if metrics.is_empty() {
        return None;
    }
    let [factors, levels, references] = ["factor", "level", "reference"].map(|name| texts(rows, name));
    let number = |name: &str| numbers(rows, name);
    let (iqm, iqm_low, iqm_high) = (number("iqm"), number("iqm_low"), number("iqm_high"));
    let (improvement, low, high, n) =
        (number("improvement"), number("improvement_low"), number("improvement_high"), texts(rows, "n"));
    let at = |column: &[Option<f64>], row: usize| column.get(row).copied().flatten();
    let text =
        |column: &[Option<String>], row: usize| column.get(row).cloned().flatten().filter(|text| !text.is_empty());
    let figure = |value: Option<f64>, low: Option<f64>, high: Option<f64>| {
        let interval = low.zip(high);
        let shown = |value: f64| measured(value, interval);
        let range = interval.map_or("–".into(), |(low, high)| format!("{} to {}", shown(low), shown(high)));
        [value.map_or("–".into(), shown), range]
    };
    let row = |row: usize| {
        let factor = text(&factors, row).map_or(String::new(), |factor| format!("{} ", Factor::words(&factor)));
        let mut cells = vec![
            format!("{factor}{}", text(&levels, row).unwrap_or_default()),
            text(&metrics, row).unwrap_or_default(),
        ];
        cells.extend(figure(at(&iqm, row), at(&iqm_low, row), at(&iqm_high, row)));
        cells.push(text(&references, row).unwrap_or("–".into()));
        cells.extend(figure(at(&improvement, row), at(&low, row), at(&high, row)));
        cells.push(text(&n, row).unwrap_or_default());
        cells
    };
    let columns =
        ["arm or level", "metric", "IQM", "95 % interval", "against", "P(improvement)", "95 % interval", "runs"];
    let table = DataTable {
        columns: columns.map(str::to_owned).to_vec(),
        rows: (0..metrics.len()).map(row).collect(),
        caption: "Interquartile means (IQM) over the seeds of each arm, and probabilities of improvement; evaluation.csv has them too."
            .into(),
        links: Vec::new(),
    };
    let words = "By the definitions of rliable (Agarwal et al. 2021). The interquartile mean is that of the middle half of all runs. The \
                 probability of improvement is that of a run with a higher value than a run of what it is compared with; for a level of a \
                 factor it is the mean over all combinations of the other factors. Higher values are taken to be better. Intervals: \
                 stratified percentile bootstrap, 95 %.";
    Some(Section {
        title: "Evaluation over seeds".into(),
        text: Some(words.into()),
        figures: evidence.and_then(|evidence| profiles(design, evidence)).into_iter().collect(),
        table: Some(table),
    })
}

/// The performance profile of every arm, a chart for each named metric.
fn profiles(design: &Design, evidence: &Evidence) -> Option<Figure> {
    if design.arms.len() > MOST_ARMS {
        return None;
    }
    let named = evidence.values.iter().filter(|(metric, _)| names(design, metric)).take(MOST_METRICS);
    let panel = |(metric, arms): (&String, &Vec<Vec<Option<f64>>>)| {
        let scores: Vec<Vec<f64>> = arms.iter().map(|arm| arm.iter().flatten().copied().collect()).collect();
        let all = || scores.iter().flatten().copied();
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let thresholds: Vec<f64> =
            (0..THRESHOLDS).map(|i| least + (most - least) * i as f64 / (THRESHOLDS - 1) as f64).collect();
        let series = |(arm, scores): (&polity_kernel::scenario::Arm, &Vec<f64>)| {
            let profile = performance_profile(&[scores.as_slice()], &thresholds).unwrap_or_default();
            of_curve(arm.name.clone(), thresholds.iter().copied().zip(profile))
        };
        let series: Vec<Series> = design.arms.par_iter().zip(&scores).map(series).collect();
        Panel { title: metric.clone(), note: String::new(), chart: Chart::Lines(series) }
    };
    let panels: Vec<Panel> = named.map(panel).collect();
    (!panels.is_empty()).then(|| Figure::Panels {
        title: "Performance profiles".into(),
        x_label: "threshold".into(),
        panels,
        marks: Vec::new(),
        shade: String::new(),
        caption: "Part of the runs of each arm with a value above the threshold, with its 95 % interval. A curve above another one \
                  everywhere belongs to an arm that is better in every respect."
            .into(),
    })
}

/// A line with the band of its intervals.
fn of_curve(name: String, points: impl Iterator<Item = (f64, Estimate)>) -> Series {
    let mut series = Series { name, band: Some(Vec::new()), ..Series::default() };
    for (x, found) in points {
        series.points.extend(found.mean.map(|mean| (x, mean)));
        series.band.get_or_insert_default().extend(found.low.zip(found.high).map(|(low, high)| (x, low, high)));
    }
    series
}

/// A learning curve: interquartile means over seeds by round, with their intervals; of many rounds, evenly chosen ones and the last.
pub(super) fn learning_curve(name: &str, rounds: &BTreeMap<u32, Vec<f64>>) -> Series {
    let step = rounds.len().div_ceil(MOST_POINTS).max(1);
    let chosen: Vec<(&u32, &Vec<f64>)> =
        rounds.iter().rev().step_by(step).collect::<Vec<_>>().into_iter().rev().collect();
    let points: Vec<(f64, Option<Estimate>)> = chosen
        .into_par_iter()
        .map(|(round, values)| (f64::from(*round), interquartile_mean(&[values.as_slice()])))
        .collect();
    of_curve(name.to_owned(), points.into_iter().filter_map(|(round, found)| Some((round, found?))))
}
