//! From a JSON Schema to the answer that is wanted: exactly, for the types of policies and methods; and leniently, for whatever a
//! program that asks a stand-in may send.

use super::{Heard, Unanswered, Value, Want};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json, json};

/// Schemas are followed so deep.
pub const DEEPEST: usize = 6;
/// Room of a number without a highest value, read leniently.
const ROOM: f64 = 100.0;
/// The greatest integer up to which all are exact as floating-point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Want {
    /// The answer that a Rust type describes by its derived schema.
    ///
    /// Structs are records, enums of bare variants choices, `Vec` lists, `String` text, `bool` a choice of `true` and `false`; integers are
    /// whole numbers, within their type's range or that of `#[schemars(range(...))]`, and `#[schemars(length(...))]` bounds a list.
    /// What has no such form is an error that says where: `Option` (no answer can be left out), maps, tuples, enums with data, types
    /// within themselves.
    pub fn of<T: JsonSchema>() -> Result<Want, String> {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
        exact(schema.as_value(), schema.as_value(), 0).map_err(|why| format!("{}: {why}", T::schema_name()))
    }

    /// Yes or no.
    #[must_use]
    pub fn yes_or_no() -> Want {
        Want::Choice(vec!["true".into(), "false".into()])
    }

    /// Whether it is that, which in JSON is no text.
    #[must_use]
    pub fn is_yes_or_no(&self) -> bool {
        matches!(self, Want::Choice(options) if *options == ["true", "false"])
    }

    /// The answer that a schema describes, as far as it can be told; what is not understood is a text. Of alternatives the first counts,
    /// and of lists the least length.
    #[must_use]
    pub fn like(schema: &Json) -> Want {
        like(schema, schema, 0)
    }

    /// The schema of the JSON that fits, with the bounds of numbers and lists or without: not every constrained mode knows them.
    #[must_use]
    pub fn to_schema(&self, bounds: bool) -> Json {
        let mut schema = match self {
            Want::Text => json!({"type": "string"}),
            Want::Choice(_) if self.is_yes_or_no() => json!({"type": "boolean"}),
            Want::Choice(options) => {
                let options: Vec<&str> = options.iter().map(|option| option.trim()).collect();
                json!({"type": "string", "enum": options})
            }
            Want::Number { whole, .. } => json!({"type": if *whole { "integer" } else { "number" }}),
            Want::Vector => json!({"type": "array", "items": {"type": "number"}}),
            Want::List { of, .. } => json!({"type": "array", "items": of.to_schema(bounds)}),
            Want::Record(fields) => {
                let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
                let properties: Map<String, Json> =
                    fields.iter().map(|(name, want)| (name.clone(), want.to_schema(bounds))).collect();
                json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
            }
        };
        match self {
            Want::Number { low, high, .. } if bounds => {
                // What is not finite is no bound.
                for (name, bound) in [("minimum", low), ("maximum", high)].into_iter().filter(|(_, b)| b.is_finite()) {
                    schema[name] = json!(bound);
                }
            }
            Want::List { least, most, .. } if bounds => {
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

/// What was heard as a Rust type, for which it was asked.
pub(crate) fn typed<T: DeserializeOwned>(heard: Heard, want: &Want) -> Result<T, Unanswered> {
    let value = heard?;
    value.read(want).map_err(|why| Unanswered::Invalid { raw: value.to_json(want).to_string(), why })
}

impl Value {
    /// The value as JSON, by the options and names of what was wanted. A part that does not fit it is `null`.
    #[must_use]
    pub fn to_json(&self, want: &Want) -> Json {
        match (self, want) {
            (Value::Text(text), Want::Text) => Json::from(text.as_str()),
            (Value::Choice(i), Want::Choice(_)) if want.is_yes_or_no() => Json::from(*i == 0),
            (Value::Choice(i), Want::Choice(options)) => {
                options.get(*i as usize).map_or(Json::Null, |option| Json::from(option.trim()))
            }
            (Value::Number(x), Want::Number { whole, .. }) => match whole_number(*x) {
                Some(number) if *whole => Json::Number(number),
                _ => Json::from(*x),
            },
            (Value::Vector(numbers), Want::Vector) => Json::from(numbers.as_slice()),
            (Value::List(items), Want::List { of, .. }) => items.iter().map(|item| item.to_json(of)).collect(),
            (Value::Record(values), Want::Record(fields)) => Json::Object(
                fields.iter().zip(values).map(|((name, want), value)| (name.clone(), value.to_json(want))).collect(),
            ),
            _ => Json::Null,
        }
    }

    /// The value as a Rust type, for which it was asked ([`Want::of`]).
    pub fn read<T: DeserializeOwned>(&self, want: &Want) -> Result<T, String> {
        T::deserialize(self.to_json(want))
            .map_err(|error| format!("the answer is no {}: {error}", std::any::type_name::<T>()))
    }
}

/// A number without a fraction as an integer, which integers are read from.
fn whole_number(x: f64) -> Option<Number> {
    match x.fract() == 0.0 && x.abs() <= EXACT {
        true => Some(Number::from(x as i64)),
        false => None,
    }
}

fn exact(root: &Json, schema: &Json, depth: usize) -> Result<Want, String> {
    if depth > DEEPEST {
        return Err(format!("it is deeper than {DEEPEST} levels, or holds itself"));
    }
    if let Some(path) = schema["$ref"].as_str() {
        let target = root.pointer(path.trim_start_matches('#')).ok_or_else(|| format!("`{path}` is nowhere"))?;
        return exact(root, target, depth + 1);
    }
    if let Some(options) = options(schema)? {
        return Ok(Want::Choice(options));
    }
    let absent = |schema: &Json| schema["type"] == "null";
    let may_be_absent = schema["type"].is_array()
        || ["anyOf", "oneOf"].iter().any(|name| schema[*name].as_array().is_some_and(|all| all.iter().any(absent)));
    if may_be_absent {
        return Err(
            "it may be absent (Option), which no answer can be: leave the Option off, or name a variant for it".into(),
        );
    }
    match schema["type"].as_str() {
        Some("object") if schema["properties"].is_object() => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let field = |(name, schema): (&String, &Json)| match exact(root, schema, depth + 1) {
                Ok(want) => Ok((name.clone(), want)),
                Err(why) => Err(format!("`{name}`: {why}")),
            };
            fields.map(field).collect::<Result<_, _>>().map(Want::Record)
        }
        Some("array") if schema["items"].is_object() => {
            let length = |name: &str| schema[name].as_u64().map(|n| n.min(u64::from(u32::MAX)) as u32);
            let (least, most) = (length("minItems").unwrap_or(0), length("maxItems").unwrap_or(u32::MAX));
            Ok(Want::List { of: Box::new(exact(root, &schema["items"], depth + 1)?), least, most })
        }
        Some("string") => Ok(Want::Text),
        Some("boolean") => Ok(Want::yes_or_no()),
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
                true => Ok(Want::Number { low, high, whole }),
                false => Err(format!("no number lies in {low} to {high}")),
            }
        }
        _ => Err(
            "this is no record, list, choice, text or number: maps, tuples and enums with data can not be asked for"
                .into(),
        ),
    }
}

