//! Populations: the attributes of agents, by agent id.
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
mod table;

pub use table::{Cell, Column, NumberColumn, Table, TableError, TextBuilder, TextColumn, is_missing};

use crate::outline::Guesses;
use crate::rng::{Draws, Stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    use super::table::tests::people;
    use super::*;

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
    fn classes_stand_together_in_their_old_order() {
        let table = Arc::new(Table::new(vec![("x".into(), Column::Number(vec![0.0, 1.0, 2.0]))]).unwrap());
        let rows = |people: &Population| (0..people.len()).map(|agent| people.row(agent)).collect::<Vec<_>>();
        let people = Population::from_rows(table.clone(), Rows::Index(vec![2, 0, 1, 0, 2])).unwrap();
        let (arranged, sizes) = people.arranged(&[1, 0, 1], 2);
        assert_eq!((rows(&arranged), sizes), (vec![1, 2, 0, 0, 2], vec![1, 4]));
        let outline = Population::grouped(table, &[3, 1, 1], &Guesses::default());
        assert_eq!(outline.arranged(&[1, 0, 1], 2).1, [1, 4]);
    }
}
