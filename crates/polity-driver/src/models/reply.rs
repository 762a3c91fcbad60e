//! From the text of a reply to the value that was wanted.
//!
//! The reader is strict: it never guesses what a model may have meant. Making a model reply in the right form is the work of the
//! provider and of asking again; a text that merely contains the answer is an invalid reply.

use polity_kernel::ask::{Outcome, Value, Want};
use serde_json::Value as Json;

/// Characters of a reply that a message quotes.
const QUOTED: usize = 60;

/// Reads a reply. Space around it is ignored.
///
/// - `Text`: any text that is not empty.
/// - `Choice`: exactly the text of one option.
/// - `Number`: a finite decimal number within the bounds, and nothing else.
/// - `Record`: one JSON object with a value for every field: a string for a text (may be empty) or a choice, a number for a
///   number, an object for a record. Fields that were not asked for are ignored.
///
/// Gives [`Outcome::Reply`] or [`Outcome::Invalid`]; both keep the reply as it came.
#[must_use]
pub fn read_reply(want: &Want, raw: &str) -> Outcome {
    match read(want, raw.trim()) {
        Ok(value) => Outcome::Reply { value, raw: raw.to_owned(), repaired: false },
        Err(why) => Outcome::Invalid { raw: raw.to_owned(), why },
    }
}

fn read(want: &Want, text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("the reply is empty".into());
    }
    match want {
        Want::Text => Ok(Value::Text(text.to_owned())),
        Want::Choice(options) => choice(options, text),
        Want::Number { low, high, whole } => match text.parse() {
            Ok(number) => bounded(number, *low, *high, *whole),
            Err(_) => Err(format!("wanted a number, got {}", quoted(text))),
        },
        Want::Record(_) | Want::List { .. } => match serde_json::from_str(text) {
            Ok(json) => from_json(want, &json),
            Err(error) => Err(format!("wanted {}, got {}: {error}", wanted(want), quoted(text))),
        },
    }
}

fn from_json(want: &Want, json: &Json) -> Result<Value, String> {
    match (want, json) {
        (Want::Text, Json::String(text)) => Ok(Value::Text(text.clone())),
        (Want::Choice(options), Json::String(text)) => choice(options, text.trim()),
        (Want::Number { low, high, whole }, Json::Number(number)) => match number.as_f64() {
            Some(number) => bounded(number, *low, *high, *whole),
            None => Err(format!("{number} is too large a number")),
        },
        (Want::Record(fields), Json::Object(map)) => fields
            .iter()
            .map(|(name, want)| match map.get(name) {
                None => Err(format!("the field `{name}` is missing")),
                Some(json) => from_json(want, json).map_err(|why| format!("field `{name}`: {why}")),
            })
            .collect::<Result<_, _>>()
            .map(Value::Record),
        (Want::List { of, least, most }, Json::Array(items)) => {
            if !(*least as usize..=*most as usize).contains(&items.len()) {
                return Err(format!("wanted a list of {least} to {most}, got {}", items.len()));
            }
            let item = |(i, json)| from_json(of, json).map_err(|why| format!("item {}: {why}", i + 1));
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
    }
}

fn choice(options: &[String], text: &str) -> Result<Value, String> {
    match options.iter().position(|option| option.trim() == text) {
        Some(i) => Ok(Value::Choice(i as u32)),
        None => Err(format!("{} is none of the {} options", quoted(text), options.len())),
    }
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
