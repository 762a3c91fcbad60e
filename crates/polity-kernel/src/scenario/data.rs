//! How the table of a population becomes attributes: the columns that are read, missing values, derived columns.

use super::people::PopulationSource;
use crate::formula::{Formula, Kind};
use crate::population::groups::By;
use crate::population::names::Attributes;
use crate::population::{Column, Table, TextBuilder, is_missing};
use crate::tree::{Invalid, Node, Value, child, item};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The level of missing values, with `missing: level`.
const LEVEL: &str = "missing";
/// A missing value in a column of words that keeps them.
const KEPT: &str = "NA";

/// What becomes of rows with a missing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The row is left out.
    Drop,
    /// The row stays, and its agents lack the attribute. What needs the attribute refuses the column.
    #[default]
    Keep,
    /// In a column of words, missing values become the level `missing`.
    Level,
}

/// What becomes of missing values: the same in all columns, or by column.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[serde(untagged)]
pub enum MissingSource {
    /// In all columns.
    All(Missing),
    /// By column; the others keep them.
    Columns(BTreeMap<String, Missing>),
}

impl Default for MissingSource {
    fn default() -> Self {
        MissingSource::All(Missing::Keep)
    }
}

impl<'de> Deserialize<'de> for MissingSource {
    // Manual, because an untagged enum would lose the location of an error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> serde::de::Visitor<'de> for Read {
            type Value = MissingSource;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`drop`, `keep` or `level`, or a map from columns to these")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<MissingSource, E> {
                Missing::deserialize(serde::de::value::StrDeserializer::new(word)).map(MissingSource::All)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<MissingSource, A::Error> {
                BTreeMap::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(MissingSource::Columns)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl MissingSource {
    fn of(&self, column: &str) -> Missing {
        match self {
            MissingSource::All(missing) => *missing,
            MissingSource::Columns(columns) => columns.get(column).copied().unwrap_or_default(),
        }
    }
}

/// A table that is ready for agents.
pub(super) struct Prepared {
    pub table: Arc<Table>,
    /// Rows of the file.
    pub rows: u32,
    /// Rows that were left out, by the columns whose values are missing in them.
    pub dropped: Vec<(String, u32)>,
}

fn invalid(key: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}

/// Prepares the table of a population's file.
///
/// # Errors
/// A key below `population`, and what is wrong there.
pub(super) fn prepare(table: &Arc<Table>, source: &PopulationSource) -> Result<Prepared, Invalid> {
    let rows = table.rows() as u32;
    let plain = source.columns.is_none() && source.missing.is_none() && source.na_values.is_empty();
    let (table, dropped) = match plain {
        true => (table.clone(), Vec::new()),
        false => cleaned(table, source)?,
    };
    let table = match &source.derive {
        None => table,
        Some(derive) => Arc::new(derived(&table, derive)?),
    };
    Ok(Prepared { table, rows, dropped })
}

/// A table, and the rows that were left out, by column.
type Cleaned = (Arc<Table>, Vec<(String, u32)>);

/// Returns the columns that are read, without the rows that are dropped.
fn cleaned(table: &Arc<Table>, source: &PopulationSource) -> Result<Cleaned, Invalid> {
    let find = |name: &String, key: String| table.index(name).map_err(|error| invalid(key, error.to_string()));
    for (i, name) in source.columns.iter().flatten().enumerate() {
        find(name, item("columns", i))?;
    }
    let missing = source.missing.clone().unwrap_or_default();
    if let MissingSource::Columns(columns) = &missing {
        for name in columns.keys() {
            find(name, child("missing", name))?;
        }
    }
    let marks = marks(&source.na_values)?;
    let read = |name: &str| source.columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column == name));
    let (mut keep, mut dropped) = (vec![true; table.rows()], Vec::new());
    let mut columns = Vec::new();
    for (name, column) in table.columns().filter(|(name, _)| read(name)) {
        let (column, gaps) = marked(column, &marks);
        let here = match (missing.of(name), &column) {
            (Missing::Drop, _) => {
                let count = gaps.iter().filter(|gap| **gap).count() as u32;
                keep.iter_mut().zip(&gaps).for_each(|(keep, gap)| *keep &= !gap);
                dropped.extend((count > 0).then(|| (name.to_owned(), count)));
                column
            }
            (Missing::Level, Column::Text { .. }) => levelled(&column, &gaps, LEVEL),
            (Missing::Keep, Column::Text { .. }) if gaps.contains(&true) => levelled(&column, &gaps, KEPT),
            (Missing::Level, Column::Number(_)) if matches!(&missing, MissingSource::Columns(_)) => {
                let message = "the column holds numbers, and `missing` is a word: write `drop` or `keep`, or make levels of the \
                               numbers with `derive`";
                return Err(invalid(child("missing", name), message));
            }
            _ => column,
        };
        columns.push((name.to_owned(), here));
    }
    let all = Table::new(columns).map_err(|error| invalid("columns", error.to_string()))?.with_lines_of(table);
    let unread = table.columns().map(|(name, _)| name).filter(|name| !read(name)).map(String::from);
    let all = all.with_unread(unread.collect());
    if !keep.contains(&true) {
        let parts: Vec<String> = dropped.iter().map(|(name, count)| format!("{name} in {count}")).collect();
        let message = format!("every row has a missing value, so none is left ({})", parts.join(", "));
        return Err(invalid("missing", message));
    }
    let kept = all.part(None, &keep).map_err(|error| invalid("columns", error.to_string()))?;
    Ok((Arc::new(kept), dropped))
}

