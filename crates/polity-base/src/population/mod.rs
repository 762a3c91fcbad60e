//! Populations: immutable typed columns by agent id.
//!
//! A [`Table`] holds what was read from a data set, once, behind an `Arc`. A [`Population`] says which row of it each agent
//! is, so that a million people resampled from 944 respondents cost four bytes each. Which rows are taken is decided by
//! even resampling ([`Population::resample`]), or so that stated shares are met ([`fit`]); [`independent`] makes people of
//! shares alone, and [`persona`] describes them in words.

pub mod fit;
pub mod groups;
pub mod independent;
pub mod level;
pub mod names;
pub mod persona;

use crate::outline::Guesses;
use crate::rng::{Draws, Stream};
use crate::tree::nearest;
use serde::{Deserialize, Serialize};
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
        const EXACT: f64 = 9_007_199_254_740_992.0;
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
    fn new(column: &str, message: impl Into<String>) -> Self {
        TableError { column: Some(column.to_owned()), message: message.into() }
    }
}

/// The position of a column of numbers in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberColumn(usize);

/// The position of a column of words in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextColumn(usize);

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    rows: usize,
    lines: Lines,
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
            if name.is_empty() {
                return general("a column has no name; name every column");
            }
            if !seen.insert(name) {
                return Err(TableError::new(name, "the name is used twice; rename one of the two"));
            }
            if column.len() != rows {
                return Err(TableError::new(name, format!("{} rows, but column `{first}` has {rows}", column.len())));
            }
            if let Some(fault) = column.fault() {
                return Err(TableError::new(name, fault));
            }
        }
        let (names, columns) = columns.into_iter().unzip();
        Ok(Table { names, columns, rows, lines: Lines::default() })
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
            let hint = nearest(name, self.names.iter().map(String::as_str))
                .map(|n| format!("did you mean `{n}`? "))
                .unwrap_or_default();
            TableError::new(name, format!("there is no such column; {hint}the columns are: {}", listed(&self.names)))
        })
    }

    /// The table with one more column, at the end.
    ///
    /// # Errors
    /// As of [`Table::new`].
    pub fn with(&self, name: &str, column: Column) -> Result<Self, TableError> {
        let own = self.columns().map(|(name, column)| (name.to_owned(), column.clone()));
        let table = Table::new(own.chain([(name.to_owned(), column)]).collect())?;
        Ok(Table { lines: self.lines.clone(), ..table })
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
            None => format!("row {row}, counted from 0,"),
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
        Ok(Table { lines: Lines(lines), ..Table::new(columns)? })
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
                    "; it mixes numbers and words: {} has `{word}`{hint} ({count} of {} values are no numbers)",
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
                        "{missing} of {} values are missing, the first in {}; fill them, or leave these rows out \
                         (`missing: drop`)",
                        self.rows,
                        self.place(row).trim_end_matches(',')
                    );
                    Err(TableError::new(name, message))
                }
            },
            Column::Text { words, .. } => {
                let mixture = self.mixture(index);
                Err(TableError::new(name, format!("holds words ({}), but numbers are needed{mixture}", listed(words))))
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

/// The values of the rows that are kept.
fn of_kept<T: Copy>(values: &[T], keep: &[bool]) -> Vec<T> {
    values.iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| *value).collect()
}

/// A number as a person reads it.
fn shown_number(value: f64) -> String {
    if value.is_nan() { "missing".into() } else { value.to_string() }
}

/// The first few of many names, for a message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Which row of the table each agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rows {
    /// Agent `i` is row `i`, for this many agents.
    Identity(u32),
    /// Agent `i` is row `index[i]`.
    Index(Vec<u32>),
    /// Agents are in order of their rows: those of row `r` end before agent `ends[r]`. An outline of people in another order.
    #[serde(skip)]
    Grouped {
        /// One end a row, not falling.
        ends: Vec<u32>,
        /// Whether an agent's row was requested.
        guesses: Guesses,
    },
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

