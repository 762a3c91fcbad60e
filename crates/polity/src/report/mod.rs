//! The report of a run: one HTML page that explains itself, loads nothing and runs nothing.
//!
//! The page has no script at all: themes, the theme switch and hover values are style sheet only, and its content
//! security policy forbids every load and every script. Whatever a scenario or a model wrote is escaped on its way in.
//! The same report gives the same bytes: nothing here reads a clock, a random number or an unordered map.

mod bars;
mod bins;
mod decimate;
mod figure;
mod heat;
mod histogram;
mod lines;
mod scale;
mod scatter;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;

use polity_kernel::digest::FileHash;

pub use bins::{BinAxis, Bins, automatic_edges, histogram};
pub use scatter::frontier;

const STYLE: &str = include_str!("style.css");

/// Forbids every load, script, frame and form: only the page's own style may apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The most characters of a scenario that the page repeats; the run folder holds the whole.
const LONGEST_SCENARIO: usize = 200_000;

/// Facts with more characters than this take the room of two.
const LONG_FACT: usize = 18;

/// Everything a report shows. Text is plain text: it is escaped when rendered; blank lines separate paragraphs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is reported on, above the title; empty: a run.
    pub kind: String,
    /// The name of the run or its scenario.
    pub title: String,
    /// What the scenario is about.
    pub description: Option<String>,
    /// Whether answers came from simulated models: a banner says so.
    pub simulated: bool,
    /// How the run stands: finished, stopped, running.
    pub status: String,
    /// Names and values for the head of the page: agents, rounds, seed, digest, wall time.
    pub facts: Vec<(String, String)>,
    /// The results, in reading order.
    pub sections: Vec<Section>,
    /// The resolved scenario as YAML or JSON.
    pub scenario_yaml_or_json: String,
    /// The exact commands that repeat the run, one each.
    pub reproduce: Vec<String>,
    /// A paragraph for the methods section of a paper.
    pub methods: String,
}

/// A part of the results.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What the reader should know before the figures.
    pub text: Option<String>,
    /// Figures, numbered over the whole report.
    pub figures: Vec<Figure>,
    /// A table after the figures.
    pub table: Option<DataTable>,
}

/// A figure. Units belong into the axis labels: `guess (0 to 100)`, `share of agents (%)`.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Values over rounds (or any other number), one line a series.
    Lines {
        /// Heading.
        title: String,
        /// Name and unit of the horizontal axis.
        x_label: String,
        /// Name and unit of the vertical axis.
        y_label: String,
        /// At most 24 are drawn.
        series: Vec<Series>,
        /// What is seen, as under a figure of a paper.
        caption: String,
    },
    /// A distribution, or two on the same bins; drawn as shares in per cent.
    Histogram {
        /// Heading.
        title: String,
        /// Name and unit of the binned quantity.
        x_label: String,
        /// Name of the shares, such as `share of agents (%)`.
        y_label: String,
        /// The distribution, or the first of two.
        before: Bins,
        /// The second distribution. With other bins than the first it is not drawn, and a note says so.
        after: Option<Bins>,
        /// What is seen.
        caption: String,
    },
    /// One value for each name.
    Bars {
        /// Heading.
        title: String,
        /// What the names are.
        x_label: String,
        /// Name and unit of the values.
        y_label: String,
        /// At most 60 are drawn.
        bars: Vec<Bar>,
        /// What is seen.
        caption: String,
    },
    /// Named points, with the frontier of those that no other beats: less of the one, more of the other.
    Scatter {
        /// Heading.
        title: String,
        /// Name and unit of what there should be little of.
        x_label: String,
        /// Name and unit of what there should be much of.
        y_label: String,
        /// The points.
        points: Vec<Point>,
        /// What is seen.
        caption: String,
    },
    /// The distribution of a quantity over rounds, each round as shares in per cent.
    Heat {
        /// Heading.
        title: String,
        /// Name of the rounds.
        x_label: String,
        /// Name and unit of the binned quantity.
        y_label: String,
        /// Round numbers; gaps between them are drawn to scale.
        rounds: Vec<u64>,
        /// What the rows stand for, from the bottom up.
        bins: BinAxis,
        /// For each round, a count or weight for each bin; what is not finite or negative leaves a gap.
        cells: Vec<Vec<f64>>,
        /// What is seen.
        caption: String,
    },
}

/// A line of a line chart.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name, as in the legend.
    pub name: String,
    /// Positions and values in drawing order. A value that is not finite, or beyond 1e300, leaves a gap.
    ///
    /// Long series are drawn with at most 400 points: of each of 80 equal stretches the first, lowest, highest and
    /// last point, and a gap if it has one, so that no extreme is lost.
    pub points: Vec<(f64, f64)>,
    /// Position, lower and upper value of a band around the line, such as quantiles; the caption says which.
    pub band: Option<Vec<(f64, f64, f64)>>,
}

/// A bar of a bar chart.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Name. When all names are numbers, such as rounds, they are thinned like ticks.
    pub label: String,
    /// Value; one that is not finite leaves the place empty.
    pub value: f64,
    /// Lower and upper end of an interval around the value; the caption says which.
    pub interval: Option<(f64, f64)>,
}

/// A point of a scatter chart. One that is not finite is not drawn.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Name.
    pub label: String,
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Lower and upper end of an interval around `y`.
    pub interval: Option<(f64, f64)>,
}

