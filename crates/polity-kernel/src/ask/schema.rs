//! Conversion of a JSON Schema to the format of an answer: exact for the types of policies and methods, lenient for whatever a
//! client of a mock server may send.

use super::{AskError, Reply, ResponseFormat, Value};
use crate::EXACT;
use crate::tool::{ToolCall, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json, json};

/// Maximum nesting depth of schemas that is followed.
pub const DEEPEST: usize = 6;
/// Range of a number without an upper bound, when read leniently.
const ROOM: f64 = 100.0;

impl ResponseFormat {
    /// Returns the answer format that a Rust type describes by its derived schema.
    ///
    /// Structs are records, enums of bare variants are choices, `Vec` is a list, `String` is text, `bool` is a choice of `true` and
    /// `false`. Integers are whole numbers within the range of their type or of `#[schemars(range(...))]`;
    /// `#[schemars(length(...))]` bounds a list. Other types are an error that says where: `Option` (no answer can be left out),
    /// maps, tuples, enums with data, recursive types.
    pub fn of<T: JsonSchema>() -> Result<ResponseFormat, String> {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
        exact(schema.as_value(), schema.as_value(), 0).map_err(|why| format!("{}: {why}", T::schema_name()))
    }

    /// Yes or no.
    #[must_use]
    pub fn yes_or_no() -> ResponseFormat {
        ResponseFormat::Choice(vec!["true".into(), "false".into()])
    }

    /// Returns whether it is yes or no, which in JSON is not a text.
    #[must_use]
    pub fn is_yes_or_no(&self) -> bool {
        matches!(self, ResponseFormat::Choice(options) if *options == ["true", "false"])
    }

    /// Returns the answer format that a schema describes, as far as possible. What is not understood is a text. Of alternatives the
    /// first counts; lists have their minimum length.
    #[must_use]
    pub fn like(schema: &Json) -> ResponseFormat {
        like(schema, schema, 0)
    }

    /// Returns the schema of the JSON that fits, with or without the bounds of numbers and lists: not every constrained mode
    /// supports them.
    #[must_use]
    pub fn to_schema(&self, bounds: bool) -> Json {
        let mut schema = match self {
            ResponseFormat::Text => json!({"type": "string"}),
            ResponseFormat::Choice(_) if self.is_yes_or_no() => json!({"type": "boolean"}),
            ResponseFormat::Choice(options) => {
                let options: Vec<&str> = options.iter().map(|option| option.trim()).collect();
                json!({"type": "string", "enum": options})
            }
            ResponseFormat::Number { whole, .. } => json!({"type": if *whole { "integer" } else { "number" }}),
            ResponseFormat::Vector => json!({"type": "array", "items": {"type": "number"}}),
            ResponseFormat::List { of, .. } => json!({"type": "array", "items": of.to_schema(bounds)}),
            ResponseFormat::Calls(tools) => calls_schema(tools),
            ResponseFormat::Record(fields) => {
                let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
                let properties: Map<String, Json> = fields
                    .iter()
                    .map(|(name, response_format)| (name.clone(), response_format.to_schema(bounds)))
                    .collect();
                json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
            }
        };
        match self {
            ResponseFormat::Number { low, high, .. } if bounds => {
                // A value that is not finite is no bound.
                for (name, bound) in [("minimum", low), ("maximum", high)].into_iter().filter(|(_, b)| b.is_finite()) {
                    schema[name] = json!(bound);
                }
            }
            ResponseFormat::List { least, most, .. } if bounds => {
                schema["minItems"] = json!(least);
                if *most < u32::MAX {
                    schema["maxItems"] = json!(most);
                }
            }
            _ => {}
        }
        schema
    }
}

/// Returns the schema of calls of these tools as one JSON object.
fn calls_schema(tools: &[ToolSpec]) -> Json {
    let one = |tool: &ToolSpec| {
        json!({
            "type": "object",
            "properties": {"tool": {"type": "string", "enum": [tool.name]}, "arguments": tool.schema()},
            "required": ["tool", "arguments"],
            "additionalProperties": false,
        })
    };
    let mut calls = json!({"type": "array"});
    match tools {
        [] => calls["maxItems"] = json!(0),
        [tool] => calls["items"] = one(tool),
        tools => calls["items"] = json!({"anyOf": tools.iter().map(one).collect::<Vec<_>>()}),
    }
    json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "calls": calls},
        "required": ["text", "calls"],
        "additionalProperties": false,
    })
}

