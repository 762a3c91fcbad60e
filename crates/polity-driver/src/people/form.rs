//! What answer is wanted, in a person's words, and from there to the value.

use super::Words;
use crate::models::read_reply;
use polity_kernel::ask::{Outcome, Want};
use serde_json::{Map, Value as Json};

/// What answers fit, in words.
#[must_use]
pub fn form(want: &Want) -> String {
    match want {
        Want::Text => "a text".into(),
        Want::Vector => "a vector, which people have none of".into(),
        Want::Choice(options) => {
            format!("one of: {}", options.iter().map(|option| option.trim()).collect::<Vec<_>>().join(", "))
        }
        Want::Number { low, high, whole } => {
            let number = if *whole { "a whole number" } else { "a number" };
            match (low.is_finite(), high.is_finite()) {
                (true, true) => format!("{number} from {low} to {high}"),
                (true, false) => format!("{number}, {low} or more"),
                (false, true) => format!("{number}, {high} or less"),
                (false, false) => number.into(),
            }
        }
        Want::List { of, least, most } => match *most {
            u32::MAX => format!("a JSON list of {least} or more; each {}", form(of)),
            most => format!("a JSON list of {least} to {most}; each {}", form(of)),
        },
        Want::Record(fields) => {
            let field = |(name, want): &(String, Want)| format!("{name} ({})", form(want));
            let fields = fields.iter().map(field).collect::<Vec<_>>().join(", ");
            format!("in this order: {fields}; or one JSON object with these keys")
        }
    }
}

/// The outcome of an answer that fits; else what is wrong with it.
pub(super) fn read(want: &Want, words: &Words<'_>) -> Result<Outcome, String> {
    let raw = match (words, want) {
        (Words::Typed([one]), Want::Record(_)) if one.trim_start().starts_with('{') => one.clone(),
        (Words::Typed(texts), Want::Record(fields)) => record(fields, texts)?,
        (Words::Typed([one]), _) => one.clone(),
        (Words::Typed(texts), _) => return Err(format!("one answer is wanted, and there are {}", texts.len())),
        // A reply's text is what it says, without quotes.
        (Words::Json(Json::String(text)), _) => text.clone(),
        (Words::Json(json), _) => json.to_string(),
    };
    if raw.len() > super::LONGEST_ANSWER {
        return Err(format!("it has {} bytes, and {} are taken", raw.len(), super::LONGEST_ANSWER));
    }
    match read_reply(want, &raw) {
        Outcome::Invalid { why, .. } => Err(why),
        fits => Ok(fits),
    }
}

/// The JSON object of fields that were typed one by one.
fn record(fields: &[(String, Want)], texts: &[String]) -> Result<String, String> {
    if fields.len() != texts.len() {
        return Err(format!("{} values are wanted, and there are {}", fields.len(), texts.len()));
    }
    let mut object = Map::new();
    for ((name, want), text) in fields.iter().zip(texts) {
        let value = match want {
            Want::Text | Want::Choice(_) => Json::from(text.trim()),
            Want::Number { .. } | Want::List { .. } | Want::Record(_) | Want::Vector => {
                serde_json::from_str(text.trim()).map_err(|_| format!("{name}: wanted {}, got {text:?}", form(want)))?
            }
        };
        object.insert(name.clone(), value);
    }
    Ok(Json::Object(object).to_string())
}

/// Fields that a person is asked for one after the other: their names and forms.
pub(super) fn fields(want: &Want) -> Vec<(String, String)> {
    match want {
        Want::Record(fields) => fields.iter().map(|(name, want)| (name.clone(), form(want))).collect(),
        want => vec![(String::new(), form(want))],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::Value;

    fn typed(want: &Want, texts: &[&str]) -> Result<Value, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        match read(want, &Words::Typed(&texts))? {
            Outcome::Reply { value, .. } => Ok(value),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_typed_is_read_by_what_is_wanted() {
        let choice = Want::Choice(vec!["stay".into(), "go".into()]);
        let whole = Want::Number { low: 0.0, high: 10.0, whole: true };
        let both = Want::Record(vec![("answer".into(), Want::Text), ("sure".into(), whole.clone())]);
        assert_eq!(typed(&choice, &["Go"]), Ok(Value::Choice(1)));
        assert!(typed(&choice, &["run"]).is_err());
        assert_eq!(typed(&whole, &["7"]), Ok(Value::Number(7.0)));
        for wrong in ["7.5", "11", "seven", "", "5 or 6", "NaN", "inf"] {
            assert!(typed(&whole, &[wrong]).is_err(), "{wrong}");
        }
        let record = Value::Record(vec![Value::Text("a \"b\"".into()), Value::Number(3.0)]);
        assert_eq!(typed(&both, &["a \"b\"", "3"]), Ok(record.clone()));
        assert_eq!(typed(&both, &[r#"{"answer": "a \"b\"", "sure": 3}"#]), Ok(record));
        assert!(typed(&both, &["a"]).unwrap_err().contains("2 values are wanted"));
        assert!(typed(&both, &["a", "x"]).unwrap_err().starts_with("sure: wanted a whole number from 0 to 10"));
        assert_eq!(
            form(&both),
            "in this order: answer (a text), sure (a whole number from 0 to 10); or one JSON object with these keys"
        );
        assert!(read(&Want::Text, &Words::Json(&serde_json::json!("yes"))).is_ok());
        assert!(read(&Want::Text, &Words::Typed(&["x".repeat(2_000_000)])).unwrap_err().contains("bytes"));
    }
}