/// A share that was asked for, and what the population has of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The column; of a cell over several columns their names, joined by ` × `.
    pub column: String,
    /// The level, as written; of a cell joined in the same way.
    pub level: String,
    /// The share asked for, of all agents.
    pub asked: f64,
    /// The agents that have the level.
    pub agents: u32,
    /// The share obtained, of all agents.
    pub obtained: f64,
}

/// How a data set became people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// Rows of the data set.
    pub rows: u32,
    /// Rows that were left out, by the column whose value is missing in them. A row may be counted for several.
    pub missing: Vec<(String, u32)>,
    /// Rows that could become agents.
    pub eligible: u32,
}

/// The people of a society. Reading a value of an agent that does not exist, or with a handle of another table, is a bug and
/// panics like any index out of range.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    table: Arc<Table>,
    rows: Rows,
    shares: Arc<[Share]>,
    census: Option<Arc<Census>>,
}

impl Population {
    fn new(table: Arc<Table>, rows: Rows) -> Self {
        Population { table, rows, shares: Arc::default(), census: None }
    }

    /// `n` agents without attributes.
    #[must_use]
    pub fn empty(n: u32) -> Self {
        Population::new(Arc::default(), Rows::Identity(n))
    }

    /// One agent for each row, in order.
    #[must_use]
    pub fn from_table(table: Arc<Table>) -> Self {
        let rows = Rows::Identity(table.rows as u32);
        Population::new(table, rows)
    }

    /// `n` agents drawn from the table's rows, evenly and with replacement; agent `i`'s draw depends on the seed and `i`
    /// alone, so that a larger society begins with the same people. When `n` is the number of rows nothing is drawn: the
    /// society is the data set itself.
    #[must_use]
    pub fn resample(table: Arc<Table>, n: u32, seed: u64) -> Self {
        if table.rows == n as usize {
            return Population::from_table(table);
        }
        let index = drawn(&table, n, seed).collect();
        Population::new(table, Rows::Index(index))
    }

    /// The outline of [`Population::resample`]: the same people, grouped.
    #[must_use]
    pub fn resample_grouped(table: Arc<Table>, n: u32, seed: u64, guesses: &Guesses) -> Self {
        if table.rows == n as usize {
            return Population::from_table(table);
        }
        let mut counts = vec![0; table.rows];
        drawn(&table, n, seed).for_each(|row| counts[row as usize] += 1);
        Population::grouped(table, &counts, guesses)
    }

    /// `counts[row]` agents of each row, in an order that depends on the seed.
    #[must_use]
    pub fn of_counts(table: Arc<Table>, counts: &[u32], seed: u64) -> Self {
        let each = |(row, n): (usize, &u32)| std::iter::repeat_n(row as u32, *n as usize);
        let mut index: Vec<u32> = counts.iter().enumerate().flat_map(each).collect();
        Draws::new(seed, Stream::Population, 0, 0).shuffle(&mut index);
        Population::new(table, Rows::Index(index))
    }

    /// Returns the outline of [`Population::of_counts`]: `counts[row]` agents of each row, in order of row. Its memory depends on
    /// the rows and not on the agents. An agent's row is a guess, which is noted.
    #[must_use]
    pub fn grouped(table: Arc<Table>, counts: &[u32], guesses: &Guesses) -> Self {
        let ends = counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let rows = Rows::Grouped { ends: ends.collect(), guesses: guesses.clone() };
        Population::new(table, rows)
    }

    /// The same people with another table behind them, which has the same rows.
    ///
    /// # Errors
    /// A row that the table does not have.
    pub fn with_table(self, table: Arc<Table>) -> Result<Self, TableError> {
        let (shares, census) = (self.shares, self.census);
        Ok(Population { shares, census, ..Population::from_rows(table, self.rows)? })
    }

    /// The same people, with the shares that were asked for.
    #[must_use]
    pub fn with_shares(self, shares: Vec<Share>) -> Self {
        Population { shares: shares.into(), ..self }
    }

