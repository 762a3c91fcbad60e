//! `manifest.json`: everything that determines a run, and what made it.

use super::{Asked, Prepared};
use crate::DriveError;
use crate::models::Capabilities;
use polity_kernel::scenario::{Assembled, Price, Scenario};
use polity_kernel::tree;
use polity_kernel::world::Activation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the run folder.
pub const FORMAT: u32 = 10;

/// The build that began a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of Polity.
    pub version: String,
    /// Target of the build.
    pub target: String,
}

impl Build {
    /// The build that asks.
    pub(crate) fn this() -> Build {
        Build {
            version: env!("CARGO_PKG_VERSION").into(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        }
    }
}

/// A file that a run read, as it is kept in `inputs/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEntry {
    /// As the scenario writes it.
    pub path: String,
    /// Its name in `inputs/`.
    pub stored: String,
    /// Bytes.
    pub bytes: u64,
    /// Digest of its bytes.
    pub digest: String,
}

/// The run from which a run was forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its name.
    pub run: String,
    /// Its folder at the time.
    pub folder: String,
    /// The first round that may differ.
    pub at: u32,
}

/// What a run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the run folder.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// The scenario's file, as given.
    pub source: String,
    /// The flags that changed the scenario, word by word as a shell reads them.
    #[serde(default)]
    pub edits: Vec<String>,
    /// When agents act; nothing in an evaluation.
    #[serde(default)]
    pub activation: Option<Activation>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The build that began it.
    pub build: Build,
    /// The scenario with all edits.
    pub scenario: Value,
    /// The files it reads.
    pub inputs: Vec<InputEntry>,
    /// The models it asks.
    pub models: Vec<String>,
    /// US dollars for a million tokens of these models, as the run's costs are computed: the scenario's, else the shipped table's. Those
    /// whose provider tells costs itself, and those of unknown price, are not here.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// Whether questions go together in batches, where their provider has them. It determines prices, and no answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub batch: bool,
    /// What the models of providers outside offer, as far as it was known when the run began; simulated ones are not here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub capabilities: BTreeMap<String, Capabilities>,
    /// Whether answers come from simulated models.
    pub simulated: bool,
    /// The run it was forked from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub forked_from: Option<Origin>,
}

impl Manifest {
    pub(super) fn new(
        prepared: &Prepared,
        scenario: &Scenario,
        machine: &Assembled,
        asked: Asked,
        capabilities: BTreeMap<String, Capabilities>,
        forked_from: Option<Origin>,
    ) -> Self {
        let Asked { models, simulated, prices, batch } = asked;
        Manifest {
            format: FORMAT,
            name: prepared.name.clone(),
            source: prepared.source.clone(),
            edits: prepared.edits.clone(),
            activation: super::activation_of(machine),
            seed: scenario.seed,
            build: Build::this(),
            scenario: prepared.tree.to_json(),
            inputs: prepared.files.iter().map(|file| file.entry.clone()).collect(),
            models,
            prices: prices.by_name().clone(),
            batch,
            capabilities,
            simulated,
            forked_from,
        }
    }

    /// Whether all its prices are known: what cost nothing was for nothing.
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.simulated || self.models.iter().all(|model| self.prices.contains_key(model))
    }

    /// As it stands in its file, and in the journal.
    pub(super) fn text(&self) -> Result<String, DriveError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| DriveError::Folder(format!("the manifest can not be written: {error}")))
    }

    /// Reads what [`Manifest::text`] wrote. `from`: where it stands.
    pub(super) fn from_text(text: &str, from: &Path) -> Result<Self, DriveError> {
        serde_json::from_str(text)
            .map_err(|error| DriveError::Folder(format!("{} can not be read: {error}", from.display())))
    }

    /// The first key in which a file says something else than what was recorded, in words; `None` if all its values are the recorded ones.
    pub(super) fn change(file: &str, recorded: &str) -> Option<String> {
        let read = |text: &str| serde_json::from_str::<Value>(text);
        match (read(file), read(recorded)) {
            (Ok(file), Ok(recorded)) => differing("", &file, &recorded),
            (Err(error), _) => Some(format!("it can not be read ({error})")),
            (_, Err(error)) => Some(format!("the journal's copy of it can not be read ({error})")),
        }
    }
}

/// The first value by its path in which two differ, in words.
fn differing(path: &str, file: &Value, recorded: &Value) -> Option<String> {
    const LONGEST: usize = 80;
    let shown = |value: &Value| {
        let text = value.to_string();
        match text.char_indices().nth(LONGEST) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text,
        }
    };
    match (file, recorded) {
        (Value::Object(file), Value::Object(recorded)) => {
            let of_recorded = recorded.iter().find_map(|(key, recorded)| {
                let path = tree::child(path, key);
                match file.get(key) {
                    Some(file) => differing(&path, file, recorded),
                    None => Some(format!("`{path}` is gone, the journal says {}", shown(recorded))),
                }
            });
            let added = || file.keys().find(|key| !recorded.contains_key(*key));
            of_recorded.or_else(|| added().map(|key| format!("`{}` was added", tree::child(path, key))))
        }
        (Value::Array(file), Value::Array(recorded)) if file.len() == recorded.len() => {
            let mut pairs = file.iter().zip(recorded).enumerate();
            pairs.find_map(|(i, (file, recorded))| differing(&tree::item(path, i), file, recorded))
        }
        (file, recorded) if file == recorded => None,
        (file, recorded) => Some(format!("`{path}` is {}, the journal says {}", shown(file), shown(recorded))),
    }
}