/// Reads a reply as the Rust type for which it was asked.
pub(crate) fn typed<T: DeserializeOwned>(heard: Reply, response_format: &ResponseFormat) -> Result<T, AskError> {
    let value = heard?;
    value
        .read(response_format)
        .map_err(|why| AskError::Invalid { raw: value.to_json(response_format).to_string(), why })
}

impl Value {
    /// Returns the value as JSON, with the options and names of the format. A part that does not fit is `null`.
    #[must_use]
    pub fn to_json(&self, response_format: &ResponseFormat) -> Json {
        match (self, response_format) {
            (Value::Text(text), ResponseFormat::Text) => Json::from(text.as_str()),
            (Value::Choice(i), ResponseFormat::Choice(_)) if response_format.is_yes_or_no() => Json::from(*i == 0),
            (Value::Choice(i), ResponseFormat::Choice(options)) => {
                options.get(*i as usize).map_or(Json::Null, |option| Json::from(option.trim()))
            }
            (Value::Number(x), ResponseFormat::Number { whole, .. }) => match whole_number(*x) {
                Some(number) if *whole => Json::Number(number),
                _ => Json::from(*x),
            },
            (Value::Vector(numbers), ResponseFormat::Vector) => Json::from(numbers.as_slice()),
            (Value::Calls { text, calls }, ResponseFormat::Calls(_)) => {
                let call = |call: &ToolCall| json!({"tool": call.tool, "arguments": call.read()});
                json!({"text": text, "calls": calls.iter().map(call).collect::<Vec<_>>()})
            }
            (Value::List(items), ResponseFormat::List { of, .. }) => {
                items.iter().map(|item| item.to_json(of)).collect()
            }
            (Value::Record(values), ResponseFormat::Record(fields)) => Json::Object(
                fields
                    .iter()
                    .zip(values)
                    .map(|((name, response_format), value)| (name.clone(), value.to_json(response_format)))
                    .collect(),
            ),
            _ => Json::Null,
        }
    }

    /// Reads JSON as a value of the format, by its options and names; `None` if it does not fit.
    #[must_use]
    pub fn from_json(json: &Json, response_format: &ResponseFormat) -> Option<Value> {
        match response_format {
            ResponseFormat::Text => json.as_str().map(|text| Value::Text(text.to_owned())),
            ResponseFormat::Choice(_) if response_format.is_yes_or_no() => {
                json.as_bool().map(|yes| Value::Choice(u32::from(!yes)))
            }
            ResponseFormat::Choice(options) => {
                let said = json.as_str()?.trim();
                options.iter().position(|option| option.trim() == said).map(|place| Value::Choice(place as u32))
            }
            ResponseFormat::Number { low, high, whole } => {
                let x = json.as_f64()?;
                ((*low..=*high).contains(&x) && (!whole || x.fract() == 0.0)).then_some(Value::Number(x))
            }
            ResponseFormat::List { of, least, most } => {
                let items: Option<Vec<Value>> =
                    json.as_array()?.iter().map(|item| Value::from_json(item, of)).collect();
                items.filter(|items| (*least as usize..=*most as usize).contains(&items.len())).map(Value::List)
            }
            ResponseFormat::Record(fields) => {
                let field = |(name, response_format): &(String, ResponseFormat)| {
                    Value::from_json(json.get(name)?, response_format)
                };
                fields.iter().map(field).collect::<Option<Vec<Value>>>().map(Value::Record)
            }
            ResponseFormat::Calls(tools) => {
                let call = |call: &Json| {
                    let tool = call.get("tool")?.as_str()?;
                    let known = tools.iter().any(|known| *known.name == *tool);
                    Some(ToolCall::new(tool, call.get("arguments")?.as_object()?)).filter(|_| known)
                };
                let calls = json.get("calls")?.as_array()?.iter().map(call).collect::<Option<Vec<ToolCall>>>()?;
                Some(Value::Calls { text: json.get("text")?.as_str()?.to_owned(), calls })
            }
            ResponseFormat::Vector => None,
        }
    }

    /// Reads the value as the Rust type for which it was asked ([`ResponseFormat::of`]).
    pub fn read<T: DeserializeOwned>(&self, response_format: &ResponseFormat) -> Result<T, String> {
        T::deserialize(self.to_json(response_format))
            .map_err(|error| format!("the answer is no {}: {error}", std::any::type_name::<T>()))
    }
}

/// Returns a number without a fraction as an integer, so that integers can be read from it.
fn whole_number(x: f64) -> Option<Number> {
    match x.fract() == 0.0 && x.abs() <= EXACT {
        true => Some(Number::from(x as i64)),
        false => None,
    }
}