/// The values of an enum of bare variants; schemars writes them in one list, or each for itself with its words.
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

/// What an integer's type holds, as far as floating-point numbers are exact.
fn range(format: &str) -> (f64, f64) {
    let (signed, bits) = match format.strip_prefix('u') {
        Some(rest) => (false, rest),
        None => (true, format),
    };
    let bits = bits.strip_prefix("int").and_then(|bits| bits.parse::<i32>().ok()).unwrap_or(64);
    let most = (2f64.powi(bits - i32::from(signed)) - 1.0).min(EXACT);
    (if signed { (-most - 1.0).max(-EXACT) } else { 0.0 }, most)
}

/// Behind references and alternatives.
#[must_use]
pub fn resolved<'a>(root: &'a Json, mut schema: &'a Json, depth: usize) -> &'a Json {
    for _ in 0..DEEPEST {
        let branches = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|name| schema[name].as_array());
        schema = if let Some(path) = schema["$ref"].as_str() {
            root.pointer(path.trim_start_matches('#')).unwrap_or(&Json::Null)
        } else if let Some(branches) = branches {
            // The first that says something; far down the one that ends it.
            let wanted = |branch: &&Json| (branch["type"] == "null") == (depth >= DEEPEST);
            branches.iter().find(wanted).or(branches.first()).unwrap_or(&Json::Null)
        } else {
            break;
        };
    }
    schema
}

