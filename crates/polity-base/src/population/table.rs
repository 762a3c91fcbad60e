//! Tables: named columns of numbers and words, as read from a data set.

use crate::EXACT;
use crate::tree::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// One column of a table; all its cells have one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers, one a row: finite, or NaN where the value is missing.
    Number(Vec<f64>),
    /// Words: `codes[row]` is an index into `words`, which stand in order of first appearance. See [`TextBuilder`].
    Text {
        /// One code a row, each below `words.len()`.
        codes: Vec<u32>,
        /// The distinct words.
        words: Vec<String>,
    },
}

impl Column {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Column::Number(values) => values.len(),
            Column::Text { codes, .. } => codes.len(),
        }
    }

    /// True when there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Column::Number(values) => Cell::Number(values[row]),
            Column::Text { codes, words } => Cell::Text(&words[codes[row] as usize]),
        }
    }

    /// Returns whether all values are whole numbers, apart from missing ones.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Column::Number(values) => values.iter().all(|v| v.is_nan() || v.fract() == 0.0 && v.abs() <= EXACT),
            Column::Text { .. } => false,
        }
    }

    /// What is wrong with the column, if anything.
    fn fault(&self) -> Option<String> {
        match self {
            Column::Number(values) => values
                .iter()
                .position(|v| v.is_infinite())
                .map(|row| format!("row {row} is {}, which is not a finite number", values[row])),
            Column::Text { codes, words } => {
                if let Some(row) = codes.iter().position(|code| *code as usize >= words.len()) {
                    return Some(format!("row {row} has code {}, but there are {} words", codes[row], words.len()));
                }
                let mut sorted: Vec<u32> = (0..words.len() as u32).collect();
                sorted.sort_unstable_by_key(|code| &words[*code as usize]);
                let same = |pair: &&[u32]| words[pair[0] as usize] == words[pair[1] as usize];
                let twice = sorted.windows(2).find(same)?;
                Some(format!("the word `{}` is listed twice", words[twice[0] as usize]))
            }
        }
    }
}

/// Builds a text column a cell at a time.
#[derive(Debug, Default)]
pub struct TextBuilder {
    codes: Vec<u32>,
    code_of: BTreeMap<String, u32>,
}

impl TextBuilder {
    /// Adds the next row.
    pub fn push(&mut self, word: &str) {
        let code = match self.code_of.get(word) {
            Some(code) => *code,
            None => {
                let code = self.code_of.len() as u32;
                self.code_of.insert(word.to_owned(), code);
                code
            }
        };
        self.codes.push(code);
    }

    /// The number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// True before the first row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The column.
    #[must_use]
    pub fn finish(self) -> Column {
        let mut words = vec![String::new(); self.code_of.len()];
        for (word, code) in self.code_of {
            words[code as usize] = word;
        }
        Column::Text { codes: self.codes, words }
    }
}

/// An invalid table, or an unknown column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", column.as_ref().map(|c| format!("column `{c}`: ")).unwrap_or_default())]
pub struct TableError {
    /// The column it is about.
    pub column: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl TableError {
    pub(super) fn new(column: &str, message: impl Into<String>) -> Self {
        TableError { column: Some(column.to_owned()), message: message.into() }
    }
}

/// The position of a column of numbers in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberColumn(pub(super) usize);

/// The position of a column of words in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextColumn(pub(super) usize);

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) rows: usize,
    lines: Lines,
    /// Columns of the file that were not read.
    unread: Vec<String>,
}

/// The lines of a file that the rows of a table stand in. They are not part of the table's identity.
#[derive(Clone, Debug, Default)]
struct Lines(Option<Arc<[u32]>>);

impl PartialEq for Lines {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Table {
    /// Checks and keeps the columns.
    ///
    /// # Errors
    /// No column, no row, columns of different lengths, empty or repeated names, numbers that are not finite, codes without
    /// a word, more than 2^32 - 1 rows.
    pub fn new(columns: Vec<(String, Column)>) -> Result<Self, TableError> {
        let general = |message: &str| Err(TableError { column: None, message: message.to_owned() });
        let Some((first, column)) = columns.first() else {
            return general("a table needs at least one column");
        };
        let rows = column.len();
        if rows == 0 {
            return general("a table needs at least one row");
        }
        if rows > u32::MAX as usize {
            return general("a table has at most 4294967295 rows");
        }
        let mut seen = BTreeSet::new();
        for (name, column) in &columns {
            check(name, column, !seen.insert(name), first, rows)?;
        }
        let (names, columns) = columns.into_iter().unzip();
        Ok(Table { names, columns, rows, lines: Lines::default(), unread: Vec::new() })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns with their names, in the order of the file.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        self.names.iter().map(String::as_str).zip(&self.columns)
    }

