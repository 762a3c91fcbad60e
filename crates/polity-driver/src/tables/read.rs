//! A table read back into plain columns, for reports.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, LargeStringArray, StringArray, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Int32Type, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use super::bytes::shared;
use super::error::{Result, TableError};
use super::parts;
use super::spec::{ColumnSpec, Kind, METADATA_KEY, TableSpec};
use crate::disk::Disk;

/// Rows decoded at once.
const BLOCK: usize = 65_536;

/// The values of one column, in the table's order; `None` where one is missing.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// Of a [`Kind::U32`].
    U32(Vec<Option<u32>>),
    /// Of a [`Kind::U64`].
    U64(Vec<Option<u64>>),
    /// Of a [`Kind::F64`].
    F64(Vec<Option<f64>>),
    /// Of a [`Kind::Bool`].
    Bool(Vec<Option<bool>>),
    /// Of a [`Kind::Text`].
    Text(Vec<Option<String>>),
    /// Of a [`Kind::Category`]: its words, and for each row the position of its word.
    Category {
        /// The declared words, also those that no row has.
        words: Vec<String>,
        /// Positions in `words`.
        codes: Vec<Option<u16>>,
    },
}

impl ColumnData {
    /// The values as numbers; nothing of texts.
    #[must_use]
    pub fn numbers(&self) -> Vec<Option<f64>> {
        match self {
            ColumnData::U32(v) => v.iter().map(|x| x.map(f64::from)).collect(),
            ColumnData::U64(v) => v.iter().map(|x| x.map(|x| x as f64)).collect(),
            ColumnData::F64(v) => v.clone(),
            ColumnData::Bool(v) => v.iter().map(|x| x.map(|b| f64::from(u8::from(b)))).collect(),
            ColumnData::Text(_) | ColumnData::Category { .. } => Vec::new(),
        }
    }

