//! Table declarations: columns, their kinds, and their meaning.

use std::collections::BTreeSet;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{Type, TypePtr};
use polity_kernel::interface::{Axis, WorldColumn};
use serde::{Deserialize, Serialize};

use super::error::{Result, TableError};

/// The metadata key of a part that holds the [`TableSpec`] as JSON.
pub const METADATA_KEY: &str = "polity.table";

/// The type of a column's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A whole number below 2^32: agents, rounds, counts.
    U32,
    /// A whole number below 2^64.
    U64,
    /// A double.
    F64,
    /// True or false.
    Bool,
    /// Free text.
    Text,
    /// One of these words, passed as its index in this list and read back as text.
    Category(Vec<String>),
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Its name, unique in the table.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether a value may be missing.
    pub nullable: bool,
    /// What it means, with its unit.
    pub doc: String,
    /// Whether it may differ between two runs of the same seed (latencies, elapsed times).
    pub volatile: bool,
    /// Smallest and largest sensible value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// The coordinate of an agent's place that it is, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
}

impl ColumnSpec {
    /// Creates a column in which every row has a value that depends on the seed alone.
    pub fn new(name: impl Into<String>, kind: Kind, doc: impl Into<String>) -> Self {
        Self { name: name.into(), kind, nullable: false, doc: doc.into(), volatile: false, range: None, axis: None }
    }

    /// Sets the range and the axis of a world's column.
    pub fn like(self, column: &WorldColumn) -> Self {
        Self { range: column.range, axis: column.axis, ..self }
    }

    /// Allows missing values.
    pub fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Allows it to differ between two runs of the same seed.
    pub fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }
}

/// One table of a run; also stored as JSON in every part's metadata under [`METADATA_KEY`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its name and its folder's: lower-case letters, digits, `_` and `-`.
    pub name: String,
    /// What one row is.
    pub doc: String,
    /// Its columns, in order.
    pub columns: Vec<ColumnSpec>,
    /// Whether all of it may differ between two runs of the same seed.
    pub volatile: bool,
    /// Whether it exists only once it has a row.
    #[serde(skip)]
    pub only_with_rows: bool,
}

impl TableSpec {
    /// Errors: [`TableError::Spec`] for an invalid folder name, no columns, duplicate column names, or an impossible word list.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(TableError::spec(&self.name, what));
        if !is_table_name(&self.name) {
            return wrong("its name must be lower-case letters, digits, `_` and `-`, up to 64 of them".into());
        }
        if self.columns.is_empty() {
            return wrong("it has no columns".into());
        }
        let mut names = BTreeSet::new();
        for column in &self.columns {
            let name = &column.name;
            if name.is_empty() || !names.insert(name) {
                return wrong(format!("two columns are called `{name}`, or one has no name"));
            }
            if let Kind::Category(words) = &column.kind {
                let distinct: BTreeSet<&String> = words.iter().collect();
                if words.is_empty() || words.len() > 1 << 16 || distinct.len() != words.len() {
                    return wrong(format!("category `{name}` needs 1 to 65,536 different words"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn parquet_schema(&self) -> parquet::errors::Result<TypePtr> {
        let fields = self
            .columns
            .iter()
            .map(|column| column.parquet_type().map(Arc::new))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Arc::new(Type::group_type_builder("polity").with_fields(fields).build()?))
    }
}

impl ColumnSpec {
    fn parquet_type(&self) -> parquet::errors::Result<Type> {
        let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
        let (physical, logical) = match self.kind {
            Kind::U32 => (Physical::INT32, unsigned(32)),
            Kind::U64 => (Physical::INT64, unsigned(64)),
            Kind::F64 => (Physical::DOUBLE, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Text | Kind::Category(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

pub(super) fn is_table_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}
