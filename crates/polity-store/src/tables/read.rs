//! Reads tables back into plain columns. Every part is compared with its record before use.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, LargeStringArray, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;
use polity_kernel::digest::FileHash;
use polity_kernel::event::Part;
use rayon::prelude::*;

use super::bytes::shared;
use super::error::{Result, TableError};
use super::parts::{self, OPEN_PART, Span};
use super::spec::{ColumnSpec, Kind, METADATA_KEY, TableSpec, is_table_name};
use crate::Fault;
use crate::disk::{Disk, EntryKind};

/// Rows decoded at once.
const BLOCK: usize = 65_536;

/// How often files that do not match their record are checked again while their run may be active, and the wait before that: the run may
/// have recorded, named or removed a part in between.
const LOOKS: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(5);

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
    /// Of a [`Kind::Category`]: its words, and each row's index into them.
    Category {
        /// The declared words, including unused ones.
        words: Vec<String>,
        /// Indices into `words`.
        codes: Vec<Option<u16>>,
    },
}

impl ColumnData {
    /// The values as numbers; empty for texts.
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

    /// Number of rows.
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

    /// `None` if the array has another type, or holds an undeclared word.
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

/// The recorded parts of tables by table name, each in the order of rounds.
pub type Parts = BTreeMap<String, Vec<Part>>;

/// What is known about the files of tables.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The parts that count.
    pub parts: Parts,
    /// Parts that no longer count, but whose files may still exist.
    pub void: BTreeSet<(String, Span)>,
    /// Advice for a damaged or missing part.
    pub mend: String,
    /// The file or folder that records the parts, for errors.
    pub record: Option<PathBuf>,
}

/// Reloads what is known about a run that may be active.
pub type Again<'a> = Box<dyn Fn() -> Result<Known> + Send + Sync + 'a>;

/// A file, and the part that it must be.
type Located<'k> = (PathBuf, &'k Part);

fn error(table: &str, Fault { path, what }: Fault) -> TableError {
    TableError::Format { table: table.to_string(), path, what }
}

