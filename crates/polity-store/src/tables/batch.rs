//! Rows to be written to a table, column by column.

use std::mem::size_of;
use std::ops::Range;

use super::error::{Result, TableError};
use super::spec::{ColumnSpec, Kind, TableSpec};

/// A value repeated in a whole column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// For [`Kind::U32`].
    U32(u32),
    /// For [`Kind::U64`].
    U64(u64),
    /// For [`Kind::F64`].
    F64(f64),
    /// For [`Kind::Bool`].
    Bool(bool),
    /// For [`Kind::Text`].
    Text(String),
    /// For [`Kind::Category`]: the word's position in the list.
    Code(u16),
    /// A missing value, for a nullable column of any kind.
    Missing,
}

/// The values of one column of a [`Batch`]. The `Maybe` forms are for nullable columns, which accept the others too.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// For [`Kind::U32`].
    U32(Vec<u32>),
    /// For [`Kind::U32`]: every number of the range, ascending (agents 0..n).
    Range(Range<u32>),
    /// For [`Kind::U64`].
    U64(Vec<u64>),
    /// For [`Kind::F64`].
    F64(Vec<f64>),
    /// For [`Kind::Bool`].
    Bool(Vec<bool>),
    /// For [`Kind::Text`].
    Text(Vec<String>),
    /// For [`Kind::Category`]: positions in its word list.
    Code(Vec<u16>),
    /// For [`Kind::U32`].
    MaybeU32(Vec<Option<u32>>),
    /// For [`Kind::U64`].
    MaybeU64(Vec<Option<u64>>),
    /// For [`Kind::F64`].
    MaybeF64(Vec<Option<f64>>),
    /// For [`Kind::Bool`].
    MaybeBool(Vec<Option<bool>>),
    /// For [`Kind::Text`].
    MaybeText(Vec<Option<String>>),
    /// For [`Kind::Category`].
    MaybeCode(Vec<Option<u16>>),
    /// For every kind: one value in all rows (such as the round).
    Same(Value),
}

/// Some rows of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Number of rows.
    pub rows: usize,
    /// One for each column of the table, in its order.
    pub columns: Vec<Column>,
}

impl Batch {
    /// Memory used by the rows, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.columns.iter().map(|column| size_of::<Column>() + column.bytes()).sum::<usize>()
    }

    /// Errors: [`TableError::Batch`] naming the first column that does not fit.
    pub(super) fn check(&self, table: &TableSpec) -> Result<()> {
        if self.columns.len() != table.columns.len() {
            let what = format!("got {} columns, but it has {}", self.columns.len(), table.columns.len());
            return Err(TableError::batch(&table.name, what));
        }
        for (column, spec) in self.columns.iter().zip(&table.columns) {
            column
                .check(spec, self.rows)
                .map_err(|what| TableError::batch(&table.name, format!("column `{}` {what}", spec.name)))?;
        }
        Ok(())
    }
}

impl Column {
    fn check(&self, spec: &ColumnSpec, rows: usize) -> std::result::Result<(), String> {
        let (fits, nulls, len) = match self {
            Column::U32(v) => (spec.kind == Kind::U32, false, v.len()),
            Column::Range(r) => (spec.kind == Kind::U32, false, r.len()),
            Column::U64(v) => (spec.kind == Kind::U64, false, v.len()),
            Column::F64(v) => (spec.kind == Kind::F64, false, v.len()),
            Column::Bool(v) => (spec.kind == Kind::Bool, false, v.len()),
            Column::Text(v) => (spec.kind == Kind::Text, false, v.len()),
            Column::Code(v) => (is_category(&spec.kind), false, v.len()),
            Column::MaybeU32(v) => (spec.kind == Kind::U32, true, v.len()),
            Column::MaybeU64(v) => (spec.kind == Kind::U64, true, v.len()),
            Column::MaybeF64(v) => (spec.kind == Kind::F64, true, v.len()),
            Column::MaybeBool(v) => (spec.kind == Kind::Bool, true, v.len()),
            Column::MaybeText(v) => (spec.kind == Kind::Text, true, v.len()),
            Column::MaybeCode(v) => (is_category(&spec.kind), true, v.len()),
            Column::Same(value) => (value.fits(&spec.kind), *value == Value::Missing, rows),
        };
        if !fits {
            return Err(format!("holds {}, but got other values", spec.kind.noun()));
        }
        if nulls && !spec.nullable {
            return Err("was not declared nullable, but got values that may be missing".into());
        }
        if len != rows {
            return Err(format!("has {len} values in a batch of {rows} rows"));
        }
        match (&spec.kind, self.highest_code()) {
            (Kind::Category(words), Some(code)) if usize::from(code) >= words.len() => {
                Err(format!("got code {code}, but its list has {} words", words.len()))
            }
            _ => Ok(()),
        }
    }

    fn highest_code(&self) -> Option<u16> {
        match self {
            Column::Code(codes) => codes.iter().copied().max(),
            Column::MaybeCode(codes) => codes.iter().copied().flatten().max(),
            Column::Same(Value::Code(code)) => Some(*code),
            _ => None,
        }
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        fn of<T>(values: &Vec<T>) -> usize {
            values.capacity() * size_of::<T>()
        }
        match self {
            Column::U32(v) => of(v),
            Column::U64(v) => of(v),
            Column::F64(v) => of(v),
            Column::Bool(v) => of(v),
            Column::Text(v) => of(v) + v.iter().map(String::capacity).sum::<usize>(),
            Column::Code(v) => of(v),
            Column::MaybeU32(v) => of(v),
            Column::MaybeU64(v) => of(v),
            Column::MaybeF64(v) => of(v),
            Column::MaybeBool(v) => of(v),
            Column::MaybeText(v) => of(v) + v.iter().flatten().map(String::capacity).sum::<usize>(),
            Column::MaybeCode(v) => of(v),
            Column::Range(_) | Column::Same(_) => 0,
        }
    }
}

impl Value {
    fn fits(&self, kind: &Kind) -> bool {
        match self {
            Value::U32(_) => *kind == Kind::U32,
            Value::U64(_) => *kind == Kind::U64,
            Value::F64(_) => *kind == Kind::F64,
            Value::Bool(_) => *kind == Kind::Bool,
            Value::Text(_) => *kind == Kind::Text,
            Value::Code(_) => is_category(kind),
            Value::Missing => true,
        }
    }
}

fn is_category(kind: &Kind) -> bool {
    matches!(kind, Kind::Category(_))
}

impl Kind {
    fn noun(&self) -> &'static str {
        match self {
            Kind::U32 => "whole numbers (u32)",
            Kind::U64 => "whole numbers (u64)",
            Kind::F64 => "doubles",
            Kind::Bool => "true or false",
            Kind::Text => "text",
            Kind::Category(_) => "codes of words",
        }
    }
}

/// Rows of one column of one batch.
pub(super) struct Piece<'a> {
    pub(super) column: &'a mut Column,
    pub(super) rows: Range<usize>,
}
