//! What a scenario says of a comparison with data.

use super::files::{FileKind, FileWish};
use crate::tree::{Node, Value, item};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::fmt;

/// When a society is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first round.
    First,
    /// After the last round.
    Last,
    /// After this round, counted from 0.
    Round(u32),
}

impl<'de> Deserialize<'de> for At {
    // Manual, as for `Count`: an untagged enum would lose the location of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl serde::de::Visitor<'_> for Read {
            type Value = At;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`first`, `last` or the number of a round")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<At, E> {
                match word {
                    "first" => Ok(At::First),
                    "last" => Ok(At::Last),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
                }
            }
            fn visit_u64<E: serde::de::Error>(self, round: u64) -> Result<At, E> {
                u32::try_from(round).map(At::Round).map_err(|_| E::custom("there is no such round"))
            }
            fn visit_i64<E: serde::de::Error>(self, round: i64) -> Result<At, E> {
                u32::try_from(round).map(At::Round).map_err(|_| E::custom("there is no such round"))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// A distance between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Two-sample Kolmogorov–Smirnov statistic.
    Ks,
    /// Wasserstein-1 distance, in the unit of the values.
    Wasserstein,
    /// Total variation over categories, or over bins if declared.
    TotalVariation,
}

impl Distance {
    /// Returns its name in scenarios and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Distance::Ks => "ks",
            Distance::Wasserstein => "wasserstein",
            Distance::TotalVariation => "total-variation",
        }
    }
}

/// A comparison of a society with data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ValidationSource")]
pub(super) struct Source {
    /// What is compared: a column of the world, or an attribute of the population.
    pub(super) of: String,
    /// When: `first`, `last` or the number of a round. Default: `last`.
    #[serde(default = "last")]
    #[schemars(schema_with = "at")]
    pub(super) at: At,
    /// The reference data.
    pub(super) against: Reference,
    /// The distances. Default: total-variation for words, ks and wasserstein for numbers, all three with `bins`.
    pub(super) distances: Option<Vec<Distance>>,
    /// Number of bins for the total variation of numbers. Default: no total variation of numbers.
    pub(super) bins: Option<u32>,
    /// The ends of the bins. Default: the smallest and the largest value of both samples.
    pub(super) range: Option<(f64, f64)>,
}

pub(super) fn at(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "enum": ["first", "last"] }, { "type": "integer", "minimum": 0 }] })
}

pub(super) fn last() -> At {
    At::Last
}

/// A column of a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// A CSV, TSV, JSONL or Parquet file, relative to the scenario.
    pub(super) file: String,
    /// Its column.
    pub(super) column: String,
}

/// Returns the files that validations name.
pub(super) fn files(validations: &[Node]) -> impl Iterator<Item = FileWish> + '_ {
    validations.iter().enumerate().filter_map(|(i, node)| match node.get("against").and_then(|a| a.get("file")) {
        Some(Node { value: Value::Text(path), .. }) => {
            let key = format!("{}.against.file", item("validate", i));
            Some(FileWish { path: path.clone(), key, kind: FileKind::Table })
        }
        _ => None,
    })
}
