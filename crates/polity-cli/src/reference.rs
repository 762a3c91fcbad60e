//! The chapter of the book that describes scenarios, generated from the schema and so from the types that read them.

use polity_kernel::registry::Registry;
use polity_kernel::scenario::{self, MetricKeys, ToolkitKeys};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEAD: &str = "\
<!-- Made by `polity reference`; a test holds this file equal to what it prints. -->
# Scenarios

A scenario is a YAML file. It describes a society (`world`, `cohorts`) or an evaluation (`method`, `items`), and with a
seed and a build it fully determines a run. Unknown keys are errors, with line, column and the nearest known key.

Editors complete and check scenarios with the JSON Schema that `polity schema` prints. If the editor uses
yaml-language-server (VS Code, Neovim, Emacs, Helix and others), name the schema in the first line of a scenario:

```console
$ polity schema > scenario.schema.json
```

```yaml
# yaml-language-server: $schema=scenario.schema.json
```

A `kind` chooses the leaf, and the keys beside it are the leaf's own. If all of them have defaults, the name alone is
enough: `policy: noise` is `policy: {kind: noise}`. `polity validate` checks more than the schema can say.

## Files that a scenario reads

Paths are relative to the scenario. The contents of a file are sent to models and kept in run folders, and a scenario
may come from elsewhere. So a scenario reads only files below its own folder, after links are followed, and no hidden
ones. If many scenarios share data, a file `.polity-root` marks the folder of the project: scenarios below it may read
files below it. `--allow-read FOLDER` allows more. What you name yourself, in `-P population.file=...` or with `--task`,
may lie anywhere.

";

/// Kinds of leaves, with titles and introductions of their sections.
const KINDS: [(&str, &str, &str); 7] = [
    (
        "world",
        "Worlds",
        "What agents live in: what they see, what they can do, what becomes of it. Every environment is a world, too.",
    ),
    (
        "environment",
        "Environments",
        "Where work is done step by step: tools, games. A team works on items in one (`environment`), and agents sit \
         in episodes of it (`world`).",
    ),
    ("policy", "Policies", "How the agents of a cohort behave."),
    ("method", "Methods", "How a team works on an item of a data set."),
    ("toolkit", "Toolkits", "Tools that agents call (`tools`). All have these keys, and most have more:"),
    ("metric", "Metrics", "Numbers that describe a round. All have these keys, and some have more:"),
    (
        "topology",
        "Topologies",
        "Who can hear whom. Without a topology, agents of a society hear nobody, and members of a team hear everybody.",
    ),
];

