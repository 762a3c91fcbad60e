//! The chapter of the book that describes scenarios, made of the schema and so of the types that read them.

use polity_kernel::registry::Registry;
use polity_kernel::scenario;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const HEAD: &str = "\
<!-- Made by `polity reference`; a test holds this file equal to what it prints. -->
# Scenarios

A scenario is a YAML file. It describes a society (`world`, `cohorts`) or an evaluation (`method`, `items`), and with a
seed and a build it fully determines a run. Unknown keys are errors, with line, column and the nearest known key.

Editors complete and check scenarios by the JSON Schema that `polity schema` prints. Where the editor speaks to
yaml-language-server (VS Code, Neovim, Emacs, Helix and others), name the file in the first line of a scenario:

```console
$ polity schema > scenario.schema.json
```

```yaml
# yaml-language-server: $schema=scenario.schema.json
```

A `kind` chooses the leaf, and the keys beside it are the leaf's own. Where all of them have defaults, the name alone
does: `policy: noise` is `policy: {kind: noise}`. `polity validate` checks more than the schema can say.

";

/// Kinds of leaves, as a chapter calls them.
const KINDS: [(&str, &str, &str); 5] = [
    ("world", "Worlds", "Environments: what agents see, what they can do, what becomes of it."),
    ("policy", "Policies", "How the agents of a cohort behave."),
    ("method", "Methods", "How a team works on an item of a data set."),
    (
        "metric",
        "Metrics",
        "Numbers that describe a round. Keys beside the metric's own: `of`, a column of the world or an act; `every`.",
    ),
    (
        "topology",
        "Topologies",
        "Who can hear whom. A society without one hears nobody; a team without one hears everybody.",
    ),
];

/// The whole chapter, as Markdown.
pub fn reference(registry: &Registry) -> String {
    let schema = scenario::schema(registry);
    let empty = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&empty);
    let mut text = HEAD.to_owned();
    text.push_str("## Top level\n\n");
    keys(&schema, "", &mut text);
    let is_leaf = |name: &str| KINDS.iter().any(|(kind, ..)| name == *kind || name.starts_with(&format!("{kind}.")));
    for (name, definition) in definitions.iter().filter(|(name, _)| !is_leaf(name)) {
        section("##", name, definition, "", &mut text);
    }
    for (kind, title, about) in KINDS {
        let _ = write!(text, "## {title}\n\n{about}\n\n");
        let prefix = format!("{kind}.");
        for (name, definition) in definitions {
            match name.strip_prefix(&prefix) {
                Some(leaf) if !leaf.contains('.') => section("###", leaf, definition, &format!("{name}."), &mut text),
                _ => {}
            }
        }
        for (name, definition) in definitions {
            match name.strip_prefix(&prefix) {
                // A type that only this leaf uses, `world.opinion.Initial`.
                Some(own) if own.contains('.') => section("####", own, definition, "", &mut text),
                _ => {}
            }
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn section(level: &str, name: &str, schema: &Value, prefix: &str, text: &mut String) {
    let _ = write!(text, "{level} {name}\n\n");
    if let Some(about) = schema["description"].as_str() {
        let _ = write!(text, "{}\n\n", prose(about));
    }
    if schema.get("properties").is_some() {
        keys(schema, prefix, text);
    } else if let Some(options) = options(schema) {
        for option in options {
            let about = option["description"].as_str().map(|about| format!(": {}", prose(about))).unwrap_or_default();
            let _ = writeln!(text, "- {}{about}", kind_of(option, prefix));
        }
        text.push('\n');
    }
}

fn options(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)
}

/// A table of the keys of a map; nothing if a leaf has none but `kind`.
fn keys(schema: &Value, prefix: &str, text: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
    let rows: Vec<_> = properties.iter().filter(|(key, _)| *key != "kind").collect();
    if rows.is_empty() {
        return;
    }
    text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for (key, schema) in rows {
        let default = match schema.get("default") {
            _ if required(key) => "needed".to_owned(),
            Some(Value::Null) | None => String::new(),
            Some(Value::String(text)) if text.is_empty() => "empty".into(),
            Some(default) => format!("`{}`", flow(default)),
        };
        let about = prose(schema["description"].as_str().unwrap_or_default());
        let _ = writeln!(text, "| `{key}` | {} | {default} | {about} |", kind_of(schema, prefix).replace('|', "\\|"));
    }
    text.push('\n');
}

/// What a value must be, in words.
fn kind_of(schema: &Value, prefix: &str) -> String {
    if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/")) {
        let kind = KINDS.iter().find(|(kind, ..)| *kind == target);
        return match kind {
            Some((_, title, _)) => format!("[{title}](#{})", title.to_lowercase()),
            None => {
                let title = target.split_once('.').map_or(target, |(_, rest)| rest);
                let shown = target.strip_prefix(prefix).filter(|_| !prefix.is_empty()).unwrap_or(title);
                // As mdBook makes anchors of headings.
                format!("[{shown}](#{})", title.to_lowercase().replace('.', ""))
            }
        };
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", flow(value));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", flow(value))).collect::<Vec<_>>().join(", ");
    }
    if let Some(options) = options(schema) {
        let options = options.iter().filter(|option| option["type"] != "null");
        return options.map(|option| kind_of(option, prefix)).collect::<Vec<_>>().join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find_map(Value::as_str).unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    match kind {
        "integer" => "whole number".into(),
        "string" => "text".into(),
        "boolean" => "`true` or `false`".into(),
        "array" => format!("list of {}", kind_of(&schema["items"], prefix)),
        "object" => match schema["properties"].as_object() {
            // The way that a choice with a value is written, `{lag: 2}`.
            Some(properties) => {
                let entries = properties.iter().map(|(key, value)| match value["properties"].as_object() {
                    None if value["type"] == "object" => format!("`{key}: {{}}`"),
                    _ => format!("`{key}:` {}", kind_of(value, prefix)),
                });
                entries.collect::<Vec<_>>().join(", ")
            }
            None => "map".into(),
        },
        "" => "any value".into(),
        kind => kind.into(),
    }
}

/// A value as YAML's flow style has it.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            format!(
                "{{{}}}",
                entries.map(|(key, value)| format!("{key}: {}", flow(value))).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

/// A doc comment as a line of Markdown; its links into the code become code.
fn prose(doc: &str) -> String {
    doc.replace("\n\n", " ").replace('\n', " ").replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}