    /// The values as texts.
    #[must_use]
    pub fn texts(&self) -> Vec<Option<String>> {
        match self {
            ColumnData::Text(v) => v.clone(),
            ColumnData::Category { words, codes } => {
                codes.iter().map(|c| c.and_then(|c| words.get(c as usize).cloned())).collect()
            }
            other => other.numbers().into_iter().map(|x| x.map(|x| x.to_string())).collect(),
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        match self {
            ColumnData::U32(v) => v.len(),
            ColumnData::U64(v) => v.len(),
            ColumnData::F64(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::Text(v) => v.len(),
            ColumnData::Category { codes, .. } => codes.len(),
        }
    }

    pub(super) fn empty(kind: &Kind) -> Self {
        match kind {
            Kind::U32 => ColumnData::U32(Vec::new()),
            Kind::U64 => ColumnData::U64(Vec::new()),
            Kind::F64 => ColumnData::F64(Vec::new()),
            Kind::Bool => ColumnData::Bool(Vec::new()),
            Kind::Text => ColumnData::Text(Vec::new()),
            Kind::Category(words) => ColumnData::Category { words: words.clone(), codes: Vec::new() },
        }
    }

    /// `None` if the array is of another type, or holds a word that was not declared.
    fn append(&mut self, array: &ArrayRef) -> Option<()> {
        let array = array.as_any();
        match self {
            ColumnData::U32(v) => v.extend(array.downcast_ref::<UInt32Array>()?),
            ColumnData::U64(v) => v.extend(array.downcast_ref::<UInt64Array>()?),
            ColumnData::F64(v) => v.extend(array.downcast_ref::<Float64Array>()?),
            ColumnData::Bool(v) => v.extend(array.downcast_ref::<BooleanArray>()?),
            ColumnData::Text(v) => {
                v.extend(array.downcast_ref::<LargeStringArray>()?.iter().map(|text| text.map(str::to_string)))
            }
            ColumnData::Category { words, codes } => {
                let array = array.downcast_ref::<DictionaryArray<Int32Type>>()?;
                let position: BTreeMap<&str, u16> = words.iter().map(String::as_str).zip(0..=u16::MAX).collect();
                let values = array.values().as_any().downcast_ref::<StringArray>()?;
                let code: Vec<Option<u16>> = values.iter().map(|word| position.get(word?).copied()).collect();
                for key in array.keys() {
                    codes.push(match key {
                        Some(key) => Some((*code.get(usize::try_from(key).ok()?)?)?),
                        None => None,
                    });
                }
            }
        }
        Some(())
    }
}

/// Reads a table of `dir` (a run's `tables` folder): the named columns, or all for an empty list, of up to `limit`
/// rows, oldest part first. Columns come in the table's order, whatever the order they are named in.
///
/// Holds one part's file and the values read in memory. Errors: [`TableError::Rounds`] if no part is closed yet,
/// [`TableError::Spec`] for a column that is not there, [`TableError::Format`] for a broken file, [`TableError::Disk`].
pub fn read_table(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    columns: &[&str],
    limit: usize,
) -> Result<Vec<(String, ColumnData)>> {
    Ok(read(disk, dir, name, columns, limit)?.into_iter().map(|(column, data)| (column.name, data)).collect())
}

/// The same, all rows, without what may differ between two runs of the same seed: for comparing runs.
pub fn read_stable(disk: &dyn Disk, dir: &Path, name: &str) -> Result<Vec<(String, ColumnData)>> {
    let columns = read(disk, dir, name, &[], usize::MAX)?.into_iter();
    Ok(columns.filter(|(column, _)| !column.volatile).map(|(column, data)| (column.name, data)).collect())
}

fn read(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    columns: &[&str],
    limit: usize,
) -> Result<Vec<(ColumnSpec, ColumnData)>> {
    let mut table = None;
    let mut left = limit;
    for part in parts::list(disk, dir, name)? {
        let path = dir.join(name).join(part.file_name());
        let file = disk.read(&path).map_err(|e| TableError::disk(name, "read", &path, e))?;
        // The library panics over some damage; a damaged file must not end the program that asks for a report.
        let read = catch_unwind(AssertUnwindSafe(|| read_part(&mut table, file, columns, left)));
        left -= read.unwrap_or(Err(Unread::Broken("is damaged".into()))).map_err(|unread| match unread {
            Unread::NoColumn(error) => error,
            Unread::Parquet(error) => TableError::parquet(name, "read", &path, error),
            Unread::Broken(what) => TableError::Format { table: name.to_string(), path, what },
        })?;
        if left == 0 {
            break;
        }
    }
    match table {
        Some((_, data)) => Ok(data),
        None => {
            let what = format!("there is no closed part of it in {} yet", dir.display());
            Err(TableError::Rounds { table: name.to_string(), what })
        }
    }
}

/// The same, all rows; no columns as long as no part is closed.
pub fn read_closed(disk: &dyn Disk, dir: &Path, name: &str, columns: &[&str]) -> Result<Vec<(String, ColumnData)>> {
    match read_table(disk, dir, name, columns, usize::MAX) {
        Err(TableError::Rounds { .. }) => Ok(Vec::new()),
        read => read,
    }
}

/// The metrics of a run by name: (round, value), oldest first. Nothing as long as no part is closed.
pub fn read_metrics(disk: &dyn Disk, dir: &Path) -> Result<BTreeMap<String, Vec<(u32, f64)>>> {
    let table = read_closed(disk, dir, "metrics", &["round", "name", "value"])?;
    let mut metrics: BTreeMap<String, Vec<(u32, f64)>> = BTreeMap::new();
    let mut columns = table.into_iter().map(|(_, data)| data);
    match (columns.next(), columns.next(), columns.next()) {
        (None, None, None) => {}
        (Some(ColumnData::U32(rounds)), Some(ColumnData::Text(names)), Some(ColumnData::F64(values))) => {
            for ((round, name), value) in rounds.into_iter().zip(names).zip(values) {
                if let (Some(round), Some(name), Some(value)) = (round, name, value) {
                    metrics.entry(name).or_default().push((round, value));
                }
            }
        }
        _ => {
            let what = "its columns are not round, name and value of a run's metrics".into();
            return Err(TableError::Spec { table: "metrics".into(), what });
        }
    }
    Ok(metrics)
}

/// A table as far as it is read: what its first part declared, and the columns asked for.
type Table = (TableSpec, Vec<(ColumnSpec, ColumnData)>);

/// Why a part was not read.
enum Unread {
    NoColumn(TableError),
    Parquet(ParquetError),
    Broken(String),
}

impl From<ParquetError> for Unread {
    fn from(error: ParquetError) -> Self {
        Unread::Parquet(error)
    }
}

/// Appends up to `limit` rows of a part, and says how many there were.
fn read_part(
    table: &mut Option<Table>,
    file: Vec<u8>,
    columns: &[&str],
    limit: usize,
) -> std::result::Result<usize, Unread> {
    let broken = |what: &str| Unread::Broken(what.to_string());
    let file = shared(file);
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
    let spec = declared(&metadata).ok_or_else(|| broken("is not a part of a table of Polity"))?;
    let (first, data) = match table {
        Some(table) => table,
        none => {
            let data = pick(&spec, columns).map_err(Unread::NoColumn)?;
            none.insert((spec.clone(), data))
        }
    };
    if *first != spec {
        return Err(broken("has other columns than the parts before it"));
    }

    let wanted = data.iter().map(|(column, _)| column);
    let options = ArrowReaderOptions::new().with_schema(arrow_schema(metadata.schema(), wanted.clone()));
    // By position: a mask by name takes the dot in `opinion.first` for a step into a nested column.
    let file_columns = metadata.parquet_schema().columns().iter().enumerate();
    let positions = file_columns.filter(|(_, c)| wanted.clone().any(|w| w.name == c.name())).map(|(i, _)| i);
    let mask = ProjectionMask::leaves(metadata.parquet_schema(), positions);
    let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)?;
    let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_projection(mask)
        .with_batch_size(BLOCK)
        .with_limit(limit)
        .build()?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch.map_err(|e| broken(&format!("could not be read: {e}")))?;
        if batch.num_columns() != data.len() {
            return Err(broken("lacks columns that it declares"));
        }
        rows += batch.num_rows();
        for ((column, data), array) in data.iter_mut().zip(batch.columns()) {
            let appended = data.append(array);
            appended
                .ok_or_else(|| broken(&format!("holds values in column `{}` that it does not declare", column.name)))?;
        }
    }
    Ok(rows)
}

