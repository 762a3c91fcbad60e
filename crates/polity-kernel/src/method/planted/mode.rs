//! What can be planted: failure modes of teams, and faults of discussions.

use crate::failure::{DiscussionFault, FailureMode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// What goes wrong on purpose. Its names are those of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PlantedMode {
    /// A failure mode of teams.
    Failure(FailureMode),
    /// A fault of a discussion, from a turn on.
    Discussion(DiscussionFault),
}

impl PlantedMode {
    /// The names of all, in order.
    const NAMES: &'static [&'static str] = &[
        "disobey-task-specification",
        "disobey-role-specification",
        "step-repetition",
        "loss-of-conversation-history",
        "unaware-of-termination-conditions",
        "conversation-reset",
        "fail-to-ask-for-clarification",
        "task-derailment",
        "information-withholding",
        "ignored-other-agents-input",
        "reasoning-action-mismatch",
        "premature-termination",
        "no-or-incomplete-verification",
        "incorrect-verification",
        "problem-drift",
        "alignment-collapse",
        "monopolisation",
    ];

    fn all() -> impl Iterator<Item = PlantedMode> {
        let discussions = DiscussionFault::ALL.map(PlantedMode::Discussion);
        FailureMode::ALL.map(PlantedMode::Failure).into_iter().chain(discussions)
    }

    /// Returns its name in scenarios and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PlantedMode::Failure(mode) => mode.name(),
            PlantedMode::Discussion(fault) => fault.name(),
        }
    }
}

impl fmt::Display for PlantedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for PlantedMode {
    // Manual, because an untagged enum would lose the location of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl serde::de::Visitor<'_> for Read {
            type Value = PlantedMode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a failure mode or of a fault of a discussion")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<PlantedMode, E> {
                let found = PlantedMode::all().find(|mode| mode.name() == name);
                found.ok_or_else(|| E::unknown_variant(name, PlantedMode::NAMES))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

impl JsonSchema for PlantedMode {
    fn schema_name() -> Cow<'static, str> {
        "PlantedMode".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = [FailureMode::json_schema(generator), DiscussionFault::json_schema(generator)];
        let options = kinds.iter().filter_map(|kind| kind.get("oneOf").and_then(Value::as_array)).flatten();
        let mut schema = Schema::default();
        let about = "What goes wrong: one of the 14 failure modes of teams, in the order of their paper, or one of three faults of discussions.";
        schema.insert("description".into(), about.into());
        schema.insert("oneOf".into(), json!(options.cloned().collect::<Vec<Value>>()));
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_written_and_in_the_schema() {
        let names: Vec<&str> = PlantedMode::all().map(PlantedMode::name).collect();
        assert_eq!(names, PlantedMode::NAMES);
        let schema = schemars::schema_for!(PlantedMode);
        let options = schema.get("oneOf").and_then(Value::as_array).unwrap();
        assert_eq!(options.len(), names.len());
        for (mode, option) in PlantedMode::all().zip(options) {
            let written = serde_json::to_value(mode).unwrap();
            assert_eq!(written, json!(mode.name()));
            assert_eq!(option["const"], written);
            assert_eq!(serde_json::from_value::<PlantedMode>(written).unwrap(), mode);
        }
        assert!(serde_json::from_value::<PlantedMode>(json!("drift")).is_err());
    }
}
