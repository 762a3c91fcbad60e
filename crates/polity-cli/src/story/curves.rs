//! Metrics over the rounds: one small chart for what belongs together, a heat map for histograms, a line for what never changes.

use super::finding::ranked;
use super::methods::words;
use super::{Lines, parent::Parent};
use polity_arena::report::{BinAxis, Chart, Figure, Mark, Panel, Section, Series, short};
use polity_driver::results::Run;
use polity_kernel::event::Order;
use polity_store::tables::{Kind, TableError};
use serde_json::Value;
use std::collections::BTreeMap;

/// What happened on the way, by round: changes of the scenario, a fork, orders of a person.
pub fn marks(run: &Run<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    for change in run.manifest.scenario.get("changes").and_then(Value::as_array).into_iter().flatten() {
        let (at, set) = (change.get("at").and_then(Value::as_f64), change.get("set").and_then(Value::as_object));
        if let (Some(at), Some(set)) = (at, set.filter(|set| !set.is_empty())) {
            let label: Vec<String> = set.iter().map(|(path, value)| format!("{path} = {}", words(value))).collect();
            marks.push(Mark { at, label: label.join(", ") });
        }
    }
    // An order to change is among the changes of the scenario.
    for order in run.orders.iter().filter(|order| !matches!(order.order, Order::Change { .. })) {
        marks.push(Mark { at: f64::from(order.rounds), label: format!("order {}", order.order) });
    }
    marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    marks
}

/// The words for acts in the run's table: `like`, `share`.
fn acts(run: &Run<'_>) -> Result<Vec<String>, TableError> {
    if !run.tables.names().iter().any(|name| name == "acts") {
        return Ok(Vec::new());
    }
    let (spec, _) = run.tables.describe("acts")?;
    Ok(spec
        .columns
        .into_iter()
        .find(|column| column.name == "kind")
        .map(|column| if let Kind::Category(words) = column.kind { words } else { Vec::new() })
        .unwrap_or_default())
}

/// Whether a world's number counts acts of one kind, by its name: `likes`, `replies`.
fn counts_acts(name: &str, acts: &[String]) -> bool {
    acts.iter().any(|act| {
        let plural = format!("{act}s");
        name == plural || act.strip_suffix('y').is_some_and(|stem| name == format!("{stem}ies"))
    })
}

/// Where a metric is drawn: the title of its chart, and its name there.
fn place(name: &str, acts: &[String]) -> (String, String) {
    let mut parts = name.splitn(3, '.');
    let (quantity, metric, suffix) = (parts.next().unwrap_or(name), parts.next(), parts.next());
    match (metric, suffix) {
        (None, _) if counts_acts(quantity, acts) => ("acts in the round".into(), quantity.into()),
        (None, _) => (quantity.into(), String::new()),
        (Some("mean"), None) => (quantity.into(), "mean".into()),
        (Some("quantiles"), Some(q)) => (quantity.into(), q.into()),
        (Some(metric), Some(suffix)) => (format!("{quantity}: {metric}"), suffix.into()),
        (Some(metric), None) => (format!("{quantity}: {metric}"), String::new()),
    }
}

/// The quantile that a series' name says.
fn quantile(name: &str) -> Option<f64> {
    name.strip_prefix('q')?.parse().ok()
}

/// Puts the quantiles of a quantity into one series: the middle one, with a band from the lowest to the highest.
fn banded(series: Vec<Series>) -> (Vec<Series>, String) {
    let (mut quantiles, others): (Vec<Series>, Vec<Series>) =
        series.into_iter().partition(|series| quantile(&series.name).is_some());
    quantiles.sort_by(|a, b| quantile(&a.name).partial_cmp(&quantile(&b.name)).unwrap_or(std::cmp::Ordering::Equal));
    let percent = |series: &Series| short(100.0 * quantile(&series.name).unwrap_or(0.0));
    let (Some(low), Some(high)) = (quantiles.first().cloned(), quantiles.last().cloned()) else {
        return (others, String::new());
    };
    if quantiles.len() < 3 {
        return (others.into_iter().chain(quantiles).collect(), String::new());
    }
    let high_at: BTreeMap<u64, f64> = high.points.iter().map(|point| (point.0.to_bits(), point.1)).collect();
    let band = low.points.iter().filter_map(|(x, low)| Some((*x, *low, *high_at.get(&x.to_bits())?))).collect();
    let note = format!("band: from {} % to {} % of the agents", percent(&low), percent(&high));
    let inner = quantiles.len() - 1;
    let middle = quantiles.len() / 2;
    let mut shown: Vec<Series> = Vec::new();
    for (i, mut series) in quantiles.into_iter().enumerate().filter(|(i, _)| (1..inner).contains(i)) {
        series.band = (i == middle).then(|| Vec::clone(&band));
        series.name =
            if quantile(&series.name) == Some(0.5) { "median".into() } else { format!("{} %", percent(&series)) };
        shown.push(series);
    }
    (shown.into_iter().chain(others).collect(), note)
}

