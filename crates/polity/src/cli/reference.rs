//! The chapter of the book that describes scenarios, made of the schema and so of the types that read them.

use polity_kernel::registry::Registry;
use polity_kernel::scenario::{self, MetricKeys};
use serde_json::Value;
use std::collections::BTreeMap;
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

## Files that a scenario reads

Paths are relative to the scenario. What a file holds is sent to models and kept in run folders, and scenarios come from
elsewhere: so a scenario reads files below its own folder only, once links are followed, and no hidden ones. Where many
scenarios share data, a file `.polity-root` marks the folder of the project: scenarios below it may read files below it.
`--allow-read FOLDER` allows more. What you name yourself, in `-P population.file=...` or with `--task`, may lie anywhere.

";

/// Kinds of leaves, as a chapter calls them.
const KINDS: [(&str, &str, &str); 5] = [
    ("world", "Worlds", "Environments: what agents see, what they can do, what becomes of it."),
    ("policy", "Policies", "How the agents of a cohort behave."),
    ("method", "Methods", "How a team works on an item of a data set."),
    ("metric", "Metrics", "Numbers that describe a round. All have these keys, and some have more:"),
    (
        "topology",
        "Topologies",
        "Who can hear whom. A society without one hears nobody; a team without one hears everybody.",
    ),
];

/// The whole chapter, as Markdown.
pub fn reference(registry: &Registry) -> String {
    let schema = scenario::schema(registry);
    let book = Book::new(&schema);
    let mut text = HEAD.to_owned();
    text.push_str("## Top level\n\n");
    book.keys(&schema, &mut text);
    let is_leaf = |name: &str| KINDS.iter().any(|(kind, ..)| name.split('.').next() == Some(kind));
    for (name, definition) in book.definitions.iter().filter(|(name, _)| !is_leaf(name)) {
        book.section("##", name, definition, &mut text);
    }
    for (kind, title, about) in KINDS {
        let _ = write!(text, "## {title}\n\n{about}\n\n");
        if kind == "metric" {
            let shared = serde_json::to_value(schemars::schema_for!(MetricKeys)).unwrap_or_default();
            book.keys(&shared, &mut text);
        }
        let leaves = book.definitions.iter().filter(|(name, _)| name.split('.').count() == 2);
        for (leaf, definition) in leaves.filter(|(name, _)| name.split('.').next() == Some(kind)) {
            book.section("###", leaf, definition, &mut text);
            // Types that only this leaf uses, `world.opinion.Initial`.
            let own = book.definitions.iter().filter(|(name, _)| name.starts_with(&format!("{leaf}.")));
            own.for_each(|(name, definition)| book.section("####", name, definition, &mut text));
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

struct Book<'a> {
    definitions: Vec<(&'a str, &'a Value)>,
    /// What a definition is called: by the key that it is the value of, and not by its type in the code.
    titles: BTreeMap<&'a str, String>,
}

impl<'a> Book<'a> {
    fn new(schema: &'a Value) -> Self {
        let definitions: Vec<(&str, &Value)> =
            schema["$defs"].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
        let mut titles: BTreeMap<&str, String> =
            KINDS.iter().map(|(kind, title, _)| (*kind, (*title).to_owned())).collect();
        for (owner, definition) in [("", schema)].into_iter().chain(definitions.iter().copied()) {
            let leaf = owner.split_once('.').map(|(_, leaf)| format!("{leaf}.")).unwrap_or_default();
            if let Some(name) = owner.split_once('.').map(|(_, leaf)| leaf).filter(|leaf| !leaf.contains('.')) {
                titles.insert(owner, name.to_owned());
            }
            for (key, value) in definition["properties"].as_object().into_iter().flatten() {
                if let Some(target) = target(value) {
                    titles.entry(target).or_insert_with(|| format!("{leaf}{key}"));
                }
            }
        }
        Book { definitions, titles }
    }

    fn title(&self, name: &str) -> String {
        self.titles.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    fn section(&self, level: &str, name: &str, schema: &Value, text: &mut String) {
        let _ = write!(text, "{level} {}\n\n", self.title(name));
        if let Some(about) = schema["description"].as_str() {
            let _ = write!(text, "{}\n\n", prose(about));
        }
        self.keys(schema, text);
        if let Some(options) = options(schema) {
            for option in options {
                let about =
                    option["description"].as_str().map(|about| format!(": {}", prose(about))).unwrap_or_default();
                let _ = writeln!(text, "- {}{about}", self.kind_of(option));
            }
            text.push('\n');
        }
    }

    /// A table of the keys of a map; nothing if there are none. `kind`, and what all metrics share, stand at the head of the kind.
    fn keys(&self, schema: &Value, text: &mut String) {
        let properties = schema["properties"].as_object();
        let of_leaf = properties.is_some_and(|keys| keys.contains_key("kind"));
        let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
        let of_metric = of_leaf && properties.is_some_and(|keys| keys.contains_key("of"));
        let told = |key: &str| of_leaf && key == "kind" || of_metric && ["of", "every"].contains(&key);
        let rows: Vec<_> = properties.into_iter().flatten().filter(|(key, _)| !told(key)).collect();
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
            let _ = writeln!(text, "| `{key}` | {} | {default} | {about} |", self.kind_of(schema));
        }
        text.push('\n');
    }

    /// What a value must be, in words.
    fn kind_of(&self, schema: &Value) -> String {
        if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix(DEFINITIONS)) {
            let title = self.title(target);
            // As mdBook makes anchors of headings.
            return format!("[{title}](#{})", title.to_lowercase().replace('.', ""));
        }
        if let Some(value) = schema.get("const") {
            return format!("`{}`", flow(value));
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().map(|value| format!("`{}`", flow(value))).collect::<Vec<_>>().join(", ");
        }
        if let Some(options) = options(schema) {
            let options = options.iter().filter(|option| option["type"] != "null");
            return options.map(|option| self.kind_of(option)).collect::<Vec<_>>().join(" or ");
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find_map(Value::as_str).unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "integer" => "whole number".into(),
            "string" => "text".into(),
            "boolean" => "`true` or `false`".into(),
            "array" => match schema["prefixItems"].as_array() {
                Some(items) => {
                    let items = items.iter().map(|item| self.kind_of(item));
                    format!("list: {}", items.collect::<Vec<_>>().join(", "))
                }
                None => format!("list of {}", self.kind_of(&schema["items"])),
            },
            // The way that a choice with a value is written, `{lag: 2}`.
            "object" => match schema["properties"].as_object() {
                Some(properties) => {
                    let entry = |(key, value): (&String, &Value)| match value["type"] == "object" {
                        true => format!("`{{{key}: {{}}}}`"),
                        false => format!("`{key}:` {}", self.kind_of(value)),
                    };
                    properties.iter().map(entry).collect::<Vec<_>>().join(", ")
                }
                None => "map".into(),
            },
            "" => "any value".into(),
            kind => kind.into(),
        }
    }
}

const DEFINITIONS: &str = "#/$defs/";

/// The definition that a value is made by, itself or its entries.
fn target(schema: &Value) -> Option<&str> {
    let own = schema["$ref"].as_str().and_then(|target| target.strip_prefix(DEFINITIONS));
    own.or_else(|| schema.get("items").and_then(target))
        .or_else(|| options(schema).and_then(|options| options.iter().find_map(target)))
}

fn options(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)
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
