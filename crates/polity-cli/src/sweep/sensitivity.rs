//! The report's sections on designs that sample ranges: how far each factor moves the metrics.

use super::columns::{Columns, numbers, texts};
use super::reliability::Evidence;
use polity_arena::report::{Chart, DataTable, Figure, Panel, Section, Series, measured};
use polity_kernel::scenario::{Design, Factor, Range, Sample, Scale};
use polity_stats::{Estimate, mean, student};
use std::collections::BTreeMap;

/// Maximum metrics in a figure.
const MOST_METRICS: usize = 24;
/// Parts of a range whose means are drawn.
const PARTS: usize = 5;

/// A range in words: `0.1 to 0.5 (log scale)`.
pub(super) fn range_words(range: &Range) -> String {
    let scale = if range.scale == Scale::Log { " (log scale)" } else { "" };
    let whole = if range.whole { ", whole numbers" } else { "" };
    format!("{} to {}{scale}{whole}", range.low, range.high)
}

/// The sections. `metric`: the one whose means over the ranges are drawn.
pub(super) fn sections(
    design: &Design,
    rows: &Columns,
    evidence: Option<&Evidence>,
    metric: Option<&str>,
) -> Vec<Section> {
    let means = evidence
        .zip(metric)
        .and_then(|(evidence, metric)| Some(over_ranges(design, evidence.values.get(metric)?, metric)));
    [Some(indices(design, rows)), means].into_iter().flatten().collect()
}

/// The factor that moves a metric most, in a sentence.
pub(super) fn told(rows: &Columns, metric: &str) -> Option<String> {
    let text = |name: &str| texts(rows, name);
    let (metrics, factors, index) = (text("metric"), text("factor"), text("index"));
    let [values, low, high] = ["value", "low", "high"].map(|name| numbers(rows, name));
    let counts =
        |row: &usize| metrics[*row].as_deref() == Some(metric) && index[*row].as_deref() != Some("first order");
    let sized = |row: usize| Some((values[row]?, row));
    let (value, row) =
        (0..metrics.len()).filter(counts).filter_map(sized).max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let interval = low[row].zip(high[row]);
    let ends = interval.map_or(String::new(), |(low, high)| {
        format!(", 95 % interval {} to {}", measured(low, interval), measured(high, interval))
    });
    let kind = if index[row].as_deref() == Some("total") { "total Sobol index" } else { "rank correlation" };
    let factor = factors[row].as_deref().unwrap_or_default();
    Some(format!("Within the ranges, {factor} moves {metric} most ({kind} {}{ends}).", measured(value, interval)))
}

/// The indices, as bars by factor and as a table.
fn indices(design: &Design, rows: &Columns) -> Section {
    let text = |name: &str| texts(rows, name);
    let (metrics, at, factors, index) = (text("metric"), text("at"), text("factor"), text("index"));
    let [values, low, high] = ["value", "low", "high"].map(|name| numbers(rows, name));
    let names: Vec<String> = design.factors.iter().filter(|of| of.range.is_some()).map(|of| of.name.clone()).collect();
    let word = |column: &[Option<String>], row: usize| column.get(row).cloned().flatten().unwrap_or_default();
    let (mut table, mut by_metric): (Vec<Vec<String>>, BTreeMap<String, Vec<Series>>) = (Vec::new(), BTreeMap::new());
    for row in 0..metrics.len() {
        let number = |column: &[Option<f64>]| column.get(row).copied().flatten();
        let (value, interval) = (number(&values), number(&low).zip(number(&high)));
        let at = Some(word(&at, row)).filter(|at| !at.is_empty()).map_or(String::new(), |at| format!(" at {at}"));
        let shown = |value: f64| measured(value, interval);
        table.push(vec![
            format!("{}{at}", word(&factors, row)),
            word(&metrics, row),
            word(&index, row),
            value.map_or("–".into(), shown),
            interval.map_or("–".into(), |(low, high)| format!("{} to {}", shown(low), shown(high))),
        ]);
        let Some((value, place)) = value.zip(names.iter().position(|name| *name == word(&factors, row))) else {
            continue;
        };
        let series = by_metric.entry(word(&metrics, row)).or_default();
        let name = format!("{}{at}", word(&index, row));
        let own = series.iter().position(|series| series.name == name).unwrap_or_else(|| {
            series.push(Series { name, band: Some(Vec::new()), ..Series::default() });
            series.len() - 1
        });
        series[own].points.push((place as f64, value));
        series[own].band.get_or_insert_default().extend(interval.map(|(low, high)| (place as f64, low, high)));
    }
    let panel = |(metric, series)| Panel {
        title: metric,
        note: String::new(),
        chart: Chart::Levels { names: names.clone(), series, joined: false },
    };
    let figure = Figure::Panels {
        title: "Sensitivity".into(),
        x_label: "factor".into(),
        panels: by_metric.into_iter().take(MOST_METRICS).map(panel).collect(),
        marks: Vec::new(),
        shade: String::new(),
        caption: "How far each factor moves a metric, with 95 % intervals over points.".into(),
    };
    let text = match design.sample {
        Some(Sample::Saltelli(_)) => {
            "Sobol's indices: the share of the variance of the arms' means that a factor accounts for, over the ranges of all factors. First \
             order: alone; total: with all its interactions. A total index near 0 says that the factor does not matter within its range. The \
             noise of the seeds is part of the variance; more seeds make it smaller. First order by Saltelli's estimator, total by Jansen's; \
             intervals are bootstraps over points."
        }
        _ => {
            "Spearman's rank correlation of a factor's values with the arms' means: 1 or -1 if the metric always rises or falls with the \
             factor, near 0 if it does neither. It does not show effects that go up and down again, nor interactions; Sobol's indices do \
             (`sample: {saltelli: 256}`)."
        }
    };
    let columns = ["factor", "metric", "index", "value", "95 % interval"].map(str::to_owned).to_vec();
    let table = DataTable { columns, rows: table, caption: "Sensitivity of each metric.".into(), links: Vec::new() };
    Section { title: "Sensitivity".into(), text: Some(text.into()), figures: vec![figure], table: Some(table) }
}