/// The bins of a histogram over the rounds.
type Bins<'a> = BTreeMap<&'a str, &'a [(f64, f64)]>;

/// The histograms of the run, by quantity.
fn histograms(lines: &Lines) -> BTreeMap<&str, Bins<'_>> {
    let mut all: BTreeMap<&str, Bins<'_>> = BTreeMap::new();
    for (name, points) in lines {
        if let Some((quantity, bin)) = name.split_once(".histogram.") {
            all.entry(quantity).or_default().insert(bin, points);
        }
    }
    all
}

/// The range of a quantity, if its column declares one.
fn declared(run: &Run<'_>, quantity: &str) -> Result<Option<(f64, f64)>, TableError> {
    for table in ["states", "agents"].into_iter().filter(|table| run.tables.names().iter().any(|name| name == table)) {
        let (spec, _) = run.tables.describe(table)?;
        let base = |name: &str| name.strip_suffix(".first").unwrap_or(name).to_owned();
        if let Some(column) = spec.columns.iter().find(|column| base(&column.name) == quantity) {
            return Ok(column.range);
        }
    }
    Ok(None)
}

/// The heat maps of all histograms.
pub fn heats(run: &Run<'_>, lines: &Lines) -> Result<Vec<Figure>, TableError> {
    histograms(lines)
        .into_iter()
        .map(|(quantity, bins)| {
            let metrics = run.manifest.scenario.get("metrics").and_then(Value::as_array);
            let of = |metric: &&Value| {
                metric.get("kind").is_some_and(|k| k == "histogram")
                    && metric.get("of").is_some_and(|of| of == quantity)
            };
            let range = metrics.and_then(|m| m.iter().find(of)).and_then(|m| m.get("range")).and_then(Value::as_array);
            let end = |i: usize| range.and_then(|r| r.get(i)).and_then(Value::as_f64);
            let range = match end(0).zip(end(1)) {
                Some(range) => Some(range),
                None => declared(run, quantity)?,
            };
            let axis = match range.filter(|(low, high)| high > low) {
                Some((low, high)) => {
                    let n = bins.len();
                    BinAxis::Edges((0..=n).map(|i| low + (high - low) * i as f64 / n as f64).collect())
                }
                None => BinAxis::Categories(bins.keys().map(|name| (*name).to_owned()).collect()),
            };
            Ok(heat(quantity, &bins, axis))
        })
        .collect()
}

fn heat(quantity: &str, bins: &Bins<'_>, axis: BinAxis) -> Figure {
    let mut rounds: Vec<u64> = bins.values().copied().flatten().map(|(round, _)| *round as u64).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let at: Vec<BTreeMap<u64, f64>> =
        bins.values().map(|points| points.iter().map(|(round, share)| (*round as u64, *share)).collect()).collect();
    let cells = rounds
        .iter()
        .map(|round| at.iter().map(|bin| bin.get(round).map_or(f64::NAN, |share| share * 100.0)).collect())
        .collect();
    Figure::Heat {
        title: format!("How {quantity} is distributed"),
        x_label: "round".into(),
        y_label: quantity.into(),
        rounds,
        bins: axis,
        cells,
        caption: format!(
            "Each column is a round; the stronger the colour of a cell, the more agents have this {quantity}."
        ),
    }
}