    /// The position of the column of that name.
    ///
    /// # Errors
    /// No such column; the message names the nearest one.
    pub fn index(&self, name: &str) -> Result<usize, TableError> {
        self.names.iter().position(|n| n == name).ok_or_else(|| {
            if self.names.is_empty() {
                return TableError::new(
                    name,
                    "there is no such column, because the population has no columns; give it a table",
                );
            }
            if self.unread.iter().any(|unread| unread == name) {
                return TableError::new(
                    name,
                    "the file has it, but `population.columns` does not list it; add it there",
                );
            }
            let hint = nearest(name, self.names.iter().map(String::as_str))
                .map(|n| format!("did you mean `{n}`? "))
                .unwrap_or_default();
            TableError::new(name, format!("there is no such column; {hint}the columns are: {}", listed(&self.names)))
        })
    }

    /// The table, with the names of columns of its file that were not read, for messages.
    #[must_use]
    pub fn with_unread(self, unread: Vec<String>) -> Self {
        Table { unread, ..self }
    }

    /// The table with one more column, at the end.
    ///
    /// # Errors
    /// As of [`Table::new`].
    pub fn with(mut self, name: &str, column: Column) -> Result<Self, TableError> {
        let Some(first) = self.names.first() else { return Table::new(vec![(name.to_owned(), column)]) };
        check(name, &column, self.names.iter().any(|known| known == name), first, self.rows)?;
        self.names.push(name.to_owned());
        self.columns.push(column);
        Ok(self)
    }

    /// The same table, read from a file whose `lines` its rows stand in, from 1.
    #[must_use]
    pub fn from_lines(self, lines: Vec<u32>) -> Self {
        Table { lines: Lines(Some(lines.into())), ..self }
    }

    /// The same table, with the lines of another one whose rows are the same.
    #[must_use]
    pub fn with_lines_of(self, other: &Table) -> Self {
        Table { lines: other.lines.clone(), ..self }
    }

    /// Says where a row stands, for messages: its line in the file, if there is one.
    #[must_use]
    pub fn place(&self, row: usize) -> String {
        match self.lines.0.as_ref().and_then(|lines| lines.get(row)) {
            Some(line) => format!("line {line}"),
            None => format!("row {row} (counted from 0)"),
        }
    }

    /// Returns these columns, or all, of the rows for which `keep` holds.
    ///
    /// # Errors
    /// An unknown column, or no row left.
    pub fn part(&self, columns: Option<&[String]>, keep: &[bool]) -> Result<Self, TableError> {
        let kept = |index: usize| {
            let column = match &self.columns[index] {
                Column::Number(values) => Column::Number(of_kept(values, keep)),
                Column::Text { codes, words } => {
                    let mut builder = TextBuilder::default();
                    of_kept(codes, keep).iter().for_each(|code| builder.push(&words[*code as usize]));
                    builder.finish()
                }
            };
            (self.names[index].clone(), column)
        };
        let columns = match columns {
            None => (0..self.columns.len()).map(kept).collect(),
            Some(names) => names.iter().map(|name| self.index(name).map(kept)).collect::<Result<Vec<_>, _>>()?,
        };
        let lines = self.lines.0.as_ref().map(|lines| of_kept(lines, keep).into());
        Ok(Table { lines: Lines(lines), unread: self.unread.clone(), ..Table::new(columns)? })
    }

