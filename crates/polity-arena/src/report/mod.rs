//! The report of a run: one self-explanatory HTML page that loads nothing and runs nothing.
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
mod page;
mod scale;
mod scatter;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;

use polity_kernel::digest::FileHash;

pub use bins::{BinAxis, Bins, automatic_edges, histogram};
pub use page::{Bar, DataTable, Figure, Point, Report, Section, Series};
pub use scatter::frontier;

const STYLE: &str = include_str!("style.css");

/// Forbids every load, script, frame and form: only the page's own style may apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The most characters of a scenario that the page repeats; the run folder holds the whole.
const LONGEST_SCENARIO: usize = 200_000;

/// Facts with more characters than this take double width.
const LONG_FACT: usize = 18;

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
        // Digests and paths need the width of two ordinary facts.
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
            "<p class=\"note\">The scenario is cut off here; the run folder holds all of it.</p>\n"
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