/// The chapter, as Markdown: all keys but those of leaves, which their READMEs describe.
pub fn reference(registry: &Registry) -> String {
    let schema = scenario::schema(registry);
    let book = Book::new(&schema, "");
    let mut text = HEAD.to_owned();
    text.push_str("## Top level\n\n");
    book.keys(&schema, &mut text);
    let is_leaf = |name: &str| KINDS.iter().any(|(kind, ..)| name.split('.').next() == Some(kind));
    for (name, definition) in book.definitions.iter().filter(|(name, _)| !is_leaf(name)) {
        book.section("##", name, definition, &mut text);
    }
    for (kind, title, about) in KINDS {
        let _ = write!(text, "## {title}\n\n{about}\n\n");
        let shared = match kind {
            "metric" => schemars::schema_for!(MetricKeys),
            "toolkit" => schemars::schema_for!(ToolkitKeys),
            _ => schemars::Schema::default(),
        };
        book.keys(&serde_json::to_value(shared).unwrap_or_default(), &mut text);
        if kind != "topology" {
            let kinds = plural(kind);
            let _ = write!(
                text,
                "`polity list {kinds}` lists them. The keys of each are in the README of its folder in `crates/polity-catalog/{kinds}/`.\n\n"
            );
        }
        // Topologies, and toolkits whose calls the driver makes, are not folders of the catalogue.
        let outside = registry.toolkits().into_iter().filter(|card| card.files.folder.is_empty());
        let outside: Vec<String> = outside.map(|card| format!("toolkit.{}", card.name)).collect();
        let is_described = |name: &str| kind == "topology" || outside.iter().any(|known| known == name);
        let leaves = book.definitions.iter().filter(|(name, _)| name.split('.').count() == 2 && is_described(name));
        for (leaf, definition) in leaves.filter(|(name, _)| name.split('.').next() == Some(kind)) {
            book.section("###", leaf, definition, &mut text);
            book.types_of(leaf, "####", &mut text);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The keys of a leaf, as Markdown; `None` where there is no such leaf. `kind` is a folder of the catalogue, such as `worlds`.
pub fn of_leaf(registry: &Registry, kind: &str, name: &str) -> Option<String> {
    let schema = scenario::schema(registry);
    let (kind, ..) = KINDS.iter().find(|(singular, ..)| plural(singular) == kind)?;
    let leaf = format!("{kind}.{name}");
    let book = Book::new(&schema, &leaf);
    let (_, definition) = book.definitions.iter().find(|(known, _)| *known == leaf)?;
    let mut text = String::new();
    book.keys(definition, &mut text);
    book.types_of(&leaf, "###", &mut text);
    let keys = text.trim_end();
    Some(if keys.is_empty() { "It has nothing to set.\n".to_owned() } else { format!("{keys}\n") })
}

/// The keys of a leaf, or of a type that only it uses.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyTable {
    /// The key that the type is the value of; empty for the leaf itself.
    pub title: String,
    /// What the type is.
    pub about: String,
    /// Key, value, default, meaning.
    pub rows: Vec<[String; 4]>,
    /// The values of a choice, each with its meaning.
    pub options: Vec<(String, String)>,
}

/// The keys of a leaf and of its own types, for a terminal. `kind` is a kind of leaf, such as `world`.
pub fn key_tables(registry: &Registry, kind: &str, name: &str) -> Vec<KeyTable> {
    let schema = scenario::schema(registry);
    let leaf = format!("{kind}.{name}");
    let book = Book { plain: true, ..Book::new(&schema, &leaf) };
    let (own, inner) = (leaf.clone(), format!("{leaf}."));
    let of_leaf = book.definitions.iter().filter(|(name, _)| *name == own || name.starts_with(&inner));
    let table = |(name, definition): &(&str, &Value)| {
        let title = if *name == own { String::new() } else { book.title(name) };
        let about = if *name == own { String::new() } else { prose(definition["description"].as_str().unwrap_or("")) };
        let option = |option: &Value| (book.kind_of(option), prose(option["description"].as_str().unwrap_or_default()));
        let options = options(definition).into_iter().flatten().map(option).collect();
        KeyTable { title, about, rows: book.rows(definition), options }
    };
    of_leaf.map(table).filter(|table| !table.rows.is_empty() || !table.options.is_empty()).collect()
}

/// The folder of a kind of leaf.
pub fn plural(kind: &str) -> String {
    kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"))
}

struct Book<'a> {
    definitions: Vec<(&'a str, &'a Value)>,
    /// The leaf whose keys alone are on the page; empty for the chapter.
    of: &'a str,
    /// Whether it is read in a terminal, which has no links.
    plain: bool,
    /// Titles of definitions: the key that they are the value of, and not their type in the code.
    titles: BTreeMap<&'a str, String>,
}

impl<'a> Book<'a> {
    fn new(schema: &'a Value, of: &'a str) -> Self {
        let definitions: Vec<(&str, &Value)> =
            schema["$defs"].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
        let mut titles: BTreeMap<&str, String> =
            KINDS.iter().map(|(kind, title, _)| (*kind, (*title).to_owned())).collect();
        for (owner, definition) in [("", schema)].into_iter().chain(definitions.iter().copied()) {
            // An environment is also a world of the same name; keep their types apart.
            let leaf = match owner.split_once('.') {
                Some(("environment", _)) => format!("{owner}."),
                Some((_, leaf)) => format!("{leaf}."),
                None => String::new(),
            };
            if let Some(name) = owner.split_once('.').map(|(_, leaf)| leaf).filter(|leaf| !leaf.contains('.')) {
                titles.insert(owner, name.to_owned());
            }
            for (key, value) in definition["properties"].as_object().into_iter().flatten() {
                if let Some(target) = target(value) {
                    titles.entry(target).or_insert_with(|| format!("{leaf}{key}"));
                }
            }
        }
        // A key may have the name of a leaf (`team`), but headings must differ so that links to them work.
        let leaves: Vec<String> = definitions
            .iter()
            .filter(|(name, _)| name.split('.').count() == 2)
            .map(|(name, _)| titles.get(name).cloned().unwrap_or_default())
            .collect();
        for (_, title) in titles.iter_mut().filter(|(name, title)| !name.contains('.') && leaves.contains(title)) {
            title.push_str(" (key)");
        }
        Book { definitions, of, plain: false, titles }
    }

    fn title(&self, name: &str) -> String {
        self.titles.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The types that only a leaf uses, such as `world.opinion.Initial`.
    fn types_of(&self, leaf: &str, level: &str, text: &mut String) {
        let own = format!("{leaf}.");
        let own = self.definitions.iter().filter(|(name, _)| name.starts_with(&own));
        own.for_each(|(name, definition)| self.section(level, name, definition, text));
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

    /// Writes a table of the keys of a map; nothing if it has none.
    fn keys(&self, schema: &Value, text: &mut String) {
        let rows = self.rows(schema);
        if rows.is_empty() {
            return;
        }
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        for [key, value, default, about] in rows {
            let _ = writeln!(text, "| {key} | {value} | {default} | {about} |");
        }
        text.push('\n');
    }

    /// The keys of a map: key, value, default, meaning. `kind`, and what all metrics share, are at the head of the kind.
    fn rows(&self, schema: &Value) -> Vec<[String; 4]> {
        let properties = schema["properties"].as_object();
        let of_leaf = properties.is_some_and(|keys| keys.contains_key("kind"));
        let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
        let of_metric = of_leaf && properties.is_some_and(|keys| keys.contains_key("of"));
        let told = |key: &str| of_leaf && key == "kind" || of_metric && ["of", "by", "every"].contains(&key);
        let row = |(key, schema): (&String, &Value)| {
            let default = match schema.get("default") {
                _ if required(key) => "needed".to_owned(),
                Some(Value::Null) | None => String::new(),
                Some(Value::String(text)) if text.is_empty() => "empty".into(),
                // A row of a table is one line.
                Some(Value::String(text)) if text.contains('\n') => {
                    format!("`{} ...`", text.lines().next().unwrap_or_default())
                }
                Some(default) => format!("`{}`", flow(default)),
            };
            let about = prose(schema["description"].as_str().unwrap_or_default());
            [format!("`{key}`"), self.kind_of(schema), default, about]
        };
        properties.into_iter().flatten().filter(|(key, _)| !told(key)).map(row).collect()
    }

    /// Describes in words what a value must be.
    fn kind_of(&self, schema: &Value) -> String {
        if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix(DEFINITIONS)) {
            let title = self.title(target);
            if self.plain || !self.of.is_empty() && !target.starts_with(self.of) {
                return title;
            }
            // As mdBook makes anchors of headings.
            return format!("[{title}](#{})", title.to_lowercase().replace(['.', '(', ')'], "").replace(' ', "-"));
        }
        if let Some(value) = schema.get("const") {
            return format!("`{}`", flow(value));
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().map(|value| format!("`{}`", flow(value))).collect::<Vec<_>>().join(", ");
        }
        if let Some(options) = options(schema) {
            // Every scalar of a policy may differ by agent; the chapter on populations says how.
            let plain = |option: &&Value| option["type"] != "null" && option["$ref"] != "#/$defs/by_agent";
            let options = options.iter().filter(plain);
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

/// Returns the definition of a value or of its entries.
fn target(schema: &Value) -> Option<&str> {
    let own = schema["$ref"].as_str().and_then(|target| target.strip_prefix(DEFINITIONS));
    own.or_else(|| schema.get("items").and_then(target))
        .or_else(|| options(schema).and_then(|options| options.iter().find_map(target)))
}

fn options(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)
}

/// Formats a value in YAML's flow style.
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

/// Formats a doc comment as a line of Markdown; its links into the code become code.
fn prose(doc: &str) -> String {
    doc.replace("\n\n", " ").replace('\n', " ").replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}
