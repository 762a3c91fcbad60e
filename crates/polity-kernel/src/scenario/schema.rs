//! The JSON Schema of a scenario, made from the types that read it and from every leaf's parameters.

use super::Scenario;
use crate::registry::{LeafInfo, Registry};
use crate::topology;
use schemars::Schema;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// A leaf as an entry of its kind's union.
struct Leaf<'a> {
    name: &'a str,
    summary: &'a str,
    parameters: Value,
}

impl<'a> From<&'a LeafInfo> for Leaf<'a> {
    fn from(card: &'a LeafInfo) -> Self {
        Leaf { name: card.name, summary: card.summary, parameters: card.parameters.clone() }
    }
}

/// Returns the JSON Schema (draft 2020-12) of scenarios for a build with these leaves. What it cannot express, such as that shares
/// sum to 1 or that a world has the act a policy needs, `validate` checks.
#[must_use]
pub fn schema(registry: &Registry) -> Value {
    let mut root = object(&schemars::schema_for!(Scenario));
    let mut definitions = definitions(&mut root);
    let topologies = topology::kinds().into_iter().map(|(name, schema)| Leaf {
        name,
        summary: "",
        parameters: Value::Object(object(&schema)),
    });
    let shelves: [(&str, Vec<Leaf<'_>>); 7] = [
        ("world", registry.worlds().into_iter().map(Leaf::from).collect()),
        ("policy", registry.policies().into_iter().map(Leaf::from).collect()),
        ("method", registry.methods().into_iter().map(Leaf::from).collect()),
        ("metric", registry.metrics().into_iter().map(Leaf::from).collect()),
        ("environment", registry.environments().into_iter().map(Leaf::from).collect()),
        ("toolkit", registry.toolkits().into_iter().map(Leaf::from).collect()),
        ("topology", topologies.collect()),
    ];
    for (kind, leaves) in shelves {
        let shared = match kind {
            "metric" => object(&schemars::schema_for!(super::MetricKeys)),
            "toolkit" => object(&schemars::schema_for!(super::ToolkitKeys)),
            _ => Object::new(),
        };
        let mut options = Vec::new();
        let mut bare = Vec::new();
        for leaf in leaves {
            let name = format!("{kind}.{}", leaf.name);
            let mut whole = one(&leaf, &shared, &name, &mut definitions);
            if kind == "policy" {
                by_agent(&mut whole, &definitions);
            }
            if whole["required"] == json!(["kind"]) {
                bare.push(leaf.name.to_owned());
            }
            options.push(json!({ "$ref": format!("#/$defs/{name}") }));
            definitions.insert(name, whole);
        }
        if !bare.is_empty() {
            options.push(json!({ "description": "The name alone: every parameter has its default.", "enum": bare }));
        }
        definitions.insert(kind.into(), json!({ "oneOf": options }));
    }
    definitions.insert("by_agent".into(), differs());
    root.insert("title".into(), "Polity scenario".into());
    root.insert("$defs".into(), Value::Object(definitions));
    Value::Object(root)
}

fn object(schema: &Schema) -> Object {
    schema.as_object().cloned().unwrap_or_default()
}

fn definitions(schema: &mut Object) -> Object {
    match schema.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Object::new(),
    }
}

/// Returns the schema of one leaf: its kind, the keys shared by its kind of leaf, and its parameters. Their definitions move to
/// those of the whole under the leaf's name.
fn one(leaf: &Leaf<'_>, shared: &Object, name: &str, all: &mut Object) -> Value {
    let mut parameters = leaf.parameters.as_object().cloned().unwrap_or_default();
    for (own, mut definition) in definitions(&mut parameters) {
        move_references(&mut definition, name);
        all.insert(format!("{name}.{own}"), definition);
    }
    let mut properties = Object::new();
    properties.insert("kind".into(), json!({ "const": leaf.name }));
    let mut required = vec![Value::from("kind")];
    for source in [shared, &parameters] {
        if let Some(Value::Object(own)) = source.get("properties") {
            properties.extend(own.clone());
        }
        if let Some(Value::Array(own)) = source.get("required") {
            required.extend(own.iter().cloned());
        }
    }
    let summary = match leaf.summary {
        "" => parameters.get("description").cloned().unwrap_or_default(),
        summary => summary.into(),
    };
    let mut properties = Value::Object(properties);
    move_references(&mut properties, name);
    json!({
        "title": leaf.name,
        "description": summary,
        "type": "object",
        "properties": properties,
        "required": required,
        // The reader of scenarios refuses unknown keys, whatever the type says.
        "additionalProperties": false,
    })
}

/// Whether a value may be a number, a word or a switch. `depth`: how many references are followed.
fn is_scalar(schema: &Value, definitions: &Object, depth: u32) -> bool {
    if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/")) {
        return depth > 0 && definitions.get(target).is_some_and(|found| is_scalar(found, definitions, depth - 1));
    }
    if let Some(options) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return options.iter().any(|option| is_scalar(option, definitions, depth));
    }
    let types = schema["type"].as_array().map_or_else(|| vec![&schema["type"]], |types| types.iter().collect());
    let is = |name: &Value| ["number", "integer", "string", "boolean"].iter().any(|scalar| name == scalar);
    schema["const"].is_string() || types.into_iter().any(is)
}

/// Lets a policy's numbers, words and switches differ by agent.
fn by_agent(policy: &mut Value, definitions: &Object) {
    let Some(properties) = policy["properties"].as_object_mut() else { return };
    let varies = |key: &str, schema: &Value| key != "kind" && is_scalar(schema, definitions, 3);
    for (_, schema) in properties.iter_mut().filter(|(key, schema)| varies(key, schema)) {
        let mut own = std::mem::take(schema);
        *schema = json!({ "anyOf": [] });
        for key in ["description", "default"] {
            if let Some(value) = own.as_object_mut().and_then(|own| own.remove(key)) {
                schema[key] = value;
            }
        }
        schema["anyOf"] = json!([own, { "$ref": "#/$defs/by_agent" }]);
    }
}

/// A parameter that differs by agent.
fn differs() -> Value {
    json!({
        "description": "A value for each agent: an attribute of the population, or a formula over attributes and draws.",
        "oneOf": [
            {
                "type": "object",
                "properties": { "column": { "type": "string", "description": "An attribute of the population." } },
                "required": ["column"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": { "formula": { "type": "string", "description": "For instance `0.1 + 0.02 * age`, or `normal(0.3, 0.1)`." } },
                "required": ["formula"],
                "additionalProperties": false,
            },
        ],
    })
}

/// `#/$defs/Initial` becomes `#/$defs/world.opinion.Initial`.
fn move_references(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(own) = target.strip_prefix("#/$defs/") {
                            *target = format!("#/$defs/{name}.{own}");
                        }
                    }
                    other => move_references(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, name)),
        _ => {}
    }
}
