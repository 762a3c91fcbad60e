//! The JSON Schema of a tree: any value.

use super::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// A part that is read later, or whose keys the scenario chooses: any value.
impl JsonSchema for Node {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}
