//! Texts of a scenario: written in place, or in a file beside it.

use super::FileKind;
use crate::tree::{Invalid, Node, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A text in place, or the file that holds it: `{file: persona.md}`, relative to the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TextSource {
    /// As written here.
    Here(String),
    /// In a file.
    In {
        /// The file.
        file: String,
    },
}

impl TextSource {
    /// Returns the text, and the name of its file. `texts`: those that were read, by path.
    pub(crate) fn words<'b>(
        &'b self,
        texts: &'b BTreeMap<String, Arc<str>>,
    ) -> Result<(&'b str, Option<&'b str>), Invalid> {
        match self {
            TextSource::Here(text) => Ok((text, None)),
            TextSource::In { file } => match texts.get(file) {
                Some(text) => Ok((text, Some(file))),
                None => Err(Invalid { key: "file".into(), message: format!("`{file}` was not read") }),
            },
        }
    }
}

impl<'de> Deserialize<'de> for TextSource {
    // Manual, because an untagged enum would lose the location of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> serde::de::Visitor<'de> for Read {
            type Value = TextSource;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, or {file: NAME}")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TextSource, E> {
                Ok(TextSource::Here(text.to_owned()))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<TextSource, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct In {
                    file: String,
                }
                let In { file } = In::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(TextSource::In { file })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// The ending of the names of files of weights.
pub const WEIGHTS: &str = "safetensors";

/// A file of weights: `{file: ppo.safetensors}`, relative to the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightsSource {
    /// The file.
    pub file: String,
}

/// A table of steps: `{file: steps.csv}`, relative to the scenario. A run records one with `record: {steps: true}`. The key that holds this
/// is named `steps`, so that the file is read as a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepsSource {
    /// The file.
    pub file: String,
}

/// Returns the kind of a file that a leaf's parameters name. `key`: where it is named.
pub(super) fn kind_of(key: &str, path: &str) -> FileKind {
    match path.rsplit_once('.') {
        _ if key.ends_with(".steps.file") => FileKind::Table,
        Some((_, WEIGHTS)) => FileKind::Bytes,
        _ => FileKind::Text,
    }
}

/// Returns the files that a leaf's parameters name, with the paths of their keys: every map that is `{file: NAME}` and nothing
/// else.
pub(super) fn files_in(node: &Node, path: &str) -> Vec<(String, String)> {
    match &node.value {
        Value::Map(entries) => match entries.as_slice() {
            [(key, Node { value: Value::Text(file), .. })] if key.name == "file" => {
                vec![(crate::tree::child(path, "file"), file.clone())]
            }
            entries => {
                entries.iter().flat_map(|(key, node)| files_in(node, &crate::tree::child(path, &key.name))).collect()
            }
        },
        Value::List(items) => {
            items.iter().enumerate().flat_map(|(i, node)| files_in(node, &crate::tree::item(path, i))).collect()
        }
        _ => Vec::new(),
    }
}
