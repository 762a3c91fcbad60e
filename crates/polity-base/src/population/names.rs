//! The columns of a table as the quantities of formulas.

use super::table::{is_missing, listed};
use super::{Cell, Column, Table};
use crate::formula::{Formula, Name, Names};
use crate::rng::Draws;

/// The columns of a table, which formulas can name.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The table.
    pub table: &'a Table,
    /// Whether formulas may draw.
    pub draw: bool,
}

impl Attributes<'_> {
    /// Returns the value of a formula for a row.
    #[must_use]
    pub fn value(&self, formula: &Formula, row: usize, draws: Option<&mut Draws>) -> f64 {
        formula.value(&|column: u32| self.cell(column, row), draws)
    }

    /// Returns the number of a row, NaN if it is missing, or the position of its word, in the column at that position.
    #[inline]
    #[must_use]
    pub fn cell(&self, column: u32, row: usize) -> f64 {
        match self.table.columns.get(column as usize) {
            Some(Column::Number(values)) => values[row],
            Some(Column::Text { codes, .. }) => f64::from(codes[row]),
            None => f64::NAN,
        }
    }

    /// Returns whether the value of a row is missing in the column at that position.
    #[must_use]
    pub fn lacks(&self, column: u32, row: usize) -> bool {
        self.table.columns.get(column as usize).is_none_or(|column| match column.cell(row) {
            Cell::Number(value) => value.is_nan(),
            Cell::Text(word) => is_missing(word),
        })
    }

    /// Describes the values that a formula reads in a row, for an error message: `age = 30, party = green`, or that it reads none.
    #[must_use]
    pub fn described(&self, formula: &Formula, row: usize) -> String {
        let shown = |column: u32| {
            let name = self.table.names.get(column as usize).map_or("", String::as_str);
            let value =
                self.table.columns.get(column as usize).map_or(String::new(), |column| column.cell(row).to_string());
            format!("{name} = {value}")
        };
        match formula.names() {
            names if names.is_empty() => "it names no attribute".into(),
            names => listed(&names.into_iter().map(shown).collect::<Vec<_>>()),
        }
    }
}

impl Names for Attributes<'_> {
    fn find(&self, name: &str) -> Option<Name<'_>> {
        let index = self.table.names.iter().position(|known| known == name)?;
        Some(match &self.table.columns[index] {
            Column::Number(_) => Name::Number(index as u32),
            Column::Text { words, .. } => Name::Text(index as u32, words),
        })
    }

    fn known(&self) -> Vec<String> {
        self.table.names.clone()
    }

    fn may_draw(&self) -> bool {
        self.draw
    }

    fn is_missing(&self, text: &str) -> bool {
        is_missing(text)
    }
}