/// Reads tables with recorded parts. A damaged, missing, exchanged or unrecorded part is an error that names it.
pub struct Reader<'a> {
    disk: &'a dyn Disk,
    dir: PathBuf,
    /// What is known so far. An update found for one table applies to the others, too.
    known: Mutex<Arc<Known>>,
    again: Option<Again<'a>>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of tables in `dir` with these parts.
    #[must_use]
    pub fn of_parts(disk: &'a dyn Disk, dir: &Path, parts: Parts) -> Self {
        let mend = "Restore it from a copy".into();
        Reader::new(disk, dir, Known { parts, mend, ..Known::default() }, None)
    }

    /// Creates a reader of the tables in `dir` with the parts in `known`. `again` reloads what is known.
    #[must_use]
    pub fn new(disk: &'a dyn Disk, dir: &Path, known: Known, again: Option<Again<'a>>) -> Self {
        Reader { disk, dir: dir.to_path_buf(), known: Mutex::new(Arc::new(known)), again }
    }

    /// The parts that count.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.known().parts.clone()
    }

    fn known(&self) -> Arc<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the tables with a closed part.
    pub fn names(&self) -> Vec<String> {
        let known = self.known();
        known.parts.iter().filter(|(_, parts)| !parts.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// Reads the named columns of a table (all for an empty list), up to `limit` rows, oldest part first. Columns come in the table's
    /// order, whatever the order of the names.
    ///
    /// Holds one part's file and the read values in memory. Errors: [`TableError::Rounds`] if no part is closed yet, [`TableError::Spec`]
    /// for an unknown column, [`TableError::Format`] for a part that is not as recorded, [`TableError::Disk`].
    pub fn table(&self, name: &str, columns: &[&str], limit: usize) -> Result<Vec<(String, ColumnData)>> {
        Ok(self.read(name, columns, limit)?.into_iter().map(|(column, data)| (column.name, data)).collect())
    }

    /// The same; no columns if no part is closed.
    pub fn closed(&self, name: &str, columns: &[&str], limit: usize) -> Result<Vec<(String, ColumnData)>> {
        match self.table(name, columns, limit) {
            Err(TableError::Rounds { .. }) => Ok(Vec::new()),
            read => read,
        }
    }

    /// A table without the columns that may differ between two runs of the same seed: for comparing runs.
    pub fn stable(&self, name: &str) -> Result<Vec<(String, ColumnData)>> {
        let columns = self.read(name, &[], usize::MAX)?.into_iter();
        Ok(columns.filter(|(column, _)| !column.volatile).map(|(column, data)| (column.name, data)).collect())
    }

    /// The metrics of a run by name: (round, value), oldest first. Empty if no part is closed.
    pub fn metrics(&self) -> Result<BTreeMap<String, Vec<(u32, f64)>>> {
        let table = self.closed("metrics", &["round", "name", "value"], usize::MAX)?;
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

    /// Compares every file of every table with the record.
    ///
    /// Errors: [`TableError::Format`] for the first that is not as recorded, [`TableError::Disk`].
    pub fn check(&self) -> Result<()> {
        for table in self.tables()? {
            if let Some(fault) = self.faults(&table)?.into_iter().next() {
                return Err(error(&table, fault));
            }
        }
        Ok(())
    }

    /// All files of all tables that are not as recorded.
    pub fn all_faults(&self) -> Result<Vec<Fault>> {
        let faults: Result<Vec<_>> = self.tables()?.iter().map(|table| self.faults(table)).collect();
        Ok(faults?.concat())
    }

    /// All tables that are recorded or exist.
    fn tables(&self) -> Result<BTreeSet<String>> {
        let there = parts::names(self.disk, &self.dir, "all")?.into_iter().filter(|name| is_table_name(name));
        Ok(self.known().parts.keys().cloned().chain(there).collect())
    }

    /// The files of a table that are not as recorded.
    fn faults(&self, table: &str) -> Result<Vec<Fault>> {
        let look = |known: &Known, names: &BTreeSet<String>| {
            let (files, mut faults) = self.locate(known, names, table)?;
            // Keep the order, whichever thread reads which file.
            let damaged: Vec<Option<Fault>> = files
                .into_par_iter()
                .map(|(path, part)| match self.bytes(known, &path, part) {
                    Ok(_) => Ok(None),
                    Err(TableError::Format { path, what, .. }) => Ok(Some(Fault { path, what })),
                    Err(error) => Err(error),
                })
                .collect::<Result<_>>()?;
            faults.extend(damaged.into_iter().flatten());
            Ok(faults)
        };
        self.patiently(table, look, |found| matches!(found, Ok(faults) if !faults.is_empty()))
    }

    fn read(&self, name: &str, columns: &[&str], limit: usize) -> Result<Vec<(ColumnSpec, ColumnData)>> {
        let look = |known: &Known, names: &BTreeSet<String>| self.read_known(known, names, name, columns, limit);
        self.patiently(name, look, |read| matches!(read, Err(TableError::Format { .. })))
    }

    /// Checks a table by its record and the names in its folder. If they do not match and the run may be active, checks again: names
    /// first, since every name found then is in the record read afterwards.
    pub(super) fn patiently<T>(
        &self,
        table: &str,
        look: impl Fn(&Known, &BTreeSet<String>) -> Result<T>,
        is_odd: impl Fn(&Result<T>) -> bool,
    ) -> Result<T> {
        // Anything that is not a table name is not a path either.
        let list = || match is_table_name(table) {
            true => parts::names(self.disk, &self.dir.join(table), table),
            false => Ok(Vec::new()),
        };
        let names = || list().map(|names| names.into_iter().collect::<BTreeSet<String>>());
        let mut found = look(&self.known(), &names()?);
        for _ in 0..LOOKS {
            let Some(again) = self.again.as_ref().filter(|_| is_odd(&found)) else { break };
            sleep(BETWEEN);
            let names = names()?;
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(again()?);
            found = look(&self.known(), &names);
        }
        found
    }

    fn read_known(
        &self,
        known: &Known,
        names: &BTreeSet<String>,
        name: &str,
        columns: &[&str],
        limit: usize,
    ) -> Result<Vec<(ColumnSpec, ColumnData)>> {
        let mut table = None;
        let mut left = limit;
        self.each_part(known, names, name, None, &mut |file| {
            left -= read_part(&mut table, file, columns, left)?;
            Ok(left > 0)
        })?;
        match table {
            Some((_, data)) => Ok(data),
            None => Err(self.no_part(name)),
        }
    }

    /// The error for a table without parts.
    pub(super) fn no_part(&self, name: &str) -> TableError {
        let what = format!("there is no closed part of it in {} yet", self.dir.display());
        TableError::Rounds { table: name.to_string(), what }
    }

    /// Passes the files of a table's parts, oldest first, until `take` wants no more. With `rounds`, parts without these rounds are
    /// left out; if all are, the first is passed, which tells the columns.
    pub(super) fn each_part(
        &self,
        known: &Known,
        names: &BTreeSet<String>,
        name: &str,
        rounds: Option<&RangeInclusive<u32>>,
        take: &mut dyn FnMut(Vec<u8>) -> std::result::Result<bool, Unread>,
    ) -> Result<()> {
        let (files, faults) = self.locate(known, names, name)?;
        if let Some(fault) = faults.into_iter().next() {
            return Err(error(name, fault));
        }
        let has = |part: &Part| rounds.is_none_or(|rounds| part.first <= *rounds.end() && *rounds.start() <= part.last);
        let any = files.iter().any(|(_, part)| has(part));
        for (i, (path, part)) in files.into_iter().enumerate() {
            if !has(part) && (any || i > 0) {
                continue;
            }
            let file = self.bytes(known, &path, part)?;
            // The library panics on some damage; a crafted file must not end the program.
            let read = catch_unwind(AssertUnwindSafe(|| take(file)));
            let more = read.unwrap_or(Err(Unread::Broken("is damaged".into()))).map_err(|unread| match unread {
                Unread::NoColumn(error) => error,
                Unread::Parquet(error) => TableError::parquet(name, "read", &path, error),
                Unread::Broken(what) => TableError::Format { table: name.to_string(), path, what },
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// The files of a table's parts, and the faults of the table's folder, given its names.
    fn locate<'k>(
        &self,
        known: &'k Known,
        names: &BTreeSet<String>,
        table: &str,
    ) -> Result<(Vec<Located<'k>>, Vec<Fault>)> {
        let folder = self.dir.join(table);
        if names.is_empty() && !known.parts.contains_key(table) {
            return Ok(Default::default());
        }
        if let Ok(EntryKind::Other(what)) = self.disk.kind(&folder) {
            let what = format!("it is {what}, not a folder of a table; remove it. {}", known.mend);
            return Ok((Vec::new(), vec![Fault::new(folder, what)]));
        }
        let is_there =
            |path: &Path| self.disk.exists(path).map_err(|error| TableError::disk(table, "look for", path, error));
        let (mut files, mut faults) = (Vec::new(), Vec::new());
        let mut strange: BTreeSet<&str> =
            names.iter().map(String::as_str).filter(|name| name.ends_with(".parquet")).collect();
        let recorded = known.parts.get(table).map_or(&[][..], Vec::as_slice);
        for (at, part) in recorded.iter().enumerate() {
            let name = Span::of(part).file_name();
            let (path, open) = (folder.join(&name), folder.join(OPEN_PART));
            if strange.remove(name.as_str()) || is_there(&path)? {
                files.push((path, part));
            } else if at + 1 == recorded.len() && is_there(&open)? && !is_there(&path)? {
                // The newest is recorded before it is named.
                files.push((open, part));
            } else if is_there(&path)? {
                files.push((path, part));
            } else {
                let Part { rows, first, last, .. } = part;
                let what = format!("it is gone: {rows} rows of rounds {first} to {last}. {}", known.mend);
                faults.push(Fault::new(path, what));
            }
        }
        for name in strange {
            if Span::parse(name).is_none_or(|span| !known.void.contains(&(table.to_string(), span))) {
                let record = known.record.as_ref().map_or(String::new(), |path| format!(" ({})", path.display()));
                let what = format!(
                    "it is not in the record{record}: it was added, or the end of the record was cut off. Remove it, \
                     or restore the record from a copy"
                );
                faults.push(Fault::new(folder.join(name), what));
            }
        }
        Ok((files, faults))
    }

    /// The bytes of a part, verified against the record.
    fn bytes(&self, known: &Known, path: &Path, part: &Part) -> Result<Vec<u8>> {
        let wrong =
            |what: &str| -> TableError { error(&part.table, Fault::new(path, format!("{what}. {}", known.mend))) };
        let bytes = match self.disk.read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(wrong("it is gone")),
            Err(e) if matches!(e.kind(), ErrorKind::IsADirectory | ErrorKind::InvalidInput) => {
                return Err(wrong("it is not a regular file"));
            }
            Err(e) => return Err(TableError::disk(&part.table, "read", path, e)),
        };
        match bytes.len() as u64 == part.bytes && FileHash::of(&bytes) == part.digest {
            true => Ok(bytes),
            false => Err(wrong("its bytes do not have the recorded digest")),
        }
    }
}

/// A table as read so far: the declaration of its first part, and the requested columns.
type Table = (TableSpec, Vec<(ColumnSpec, ColumnData)>);

/// Why a part was not read.
pub(super) enum Unread {
    NoColumn(TableError),
    Parquet(ParquetError),
    Broken(String),
}

impl From<ParquetError> for Unread {
    fn from(error: ParquetError) -> Self {
        Unread::Parquet(error)
    }
}

/// Appends up to `limit` rows of a part, and returns how many there were.
fn read_part(
    table: &mut Option<Table>,
    file: Vec<u8>,
    columns: &[&str],
    limit: usize,
) -> std::result::Result<usize, Unread> {
    let broken = |what: &str| Unread::Broken(what.to_string());
    let part = OpenPart::open(file)?;
    let (first, data) = match table {
        Some(table) => table,
        none => {
            let data = pick(&part.spec, columns).map_err(Unread::NoColumn)?;
            none.insert((part.spec.clone(), data))
        }
    };
    if *first != part.spec {
        return Err(broken(OTHER_COLUMNS));
    }
    let batches = part.batches(data.iter().map(|(column, _)| column), &[], limit)?;
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

/// The fault of a part that does not match earlier ones.
pub(super) const OTHER_COLUMNS: &str = "has other columns than the parts before it";

/// A part's bytes, and its own metadata.
pub(super) struct OpenPart<F> {
    file: F,
    metadata: ArrowReaderMetadata,
    /// The spec of its table.
    pub spec: TableSpec,
}

impl OpenPart<()> {
    pub(super) fn open(file: Vec<u8>) -> std::result::Result<OpenPart<impl ChunkReader + 'static>, Unread> {
        let file = shared(file);
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let spec = declared(&metadata).ok_or_else(|| Unread::Broken("is not a part of a Polity table".to_string()))?;
        Ok(OpenPart { file, metadata, spec })
    }
}

impl<F: ChunkReader + 'static> OpenPart<F> {
    /// Up to `limit` rows of these columns, all of which meet every condition.
    pub(super) fn batches<'c>(
        self,
        wanted: impl Iterator<Item = &'c ColumnSpec> + Clone,
        conditions: &[Among<'_>],
        limit: usize,
    ) -> std::result::Result<ParquetRecordBatchReader, Unread> {
        let metadata = self.metadata;
        let options = ArrowReaderOptions::new().with_schema(arrow_schema(metadata.schema(), wanted.clone()));
        // By position: a mask by name would read the dot in `opinion.first` as a nested column.
        let file_columns = metadata.parquet_schema().columns().iter().enumerate();
        let positions = file_columns.filter(|(_, c)| wanted.clone().any(|w| w.name == c.name())).map(|(i, _)| i);
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), positions);
        let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)?;
        let file = metadata.metadata().clone();
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, metadata)
            .with_projection(mask)
            .with_batch_size(BLOCK)
            .with_limit(limit);
        if !conditions.is_empty() {
            let mut groups: BTreeSet<usize> = (0..file.num_row_groups()).collect();
            let mut filters = Vec::new();
            for condition in conditions {
                let (may_hold, filter) = condition.of_part(&self.spec, &file)?;
                groups.retain(|group| may_hold.contains(group));
                filters.push(filter);
            }
            reader = reader.with_row_groups(groups.into_iter().collect()).with_row_filter(RowFilter::new(filters));
        }
        Ok(reader.build()?)
    }
}

