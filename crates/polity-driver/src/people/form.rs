//! The form of an answer in words, and parsing of a person's words into a value.

use polity_kernel::ask::{Outcome, ResponseFormat};
use polity_models::models::read_reply;
use serde_json::{Map, Value as Json};

/// Describes the answers that fit.
#[must_use]
pub fn form(response_format: &ResponseFormat) -> String {
    match response_format {
        ResponseFormat::Text => "a text".into(),
        ResponseFormat::Calls(tools) => {
            let tools: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            let tools = tools.join(", ");
            format!("a text, or a JSON list of calls, each {{\"tool\": NAME, \"arguments\": {{...}}}}, of: {tools}")
        }
        ResponseFormat::Vector => "a vector, which a person cannot give".into(),
        ResponseFormat::Choice(options) => {
            format!("one of: {}", options.iter().map(|option| option.trim()).collect::<Vec<_>>().join(", "))
        }
        ResponseFormat::Number { low, high, whole } => {
            let number = if *whole { "a whole number" } else { "a number" };
            match (low.is_finite(), high.is_finite()) {
                (true, true) => format!("{number} from {low} to {high}"),
                (true, false) => format!("{number}, {low} or more"),
                (false, true) => format!("{number}, {high} or less"),
                (false, false) => number.into(),
            }
        }
        ResponseFormat::List { of, least, most } => match *most {
            u32::MAX => format!("a JSON list of {least} or more; each {}", form(of)),
            most => format!("a JSON list of {least} to {most}; each {}", form(of)),
        },
        ResponseFormat::Record(fields) => {
            let field =
                |(name, response_format): &(String, ResponseFormat)| format!("{name} ({})", form(response_format));
            let fields = fields.iter().map(field).collect::<Vec<_>>().join(", ");
            format!("in this order: {fields}; or one JSON object with these keys")
        }
    }
}

/// The outcome of an answer that fits; else what is wrong with it.
pub(super) fn read(response_format: &ResponseFormat, words: &Words<'_>) -> Result<Outcome, String> {
    let raw = match (words, response_format) {
        (Words::Typed([one]), ResponseFormat::Record(_)) if one.trim_start().starts_with('{') => one.clone(),
        (Words::Typed(texts), ResponseFormat::Record(fields)) => record(fields, texts)?,
        (Words::Typed([one]), _) => one.clone(),
        (Words::Typed(texts), _) => return Err(format!("expected one answer, found {}", texts.len())),
        // A JSON text counts without its quotes.
        (Words::Json(Json::String(text)), _) => text.clone(),
        (Words::Json(json), _) => json.to_string(),
    };
    if raw.len() > super::LONGEST_ANSWER {
        return Err(format!("it has {} bytes; at most {} are accepted", raw.len(), super::LONGEST_ANSWER));
    }
    match read_reply(response_format, &raw) {
        Outcome::Invalid { why, .. } => Err(why),
        fits => Ok(fits),
    }
}

/// The JSON object of fields typed one by one.
fn record(fields: &[(String, ResponseFormat)], texts: &[String]) -> Result<String, String> {
    if fields.len() != texts.len() {
        return Err(format!("expected {} values, found {}", fields.len(), texts.len()));
    }
    let mut object = Map::new();
    for ((name, response_format), text) in fields.iter().zip(texts) {
        let value = match response_format {
            ResponseFormat::Text | ResponseFormat::Choice(_) => Json::from(text.trim()),
            ResponseFormat::Number { .. }
            | ResponseFormat::List { .. }
            | ResponseFormat::Record(_)
            | ResponseFormat::Calls(_)
            | ResponseFormat::Vector => serde_json::from_str(text.trim())
                .map_err(|_| format!("{name}: wanted {}, got {text:?}", form(response_format)))?,
        };
        object.insert(name.clone(), value);
    }
    Ok(Json::Object(object).to_string())
}

/// Fields that a person is asked one by one: their names and forms.
pub(super) fn fields(response_format: &ResponseFormat) -> Vec<(String, String)> {
    match response_format {
        ResponseFormat::Record(fields) => {
            fields.iter().map(|(name, response_format)| (name.clone(), form(response_format))).collect()
        }
        response_format => vec![(String::new(), form(response_format))],
    }
}

/// Maximum bytes of an answer.
pub const LONGEST_ANSWER: usize = 1_000_000;

/// A submitted answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Words<'a> {
    /// Typed by a person: one text, or one per field of a record.
    Typed(&'a [String]),
    /// A JSON value.
    Json(&'a serde_json::Value),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::Value;

    fn typed(response_format: &ResponseFormat, texts: &[&str]) -> Result<Value, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        match read(response_format, &Words::Typed(&texts))? {
            Outcome::Reply { value, .. } => Ok(value),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_typed_is_read_by_what_is_wanted() {
        let choice = ResponseFormat::Choice(vec!["stay".into(), "go".into()]);
        let whole = ResponseFormat::Number { low: 0.0, high: 10.0, whole: true };
        let both =
            ResponseFormat::Record(vec![("answer".into(), ResponseFormat::Text), ("sure".into(), whole.clone())]);
        assert_eq!(typed(&choice, &["Go"]), Ok(Value::Choice(1)));
        assert!(typed(&choice, &["run"]).is_err());
        assert_eq!(typed(&whole, &["7"]), Ok(Value::Number(7.0)));
        for wrong in ["7.5", "11", "seven", "", "5 or 6", "NaN", "inf"] {
            assert!(typed(&whole, &[wrong]).is_err(), "{wrong}");
        }
        let record = Value::Record(vec![Value::Text("a \"b\"".into()), Value::Number(3.0)]);
        assert_eq!(typed(&both, &["a \"b\"", "3"]), Ok(record.clone()));
        assert_eq!(typed(&both, &[r#"{"answer": "a \"b\"", "sure": 3}"#]), Ok(record));
        assert!(typed(&both, &["a"]).unwrap_err().contains("expected 2 values, found 1"));
        assert!(typed(&both, &["a", "x"]).unwrap_err().starts_with("sure: wanted a whole number from 0 to 10"));
        assert_eq!(
            form(&both),
            "in this order: answer (a text), sure (a whole number from 0 to 10); or one JSON object with these keys"
        );
        assert!(read(&ResponseFormat::Text, &Words::Json(&serde_json::json!("yes"))).is_ok());
        assert!(read(&ResponseFormat::Text, &Words::Typed(&["x".repeat(2_000_000)])).unwrap_err().contains("bytes"));
    }
}