    /// The same people, with a record of how a data set became them.
    #[must_use]
    pub fn with_census(self, census: Census) -> Self {
        Population { census: Some(census.into()), ..self }
    }

    /// How a data set became these people; `None` if there was no data set.
    #[must_use]
    pub fn census(&self) -> Option<&Census> {
        self.census.as_deref()
    }

    /// The shares asked for and obtained when the population was made; empty when none were asked for.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Restores the population with the rows of a snapshot.
    ///
    /// # Errors
    /// A row that the table does not have.
    pub fn from_rows(table: Arc<Table>, rows: Rows) -> Result<Self, TableError> {
        let highest = match &rows {
            Rows::Identity(n) => n.checked_sub(1),
            Rows::Index(index) => index.iter().max().copied(),
            Rows::Grouped { ends, .. } => (ends.len() as u32).checked_sub(1),
        };
        match highest {
            Some(row) if !table.columns.is_empty() && row as usize >= table.rows => Err(TableError {
                column: None,
                message: format!(
                    "an agent refers to row {row} of a table that has only {} rows; the table has changed",
                    table.rows
                ),
            }),
            _ => Ok(Population::new(table, rows)),
        }
    }

    /// The number of agents.
    #[must_use]
    pub fn len(&self) -> u32 {
        match &self.rows {
            Rows::Identity(n) => *n,
            Rows::Index(index) => index.len() as u32,
            Rows::Grouped { ends, .. } => ends.last().copied().unwrap_or(0),
        }
    }

    /// Returns whether there are no agents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set behind the agents.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Which row each agent is.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The columns with their names (by row of the table, not by agent).
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        self.table.columns()
    }

    /// The agent's row in the table.
    #[inline]
    #[must_use]
    pub fn row(&self, agent: u32) -> u32 {
        match &self.rows {
            Rows::Identity(_) => agent,
            Rows::Index(index) => index[agent as usize],
            Rows::Grouped { ends, guesses } => {
                guesses.note();
                ends.partition_point(|end| *end <= agent) as u32
            }
        }
    }

    /// The number of agents of each row of the table.
    #[must_use]
    pub fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.table.rows];
        match &self.rows {
            Rows::Identity(n) => counts.iter_mut().take(*n as usize).for_each(|count| *count = 1),
            Rows::Index(index) => index.iter().for_each(|row| counts[*row as usize] += 1),
            Rows::Grouped { ends, .. } => {
                let mut begin = 0;
                for (count, end) in counts.iter_mut().zip(ends) {
                    *count = end - std::mem::replace(&mut begin, *end);
                }
            }
        }
        counts
    }

    /// An agent's number.
    #[inline]
    #[must_use]
    pub fn number(&self, column: NumberColumn, agent: u32) -> f64 {
        match &self.table.columns[column.0] {
            Column::Number(values) => values[self.row(agent) as usize],
            Column::Text { .. } => f64::NAN,
        }
    }

    /// An agent's word.
    #[inline]
    #[must_use]
    pub fn text(&self, column: TextColumn, agent: u32) -> &str {
        match &self.table.columns[column.0] {
            Column::Text { codes, words } => &words[codes[self.row(agent) as usize] as usize],
            Column::Number(_) => "",
        }
    }

    /// An agent's value in the column at that position, of whatever type.
    #[must_use]
    pub fn cell(&self, column: usize, agent: u32) -> Cell<'_> {
        self.table.columns[column].cell(self.row(agent) as usize)
    }

    /// Puts the agents of each class together, those of class 0 first, and keeps their order within a class. Returns the number of
    /// agents of each of the `classes` too. `class`: the class of each row. People that are grouped stay in their order, since
    /// which agent has which row is only a guess then.
    #[must_use]
    pub fn arranged(self, class: &[u32], classes: usize) -> (Self, Vec<u32>) {
        let mut sizes = vec![0u32; classes];
        if matches!(self.rows, Rows::Grouped { .. }) {
            for (class, count) in class.iter().zip(self.counts()) {
                sizes[*class as usize] += count;
            }
            return (self, sizes);
        }
        let of_agent = |agent: u32| class[self.row(agent) as usize];
        let mut agents: Vec<u32> = (0..self.len()).collect();
        agents.iter().for_each(|agent| sizes[of_agent(*agent) as usize] += 1);
        if agents.is_sorted_by_key(|agent| of_agent(*agent)) {
            return (self, sizes);
        }
        agents.sort_by_key(|agent| of_agent(*agent));
        let rows = Rows::Index(agents.into_iter().map(|agent| self.row(agent)).collect());
        (Population { rows, ..self }, sizes)
    }

    /// The same people in another order: agent `i` is who `order[i]` was. People that are grouped stay in their order.
    #[must_use]
    pub fn reordered(self, order: &[u32]) -> Self {
        if matches!(self.rows, Rows::Grouped { .. }) || order.is_sorted() {
            return self;
        }
        let rows = Rows::Index(order.iter().map(|agent| self.row(*agent)).collect());
        Population { rows, ..self }
    }

    /// Adds a newborn with its parent's row; returns the newborn's id.
    pub fn push_like(&mut self, parent: u32) -> u32 {
        let (id, row) = (self.len(), self.row(parent));
        match &mut self.rows {
            Rows::Identity(n) if self.table.columns.is_empty() => *n += 1,
            Rows::Identity(n) => self.rows = Rows::Index((0..*n).chain([row]).collect()),
            Rows::Index(index) => index.push(row),
            Rows::Grouped { .. } => {
                self.rows = Rows::Index((0..id).map(|agent| self.row(agent)).chain([row]).collect())
            }
        }
        id
    }
}

