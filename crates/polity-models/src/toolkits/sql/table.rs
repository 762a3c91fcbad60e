//! Results of queries: how they are shown and compared.

use polity_kernel::EXACT;
use polity_store::printable::on_one_line;
use rusqlite::types::ValueRef;
use std::fmt;

/// Characters shown of one value.
const SHOWN: usize = 300;
/// Bytes shown of a blob.
const PREFIX: usize = 16;
/// Significant digits of numbers that are compared: sums of the same numbers in another order differ in later ones.
const DIGITS: usize = 12;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating-point number; never NaN, which SQLite stores as NULL.
    Real(f64),
    /// A text. Bytes that are no UTF-8 are U+FFFD.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }
}

impl fmt::Display for Cell {
    /// On one line, without characters that hide or steer. Texts that would read as something else are in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Integer(number) => write!(f, "{number}"),
            Cell::Real(number) => write!(f, "{number:?}"),
            Cell::Text(text) => {
                let length = text.chars().count();
                let cut: String = text.chars().take(SHOWN).collect();
                let shown = on_one_line(&cut);
                let quote = if text.is_empty() || text == "NULL" || text.contains(" | ") { "'" } else { "" };
                write!(f, "{quote}{shown}{quote}")?;
                if length > SHOWN { write!(f, "... ({length} characters)") } else { Ok(()) }
            }
            Cell::Blob(bytes) => {
                write!(f, "blob of {} bytes", bytes.len())?;
                let prefix = bytes.iter().take(PREFIX);
                prefix
                    .enumerate()
                    .try_for_each(|(at, byte)| write!(f, "{}{byte:02x}", if at == 0 { ": " } else { "" }))?;
                if bytes.len() > PREFIX { f.write_str("...") } else { Ok(()) }
            }
        }
    }
}

/// The rows of a statement, as many as its limits allow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The first rows, each with a value per column.
    pub rows: Vec<Vec<Cell>>,
    /// The number of all rows; `None` if counting reached a limit.
    pub total: Option<usize>,
    /// Whether the statement orders its rows: it has an ORDER BY that is in no parentheses.
    pub ordered: bool,
}

impl Table {
    /// Whether it holds all rows.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.total == Some(self.rows.len())
    }

    /// The names of the columns and the rows, a line each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let names = self.columns.iter().map(|name| on_one_line(name).into_owned()).collect::<Vec<_>>().join(" | ");
        let row = |row: &Vec<Cell>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
        std::iter::once(names).chain(self.rows.iter().map(row))
    }

    /// Writes the table as lines of at most `most` bytes together, and says what is missing.
    ///
    /// ```
    /// use polity_models::toolkits::sql::{Cell, Table};
    ///
    /// let rows = vec![vec![Cell::Integer(1), Cell::Null], vec![Cell::Integer(2), Cell::Text("x".into())]];
    /// let table = Table { columns: vec!["a".into(), "b".into()], rows, total: Some(10), ordered: false };
    /// assert_eq!(table.show(1_000), "a | b\n1 | NULL\n2 | x\n(2 of 10 rows)");
    /// ```
    #[must_use]
    pub fn show(&self, most: usize) -> String {
        if self.columns.is_empty() {
            return "Done; the statement returns no rows.".into();
        }
        let mut out = String::new();
        let mut written = 0;
        for line in self.lines() {
            if out.len() + line.len() + 1 > most {
                break;
            }
            out.push_str(&line);
            out.push('\n');
            written += 1;
        }
        let rows = usize::saturating_sub(written, 1);
        let plural = |count: usize| if count == 1 { "1 row".into() } else { format!("{count} rows") };
        let end = match self.total {
            Some(0) => "(0 rows)".into(),
            Some(total) if total == rows => format!("({})", plural(total)),
            Some(total) => format!("({rows} of {total} rows)"),
            None => format!("({rows} rows of more; their number is not known, because counting them takes too long)"),
        };
        out.push_str(&end);
        if rows < self.rows.len() || (rows == 0 && self.total != Some(0)) {
            out.push_str(" Select fewer columns or shorten texts with substr() to see more rows.");
        }
        out
    }
}

/// Whether two results have the same rows, each as often. The order counts if the first one's statement orders its rows; names of columns
/// never count. Numbers are equal if they agree in 12 significant digits, so 1 is 1.0. Texts are equal only to texts. `None`: one of them
/// does not hold all its rows, so nothing is known.
///
/// Of rows that an ORDER BY leaves in a tie, the order counts too: a gold statement should order by a key.
///
/// ```
/// use polity_models::toolkits::sql::{Database, Limits, SqlError, same_result};
///
/// # fn main() -> Result<(), SqlError> {
/// let run = |sql| Database::empty()?.run(sql, &Limits::default());
/// let gold = run("SELECT 1 UNION ALL SELECT 2")?;
/// assert_eq!(same_result(&gold, &run("SELECT 2.0 AS x UNION ALL SELECT 1")?), Some(true));
/// assert_eq!(same_result(&gold, &run("SELECT 1")?), Some(false));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn same_result(gold: &Table, other: &Table) -> Option<bool> {
    if !gold.is_whole() || !other.is_whole() {
        return None;
    }
    if gold.columns.len() != other.columns.len() || gold.rows.len() != other.rows.len() {
        return Some(false);
    }
    let keys = |table: &Table| {
        let mut keys: Vec<Vec<Key>> = table.rows.iter().map(|row| row.iter().map(Key::of).collect()).collect();
        if !gold.ordered {
            keys.sort_unstable();
        }
        keys
    };
    Some(keys(gold) == keys(other))
}

/// A value as it is compared.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    Integer(i64),
    /// In decimal digits.
    Real(String),
    Text(String),
    Blob(Vec<u8>),
}

impl Key {
    fn of(cell: &Cell) -> Key {
        match cell {
            Cell::Null => Key::Null,
            Cell::Integer(number) => Key::Integer(*number),
            Cell::Real(number) => {
                let digits = format!("{number:.*e}", DIGITS - 1);
                match digits.parse::<f64>() {
                    #[expect(clippy::cast_possible_truncation, reason = "it is an integer of at most 53 bits")]
                    Ok(rounded) if rounded.fract() == 0.0 && rounded.abs() <= EXACT => {
                        // Integers of more digits than are compared stay exact.
                        let exact = if number.fract() == 0.0 { *number } else { rounded };
                        Key::Integer(exact as i64)
                    }
                    _ => Key::Real(digits),
                }
            }
            Cell::Text(text) => Key::Text(text.clone()),
            Cell::Blob(bytes) => Key::Blob(bytes.clone()),
        }
    }
}

/// Whether a statement has an ORDER BY outside of all parentheses, texts and comments.
pub(super) fn orders_its_rows(sql: &str) -> bool {
    let mut rest = sql;
    let (mut depth, mut after_order) = (0_usize, false);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let end = |close: &str, from: usize| rest[from..].find(close).map_or(rest.len(), |at| from + at + close.len());
        let length = match first {
            '\'' | '"' | '`' => end(&first.to_string(), 1),
            '[' => end("]", 1),
            '-' if rest.starts_with("--") => end("\n", 2),
            '/' if rest.starts_with("/*") => end("*/", 2),
            _ if word > 0 => word,
            _ => first.len_utf8(),
        };
        let token = &rest[..length];
        if word > 0 {
            if after_order && token.eq_ignore_ascii_case("by") {
                return true;
            }
            after_order = depth == 0 && token.eq_ignore_ascii_case("order");
        }
        match first {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = &rest[length..];
    }
    false
}