/// Means of a metric over the points in equal parts of each range.
fn over_ranges(design: &Design, values: &[Vec<Option<f64>>], metric: &str) -> Section {
    let ranges = design.factors.iter().enumerate().filter_map(|(f, factor)| Some((f, factor, factor.range?)));
    // A point counts once, whatever the levels of the other factors. Of Saltelli's design only the two samples count: its other points
    // repeat their values.
    let independent = match design.sample {
        Some(Sample::Saltelli(n)) => 2 * n as usize,
        _ => usize::MAX,
    };
    let of_point = |f: usize| -> Vec<(usize, f64)> {
        let mut by_point: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (arm, seeds) in design.arms.iter().zip(values) {
            let point = arm.levels.get(f).copied().filter(|point| *point < independent);
            let Some((point, mean)) = point.zip(mean(&seeds.iter().flatten().copied().collect::<Vec<_>>())) else {
                continue;
            };
            by_point.entry(point).or_default().push(mean);
        }
        by_point.into_iter().filter_map(|(point, means)| Some((point, mean(&means)?))).collect()
    };
    let panel = |(f, factor, range): (usize, &Factor, Range)| {
        // On the scale of the range, from 0 at its low end to 1 at its high end.
        let scaled = |x: f64| if range.scale == Scale::Log { x.ln() } else { x };
        let (low, high) = (scaled(range.low), scaled(range.high));
        let mut parts = vec![Vec::new(); PARTS];
        for (point, mean) in of_point(f) {
            let Some(value) = factor.levels.get(point).and_then(|level| level.parse::<f64>().ok()) else { continue };
            let part = ((scaled(value) - low) / (high - low) * PARTS as f64) as usize;
            parts[part.min(PARTS - 1)].push(mean);
        }
        let end = |part: usize| {
            let at = low + (high - low) * part as f64 / PARTS as f64;
            measured(if range.scale == Scale::Log { at.exp() } else { at }, Some((range.low, range.high)))
        };
        let names = (0..PARTS).map(|part| format!("{} to {}", end(part), end(part + 1))).collect();
        let mut series = Series { name: metric.into(), band: Some(Vec::new()), ..Series::default() };
        for (part, values) in parts.iter().enumerate() {
            let Estimate { mean: Some(mean), low, high, .. } = student(values) else { continue };
            series.points.push((part as f64, mean));
            series.band.get_or_insert_default().extend(low.zip(high).map(|(low, high)| (part as f64, low, high)));
        }
        let chart = Chart::Levels { names, series: vec![series], joined: true };
        Panel { title: factor.name.clone(), note: String::new(), chart }
    };
    let figure = Figure::Panels {
        title: "Over the ranges".into(),
        x_label: "part of the range".into(),
        panels: ranges.map(panel).collect(),
        marks: Vec::new(),
        shade: String::new(),
        caption: format!(
            "Mean of {metric} over the points in each fifth of a factor's range, whatever the other factors, with its 95 % interval over \
             points."
        ),
    };
    Section { title: "Over the ranges".into(), figures: vec![figure], ..Section::default() }
}