fn exact(root: &Json, schema: &Json, depth: usize) -> Result<ResponseFormat, String> {
    if depth > DEEPEST {
        return Err(format!("it is nested more than {DEEPEST} levels deep, or contains itself"));
    }
    if let Some(path) = schema["$ref"].as_str() {
        let target = root.pointer(path.trim_start_matches('#')).ok_or_else(|| format!("`{path}` is not defined"))?;
        return exact(root, target, depth + 1);
    }
    if let Some(options) = options(schema)? {
        return Ok(ResponseFormat::Choice(options));
    }
    let absent = |schema: &Json| schema["type"] == "null";
    let may_be_absent = schema["type"].is_array()
        || ["anyOf", "oneOf"].iter().any(|name| schema[*name].as_array().is_some_and(|all| all.iter().any(absent)));
    if may_be_absent {
        return Err(
            "it may be absent (Option), but an answer cannot be: remove the Option, or add a variant for it".into()
        );
    }
    match schema["type"].as_str() {
        Some("object") if schema["properties"].is_object() => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let field = |(name, schema): (&String, &Json)| match exact(root, schema, depth + 1) {
                Ok(response_format) => Ok((name.clone(), response_format)),
                Err(why) => Err(format!("`{name}`: {why}")),
            };
            fields.map(field).collect::<Result<_, _>>().map(ResponseFormat::Record)
        }
        Some("array") if schema["items"].is_object() => {
            let length = |name: &str| schema[name].as_u64().map(|n| n.min(u64::from(u32::MAX)) as u32);
            let (least, most) = (length("minItems").unwrap_or(0), length("maxItems").unwrap_or(u32::MAX));
            Ok(ResponseFormat::List { of: Box::new(exact(root, &schema["items"], depth + 1)?), least, most })
        }
        Some("string") => Ok(ResponseFormat::Text),
        Some("boolean") => Ok(ResponseFormat::yes_or_no()),
        Some(kind @ ("integer" | "number")) => {
            let whole = kind == "integer";
            let (least, most) = if whole {
                range(schema["format"].as_str().unwrap_or_default())
            } else {
                (f64::NEG_INFINITY, f64::INFINITY)
            };
            let low = schema["minimum"].as_f64().unwrap_or(least);
            let high = schema["maximum"].as_f64().unwrap_or(most);
            let above = schema["exclusiveMinimum"].as_f64().map(|x| if whole { x + 1.0 } else { x.next_up() });
            let below = schema["exclusiveMaximum"].as_f64().map(|x| if whole { x - 1.0 } else { x.next_down() });
            let (low, high) = (low.max(above.unwrap_or(low)), high.min(below.unwrap_or(high)));
            match low <= high {
                true => Ok(ResponseFormat::Number { low, high, whole }),
                false => Err(format!("there is no number from {low} to {high}")),
            }
        }
        _ => {
            Err("this is not a record, list, choice, text or number: maps, tuples and enums with data cannot be asked \
                 for"
            .into())
        }
    }
}

/// Returns the values of an enum of bare variants. Schemars writes them in one list, or one by one if they have descriptions.
fn options(schema: &Json) -> Result<Option<Vec<String>>, String> {
    let bare = |schema: &Json| match (&schema["enum"], &schema["const"]) {
        (Json::Array(values), _) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        (_, Json::String(value)) => Some(vec![value.clone()]),
        _ => None,
    };
    let found: Option<Vec<String>> = match ["oneOf", "anyOf"].iter().find_map(|name| schema[*name].as_array()) {
        Some(branches) => branches.iter().map(bare).collect::<Option<Vec<_>>>().map(|all| all.concat()),
        None => bare(schema),
    };
    match found {
        Some(options) if options == ["true", "false"] => {
            Err("its variants are `true` and `false`: make it a bool".into())
        }
        found => Ok(found),
    }
}

/// Returns the range of an integer type, as far as floating-point numbers are exact.
fn range(format: &str) -> (f64, f64) {
    let (signed, bits) = match format.strip_prefix('u') {
        Some(rest) => (false, rest),
        None => (true, format),
    };
    let bits = bits.strip_prefix("int").and_then(|bits| bits.parse::<i32>().ok()).unwrap_or(64);
    let most = (2f64.powi(bits - i32::from(signed)) - 1.0).min(EXACT);
    (if signed { (-most - 1.0).max(-EXACT) } else { 0.0 }, most)
}

