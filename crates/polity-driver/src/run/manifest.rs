//! `manifest.json`: everything that determines a run, and its build.

use super::prepare::{InputEntry, Prepared};
use polity_kernel::ask::TargetKind;
use polity_kernel::scenario::{Assembled, Price, Scenario};
use polity_kernel::society::Society;
use polity_kernel::tool::Listed;
use polity_kernel::tree;
use polity_kernel::world::Activation;
use polity_models::models::prices::Prices;
use polity_models::models::{Capabilities, Providers};
use polity_store::DriveError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Format version of the run folder.
pub const FORMAT: u32 = 13;

/// The build that started a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of Polity.
    pub version: String,
    /// Target of the build.
    pub target: String,
}

impl Build {
    /// The present build.
    pub(crate) fn this() -> Build {
        Build {
            version: env!("CARGO_PKG_VERSION").into(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        }
    }
}

/// The run from which another was forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its name.
    pub run: String,
    /// Its folder at the time.
    pub folder: String,
    /// The first round that may differ.
    pub at: u32,
}

/// The description of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the run folder.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// The scenario's file, as given.
    pub source: String,
    /// The flags that changed the scenario, as separate shell words.
    #[serde(default)]
    pub edits: Vec<String>,
    /// When agents act; absent in an evaluation.
    #[serde(default)]
    pub activation: Option<Activation>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The build that started it.
    pub build: Build,
    /// The scenario with all edits.
    pub scenario: Value,
    /// The files it reads.
    pub inputs: Vec<InputEntry>,
    /// The models it calls.
    pub models: Vec<String>,
    /// Prices of these models in US dollars per million tokens, used for the run's costs: from the scenario, else from the shipped table.
    /// Models whose provider reports costs, and those of unknown price, are absent.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// Whether requests are sent in batches, if the provider supports them. It affects prices, not answers.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub batch: bool,
    /// Capabilities of external models, as far as known at the start of the run; simulated ones are absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub capabilities: BTreeMap<String, Capabilities>,
    /// The tools that toolkits listed themselves at the start of the run, by the names of their entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub listed: BTreeMap<String, Arc<Listed>>,
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
            activation: activation_of(machine),
            seed: scenario.seed,
            build: Build::this(),
            scenario: prepared.tree.to_json(),
            inputs: prepared.files.iter().map(|file| file.entry.clone()).collect(),
            models,
            prices: prices.by_name().clone(),
            batch,
            capabilities,
            listed: prepared.inputs.tools.clone(),
            simulated,
            forked_from,
        }
    }

    /// Whether all its prices are known, so that zero cost means free.
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.simulated || self.models.iter().all(|model| self.prices.contains_key(model))
    }

    /// Whether the price of a model is known, so that a call of it without cost was free. `providers`: those of this build.
    #[must_use]
    pub fn knows_price(&self, model: &str, providers: &Providers) -> bool {
        let tells = || providers.for_model(model).map_or(self.is_priced(), |provider| provider.tells_costs());
        self.prices.contains_key(model) || TargetKind::of(model) != TargetKind::Model || tells()
    }

    /// Its text in the file and in the journal.
    pub(super) fn text(&self) -> Result<String, DriveError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| DriveError::Folder(format!("the manifest cannot be written: {error}")))
    }

    /// Parses the text of [`Manifest::text`]. `from`: its location.
    pub(super) fn from_text(text: &str, from: &Path) -> Result<Self, DriveError> {
        serde_json::from_str(text)
            .map_err(|error| DriveError::Folder(format!("{} cannot be read: {error}", from.display())))
    }

    /// The first key at which a file differs from the record, in words; `None` if all values are equal.
    pub(super) fn change(file: &str, recorded: &str) -> Option<String> {
        let read = |text: &str| serde_json::from_str::<Value>(text);
        match (read(file), read(recorded)) {
            (Ok(file), Ok(recorded)) => differing("", &file, &recorded),
            (Err(error), _) => Some(format!("it cannot be read ({error})")),
            (_, Err(error)) => Some(format!("the journal's copy of it cannot be read ({error})")),
        }
    }
}

/// The first difference between two values, by path, in words.
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

pub(super) fn activation_of(machine: &Assembled) -> Option<Activation> {
    machine.society().map(Society::activation)
}

/// The models that a run calls.
pub(crate) struct Asked {
    /// Their names.
    pub models: Vec<String>,
    /// Whether some of them are simulated.
    pub simulated: bool,
    /// Their prices, as far as known.
    pub prices: Prices,
    /// Whether they are called in batches, if supported.
    pub batch: bool,
}