/// The rows that `n` agents are drawn from, evenly and with replacement.
fn drawn(table: &Table, n: u32, seed: u64) -> impl Iterator<Item = u32> {
    let rows = table.rows as u64;
    (0..n).map(move |agent| Draws::new(seed, Stream::Population, 0, agent).below(rows) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(cells: &[&str]) -> Column {
        let mut builder = TextBuilder::default();
        cells.iter().for_each(|cell| builder.push(cell));
        builder.finish()
    }

    fn people() -> Arc<Table> {
        let age = Column::Number(vec![30.0, 41.5, 22.0]);
        Arc::new(Table::new(vec![("age".into(), age), ("party".into(), words(&["green", "red", "green"]))]).unwrap())
    }

    #[test]
    fn words_stand_in_order_of_first_appearance() {
        let expected = Column::Text { codes: vec![0, 1, 0, 2], words: vec!["b".into(), "a".into(), "".into()] };
        assert_eq!(words(&["b", "a", "b", ""]), expected);
    }

    #[test]
    fn the_table_itself() {
        let population = Population::resample(people(), 3, 9);
        assert_eq!(population, Population::from_table(people()));
        let (age, party) = (people().number_column("age").unwrap(), people().text_column("party").unwrap());
        assert_eq!((0..3).map(|i| population.number(age, i)).collect::<Vec<_>>(), [30.0, 41.5, 22.0]);
        assert_eq!((0..3).map(|i| population.text(party, i)).collect::<Vec<_>>(), ["green", "red", "green"]);
        assert_eq!([population.cell(0, 1).to_string(), population.cell(1, 1).to_string()], ["41.5", "red"]);
    }

    #[test]
    fn resampling_is_even_seeded_and_grows_at_the_end() {
        let many = Population::resample(people(), 30_000, 1);
        assert_eq!(many.len(), 30_000);
        for row in 0..3 {
            let share = (0..30_000).filter(|i| many.row(*i) == row).count();
            assert!((9_600..10_400).contains(&share), "row {row}: {share}");
        }
        let fewer = Population::resample(people(), 500, 1);
        assert!((0..500).all(|i| fewer.row(i) == many.row(i)));
        let other = Population::resample(people(), 500, 2);
        assert!((0..500).any(|i| fewer.row(i) != other.row(i)));
        assert_eq!(Population::resample(people(), 0, 1).len(), 0);
    }

    #[test]
    fn an_outline_has_the_same_people_in_order_of_row() {
        let guesses = Guesses::default();
        let (whole, outline) =
            (Population::resample(people(), 1000, 4), Population::resample_grouped(people(), 1000, 4, &guesses));
        assert_eq!((outline.len(), outline.counts()), (1000, whole.counts()));
        assert!(!guesses.any(), "how many there are is known");
        let rows = |people: &Population| (0..1000).map(|agent| people.row(agent)).collect::<Vec<u32>>();
        let mut sorted = rows(&whole);
        sorted.sort_unstable();
        assert_eq!(rows(&outline), sorted);
        assert!(guesses.any(), "who an agent is has been guessed");
        // No agent is of row 1.
        let few = Population::grouped(people(), &[2, 0, 1], &guesses);
        assert_eq!(((0..3).map(|agent| few.row(agent)).collect(), few.counts()), (vec![0, 0, 2], vec![2, 0, 1]));
        let mut born = few;
        assert_eq!((born.push_like(2), born.row(3), born.row(0)), (3, 2, 0));
    }

    #[test]
    fn a_newborn_takes_its_parents_row() {
        let mut from_table = Population::from_table(people());
        assert_eq!(from_table.push_like(1), 3);
        assert_eq!(from_table.push_like(3), 4);
        assert_eq!(from_table.rows(), &Rows::Index(vec![0, 1, 2, 1, 1]));
        let mut drawn = Population::resample(people(), 10, 5);
        let child = drawn.push_like(7);
        assert_eq!((child, drawn.row(child)), (10, drawn.row(7)));
        let mut without = Population::empty(4);
        assert_eq!((without.push_like(2), without.rows()), (4, &Rows::Identity(5)));
    }

    #[test]
    fn rows_of_a_snapshot_are_checked() {
        let drawn = Population::resample(people(), 10, 5);
        assert_eq!(Population::from_rows(people(), drawn.rows().clone()), Ok(drawn));
        assert!(Population::from_rows(people(), Rows::Index(vec![0, 3])).is_err());
        assert!(Population::from_rows(people(), Rows::Identity(4)).is_err());
        assert!(Population::from_rows(Arc::new(Table::default()), Rows::Identity(4)).is_ok());
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
        let expected = "column `age`: 2 of 3 values are missing, the first in row 1, counted from 0; fill them, or leave these rows out \
                        (`missing: drop`)";
        assert_eq!(message(&table), expected);
        let table = table.from_lines(vec![2, 4, 5]);
        assert!(message(&table).contains("the first in line 4; fill them"));
        let part = table.part(Some(&["age".into()]), &[true, false, false]).unwrap();
        assert_eq!((part.rows(), part.place(0), part.number_column("age").is_ok()), (1, "line 2".into(), true));
        assert!(table.part(None, &[false; 3]).is_err() && table.part(Some(&["aeg".into()]), &[true; 3]).is_err());
    }

    #[test]
    fn classes_stand_together_in_their_old_order() {
        let table = Arc::new(Table::new(vec![("x".into(), Column::Number(vec![0.0, 1.0, 2.0]))]).unwrap());
        let rows = |people: &Population| (0..people.len()).map(|agent| people.row(agent)).collect::<Vec<_>>();
        let people = Population::from_rows(table.clone(), Rows::Index(vec![2, 0, 1, 0, 2])).unwrap();
        let (arranged, sizes) = people.arranged(&[1, 0, 1], 2);
        assert_eq!((rows(&arranged), sizes), (vec![1, 2, 0, 0, 2], vec![1, 4]));
        let outline = Population::grouped(table, &[3, 1, 1], &Guesses::default());
        assert_eq!(outline.arranged(&[1, 0, 1], 2).1, [1, 4]);
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
        assert!(message(Table::default().index("age").unwrap_err()).contains("give it a table"));
    }
}
