//! Rows of tables as JSON.

use super::problem::{Answer, Problem};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use polity_store::tables::{ColumnSpec, Reader, Selected};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Most rows of one response.
pub(crate) const MOST_ROWS: usize = 1_000_000;

/// One value; missing ones, and numbers that JSON has no way to write, are null.
pub(crate) fn cell(array: &ArrayRef, row: usize) -> Json {
    if array.is_null(row) {
        return Json::Null;
    }
    match array.data_type() {
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Dictionary(..) => {
            let words = array.as_dictionary::<Int32Type>();
            let key = words.key(row).unwrap_or_default();
            cell(words.values(), key)
        }
        _ => Json::Null,
    }
}

/// One value as a number: of a category, the index of its word among the declared ones.
pub(crate) fn number(array: &ArrayRef, row: usize, spec: &ColumnSpec) -> Option<f64> {
    use polity_store::tables::Kind;
    match (&spec.kind, cell(array, row)) {
        (_, Json::Number(number)) => number.as_f64(),
        (_, Json::Bool(yes)) => Some(f64::from(u8::from(yes))),
        (Kind::Category(words), Json::String(word)) => words.iter().position(|w| *w == word).map(|at| at as f64),
        _ => None,
    }
}

/// Selected rows that can be addressed by position.
pub(crate) struct Rows {
    pub selected: Selected,
    /// Rows before each batch, and all rows.
    starts: Vec<usize>,
}

impl Rows {
    pub fn of(selected: Selected) -> Self {
        let mut starts = vec![0];
        selected.batches.iter().for_each(|batch| starts.push(starts.last().copied().unwrap_or(0) + batch.num_rows()));
        Rows { selected, starts }
    }

    /// Reads a table, or these rounds of it; nothing if no part of it is closed yet.
    pub fn read(
        reader: &Reader<'_>,
        table: &str,
        columns: &[&str],
        rounds: Option<RangeInclusive<u32>>,
    ) -> Answer<Option<Self>> {
        Rows::read_among(reader, table, columns, rounds, None)
    }

    /// The same, of the rows alone whose number in a column is one of these.
    pub fn read_among(
        reader: &Reader<'_>,
        table: &str,
        columns: &[&str],
        rounds: Option<RangeInclusive<u32>>,
        among: Option<(&str, Arc<BTreeSet<u32>>)>,
    ) -> Answer<Option<Self>> {
        use polity_store::tables::TableError;
        match reader.select_among(table, columns, rounds, among) {
            Ok(selected) => Ok(Some(Rows::of(selected))),
            Err(TableError::Rounds { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    pub fn columns(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.selected.spec.columns.iter()
    }

    pub fn column(&self, name: &str) -> Answer<usize> {
        let known: Vec<&str> = self.columns().map(|column| column.name.as_str()).collect();
        let at = known.iter().position(|column| *column == name);
        at.ok_or_else(|| Problem::bad(format!("there is no column `{name}`; there are {}", known.join(", "))))
    }

    fn place(&self, row: usize) -> Option<(&RecordBatch, usize)> {
        let batch = self.starts.partition_point(|start| *start <= row).checked_sub(1)?;
        Some((self.selected.batches.get(batch)?, row - self.starts[batch]))
    }

    pub fn cell(&self, row: usize, column: usize) -> Json {
        self.place(row).map_or(Json::Null, |(batch, row)| cell(batch.column(column), row))
    }

    pub fn number(&self, row: usize, column: usize) -> Option<f64> {
        let (batch, row) = self.place(row)?;
        number(batch.column(column), row, &self.selected.spec.columns[column])
    }

    /// A column as numbers, in the order of rows; NaN where there is none.
    pub fn numbers(&self, column: usize) -> Vec<f64> {
        let spec = &self.selected.spec.columns[column];
        let mut all = Vec::with_capacity(self.len());
        for batch in &self.selected.batches {
            let values = batch.column(column);
            match values.data_type() {
                DataType::Float64 => {
                    all.extend(values.as_primitive::<Float64Type>().iter().map(|x| x.unwrap_or(f64::NAN)));
                }
                DataType::UInt32 => {
                    all.extend(values.as_primitive::<UInt32Type>().iter().map(|x| x.map_or(f64::NAN, f64::from)));
                }
                DataType::Dictionary(..) => {
                    let words = values.as_dictionary::<Int32Type>();
                    let of_word: Vec<f64> = (0..words.values().len())
                        .map(|word| number(words.values(), word, spec).unwrap_or(f64::NAN))
                        .collect();
                    all.extend((0..words.len()).map(|row| words.key(row).map_or(f64::NAN, |key| of_word[key])));
                }
                _ => all.extend((0..values.len()).map(|row| number(values, row, spec).unwrap_or(f64::NAN))),
            }
        }
        all
    }

    /// A column as numbers, with the column `agent` beside it.
    pub fn by_agent(&self, column: &str) -> Vec<(u32, f32)> {
        let place = |name: &str| self.columns().position(|column| column.name == name);
        let (Some(agent), Some(at)) = (place("agent"), place(column)) else { return Vec::new() };
        let agents =
            self.selected.batches.iter().flat_map(|batch| batch.column(agent).as_primitive::<UInt32Type>().values());
        agents.copied().zip(self.numbers(at).into_iter().map(|x| x as f32)).collect()
    }

    pub fn row(&self, row: usize) -> Vec<Json> {
        let Some((batch, row)) = self.place(row) else { return Vec::new() };
        batch.columns().iter().map(|array| cell(array, row)).collect()
    }

    /// A row as an object with the columns' names.
    pub fn object(&self, row: usize) -> Json {
        let names = self.columns().map(|column| column.name.clone());
        Json::Object(names.zip(self.row(row)).collect())
    }
}

/// A page of positions.
pub(crate) fn page(all: &[usize], offset: Option<usize>, limit: Option<usize>, standard: usize) -> &[usize] {
    let from = offset.unwrap_or(0).min(all.len());
    let until = from.saturating_add(limit.unwrap_or(standard).min(MOST_ROWS)).min(all.len());
    &all[from..until]
}