/// Rows of a part: those whose whole number in a column is one of these.
pub(super) struct Among<'a> {
    pub column: &'a str,
    /// The least and the greatest of them.
    pub range: RangeInclusive<u32>,
    pub has: Arc<dyn Fn(u32) -> bool + Send + Sync>,
}

impl Among<'_> {
    /// The row groups that may hold such rows, and the filter of their rows.
    fn of_part(
        &self,
        spec: &TableSpec,
        file: &ParquetMetaData,
    ) -> std::result::Result<(BTreeSet<usize>, Box<dyn ArrowPredicate>), Unread> {
        let name = self.column;
        let unfit = |what: &str| Unread::NoColumn(TableError::Spec { table: spec.name.clone(), what: what.into() });
        let at = spec.columns.iter().position(|column| column.name == name);
        let at = at.ok_or_else(|| unfit(&format!("it has no column `{name}`")))?;
        let may_hold = |group: &RowGroupMetaData| match group.column(at).statistics() {
            Some(Statistics::Int32(of)) => match (of.min_opt(), of.max_opt()) {
                // Unsigned numbers are stored by their bits.
                (Some(least), Some(most)) => *least as u32 <= *self.range.end() && *self.range.start() <= *most as u32,
                _ => true,
            },
            _ => true,
        };
        let groups =
            file.row_groups().iter().enumerate().filter(|(_, group)| may_hold(group)).map(|(i, _)| i).collect();
        let mask = ProjectionMask::leaves(file.file_metadata().schema_descr(), [at]);
        let (has, name) = (self.has.clone(), name.to_owned());
        let is_wanted = ArrowPredicateFn::new(mask, move |batch: RecordBatch| {
            let column = batch.column(0).as_any().downcast_ref::<UInt32Array>();
            let column = column.ok_or_else(|| ArrowError::CastError(format!("`{name}` is not a whole number")))?;
            Ok(column.iter().map(|number| Some(number.is_some_and(|number| has(number)))).collect())
        });
        Ok((groups, Box::new(is_wanted)))
    }
}

