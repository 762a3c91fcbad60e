//! What a server says of a tool, as it is approved, pinned and shown to models.

use super::Limits;
use polity_kernel::tool::{EffectClass, ToolSpec};
use ring::digest::{SHA256, digest};
use rmcp::model::Tool;
use serde_json::{Map, Value};

/// Maximum characters of a name.
const NAME: usize = 64;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    /// Its name at the server.
    pub name: String,
    /// Whether the server says that a call changes nothing.
    reads: bool,
    title: String,
    description: String,
    arguments: Value,
    pub result: Option<Value>,
}

impl Definition {
    pub fn new(tool: &Tool) -> Self {
        let annotations = tool.annotations.as_ref();
        let title = tool.title.clone().or_else(|| annotations.and_then(|said| said.title.clone()));
        Definition {
            name: tool.name.to_string(),
            reads: annotations.and_then(|said| said.read_only_hint).unwrap_or(false),
            title: title.unwrap_or_default(),
            description: tool.description.as_deref().unwrap_or_default().to_owned(),
            arguments: Value::Object(tool.input_schema.as_ref().clone()),
            result: tool.output_schema.as_ref().map(|schema| Value::Object(schema.as_ref().clone())),
        }
    }

    /// Bytes of it.
    pub fn size(&self) -> usize {
        let result = self.result.as_ref().map_or(0, |schema| schema.to_string().len());
        self.name.len() + self.title.len() + self.description.len() + self.arguments.to_string().len() + result
    }

    /// The name for models: other characters than letters, digits, `_` and `-` become `_`.
    pub fn shown_name(&self) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        self.name.chars().take(NAME).map(|c| if fits(c) { c } else { '_' }).collect()
    }

    /// The tool for models and the schema of its results; or what is wrong with its definition.
    pub fn checked(&self, limits: &Limits) -> Result<(ToolSpec, Option<jsonschema::Validator>), String> {
        let refusal = |what: &str, why: String| self.refusal(&format!("the schema of its {what} {why}"));
        checked(&self.arguments).map_err(|why| refusal("arguments", why))?;
        let result = self.result.as_ref().map(checked).transpose().map_err(|why| refusal("results", why))?;
        let kind = self.arguments.get("type").and_then(Value::as_str);
        if kind != Some("object") {
            return Err(self.refusal("the schema of its arguments does not have the type `object`"));
        }
        let mut arguments = self.arguments.clone();
        clean_descriptions(&mut arguments, limits.description);
        let words = if self.description.is_empty() { &self.title } else { &self.description };
        let effect = if self.reads { EffectClass::Reads } else { EffectClass::Outside };
        let spec = ToolSpec::new(&self.shown_name(), &clean(words, limits.description), &arguments, effect);
        Ok((spec, result))
    }

    fn refusal(&self, why: &str) -> String {
        format!("the tool `{}` is refused: {why}. List the tools to use in `tools`, without it", self.name)
    }

    /// The parts of the definition, and the text of each.
    fn parts(&self) -> [(&'static str, String); 3] {
        let told = format!("{}\n{}\n{}", if self.reads { "reads" } else { "changes" }, self.title, self.description);
        let result = self.result.as_ref().map(canonical).unwrap_or_default();
        [("description", told), ("arguments", canonical(&self.arguments)), ("results", result)]
    }

    /// The hash to pin it by: one of its title, description and effect, one of the schema of its arguments, one of the schema of its
    /// results.
    pub fn pin(&self) -> String {
        self.parts().map(|(_, text)| hash(&text)).join("-")
    }

    /// How it differs from a pin; nothing if it does not.
    pub fn against_pin(&self, pin: &str) -> Option<String> {
        if pin == self.pin() {
            return None;
        }
        let pinned: Vec<&str> = pin.split('-').collect();
        let mut changed = String::new();
        for (at, (part, text)) in self.parts().iter().enumerate() {
            if pinned.get(at) != Some(&hash(text).as_str()) {
                changed += &format!(" Its {part} changed, to: {}.", shown(text));
            }
        }
        Some(changed)
    }

    /// How it differs from what was approved; nothing if it does not.
    pub fn against(&self, approved: &Definition) -> Option<String> {
        if self == approved {
            return None;
        }
        let mut changed = String::new();
        for ((part, now), (_, before)) in self.parts().iter().zip(approved.parts()) {
            if *now != before {
                changed += &format!(" Its {part} changed from {} to {}.", shown(&before), shown(now));
            }
        }
        // The same schema in another order is the same schema.
        (!changed.is_empty()).then_some(changed)
    }
}

/// A text for an error.
fn shown(text: &str) -> String {
    format!("`{}`", clean(text, 300))
}

fn hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON text with the keys in order.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect::<Map<_, _>>())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

/// Removes control characters and those that nobody sees, and cuts a text to a number of characters.
pub(super) fn clean(text: &str, most: usize) -> String {
    let seen = |c: &char| {
        let hidden = matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        !hidden && (!c.is_control() || matches!(*c, '\n' | '\t'))
    };
    let mut cut: String = text.chars().filter(seen).take(most.saturating_add(1)).collect();
    if cut.chars().count() > most {
        cut = cut.chars().take(most.saturating_sub(1)).collect();
        cut.push('…');
    }
    cut
}

/// Cleans the texts in a schema that models read.
fn clean_descriptions(schema: &mut Value, most: usize) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if matches!(key.as_str(), "description" | "title" | "$comment") => {
                        *text = clean(text, most);
                    }
                    value => clean_descriptions(value, most),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_descriptions(item, most)),
        _ => {}
    }
}

/// Checks that a value is a JSON Schema that refers to nothing outside of itself.
fn checked(schema: &Value) -> Result<jsonschema::Validator, String> {
    if let Some(foreign) = foreign_reference(schema) {
        return Err(format!("refers to `{}` outside of itself, which is not fetched", clean(foreign, 200)));
    }
    // A pattern that is written to take forever fails instead.
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20);
    let validator = jsonschema::options().with_pattern_options(patterns).build(schema);
    validator.map_err(|error| format!("is no JSON Schema: {}", clean(&error.to_string(), 300)))
}

fn foreign_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) if !to.starts_with('#') => Some(to.as_str()),
            ("default" | "const" | "enum" | "examples", _) => None,
            (_, value) => foreign_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(foreign_reference),
        _ => None,
    }
}

/// Checks structured content against the schema of results; returns what is wrong.
pub(super) fn misfit(schema: &jsonschema::Validator, content: &Value) -> Option<String> {
    schema.validate(content).err().map(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!("at `{place}`, ") };
        clean(&format!("{place}{error}"), 300)
    })
}