/// Charts of all metrics that change, and those that do not in a sentence.
pub fn section(
    run: &Run<'_>,
    lines: &Lines,
    marks: &[Mark],
    parent: Option<&Parent>,
) -> Result<Option<Section>, TableError> {
    let scenario = &run.manifest.scenario;
    let acts = acts(run)?;
    let mut charts: Vec<(String, Vec<Series>)> = Vec::new();
    for name in ranked(lines, scenario) {
        let points = &lines[name];
        let before = parent.and_then(|parent| parent.lines.get(name)).filter(|before| *before != points);
        let (title, series) = place(name, &acts);
        let own = Series { name: series.clone(), points: points.clone(), ..Series::default() };
        let at = charts.iter().position(|chart| chart.0 == title).unwrap_or_else(|| {
            charts.push((title.clone(), Vec::new()));
            charts.len() - 1
        });
        charts[at].1.push(own);
        if let Some(before) = before {
            let name = if series.is_empty() { "parent".into() } else { format!("{series} of the parent") };
            charts[at].1.push(Series { name, points: before.clone(), reference: true, ..Series::default() });
        }
    }
    let panel = |(title, series): (String, Vec<Series>)| {
        let (reference, own): (Vec<Series>, Vec<Series>) = series.into_iter().partition(|series| series.reference);
        let (mut series, mut note) = banded(own);
        // Of the parent's quantiles and means one is enough.
        if let Some(reference) = reference.into_iter().next() {
            if series.len() > 1 {
                note = [note, format!("grey: {}", reference.name)]
                    .into_iter()
                    .filter(|n| !n.is_empty())
                    .collect::<Vec<_>>()
                    .join("; ");
            }
            series.push(Series { name: "parent".into(), ..reference });
        }
        named(&mut series);
        Panel { title, note, chart: Chart::Lines(series) }
    };
    let (still, moving): (Vec<_>, Vec<_>) = charts.into_iter().partition(|(_, series)| series.iter().all(is_still));
    let panels: Vec<Panel> = moving.into_iter().map(panel).collect();
    let constant: Vec<String> = still.into_iter().flat_map(|(title, series)| told(&title, &series)).collect();
    let text = (!constant.is_empty()).then(|| format!("The same in all rounds: {}.", constant.join(", ")));
    if panels.is_empty() && text.is_none() {
        return Ok(None);
    }
    let grey = if parent.is_some() { " The grey dashed line is the parent." } else { "" };
    let changes = if marks.is_empty() { "" } else { " Dashed vertical lines are changes and orders." };
    let figures = if panels.is_empty() {
        Vec::new()
    } else {
        vec![Figure::Panels {
            title: "Over the rounds".into(),
            x_label: "round".into(),
            panels,
            marks: marks.to_vec(),
            shade: String::new(),
            caption: format!("One chart a quantity; the horizontal axis is the round.{grey}{changes}"),
        }]
    };
    Ok(Some(Section { title: "Over the rounds".into(), text, figures, table: None }))
}

fn is_still(series: &Series) -> bool {
    !series.reference && series.points.iter().all(|point| Some(point.1) == series.points.first().map(|first| first.1))
}

/// Series that never change, in words.
fn told(title: &str, series: &[Series]) -> Vec<String> {
    let name =
        |series: &Series| if series.name.is_empty() { title.to_owned() } else { format!("{title} {}", series.name) };
    series.iter().filter_map(|s| Some(format!("{} = {}", name(s), short(s.points.first()?.1)))).collect()
}

/// Gives a series a name where it has none and stands beside others.
fn named(series: &mut [Series]) {
    let several = series.len() > 1;
    series.iter_mut().filter(|s| several && s.name.is_empty()).for_each(|s| s.name = "this run".into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_has_one_chart() {
        let acts = ["like", "share", "reply"].map(str::to_owned);
        let at = |name: &str| place(name, &acts).0;
        assert_eq!([at("likes"), at("replies"), at("active")], ["acts in the round", "acts in the round", "active"]);
        assert_eq!([at("x.mean"), at("x.quantiles.q0.1"), at("x.variance")], ["x", "x", "x: variance"]);
    }

    #[test]
    fn quantiles_become_a_band_around_the_median() {
        let one = |name: &str, y: f64| Series { name: name.into(), points: vec![(0.0, y)], ..Series::default() };
        let (series, note) = banded(vec![one("mean", 3.0), one("q0.9", 9.0), one("q0.1", 1.0), one("q0.5", 2.0)]);
        assert_eq!(series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["median", "mean"]);
        assert_eq!(series[0].band.as_deref(), Some(&[(0.0, 1.0, 9.0)][..]));
        assert_eq!(note, "band: from 10 % to 90 % of the agents");
        let (two, note) = banded(vec![one("q0.25", 1.0), one("q0.75", 2.0)]);
        assert_eq!((two.len(), note.as_str()), (2, ""));
    }
}
