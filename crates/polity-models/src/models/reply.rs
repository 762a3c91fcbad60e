//! Parses the text of a reply into the requested value.
//!
//! A reply is parsed strictly first, and then with its syntax repaired ([`mend`]). Neither guesses what a model may have meant: getting
//! the right form is up to the provider and to retries.

use super::strict_json::{parsed, quoted};
use super::{calls, mend};
use polity_kernel::ask::{Outcome, ResponseFormat, Value};
use serde_json::Value as Json;

/// Parses a reply. Surrounding space is ignored.
///
/// - `Text`: any non-empty text.
/// - `Choice`: exactly the text of one option.
/// - `Number`: a finite decimal number within the bounds, and nothing else.
/// - `List`: a JSON list. Objects must not have duplicate keys.
/// - `Calls`: calls in one of several forms, or words alone.
/// - `Record`: one JSON object with a value for every field: a string for a text (may be empty) or a choice (`true` and `false` represent
///   themselves), a number for a number, an object for a record. Extra fields are ignored.
///
/// Other replies may fit after repair: JSON in a fence or surrounded by words, with odd commas, quotes, comments or words of other
/// languages, or without its final braces; a choice or number in quotes, with emphasis, a full stop or other capitals. Replies cut inside
/// a value are not repaired, and missing or unfit values stay errors.
///
/// Gives [`Outcome::Reply`] or [`Outcome::Invalid`]; both keep the original reply.
#[must_use]
pub fn read_reply(response_format: &ResponseFormat, raw: &str) -> Outcome {
    if let ResponseFormat::Calls(tools) = response_format {
        return calls::in_text(tools, raw);
    }
    match strict(response_format, raw) {
        Ok(value) => Outcome::Reply { value, raw: raw.to_owned(), repaired: false },
        Err(why) => match mended(response_format, raw) {
            Ok(value) => Outcome::Reply { value, raw: raw.to_owned(), repaired: true },
            Err(better) => Outcome::Invalid { raw: raw.to_owned(), why: better.unwrap_or(why) },
        },
    }
}

/// The value of a reply that fits unchanged; else what is wrong with it.
pub(super) fn strict(response_format: &ResponseFormat, raw: &str) -> Result<Value, String> {
    let text = raw.trim();
    if text.is_empty() {
        return Err("the reply is empty".into());
    }
    match response_format {
        ResponseFormat::Text => Ok(Value::Text(text.to_owned())),
        ResponseFormat::Choice(options) => choice(options, text, Form::Exact),
        ResponseFormat::Number { low, high, whole } => match text.parse() {
            Ok(number) if !text.ends_with('.') => bounded(number, *low, *high, *whole),
            _ => Err(format!("wanted a number, got {}", quoted(text))),
        },
        // Providers return vectors directly.
        ResponseFormat::Vector => Err(format!("wanted a vector, got words: {}", quoted(text))),
        ResponseFormat::Calls(_) => Err("calls are read apart".into()),
        ResponseFormat::Record(_) | ResponseFormat::List { .. } => match parsed(text) {
            Ok(json) => from_json(response_format, &json, Form::Exact),
            Err(error) => Err(format!("wanted {}, got {}: {error}", wanted(response_format), quoted(text))),
        },
    }
}

/// The value of a repaired reply. If repair succeeds, the error is about its content.
pub(super) fn mended(response_format: &ResponseFormat, raw: &str) -> Result<Value, Option<String>> {
    match response_format {
        ResponseFormat::Text | ResponseFormat::Calls(_) | ResponseFormat::Vector => Err(None),
        ResponseFormat::Choice(_) | ResponseFormat::Number { .. } => {
            from_json(response_format, &Json::from(raw), Form::Mended).map_err(|_| None)
        }
        ResponseFormat::Record(_) | ResponseFormat::List { .. } => {
            let open = if matches!(response_format, ResponseFormat::Record(_)) { '{' } else { '[' };
            let json = mend::json(raw, open).map_err(|_| None)?;
            from_json(response_format, &json, Form::Mended).map_err(Some)
        }
    }
}

/// How strictly values are checked.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Exact,
    Mended,
}

fn from_json(response_format: &ResponseFormat, json: &Json, form: Form) -> Result<Value, String> {
    match (response_format, json) {
        (ResponseFormat::Text, Json::String(text)) => Ok(Value::Text(text.clone())),
        (ResponseFormat::Choice(options), Json::String(text)) => choice(options, text.trim(), form),
        (ResponseFormat::Choice(options), Json::Bool(yes)) => choice(options, &yes.to_string(), form),
        (ResponseFormat::Number { low, high, whole }, Json::Number(number)) => match number.as_f64() {
            Some(number) => bounded(number, *low, *high, *whole),
            None => Err(format!("{number} is too large a number")),
        },
        (ResponseFormat::Number { low, high, whole }, Json::String(text)) if form == Form::Mended => {
            match mend::number(mend::word(text)) {
                Some(number) => bounded(number, *low, *high, *whole),
                None => Err(format!("wanted {}, got {}", wanted(response_format), quoted(text))),
            }
        }
        (ResponseFormat::Record(fields), Json::Object(map)) => fields
            .iter()
            .map(|(name, response_format)| match map.get(name) {
                None => Err(format!("the field `{name}` is missing")),
                Some(json) => from_json(response_format, json, form).map_err(|why| format!("field `{name}`: {why}")),
            })
            .collect::<Result<_, _>>()
            .map(Value::Record),
        (ResponseFormat::List { of, least, most }, Json::Array(items)) => {
            if !(*least as usize..=*most as usize).contains(&items.len()) {
                return Err(format!("wanted a list of {least} to {most}, got {}", items.len()));
            }
            let item = |(i, json)| from_json(of, json, form).map_err(|why| format!("item {}: {why}", i + 1));
            items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Value::List)
        }
        (response_format, json) => {
            Err(format!("wanted {}, got {}", wanted(response_format), quoted(&json.to_string())))
        }
    }
}

fn wanted(response_format: &ResponseFormat) -> &'static str {
    match response_format {
        ResponseFormat::Text => "a text",
        ResponseFormat::Choice(_) => "one of the options",
        ResponseFormat::Number { whole: true, .. } => "a whole number",
        ResponseFormat::Number { .. } => "a number",
        ResponseFormat::List { .. } => "a JSON list",
        ResponseFormat::Record(_) => "a JSON object",
        ResponseFormat::Calls(_) => "calls of tools",
        ResponseFormat::Vector => "a vector",
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

/// The only option that differs just in form.
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