/// A table; the page shows its first 200 rows.
#[derive(Clone, Debug, Default)]
pub struct DataTable {
    /// Column names.
    pub columns: Vec<String>,
    /// Rows of cells in the order of the columns; missing cells are blank.
    pub rows: Vec<Vec<String>>,
    /// What the table holds.
    pub caption: String,
}

/// The report as one self-contained HTML page.
pub fn render(report: &Report) -> String {
    let title = text::escape(&text::first(&report.title, 200));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    // Not remembered, not even by a browser that restores forms.
    out.push_str(
        "<label class=\"theme\"><input type=\"checkbox\" id=\"theme\" autocomplete=\"off\">Switch theme</label>\n",
    );
    out.push_str(&header(report, &title));
    out.push_str("<main>\n");
    out.push_str(&results(&report.sections));
    out.push_str(&ending(report));
    out.push_str("</main>\n<footer><p>Made by Polity. This page loads nothing and runs no script.</p></footer>\n");
    out.push_str("</body>\n</html>\n");
    let digest = digest_line(&out);
    out + &digest
}

/// The last line of a page: a comment with the digest of the text before it, to detect changes.
fn digest_line(page: &str) -> String {
    format!("<!-- digest of this page: {} -->\n", FileHash::of(page.as_bytes()))
}

/// Whether a page is as [`render`] made it.
pub fn is_as_written(page: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(page) else { return false };
    let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
    text[last..] == digest_line(&text[..last])
}

/// Scatter charts alone, one below the other, as an SVG file: no script, nothing loaded.
pub fn svg_file(figures: &[Figure]) -> String {
    figure::svg_file(figures)
}

fn header(report: &Report, title: &str) -> String {
    let kind = if report.kind.is_empty() { "Run report".into() } else { text::escape(&report.kind) };
    let mut out = format!("<header>\n<p class=\"kind\">{kind}</p>\n<h1>{title}</h1>\n");
    if let Some(description) = &report.description {
        out.push_str(&format!("<div class=\"lead\">{}</div>\n", paragraphs(description)));
    }
    if report.simulated {
        out.push_str(
            "<aside class=\"banner\" role=\"note\"><p><b>Simulated models.</b> The answers in this run came from \
             simulated models with declared skills, not from language models. The figures show how the methods work \
             under those assumptions; they are no evidence about any real model.</p></aside>\n",
        );
    }
    out.push_str("<dl class=\"facts\">\n");
    let status = (!report.status.is_empty()).then(|| ("status".to_owned(), report.status.clone()));
    for (name, value) in status.iter().chain(&report.facts) {
        // Digests and paths need the room of two ordinary facts.
        let class = if value.chars().count() > LONG_FACT { " class=\"long\"" } else { "" };
        let (name, value) = (text::escape(name), text::escape(value));
        out.push_str(&format!("<div{class}><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    out.push_str("</dl>\n</header>\n");
    out
}

fn results(sections: &[Section]) -> String {
    if sections.is_empty() {
        return "<section>\n<h2>Results</h2>\n<p class=\"empty\">Nothing was measured yet.</p>\n</section>\n"
            .to_owned();
    }
    let mut out = String::new();
    let (mut figures, mut tables) = (0, 0);
    for section in sections {
        out.push_str(&format!("<section>\n<h2>{}</h2>\n", text::escape(&section.title)));
        if let Some(words) = &section.text {
            out.push_str(&paragraphs(words));
        }
        for figure in &section.figures {
            figures += 1;
            out.push_str(&figure::html(figure, figures));
        }
        if let Some(table) = &section.table {
            tables += 1;
            out.push_str(&format!(
                "<div class=\"table\">\n<p class=\"caption\"><b>Table {tables}.</b> {}</p>\n{}</div>\n",
                text::escape(&table.caption),
                table::html(&table.columns, &table.rows, table.rows.len())
            ));
        }
        if section.text.is_none() && section.figures.is_empty() && section.table.is_none() {
            out.push_str("<p class=\"empty\">Nothing was measured yet.</p>\n");
        }
        out.push_str("</section>\n");
    }
    out
}

fn ending(report: &Report) -> String {
    let mut out = String::new();
    if !report.methods.is_empty() {
        out.push_str(&format!(
            "<section>\n<h2>Methods</h2>\n<div class=\"methods\">{}</div>\n</section>\n",
            paragraphs(&report.methods)
        ));
    }
    if !report.reproduce.is_empty() {
        let commands = text::escape(&report.reproduce.join("\n"));
        out.push_str(&format!("<section>\n<h2>Reproduce</h2>\n<pre tabindex=\"0\">{commands}</pre>\n</section>\n"));
    }
    if !report.scenario_yaml_or_json.is_empty() {
        let short = text::first(&report.scenario_yaml_or_json, LONGEST_SCENARIO);
        let more = if short == report.scenario_yaml_or_json {
            ""
        } else {
            "<p class=\"note\">Cut here; the folder of the run holds the whole scenario.</p>\n"
        };
        out.push_str(&format!(
            "<section>\n<h2>Scenario</h2>\n<details class=\"keep\"><summary>The scenario of this run, with its defaults \
             filled in</summary>\n<pre tabindex=\"0\">{}</pre>\n{more}</details>\n</section>\n",
            text::escape(&short)
        ));
    }
    out
}

/// Plain text as paragraphs: a blank line begins a new one.
fn paragraphs(words: &str) -> String {
    words
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| format!("<p>{}</p>\n", text::escape(paragraph)))
        .collect()
}
