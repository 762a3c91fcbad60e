//! A figure on the page: heading, legend, the chart in two sizes, caption, notes and the data behind it.

use super::bars::{BarChart, BarSet};
use super::heat::Heat;
use super::histogram::Distribution;
use super::lines::{Lines, MOST_SERIES};
use super::page::{Bar, DataTable, Figure};
use super::panels::{self, Panels};
use super::scatter::Scatter;
use super::svg::{Canvas, NARROW, WIDE, colour};
use super::table::{self, MOST_ROWS};
use super::text;

/// The most bars drawn in one chart.
const MOST_BARS: usize = 60;

/// The parts that a figure of any kind adds to the page.
#[derive(Default)]
pub(super) struct Parts {
    pub title: String,
    caption: String,
    /// Colour class and name of each series; empty when the chart needs none.
    pub legend: Vec<(String, String)>,
    /// A key of another kind, as HTML.
    pub key: String,
    /// Whether the wide chart names its series itself, so that only the narrow one needs the legend.
    pub named: bool,
    /// The chart in both sizes, or nothing when there is nothing to draw.
    pub charts: Option<String>,
    notes: Vec<String>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Total number of rows.
    total: usize,
}

/// A figure as HTML; `number` counts from 1 over the whole report. Its title is not repeated if it is that of its `section`.
pub(super) fn html(figure: &Figure, number: usize, section: &str) -> String {
    let id = format!("figure-{number}");
    let parts = parts(figure, &id, MOST_ROWS);
    let quiet = if parts.title == section { " class=\"quiet\"" } else { "" };
    let mut out = format!("<figure id=\"{id}\">\n<h3 id=\"{id}-title\"{quiet}>{}</h3>\n", text::escape(&parts.title));
    let Some(charts) = parts.charts else {
        out.push_str("<p class=\"empty\">Nothing was measured yet.</p>\n");
        out.push_str(&caption(number, &parts.caption));
        out.push_str("</figure>\n");
        return out;
    };
    if !parts.legend.is_empty() {
        out.push_str(if parts.named { "<ul class=\"legend narrow\">\n" } else { "<ul class=\"legend\">\n" });
        for (class, name) in &parts.legend {
            let short = text::first(name, 48);
            let title = if short == *name { String::new() } else { format!(" title=\"{}\"", text::full(name)) };
            out.push_str(&format!("<li{title}><span class=\"key {class}\"></span>{}</li>\n", text::escape(&short)));
        }
        out.push_str("</ul>\n");
    }
    out.push_str(&parts.key);
    out.push_str(&charts);
    out.push_str(&caption(number, &parts.caption));
    for note in &parts.notes {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", text::escape(note)));
    }
    if parts.columns.is_empty() {
        out.push_str("</figure>\n");
        return out;
    }
    out.push_str(&format!("<details class=\"data\"><summary>Data ({})</summary>\n", table::count(parts.total)));
    let data = DataTable { columns: parts.columns, rows: parts.rows, ..DataTable::default() };
    out.push_str(&table::html(&data, parts.total));
    out.push_str("</details>\n</figure>\n");
    out
}

fn caption(number: usize, words: &str) -> String {
    format!("<figcaption><b>Figure {number}.</b> {}</figcaption>\n", text::escape(words))
}

fn both(draw: impl Fn(&Canvas) -> String) -> String {
    [WIDE, NARROW].iter().map(draw).collect()
}

/// The parts of a figure, with at most `most` rows of data.
pub(super) fn parts(figure: &Figure, id: &str, most: usize) -> Parts {
    match figure {
        Figure::Lines { title, x_label, y_label, series, caption } => {
            let chart = Lines { x_label, y_label, series, ..Lines::default() };
            let names = series.iter().take(MOST_SERIES).enumerate().filter(|_| series.len() > 1);
            let (columns, rows, total) = chart.table(most);
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                legend: names.map(|(i, series)| (colour(i), series.name.clone())).collect(),
                named: chart.names_itself(&WIDE),
                charts: chart.has_points().then(|| both(|canvas| chart.draw(canvas, id))),
                notes: chart.notes(),
                columns,
                rows,
                total,
                ..Parts::default()
            }
        }
        Figure::Panels { title, x_label, panels, marks, shade, caption } => {
            let chart = Panels::new(x_label, panels, marks, shade);
            let (columns, rows, total) = chart.table(most);
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                key: chart.legend(),
                charts: chart.has_charts().then(|| chart.draw(id)),
                columns,
                rows,
                total,
                ..Parts::default()
            }
        }
        Figure::Histogram { title, x_label, y_label, before, after, caption } => {
            let chart = Distribution::new(x_label, y_label, before, after.as_ref());
            let (columns, rows, total) = chart.table(most);
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                legend: chart.legend(),
                charts: chart.has_values().then(|| both(|canvas| chart.draw(canvas, id))),
                notes: chart.notes(),
                columns,
                rows,
                total,
                ..Parts::default()
            }
        }
        Figure::Bars { title, x_label, y_label, bars, caption } => {
            let chart = bar_chart(x_label, y_label, &bars[..bars.len().min(MOST_BARS)]);
            let drawn = format!("Only the first {MOST_BARS} of {} bars are drawn.", bars.len());
            let (columns, rows) = bar_table(x_label, y_label, bars, most);
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                charts: chart.has_bars().then(|| both(|canvas| chart.draw(canvas, id))),
                notes: if bars.len() > MOST_BARS { vec![drawn] } else { Vec::new() },
                columns,
                rows,
                total: bars.len(),
                ..Parts::default()
            }
        }
        Figure::Scatter { title, x_label, y_label, points, caption } => {
            let chart = Scatter { x_label, y_label, points };
            let (columns, rows) = chart.table();
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                charts: chart.has_points().then(|| both(|canvas| chart.draw(canvas, id))),
                columns,
                total: rows.len(),
                rows,
                ..Parts::default()
            }
        }
        Figure::Heat { title, x_label, y_label, rounds, bins, cells, caption } => {
            let chart = Heat::new(x_label, y_label, rounds, bins, cells);
            let (columns, rows, total) = chart.table(most);
            Parts {
                title: title.clone(),
                caption: caption.clone(),
                charts: chart.has_cells().then(|| both(|canvas| chart.draw(canvas, id))),
                notes: chart.notes(),
                columns,
                rows,
                total,
                ..Parts::default()
            }
        }
    }
}