/// What the part says of itself, if that can be.
fn declared(metadata: &ArrowReaderMetadata) -> Option<TableSpec> {
    let entries = metadata.metadata().file_metadata().key_value_metadata()?;
    let text = entries.iter().find(|entry| entry.key == METADATA_KEY)?.value.as_ref()?;
    let spec: TableSpec = serde_json::from_str(text).ok()?;
    spec.check().ok().map(|()| spec)
}

fn pick(spec: &TableSpec, names: &[&str]) -> Result<Vec<(ColumnSpec, ColumnData)>> {
    if let Some(unknown) = names.iter().find(|name| spec.columns.iter().all(|column| column.name != **name)) {
        let known: Vec<&str> = spec.columns.iter().map(|column| column.name.as_str()).collect();
        return Err(TableError::Spec {
            table: spec.name.clone(),
            what: format!("it has no column `{unknown}`, it has {}", known.join(", ")),
        });
    }
    let picked = spec.columns.iter().filter(|column| names.is_empty() || names.contains(&column.name.as_str()));
    Ok(picked.map(|column| (column.clone(), ColumnData::empty(&column.kind))).collect())
}

/// The file's schema, with categories as codes instead of a copy of the word for every row, and with texts that may be more than 2 GB
/// together.
fn arrow_schema<'a>(schema: &SchemaRef, columns: impl Iterator<Item = &'a ColumnSpec> + Clone) -> SchemaRef {
    let codes = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = schema.fields().iter().map(|field| {
        let kind = columns.clone().find(|column| column.name == *field.name()).map(|column| &column.kind);
        match kind {
            Some(Kind::Category(_)) => Arc::new(field.as_ref().clone().with_data_type(codes.clone())),
            Some(Kind::Text) => Arc::new(field.as_ref().clone().with_data_type(DataType::LargeUtf8)),
            _ => field.clone(),
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
