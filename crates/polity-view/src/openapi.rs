//! The description of the interface, made from the types of its routes.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value as Json, json};

/// What is known of the routes so far.
pub(crate) struct Description {
    generator: SchemaGenerator,
    paths: Map<String, Json>,
}

impl Description {
    pub fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Description { generator: settings.into_generator(), paths: Map::new() }
    }

    /// Adds a route. `Q`: its query; `B`: its body, if it is a POST; `T`: its response.
    pub fn add<Q: JsonSchema, B: JsonSchema, T: JsonSchema>(&mut self, method: &str, path: &str, doc: &str) {
        let mut parameters: Vec<Json> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        let query = Q::json_schema(&mut self.generator);
        let required: Vec<&str> = of(&query, "required")
            .and_then(Json::as_array)
            .map_or_else(Vec::new, |names| names.iter().filter_map(Json::as_str).collect());
        for (name, schema) in of(&query, "properties").and_then(Json::as_object).into_iter().flatten() {
            let description = schema.get("description").cloned().unwrap_or_else(|| json!(""));
            parameters.push(json!({
                "name": name, "in": "query", "required": required.contains(&name.as_str()),
                "description": description, "schema": schema,
            }));
        }
        let response = self.generator.subschema_for::<T>();
        let json_of = |schema: &Schema| json!({ "application/json": { "schema": schema } });
        let error = json!({ "type": "object", "properties": { "error": { "type": "string" } } });
        let mut operation = json!({
            "summary": doc,
            "parameters": parameters,
            "responses": {
                "200": { "description": "done", "content": json_of(&response) },
                "4XX": { "description": "what is wrong with the request", "content": { "application/json": { "schema": error } } },
            },
        });
        if method == "post" {
            let body = self.generator.subschema_for::<B>();
            operation["requestBody"] = json!({ "required": true, "content": json_of(&body) });
        }
        let entry = self.paths.entry(path.to_string()).or_insert_with(|| json!({}));
        entry[method] = operation;
    }

    /// The whole description.
    pub fn finish(mut self) -> Json {
        let schemas = self.generator.take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Polity viewer",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Runs, their agents, messages, calls and metrics, and orders to active runs. Rows are also sent as Arrow: ask with `Accept: application/vnd.apache.arrow.stream`.",
            },
            "paths": self.paths,
            "components": { "schemas": schemas },
        })
    }
}

fn of<'a>(schema: &'a Schema, key: &str) -> Option<&'a Json> {
    schema.as_object()?.get(key)
}
