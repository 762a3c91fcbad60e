//! From the text of a reply to the value that was wanted.
//!
//! A reply is read strictly first, and then once more with its form mended ([`mend`]). Neither guesses what a model may have meant: making
//! a model reply in the right form is the work of the provider and of asking again.

use super::mend;
use polity_kernel::ask::{Outcome, Value, Want};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;

/// Characters of a reply that a message quotes.
const QUOTED: usize = 60;

/// Reads a reply. Space around it is ignored.
///
/// - `Text`: any text that is not empty.
/// - `Choice`: exactly the text of one option.
/// - `Number`: a finite decimal number within the bounds, and nothing else.
/// - `List`: a JSON list. No key of an object may have two values.
/// - `Record`: one JSON object with a value for every field: a string for a text (may be empty) or a choice (`true` and `false`
///   stand for themselves), a number for a number, an object for a record. Fields that were not asked for are ignored.
///
/// What does not fit so may fit with its form mended: JSON in a fence or with words around it, with commas, quotes, comments or words of
/// other languages, without its last braces; a choice or number in quotes, with emphasis, a full stop or other capitals. What was cut
/// in the middle of a value is not mended, and a value that is missing or does not fit stays so.
///
/// Gives [`Outcome::Reply`] or [`Outcome::Invalid`]; both keep the reply as it came.
#[must_use]
pub fn read_reply(want: &Want, raw: &str) -> Outcome {
    match strict(want, raw) {
        Ok(value) => Outcome::Reply { value, raw: raw.to_owned(), repaired: false },
        Err(why) => match mended(want, raw) {
            Ok(value) => Outcome::Reply { value, raw: raw.to_owned(), repaired: true },
            Err(better) => Outcome::Invalid { raw: raw.to_owned(), why: better.unwrap_or(why) },
        },
    }
}

/// The value of a reply that fits as it came; else what is wrong with it.
pub(super) fn strict(want: &Want, raw: &str) -> Result<Value, String> {
    let text = raw.trim();
    if text.is_empty() {
        return Err("the reply is empty".into());
    }
    match want {
        Want::Text => Ok(Value::Text(text.to_owned())),
        Want::Choice(options) => choice(options, text, Form::Exact),
        Want::Number { low, high, whole } => match text.parse() {
            Ok(number) if !text.ends_with('.') => bounded(number, *low, *high, *whole),
            _ => Err(format!("wanted a number, got {}", quoted(text))),
        },
        // Providers hand vectors over as such.
        Want::Vector => Err(format!("wanted a vector, got words: {}", quoted(text))),
        Want::Record(_) | Want::List { .. } => match parsed(text) {
            Ok(json) => from_json(want, &json, Form::Exact),
            Err(error) => Err(format!("wanted {}, got {}: {error}", wanted(want), quoted(text))),
        },
    }
}

/// The value of a reply whose form is mended. The error says what is wrong with what it says, if its form could be mended.
pub(super) fn mended(want: &Want, raw: &str) -> Result<Value, Option<String>> {
    match want {
        Want::Text | Want::Vector => Err(None),
        Want::Choice(_) | Want::Number { .. } => from_json(want, &Json::from(raw), Form::Mended).map_err(|_| None),
        Want::Record(_) | Want::List { .. } => {
            let open = if matches!(want, Want::Record(_)) { '{' } else { '[' };
            let json = mend::json(raw, open).map_err(|_| None)?;
            from_json(want, &json, Form::Mended).map_err(Some)
        }
    }
}

/// JSON in which no key has two values.
pub(super) fn parsed(text: &str) -> Result<Json, serde_json::Error> {
    serde_json::from_str(text).map(|Once(json)| json)
}

struct Once(Json);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Once)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Json, E> {
        Ok(Json::from(yes))
    }

    fn visit_i64<E>(self, x: i64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut map = serde_json::Map::new();
        while let Some((key, Once(value))) = entries.next_entry::<String, Once>()? {
            if map.get(&key).is_some_and(|known| *known != value) {
                return Err(serde::de::Error::custom(format!("the key {} has two values", quoted(&key))));
            }
            map.insert(key, value);
        }
        Ok(Json::Object(map))
    }
}

/// How closely values are looked at.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Exact,
    Mended,
}

fn from_json(want: &Want, json: &Json, form: Form) -> Result<Value, String> {
    match (want, json) {
        (Want::Text, Json::String(text)) => Ok(Value::Text(text.clone())),
        (Want::Choice(options), Json::String(text)) => choice(options, text.trim(), form),
        (Want::Choice(options), Json::Bool(yes)) => choice(options, &yes.to_string(), form),
        (Want::Number { low, high, whole }, Json::Number(number)) => match number.as_f64() {
            Some(number) => bounded(number, *low, *high, *whole),
            None => Err(format!("{number} is too large a number")),
        },
        (Want::Number { low, high, whole }, Json::String(text)) if form == Form::Mended => {
            match mend::number(mend::word(text)) {
                Some(number) => bounded(number, *low, *high, *whole),
                None => Err(format!("wanted {}, got {}", wanted(want), quoted(text))),
            }
        }
        (Want::Record(fields), Json::Object(map)) => fields
            .iter()
            .map(|(name, want)| match map.get(name) {
                None => Err(format!("the field `{name}` is missing")),
                Some(json) => from_json(want, json, form).map_err(|why| format!("field `{name}`: {why}")),
            })
            .collect::<Result<_, _>>()
            .map(Value::Record),
        (Want::List { of, least, most }, Json::Array(items)) => {
            if !(*least as usize..=*most as usize).contains(&items.len()) {
                return Err(format!("wanted a list of {least} to {most}, got {}", items.len()));
            }
            let item = |(i, json)| from_json(of, json, form).map_err(|why| format!("item {}: {why}", i + 1));
            items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Value::List)
        }
        (want, json) => Err(format!("wanted {}, got {}", wanted(want), quoted(&json.to_string()))),
    }
}

fn wanted(want: &Want) -> &'static str {
    match want {
        Want::Text => "a text",
        Want::Choice(_) => "one of the options",
        Want::Number { whole: true, .. } => "a whole number",
        Want::Number { .. } => "a number",
        Want::List { .. } => "a JSON list",
        Want::Record(_) => "a JSON object",
        Want::Vector => "a vector",
    }
}

fn choice(options: &[String], text: &str, form: Form) -> Result<Value, String> {
    let exact = options.iter().position(|option| option.trim() == text);
    let found = exact.or_else(|| if form == Form::Mended { alike(options, text) } else { None });
    match found {
        Some(i) => Ok(Value::Choice(i as u32)),
        None => Err(format!("{} is none of the {} options", quoted(text), options.len())),
    }
}

/// The one option that differs in form alone.
fn alike(options: &[String], text: &str) -> Option<usize> {
    let plain = |text: &str| mend::word(text).to_lowercase();
    let text = Some(plain(text)).filter(|text| !text.is_empty())?;
    let mut found = (0..options.len()).filter(|i| options.get(*i).is_some_and(|option| plain(option) == text));
    found.next().filter(|_| found.next().is_none())
}

fn bounded(number: f64, low: f64, high: f64, whole: bool) -> Result<Value, String> {
    if whole && number.fract() != 0.0 {
        return Err(format!("{number} is no whole number"));
    }
    if number.is_finite() && (low..=high).contains(&number) {
        Ok(Value::Number(number))
    } else {
        Err(format!("{number} lies outside {low} to {high}"))
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