/// The type that a schema names; of several the first that is not `null`.
#[must_use]
pub fn kind(schema: &Json) -> &str {
    let named = match &schema["type"] {
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    named.unwrap_or(if schema["properties"].is_object() { "object" } else { "string" })
}

/// The values that are allowed, where they are listed.
#[must_use]
pub fn listed(schema: &Json) -> Option<Vec<&Json>> {
    match (&schema["enum"], schema.get("const")) {
        (Json::Array(values), _) if !values.is_empty() => Some(values.iter().collect()),
        (_, Some(value)) => Some(vec![value]),
        _ => None,
    }
}

/// A value among listed ones, as an option.
#[must_use]
pub fn as_option(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn like(root: &Json, schema: &Json, depth: usize) -> Want {
    let schema = resolved(root, schema, depth);
    if let Some(values) = listed(schema) {
        return Want::Choice(values.into_iter().map(as_option).collect());
    }
    match kind(schema) {
        "object" if depth >= DEEPEST => Want::Record(Vec::new()),
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Want::Record(fields.map(|(name, field)| (name.clone(), like(root, field, depth + 1))).collect())
        }
        "array" if depth >= DEEPEST => Want::List { of: Box::new(Want::Text), least: 0, most: 0 },
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 1000) as u32;
            Want::List { of: Box::new(like(root, &schema["items"], depth + 1)), least, most: least }
        }
        "integer" | "number" => {
            let bound = |name: &str, exclusive: &str, inward: f64| {
                schema[name].as_f64().or_else(|| schema[exclusive].as_f64().map(|bound| bound + inward))
            };
            let (low, high) = (bound("minimum", "exclusiveMinimum", 1.0), bound("maximum", "exclusiveMaximum", -1.0));
            let low = low.unwrap_or_else(|| high.map_or(0.0, |high| high - ROOM));
            Want::Number { low, high: high.unwrap_or(low + ROOM), whole: kind(schema) == "integer" }
        }
        "boolean" => Want::yes_or_no(),
        "null" => Want::Choice(vec!["null".into()]),
        _ => Want::Text,
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
        /// With words of its own.
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

    fn vote() -> Want {
        let text = || Box::new(Want::Text);
        let whole = |low, high| Want::Number { low, high, whole: true };
        let trust = Want::Record(vec![("whom".into(), Want::Text), ("how_much".into(), whole(0.0, 10.0))]);
        Want::Record(vec![
            // Those without words of their own come first.
            ("party".into(), Want::Choice(vec!["right".into(), "far-left".into()])),
            ("sure".into(), Want::yes_or_no()),
            ("share".into(), Want::number(0.0, 1.0)),
            ("years".into(), whole(-2_147_483_648.0, 2_147_483_647.0)),
            ("free".into(), Want::number(f64::NEG_INFINITY, f64::INFINITY)),
            ("trusts".into(), Want::List { of: Box::new(trust), least: 1, most: 3 }),
            ("pair".into(), Want::List { of: Box::new(whole(0.0, 65_535.0)), least: 2, most: 2 }),
            ("words".into(), Want::List { of: text(), least: 0, most: u32::MAX }),
        ])
    }

    #[test]
    fn types_say_what_is_wanted_and_are_read_back() {
        assert_eq!(Want::of::<Vote>().unwrap(), vote());
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
        assert_eq!(Value::Choice(0).read::<bool>(&Want::of::<bool>().unwrap()), Ok(true));
        assert_eq!(number(5.0).read::<u64>(&Want::of::<u64>().unwrap()), Ok(5));
        assert_eq!(Value::Choice(0).read::<Party>(&Want::of::<Party>().unwrap()), Ok(Party::Right));
        let error = Value::Text("ab".into()).read::<char>(&Want::of::<char>().unwrap()).unwrap_err();
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
        let error = |want: Result<Want, String>| want.unwrap_err();
        let maybe = error(Want::of::<Maybe>());
        assert!(maybe.starts_with("Maybe: `inner`: `party`: it may be absent (Option)"), "{maybe}");
        for (want, part) in [
            (Want::of::<Option<f64>>(), "Option"),
            (Want::of::<Option<bool>>(), "Option"),
            (Want::of::<BTreeMap<String, f64>>(), "maps"),
            (Want::of::<(f64, String)>(), "tuples"),
            (Want::of::<Shape>(), "enums with data"),
            (Want::of::<Chain>(), "holds itself"),
            (Want::of::<Truth>(), "make it a bool"),
        ] {
            let why = error(want);
            assert!(why.contains(part), "{why}");
        }
    }
}
