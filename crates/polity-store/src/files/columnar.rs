//! Tables of people from Parquet files of other programs.

use super::data::{DataError, MOST_COLUMNS};
use crate::tables::shared;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use polity_kernel::population::{Column, TextBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Maximum number of rows.
const MOST_ROWS: i64 = 100_000_000;

type Columns = Vec<(String, Column)>;

/// A column being filled.
enum Filling {
    Numbers(Vec<f64>),
    Words(TextBuilder),
}

/// Reads the columns of a Parquet file. Numbers become numbers, with NaN for nulls; texts, switches and categories become words, with
/// an empty one for nulls.
///
/// # Errors
/// Damaged files, values of other types, too many rows or columns, infinite numbers.
pub(super) fn parquet(path: &Path, bytes: &[u8]) -> Result<Columns, DataError> {
    let fail = |column: Option<&str>, message: String| DataError {
        path: path.to_owned(),
        line: None,
        column: column.map(str::to_owned),
        message,
    };
    let read = || -> Result<Columns, DataError> {
        let broken = |error: &dyn std::fmt::Display| fail(None, format!("it cannot be read as Parquet: {error}"));
        // The reader keeps the bytes for itself.
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(shared(bytes.to_vec())).map_err(|error| broken(&error))?;
        let rows = builder.metadata().file_metadata().num_rows();
        let fields: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        if rows > MOST_ROWS || fields.len() > MOST_COLUMNS {
            let message = format!(
                "it has {rows} rows and {} columns; at most {MOST_ROWS} rows and {MOST_COLUMNS} columns are read",
                fields.len()
            );
            return Err(fail(None, message));
        }
        let mut columns: Vec<Option<Filling>> = fields.iter().map(|_| None).collect();
        for batch in builder.build().map_err(|error| broken(&error))? {
            let batch = batch.map_err(|error| broken(&error))?;
            for ((name, array), column) in fields.iter().zip(batch.columns()).zip(&mut columns) {
                put(array, column).map_err(|message| fail(Some(name), message))?;
            }
        }
        let finish = |(name, column): (String, Option<Filling>)| match column {
            Some(Filling::Numbers(values)) => (name, Column::Number(values)),
            Some(Filling::Words(builder)) => (name, builder.finish()),
            None => (name, TextBuilder::default().finish()),
        };
        Ok(fields.into_iter().zip(columns).map(finish).collect())
    };
    // The library panics on some damage; a crafted file must not end the program.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(fail(None, "it is damaged".into())))
}

/// Appends an array to a column.
fn put(array: &ArrayRef, column: &mut Option<Filling>) -> Result<(), String> {
    macro_rules! numbers {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            put_numbers(array.iter().map(|value| value.map(|value| value as f64)), column)
        }};
    }
    match array.data_type() {
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Boolean => {
            let words = array.as_boolean().iter().map(|value| value.map(|value| if value { "true" } else { "false" }));
            put_words(words, column);
            Ok(())
        }
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => put_dictionary(array.as_dictionary::<Int8Type>(), column),
            DataType::Int16 => put_dictionary(array.as_dictionary::<Int16Type>(), column),
            DataType::Int32 => put_dictionary(array.as_dictionary::<Int32Type>(), column),
            DataType::Int64 => put_dictionary(array.as_dictionary::<Int64Type>(), column),
            _ => Err(unknown(array.data_type())),
        },
        other => {
            put_words(texts(array).ok_or_else(|| unknown(other))?.into_iter(), column);
            Ok(())
        }
    }
}

fn unknown(kind: &DataType) -> String {
    format!("values of the type {kind} are not read; leave the column out, or save it as numbers or texts")
}

/// Returns the texts of an array of any kind of strings.
fn texts(array: &dyn Array) -> Option<Vec<Option<&str>>> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().collect()),
        _ => None,
    }
}

fn put_dictionary<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
    column: &mut Option<Filling>,
) -> Result<(), String> {
    let values = texts(array.values().as_ref()).ok_or_else(|| unknown(array.data_type()))?;
    put_words(array.keys_iter().map(|key| key.and_then(|key| values.get(key).copied().flatten())), column);
    Ok(())
}

fn put_numbers(values: impl Iterator<Item = Option<f64>>, column: &mut Option<Filling>) -> Result<(), String> {
    let Filling::Numbers(numbers) = column.get_or_insert_with(|| Filling::Numbers(Vec::new())) else { return Ok(()) };
    for value in values {
        let value = value.unwrap_or(f64::NAN);
        if value.is_infinite() {
            return Err(format!(
                "row {}, counted from 0, is not a finite number; correct it, or leave it empty",
                numbers.len()
            ));
        }
        numbers.push(value);
    }
    Ok(())
}

fn put_words<'a>(words: impl Iterator<Item = Option<&'a str>>, column: &mut Option<Filling>) {
    if let Filling::Words(builder) = column.get_or_insert_with(|| Filling::Words(TextBuilder::default())) {
        words.for_each(|word| builder.push(word.unwrap_or_default()));
    }
}