/// The part's declaration, if valid.
fn declared(metadata: &ArrowReaderMetadata) -> Option<TableSpec> {
    let entries = metadata.metadata().file_metadata().key_value_metadata()?;
    let text = entries.iter().find(|entry| entry.key == METADATA_KEY)?.value.as_ref()?;
    let spec: TableSpec = serde_json::from_str(text).ok()?;
    spec.check().ok().map(|()| spec)
}

/// The declarations of these columns, with room for their values.
pub(super) fn pick(spec: &TableSpec, names: &[&str]) -> Result<Vec<(ColumnSpec, ColumnData)>> {
    if let Some(unknown) = names.iter().find(|name| spec.columns.iter().all(|column| column.name != **name)) {
        let known: Vec<&str> = spec.columns.iter().map(|column| column.name.as_str()).collect();
        return Err(TableError::Spec {
            table: spec.name.clone(),
            what: format!("it has no column `{unknown}`; it has {}", known.join(", ")),
        });
    }
    let picked = spec.columns.iter().filter(|column| names.is_empty() || names.contains(&column.name.as_str()));
    Ok(picked.map(|column| (column.clone(), ColumnData::empty(&column.kind))).collect())
}

/// The file's schema, with categories as codes instead of a copy of the word per row, and with texts that may exceed 2 GB in total.
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
