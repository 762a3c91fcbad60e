//! Where the JSON Schema of a scenario has a leaf: a reference, which [`super::schema`] resolves to the leaves of a build.

use schemars::{Schema, SchemaGenerator, json_schema};

pub(super) fn world(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/world" })
}

pub(super) fn policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/policy" })
}

pub(super) fn method(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/method" })
}

pub(super) fn environment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/environment" })
}

pub(super) fn tools(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "$ref": "#/$defs/toolkit" } })
}

pub(super) fn topology(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "$ref": "#/$defs/topology" })
}

pub(super) fn metrics(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "$ref": "#/$defs/metric" } })
}