/// All data behind a figure: columns and rows. Pictures, which show no table on the page, have the places of their agents.
pub(super) fn data(figure: &Figure, parts: Parts) -> (Vec<String>, Vec<Vec<String>>) {
    match figure {
        Figure::Panels { x_label, panels, .. } if parts.columns.is_empty() => panels::places(x_label, panels),
        // The page leaves out the names of the columns of charts and of series.
        Figure::Panels { .. } => {
            let named = |(i, name): (usize, String)| match (name.is_empty(), i) {
                (false, _) => name,
                (true, 0) => "chart".to_owned(),
                (true, _) => "series".to_owned(),
            };
            (parts.columns.into_iter().enumerate().map(named).collect(), parts.rows)
        }
        _ => (parts.columns, parts.rows),
    }
}

/// The look of charts that stand alone.
const ALONE: &str = "text { font: 12px system-ui, sans-serif; fill: #1b1d20 } .middle { text-anchor: middle } .end { text-anchor: end } \
    .tick { fill: #5c6167 } .grid { stroke: #e9e9e4 } .axis { stroke: #5c6167 } .whisker { stroke: #1b1d20; stroke-width: 1.25 } \
    .line { fill: none; stroke: #0072b2; stroke-width: 2 } .dot.c0 { fill: #0072b2 } .dot.c6 { fill: #555a60 } \
    .value { paint-order: stroke; stroke: #fff; stroke-width: 3px } .title { font-weight: 600; font-size: 14px }";

/// Height of a title above its chart.
const TITLE: f64 = 36.0;

/// Renders scatter charts one below the other as a standalone file; other figures are left out.
pub(super) fn svg_file(figures: &[Figure]) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for (i, figure) in figures.iter().enumerate() {
        let Figure::Scatter { title, x_label, y_label, points, .. } = figure else { continue };
        let id = format!("chart-{}", i + 1);
        let (baseline, chart) = (top + 24.0, Scatter { x_label, y_label, points }.draw(&WIDE, &id));
        body.push_str(&format!(
            "<text class=\"title\" id=\"{id}-title\" x=\"2\" y=\"{baseline}\">{}</text>\n",
            text::escape(title)
        ));
        let place = format!("<svg y=\"{}\" width=\"{}\" height=\"{}\"", top + TITLE, WIDE.width, WIDE.height);
        body.push_str(&chart.replacen("<svg class=\"wide\"", &place, 1));
        top += TITLE + WIDE.height;
    }
    let width = WIDE.width;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\">\n\
         <style>{ALONE}</style>\n<rect width=\"{width}\" height=\"{top}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn bar_chart<'a>(x_label: &'a str, y_label: &'a str, bars: &[Bar]) -> BarChart<'a> {
    let mut summary = format!("Bar chart of {y_label} by {x_label}.");
    for bar in bars.iter().take(10) {
        summary.push_str(&format!(" {}: {}.", text::first(&bar.label, 80), text::shown(bar.value)));
    }
    BarChart {
        x_label,
        y_label,
        names: bars.iter().map(|bar| bar.label.clone()).collect(),
        sets: vec![BarSet {
            name: String::new(),
            class: "c0",
            values: bars.iter().map(|bar| bar.value).collect(),
            intervals: bars.iter().map(|bar| bar.interval).collect(),
        }],
        written: text::shown,
        summary,
    }
}

fn bar_table(x_label: &str, y_label: &str, bars: &[Bar], most: usize) -> (Vec<String>, Vec<Vec<String>>) {
    let intervals = bars.iter().any(|bar| bar.interval.is_some());
    let mut columns = vec![x_label.to_owned(), y_label.to_owned()];
    if intervals {
        columns.extend(["low".to_owned(), "high".to_owned()]);
    }
    let rows = bars.iter().take(most).map(|bar| {
        let mut row = vec![bar.label.clone(), text::plain(bar.value)];
        if intervals {
            let (low, high) = bar.interval.unwrap_or((f64::NAN, f64::NAN));
            row.extend([text::plain(low), text::plain(high)]);
        }
        row
    });
    (columns, rows.collect())
}