    /// Describes a column of words of which some are numbers, for error messages: how many words are not numbers, and the first of
    /// them with its place. Empty for other columns.
    #[must_use]
    pub fn mixture(&self, index: usize) -> String {
        let Some(Column::Text { codes, words }) = self.columns.get(index) else { return String::new() };
        let number: Vec<bool> = words.iter().map(|word| word.trim().parse().is_ok_and(f64::is_finite)).collect();
        let others = || codes.iter().enumerate().filter(|(_, code)| !number[**code as usize]);
        match others().next() {
            Some((row, code)) if number.contains(&true) => {
                let (word, count) = (&words[*code as usize], others().count());
                let hint = match word.split_once(',').map(|(whole, part)| format!("{whole}.{part}").parse::<f64>()) {
                    Some(Ok(_)) => ", which looks like a decimal comma: write decimals with a point",
                    _ => "",
                };
                format!(
                    "; it mixes numbers and words: {} has `{word}`{hint} ({count} of {} values are not numbers)",
                    self.place(row),
                    self.rows
                )
            }
            _ => String::new(),
        }
    }

    /// The column of numbers of that name, with a number in every row.
    ///
    /// # Errors
    /// No such column, one of words, or one with missing values.
    pub fn number_column(&self, name: &str) -> Result<NumberColumn, TableError> {
        let index = self.index(name)?;
        match &self.columns[index] {
            Column::Number(values) => match values.iter().position(|value| value.is_nan()) {
                None => Ok(NumberColumn(index)),
                Some(row) => {
                    let missing = values.iter().filter(|value| value.is_nan()).count();
                    let message = format!(
                        "{missing} of {} values are missing, the first in {}; fill them, or leave these rows out: \
                         `population: {{missing: {{{name}: drop}}}}`",
                        self.rows,
                        self.place(row)
                    );
                    Err(TableError::new(name, message))
                }
            },
            Column::Text { words, .. } => {
                let message = match self.mixture(index).strip_prefix("; ") {
                    Some(mixture) => format!("numbers are needed, and {mixture}"),
                    None => format!("holds words ({}), but numbers are needed{}", listed(words), decimal_commas(words)),
                };
                Err(TableError::new(name, message))
            }
        }
    }

    /// The column of words of that name.
    ///
    /// # Errors
    /// No such column, or one of numbers.
    pub fn text_column(&self, name: &str) -> Result<TextColumn, TableError> {
        let index = self.index(name)?;
        match &self.columns[index] {
            Column::Text { .. } => Ok(TextColumn(index)),
            Column::Number(_) => Err(TableError::new(name, "holds numbers, but words are needed")),
        }
    }
}

/// A hint for words that are all numbers with decimal commas; empty for others.
fn decimal_commas(words: &[String]) -> &'static str {
    let is_number = |word: &String| {
        let parts = word.trim().split_once(',');
        is_missing(word) || parts.is_some_and(|(whole, part)| format!("{whole}.{part}").parse::<f64>().is_ok())
    };
    match words.iter().all(is_number) && words.iter().any(|word| !is_missing(word)) {
        true => {
            "; they look like numbers with decimal commas: write decimals with a point, or separate the cells with semicolons"
        }
        false => "",
    }
}

/// Checks a column of a table. `taken`: whether another column has its name. `first`: the table's first column, which has
/// this number of `rows`.
fn check(name: &str, column: &Column, taken: bool, first: &str, rows: usize) -> Result<(), TableError> {
    if name.is_empty() {
        return Err(TableError { column: None, message: "a column has no name; name every column".into() });
    }
    let fault = match column.len() {
        _ if taken => Some("the name is used twice; rename one of the two".to_owned()),
        len if len != rows => Some(format!("{len} rows, but column `{first}` has {rows}")),
        _ => column.fault(),
    };
    fault.map_or(Ok(()), |fault| Err(TableError::new(name, fault)))
}

/// Returns whether a cell of a text file marks a missing value: it is empty, NA, N/A, NaN or null, in any case.
#[must_use]
pub fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "nan", "null"].iter().any(|mark| cell.trim().eq_ignore_ascii_case(mark))
}

/// The values of the rows that are kept.
fn of_kept<T: Copy>(values: &[T], keep: &[bool]) -> Vec<T> {
    values.iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| *value).collect()
}

/// A number as a person reads it.
pub(super) fn shown_number(value: f64) -> String {
    if value.is_nan() { "missing".into() } else { value.to_string() }
}

