//! The report of a run: one self-explanatory HTML page that loads nothing and runs nothing.
//!
//! The page has no script at all: themes, the theme switch and hover values are style sheet only, and its content
//! security policy forbids every load and every script. Whatever a scenario or a model wrote is escaped on its way in.
//! The same report gives the same bytes: nothing here reads a clock, a random number or an unordered map.

mod bars;
mod bins;
mod decimate;
mod drawing;
mod figure;
mod heat;
mod histogram;
mod levels;
mod lines;
mod network;
mod page;
mod panels;
mod paper;
mod pdf;
mod scale;
mod scatter;
mod shades;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;

use polity_kernel::digest::FileHash;

pub use bins::{BinAxis, Bins, automatic_edges, histogram};
pub use network::layout;
pub use page::{
    Agents, Bar, Chart, DataTable, Figure, Mark, Node, Panel, Place, Point, Report, Section, Series, Shape,
};
pub(crate) use paper::tex;
pub use paper::{File, figures, is_for_papers, tables};
pub use scatter::frontier;
pub use text::{measured, short};

const STYLE: &str = include_str!("style.css");

/// Forbids every load, script, frame and form: only the page's own style may apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The most characters of a scenario that the page repeats; the run folder holds the whole.
const LONGEST_SCENARIO: usize = 200_000;

/// Facts with more characters than this stand near the end of the page.
const LONG_FACT: usize = 24;

/// Pages with this many headings have a table of contents.
const LONG_PAGE: usize = 5;

/// Tables with more rows than this are folded.
const SHORT_TABLE: usize = 12;

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

/// Facts for the head of the page, or for its end.
fn facts(report: &Report, long: bool) -> String {
    let status = (!report.status.is_empty()).then(|| ("status".to_owned(), report.status.clone()));
    let of_length = |fact: &&(String, String)| (fact.1.chars().count() > LONG_FACT) == long;
    let all = status.iter().chain(&report.facts).filter(of_length);
    let items = all
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text::escape(name), text::escape(value)));
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("<dl class=\"facts\">\n{items}</dl>\n") }
}

fn header(report: &Report, title: &str) -> String {
    let kind = if report.kind.is_empty() { "Run report".into() } else { text::escape(&report.kind) };
    let mut out = format!("<header>\n<p class=\"kind\">{kind}</p>\n<h1>{title}</h1>\n");
    if let Some(description) = &report.description {
        out.push_str(&format!("<div class=\"lead\">{}</div>\n", paragraphs(description)));
    }
    if !report.finding.is_empty() {
        let label = if report.simulated { " <span class=\"simulated\">simulated models</span>" } else { "" };
        out.push_str(&format!(
            "<section class=\"finding\" aria-label=\"Finding\">\n<h2>What it shows{label}</h2>\n{}</section>\n",
            paragraphs(&report.finding.join("\n\n"))
        ));
    }
    if report.simulated {
        out.push_str(
            "<aside class=\"banner\" role=\"note\"><p><b>Simulated models.</b> The answers in this run came from \
             simulated models with declared skills, not from language models. The figures show how the methods work \
             under those assumptions; they are no evidence about any real model.</p></aside>\n",
        );
    }
    out.push_str(&facts(report, false));
    out.push_str(&contents(report));
    out.push_str("</header>\n");
    out
}

/// The headings of the page, with their anchors.
fn headings(report: &Report) -> Vec<(String, String)> {
    let results =
        report.sections.iter().enumerate().map(|(i, section)| (format!("part-{}", i + 1), section.title.clone()));
    let mut all: Vec<(String, String)> = results.collect();
    let mut more = |id: &str, title: &str, is_there: bool| {
        all.extend(is_there.then(|| (id.to_owned(), title.to_owned())));
    };
    more("methods", "Methods", !report.methods.is_empty());
    more("reproduce", "Reproduce", !report.reproduce.is_empty());
    more("scenario", "Scenario", !report.scenario_yaml_or_json.is_empty());
    all
}

/// The table of contents of a long page.
fn contents(report: &Report) -> String {
    let headings = headings(report);
    if headings.len() < LONG_PAGE {
        return String::new();
    }
    let item = |(id, title): &(String, String)| format!("<li><a href=\"#{id}\">{}</a></li>\n", text::escape(title));
    let items: String = headings.iter().map(item).collect();
    format!("<nav class=\"contents\" aria-label=\"Contents\">\n<ul>\n{items}</ul>\n</nav>\n")
}

fn results(sections: &[Section]) -> String {
    if sections.is_empty() {
        return "<section>\n<h2>Results</h2>\n<p class=\"empty\">Nothing was measured yet.</p>\n</section>\n"
            .to_owned();
    }
    let mut out = String::new();
    let (mut figures, mut tables) = (0, 0);
    for (i, section) in sections.iter().enumerate() {
        out.push_str(&format!("<section id=\"part-{}\">\n<h2>{}</h2>\n", i + 1, text::escape(&section.title)));
        if let Some(words) = &section.text {
            out.push_str(&paragraphs(words));
        }
        for figure in &section.figures {
            figures += 1;
            out.push_str(&figure::html(figure, figures, &section.title));
        }
        if let Some(table) = &section.table {
            tables += 1;
            let open = if table.rows.len() <= SHORT_TABLE { " open" } else { "" };
            out.push_str(&format!(
                "<details class=\"table keep\"{open}>\n<summary><b>Table {tables}.</b> {} ({})</summary>\n{}</details>\n",
                text::escape(&table.caption),
                table::count(table.rows.len()),
                table::html(table, table.rows.len())
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
            "<section id=\"methods\">\n<h2>Methods</h2>\n<div class=\"methods\">{}</div>\n</section>\n",
            paragraphs(&report.methods)
        ));
    }
    if !report.reproduce.is_empty() {
        let commands = text::escape(&report.reproduce.join("\n"));
        out.push_str(&format!(
            "<section id=\"reproduce\">\n<h2>Reproduce</h2>\n<pre tabindex=\"0\">{commands}</pre>\n{}</section>\n",
            facts(report, true)
        ));
    }
    if !report.scenario_yaml_or_json.is_empty() {
        let short = text::first(&report.scenario_yaml_or_json, LONGEST_SCENARIO);
        let more = if short == report.scenario_yaml_or_json {
            ""
        } else {
            "<p class=\"note\">The scenario is cut off here; the run folder holds all of it.</p>\n"
        };
        out.push_str(&format!(
            "<section id=\"scenario\">\n<h2>Scenario</h2>\n<details class=\"keep\"><summary>The scenario of this run, \
             with its defaults filled in</summary>\n<pre tabindex=\"0\">{}</pre>\n{more}</details>\n</section>\n",
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