/// Resolves references and alternatives.
#[must_use]
pub fn resolved<'a>(root: &'a Json, mut schema: &'a Json, depth: usize) -> &'a Json {
    for _ in 0..DEEPEST {
        let branches = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|name| schema[name].as_array());
        schema = if let Some(path) = schema["$ref"].as_str() {
            root.pointer(path.trim_start_matches('#')).unwrap_or(&Json::Null)
        } else if let Some(branches) = branches {
            // Take the first meaningful branch; at the maximum depth, the one that ends the recursion.
            let wanted = |branch: &&Json| (branch["type"] == "null") == (depth >= DEEPEST);
            branches.iter().find(wanted).or(branches.first()).unwrap_or(&Json::Null)
        } else {
            break;
        };
    }
    schema
}

/// Returns the type that a schema names; of several, the first that is not `null`.
#[must_use]
pub fn kind(schema: &Json) -> &str {
    let named = match &schema["type"] {
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    named.unwrap_or(if schema["properties"].is_object() { "object" } else { "string" })
}

/// Returns the allowed values, if they are listed.
#[must_use]
pub fn listed(schema: &Json) -> Option<Vec<&Json>> {
    match (&schema["enum"], schema.get("const")) {
        (Json::Array(values), _) if !values.is_empty() => Some(values.iter().collect()),
        (_, Some(value)) => Some(vec![value]),
        _ => None,
    }
}

/// Returns a listed value as an option.
#[must_use]
pub fn as_option(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn like(root: &Json, schema: &Json, depth: usize) -> ResponseFormat {
    let schema = resolved(root, schema, depth);
    if let Some(values) = listed(schema) {
        return ResponseFormat::Choice(values.into_iter().map(as_option).collect());
    }
    match kind(schema) {
        "object" if depth >= DEEPEST => ResponseFormat::Record(Vec::new()),
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            ResponseFormat::Record(fields.map(|(name, field)| (name.clone(), like(root, field, depth + 1))).collect())
        }
        "array" if depth >= DEEPEST => ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: 0, most: 0 },
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 1000) as u32;
            ResponseFormat::List { of: Box::new(like(root, &schema["items"], depth + 1)), least, most: least }
        }
        "integer" | "number" => {
            let bound = |name: &str, exclusive: &str, inward: f64| {
                schema[name].as_f64().or_else(|| schema[exclusive].as_f64().map(|bound| bound + inward))
            };
            let (low, high) = (bound("minimum", "exclusiveMinimum", 1.0), bound("maximum", "exclusiveMaximum", -1.0));
            let low = low.unwrap_or_else(|| high.map_or(0.0, |high| high - ROOM));
            ResponseFormat::Number { low, high: high.unwrap_or(low + ROOM), whole: kind(schema) == "integer" }
        }
        "boolean" => ResponseFormat::yes_or_no(),
        "null" => ResponseFormat::Choice(vec!["null".into()]),
        _ => ResponseFormat::Text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, dead_code)]
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Party {
        /// With a description of its own.
        FarLeft,
        Right,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Trust {
        whom: String,
        #[schemars(range(min = 0, max = 10))]
        how_much: u8,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Vote {
        party: Party,
        sure: bool,
        #[schemars(range(min = 0.0, max = 1.0))]
        share: f64,
        years: i32,
        free: f64,
        #[schemars(length(min = 1, max = 3))]
        trusts: Vec<Trust>,
        pair: [u16; 2],
        words: Vec<String>,
    }

    fn vote() -> ResponseFormat {
        let text = || Box::new(ResponseFormat::Text);
        let whole = |low, high| ResponseFormat::Number { low, high, whole: true };
        let trust =
            ResponseFormat::Record(vec![("whom".into(), ResponseFormat::Text), ("how_much".into(), whole(0.0, 10.0))]);
        ResponseFormat::Record(vec![
            // Variants without a description come first.
            ("party".into(), ResponseFormat::Choice(vec!["right".into(), "far-left".into()])),
            ("sure".into(), ResponseFormat::yes_or_no()),
            ("share".into(), ResponseFormat::number(0.0, 1.0)),
            ("years".into(), whole(-2_147_483_648.0, 2_147_483_647.0)),
            ("free".into(), ResponseFormat::number(f64::NEG_INFINITY, f64::INFINITY)),
            ("trusts".into(), ResponseFormat::List { of: Box::new(trust), least: 1, most: 3 }),
            ("pair".into(), ResponseFormat::List { of: Box::new(whole(0.0, 65_535.0)), least: 2, most: 2 }),
            ("words".into(), ResponseFormat::List { of: text(), least: 0, most: u32::MAX }),
        ])
    }

    #[test]
    fn types_say_what_is_wanted_and_are_read_back() {
        assert_eq!(ResponseFormat::of::<Vote>().unwrap(), vote());
        let number = Value::Number;
        let value = Value::Record(vec![
            Value::Choice(1),
            Value::Choice(1),
            number(0.25),
            number(-3.0),
            number(1e300),
            Value::List(vec![Value::Record(vec![Value::Text("Ada".into()), number(7.0)])]),
            Value::List(vec![number(1.0), number(2.0)]),
            Value::List(vec![]),
        ]);
        let expected = Vote {
            party: Party::FarLeft,
            sure: false,
            share: 0.25,
            years: -3,
            free: 1e300,
            trusts: vec![Trust { whom: "Ada".into(), how_much: 7 }],
            pair: [1, 2],
            words: vec![],
        };
        assert_eq!(value.read::<Vote>(&vote()).unwrap(), expected);
        assert_eq!(Value::Choice(0).read::<bool>(&ResponseFormat::of::<bool>().unwrap()), Ok(true));
        assert_eq!(number(5.0).read::<u64>(&ResponseFormat::of::<u64>().unwrap()), Ok(5));
        assert_eq!(Value::Choice(0).read::<Party>(&ResponseFormat::of::<Party>().unwrap()), Ok(Party::Right));
        let error = Value::Text("ab".into()).read::<char>(&ResponseFormat::of::<char>().unwrap()).unwrap_err();
        assert!(error.contains("char"), "{error}");
    }

    #[derive(JsonSchema)]
    struct Chain {
        next: Vec<Chain>,
    }

    #[derive(JsonSchema)]
    enum Shape {
        Round(f64),
        Flat,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Truth {
        True,
        False,
    }

    #[derive(JsonSchema)]
    struct Maybe {
        inner: Inner,
    }

    #[derive(JsonSchema)]
    struct Inner {
        party: Option<Party>,
    }

    #[test]
    fn types_that_can_not_be_asked_for_say_why() {
        let error = |response_format: Result<ResponseFormat, String>| response_format.unwrap_err();
        let maybe = error(ResponseFormat::of::<Maybe>());
        assert!(maybe.starts_with("Maybe: `inner`: `party`: it may be absent (Option)"), "{maybe}");
        for (response_format, part) in [
            (ResponseFormat::of::<Option<f64>>(), "Option"),
            (ResponseFormat::of::<Option<bool>>(), "Option"),
            (ResponseFormat::of::<BTreeMap<String, f64>>(), "maps"),
            (ResponseFormat::of::<(f64, String)>(), "tuples"),
            (ResponseFormat::of::<Shape>(), "enums with data"),
            (ResponseFormat::of::<Chain>(), "contains itself"),
            (ResponseFormat::of::<Truth>(), "make it a bool"),
        ] {
            let why = error(response_format);
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn json_is_read_back_as_the_value_it_was_made_of() {
        let options = ["left", "right"].map(String::from).to_vec();
        let response_format = ResponseFormat::Record(vec![
            ("text".into(), ResponseFormat::Text),
            ("option".into(), ResponseFormat::Choice(options)),
            ("sure".into(), ResponseFormat::yes_or_no()),
            ("list".into(), ResponseFormat::List { of: Box::new(ResponseFormat::number(0.0, 9.0)), least: 1, most: 2 }),
            ("whole".into(), ResponseFormat::Number { low: -3.0, high: 3.0, whole: true }),
        ]);
        let list = Value::List(vec![Value::Number(0.5), Value::Number(9.0)]);
        let value = Value::Record(vec![
            Value::Text("a \"b\"".into()),
            Value::Choice(1),
            Value::Choice(1),
            list,
            Value::Number(-2.0),
        ]);
        let json = value.to_json(&response_format);
        assert_eq!(Value::from_json(&json, &response_format), Some(value));
        let wrong = [
            ("text", Json::from(1)),
            ("option", Json::from("neither")),
            ("sure", Json::from("yes")),
            ("list", Json::from(Vec::<f64>::new())),
            ("list", Json::from(vec![10.0])),
            ("whole", Json::from(0.5)),
            ("whole", Json::Null),
        ];
        for (key, part) in wrong {
            let mut json = json.clone();
            json[key] = part;
            assert_eq!(Value::from_json(&json, &response_format), None, "{json}");
        }
    }
}
