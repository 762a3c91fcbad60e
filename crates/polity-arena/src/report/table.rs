//! Tables on the page.

use super::page::DataTable;
use super::text;

/// The most rows shown; the run's own tables hold all of them.
pub(super) const MOST_ROWS: usize = 200;

/// The most columns shown, and the most characters of a cell.
const MOST_COLUMNS: usize = 64;
const LONGEST_CELL: usize = 240;

/// Tables with more columns than this have narrow ones.
const DENSE: usize = 7;

/// The number of rows in words.
pub(super) fn count(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{} rows", text::shown(rows as f64)) }
}

/// Whether a cell holds a number, perhaps with its interval: `0.42`, `−3`, `1.2 to 1.4`, `5.2×10⁻⁴`.
fn is_number(cell: &str) -> bool {
    let part = |word: &str| {
        let digits = word.trim_start_matches(['-', '−', '+']);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || ".,e-+×⁰¹²³⁴⁵⁶⁷⁸⁹⁻%\u{202f}".contains(c))
    };
    cell.is_empty() || cell == "-" || cell == "–" || cell.split(" to ").all(part)
}

/// A table as HTML, at most 200 rows of it; `total` is the number of all rows.
///
/// Columns in which every cell is a number are right-aligned and never broken.
pub(super) fn html(table: &DataTable, total: usize) -> String {
    let columns = &table.columns;
    let rows = &table.rows[..table.rows.len().min(MOST_ROWS)];
    let shown = columns.len().min(MOST_COLUMNS);
    let blank = String::new();
    let cell = |row: &'_ [String], i: usize| row.get(i).unwrap_or(&blank).clone();
    let numeric: Vec<bool> =
        (0..shown).map(|i| rows.iter().all(|row| row.get(i).is_none_or(|cell| is_number(cell)))).collect();
    let class = |i: usize| if numeric[i] { " class=\"number\"" } else { "" };
    let dense = if shown > DENSE { " dense" } else { "" };
    let mut out = format!("<div class=\"scroll{dense}\" tabindex=\"0\"><table>\n<thead><tr>");
    for (i, column) in columns.iter().take(shown).enumerate() {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(i), content(column)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (at, row) in rows.iter().enumerate() {
        out.push_str("<tr>");
        for i in 0..shown {
            let words = content(&cell(row, i));
            let words = match table.links.get(at).filter(|link| i == 0 && is_local(link)) {
                Some(link) => format!("<a href=\"{}\">{words}</a>", text::escape(link)),
                None => words,
            };
            out.push_str(&format!("<td{}>{words}</td>", class(i)));
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

/// Whether an address leads to a place below the page's own folder: no scheme, no root, no way up.
fn is_local(link: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~=,+@/%".contains(c);
    !link.is_empty() && !link.starts_with('/') && link.chars().all(plain) && !link.split('/').any(|part| part == "..")
}

/// Escaped text that may be broken before a dot within a name: `guess.quantiles.q0.5` fits a narrow column.
fn breakable(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut chars = escaped.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let within = before.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphabetic());
        if c == '.' && within {
            out.push_str("<wbr/>");
        }
        out.push(c);
        before = c;
    }
    out
}

/// A cell's text, cut when very long; the title element then holds more of it.
fn content(cell: &str) -> String {
    let short = text::first(cell, LONGEST_CELL);
    if short == cell {
        return breakable(&text::escape(cell));
    }
    format!("<span title=\"{}\">{}</span>", text::full(cell), text::escape(&short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_intervals_are_numbers() {
        for cell in ["0.42", "-3", "−3.5", "1.2 to 1.4", "5.2×10⁻⁴", "", "-", "12,345", "+0.100", "5.2e-4"] {
            assert!(is_number(cell), "{cell}");
        }
        for cell in ["stable", "q0.5", "1 of 2", "to", "round 3"] {
            assert!(!is_number(cell), "{cell}");
        }
    }

    #[test]
    fn names_break_before_their_dots_and_numbers_do_not() {
        assert_eq!(breakable("guess.quantiles.q0.5"), "guess<wbr/>.quantiles<wbr/>.q0.5");
        assert_eq!(breakable("0.5 is. so"), "0.5 is. so");
    }

    #[test]
    fn links_lead_to_places_below_the_page() {
        assert!(is_local("runs/debate@6/report.html"));
        for link in ["", "/etc", "../up", "a/../../b", "https://a.b", "javascript:x", "a b", "a\"b"] {
            assert!(!is_local(link), "{link}");
        }
    }
}