/// Reads `na_values`, as words in lower case.
fn marks(values: &[Node]) -> Result<Vec<String>, Invalid> {
    let mark = |(i, node): (usize, &Node)| match &node.value {
        Value::Text(text) => Ok(text.trim().to_lowercase()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(invalid(item("na_values", i), format!("a number or a word is needed, found {}", node.describe()))),
    };
    values.iter().enumerate().map(mark).collect()
}

/// Returns a column whose marked values are missing, and where they are.
fn marked(column: &Column, marks: &[String]) -> (Column, Vec<bool>) {
    match column {
        Column::Number(values) => {
            let marks: Vec<f64> = marks.iter().filter_map(|mark| mark.parse().ok()).collect();
            let value = |value: &f64| if marks.contains(value) { f64::NAN } else { *value };
            let values: Vec<f64> = values.iter().map(value).collect();
            let gaps = values.iter().map(|value| value.is_nan()).collect();
            (Column::Number(values), gaps)
        }
        Column::Text { codes, words } => {
            let gap = |word: &String| is_missing(word) || marks.contains(&word.trim().to_lowercase());
            let gaps: Vec<bool> = words.iter().map(gap).collect();
            let of_rows = codes.iter().map(|code| gaps[*code as usize]).collect();
            // What is left may be a column of numbers: the marks were its only words.
            let number = |(word, gap): (&String, &bool)| match gap {
                true => Some(f64::NAN),
                false => word.trim().parse::<f64>().ok().filter(|value| value.is_finite()),
            };
            let numbers: Option<Vec<f64>> = words.iter().zip(&gaps).map(number).collect();
            match numbers {
                Some(numbers) if gaps.contains(&true) && gaps.contains(&false) => {
                    (Column::Number(codes.iter().map(|code| numbers[*code as usize]).collect()), of_rows)
                }
                _ => (column.clone(), of_rows),
            }
        }
    }
}

/// Returns a column of words whose missing values are this word.
fn levelled(column: &Column, gaps: &[bool], word: &str) -> Column {
    let mut builder = TextBuilder::default();
    for (row, gap) in gaps.iter().enumerate() {
        match gap {
            true => builder.push(word),
            false => builder.push(&column.cell(row).to_string()),
        }
    }
    builder.finish()
}

/// Returns the table with the columns that `derive` makes of it, each of which may use those before it.
fn derived(table: &Table, derive: &Node) -> Result<Table, Invalid> {
    let wrong = |key: &str, message: String| {
        invalid(if key.is_empty() { "derive".into() } else { child("derive", key) }, message)
    };
    let Value::Map(entries) = &derive.value else {
        return Err(wrong("", format!("write `{{NAME: FORMULA, ...}}`, found {}", derive.describe())));
    };
    let mut table = table.clone();
    for (name, node) in entries {
        let text = match &node.value {
            Value::Text(text) => text,
            Value::List(_) => {
                let by: By =
                    node.read(&child("derive", &name.name)).map_err(|error| wrong(&name.name, error.message))?;
                let groups = table.groups(&by).map_err(|error| wrong(&name.name, error.to_string()))?;
                let column = Column::Text { codes: groups.of_row, words: groups.labels };
                table = table.with(&name.name, column).map_err(|error| wrong(&name.name, error.to_string()))?;
                continue;
            }
            _ => {
                let message = "write a formula as text, such as \"age / 10\", or a list of columns; found";
                return Err(wrong(&name.name, format!("{message} {}", node.describe())));
            }
        };
        let attributes = Attributes { table: &table, draw: false };
        let formula = Formula::of_any_kind(text, &attributes).map_err(|error| wrong(&name.name, error.to_string()))?;
        let values: Vec<f64> = (0..table.rows()).map(|row| attributes.value(&formula, row, None)).collect();
        let column = match formula.kind() {
            Kind::Number => {
                // A value is missing only where one that it is computed from is missing.
                let reads = formula.names();
                let lacks = |row: usize| reads.iter().any(|column| attributes.lacks(*column, row));
                let wrong_at = |(row, value): (usize, &f64)| value.is_infinite() || value.is_nan() && !lacks(row);
                if let Some(row) = values.iter().enumerate().position(wrong_at) {
                    let (place, reads) = (table.place(row), attributes.described(&formula, row));
                    return Err(wrong(&name.name, format!("the result is not finite for {place} ({reads})")));
                }
                Column::Number(values)
            }
            kind => {
                let mut builder = TextBuilder::default();
                for value in values {
                    builder.push(match kind {
                        _ if value.is_nan() => KEPT,
                        Kind::Truth => ["false", "true"][usize::from(value == 1.0)],
                        _ => formula.texts().get(value as usize).map_or(KEPT, String::as_str),
                    });
                }
                builder.finish()
            }
        };
        let with = table.with(&name.name, column);
        table = with.map_err(|error| wrong(&name.name, error.to_string()))?;
    }
    Ok(table)
}
