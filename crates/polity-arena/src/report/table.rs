//! Tables on the page.

use super::text;

/// The most rows shown; the run's own tables hold all of them.
pub(super) const MOST_ROWS: usize = 200;

/// The most columns shown, and the most characters of a cell.
const MOST_COLUMNS: usize = 64;
const LONGEST_CELL: usize = 240;

/// A table as HTML, at most 200 rows of it; `total` is the number of all rows.
///
/// Columns in which every cell is a number are right-aligned.
pub(super) fn html(columns: &[String], rows: &[Vec<String>], total: usize) -> String {
    let rows = &rows[..rows.len().min(MOST_ROWS)];
    let shown = columns.len().min(MOST_COLUMNS);
    let blank = String::new();
    let cell = |row: &'_ [String], i: usize| row.get(i).unwrap_or(&blank).clone();
    let numeric: Vec<bool> = (0..shown)
        .map(|i| rows.iter().all(|row| row.get(i).is_none_or(|c| c.is_empty() || c.parse::<f64>().is_ok())))
        .collect();
    let class = |i: usize| if numeric[i] { " class=\"number\"" } else { "" };
    let mut out = String::from("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
    for (i, column) in columns.iter().take(shown).enumerate() {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(i), content(column)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for i in 0..shown {
            out.push_str(&format!("<td{}>{}</td>", class(i), content(&cell(row, i))));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if total > rows.len() {
        out.push_str(&format!(
            "<p class=\"note\">The first {} of {} rows. The tables of the run hold all of them.</p>\n",
            rows.len(),
            text::shown(total as f64)
        ));
    }
    if columns.len() > shown {
        out.push_str(&format!("<p class=\"note\">The first {shown} of {} columns.</p>\n", columns.len()));
    }
    out
}

/// A cell's text, cut when very long; the title element then holds more of it.
fn content(cell: &str) -> String {
    let short = text::first(cell, LONGEST_CELL);
    if short == cell {
        return text::escape(cell);
    }
    format!("<span title=\"{}\">{}</span>", text::full(cell), text::escape(&short))
}