/// The first few of many names, for a message.
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// One value of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A finite number, or NaN if it is missing.
    Number(f64),
    /// A word.
    Text(&'a str),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Number(value) => f.write_str(&shown_number(*value)),
            Cell::Text(word) => word.fmt(f),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn words(cells: &[&str]) -> Column {
        let mut builder = TextBuilder::default();
        cells.iter().for_each(|cell| builder.push(cell));
        builder.finish()
    }

    pub fn people() -> Arc<Table> {
        let age = Column::Number(vec![30.0, 41.5, 22.0]);
        Arc::new(Table::new(vec![("age".into(), age), ("party".into(), words(&["green", "red", "green"]))]).unwrap())
    }

    #[test]
    fn words_stand_in_order_of_first_appearance() {
        let expected = Column::Text { codes: vec![0, 1, 0, 2], words: vec!["b".into(), "a".into(), "".into()] };
        assert_eq!(words(&["b", "a", "b", ""]), expected);
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        let number = |values: &[f64]| Column::Number(values.to_vec());
        let cases: Vec<(Vec<(&str, Column)>, &str)> = vec![
            (vec![], "a table needs at least one column"),
            (vec![("a", number(&[]))], "a table needs at least one row"),
            (vec![("", number(&[1.0]))], "a column has no name; name every column"),
            (
                vec![("a", number(&[1.0])), ("a", number(&[1.0]))],
                "column `a`: the name is used twice; rename one of the two",
            ),
            (vec![("a", number(&[1.0])), ("b", number(&[1.0, 2.0]))], "column `b`: 2 rows, but column `a` has 1"),
            (vec![("a", number(&[1.0, f64::INFINITY]))], "column `a`: row 1 is inf, which is not a finite number"),
            (
                vec![("a", Column::Text { codes: vec![1], words: vec!["x".into()] })],
                "column `a`: row 0 has code 1, but there are 1 words",
            ),
            (
                vec![("a", Column::Text { codes: vec![1], words: vec!["x".into(), "x".into()] })],
                "column `a`: the word `x` is listed twice",
            ),
        ];
        for (columns, message) in cases {
            let columns = columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
            assert_eq!(Table::new(columns).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn missing_numbers_are_counted_where_they_are_needed() {
        let table = Table::new(vec![("age".into(), Column::Number(vec![30.0, f64::NAN, f64::NAN]))]).unwrap();
        let message = |table: &Table| table.number_column("age").unwrap_err().to_string();
        let expected = "column `age`: 2 of 3 values are missing, the first in row 1 (counted from 0); fill them, or leave these rows out: \
                        `population: {missing: {age: drop}}`";
        assert_eq!(message(&table), expected);
        let table = table.from_lines(vec![2, 4, 5]);
        assert!(message(&table).contains("the first in line 4; fill them"));
        let part = table.part(Some(&["age".into()]), &[true, false, false]).unwrap();
        assert_eq!((part.rows(), part.place(0), part.number_column("age").is_ok()), (1, "line 2".into(), true));
        assert!(table.part(None, &[false; 3]).is_err() && table.part(Some(&["aeg".into()]), &[true; 3]).is_err());
    }

    #[test]
    fn lookups_name_the_nearest_column() {
        let table = people();
        let message = |e: TableError| e.to_string();
        assert_eq!(
            message(table.number_column("Agee").unwrap_err()),
            "column `Agee`: there is no such column; did you mean `age`? the columns are: age, party"
        );
        assert_eq!(
            message(table.index("income").unwrap_err()),
            "column `income`: there is no such column; the columns are: age, party"
        );
        assert_eq!(
            message(table.number_column("party").unwrap_err()),
            "column `party`: holds words (green, red), but numbers are needed"
        );
        assert_eq!(message(table.text_column("age").unwrap_err()), "column `age`: holds numbers, but words are needed");
        let of_words = |words: &[&str]| {
            let mut builder = TextBuilder::default();
            words.iter().for_each(|word| builder.push(word));
            message(Table::new(vec![("x".into(), builder.finish())]).unwrap().number_column("x").unwrap_err())
        };
        assert_eq!(
            of_words(&["1.5", "half", "2"]),
            "column `x`: numbers are needed, and it mixes numbers and words: row 1 (counted from 0) has `half` (1 of 3 values are not numbers)"
        );
        assert!(of_words(&["1,5", "NA", "0,25"]).contains("look like numbers with decimal commas"));
        assert!(!of_words(&["1,5", "a"]).contains("decimal commas"));
        assert!(message(Table::default().index("age").unwrap_err()).contains("give it a table"));
    }
}
