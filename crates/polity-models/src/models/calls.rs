//! Calls of tools: as providers send them, and as models without a form of their own write them in their text.
//!
//! Arguments are checked against the schema of their tool, so that a wrong call is a reply that does not fit, and is asked for again.

use super::mend;
use super::strict_json::{parsed, quoted};
use polity_kernel::ask::{Outcome, ResponseFormat, Value};
use polity_kernel::tool::{Arguments, ToolCall, ToolSpec};
use polity_kernel::tree::nearest;
use serde_json::Value as Json;

/// A call as a provider sends it: the name of the tool, and the text of its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    /// The tool.
    pub name: String,
    /// JSON, as the model wrote it: it may be invalid.
    pub arguments: String,
}

/// What opens and closes a call in the text of many open models.
const TAGS: (&str, &str) = ("<tool_call>", "</tool_call>");
/// Names of the key under which a call names its tool, and of the key of its arguments.
const NAMES: [&str; 3] = ["tool", "name", "function"];
const ARGUMENTS: [&str; 3] = ["arguments", "parameters", "args"];

/// The outcome of a reply with calls in the provider's own form.
pub(super) fn native(tools: &[ToolSpec], text: &str, calls: &[RawCall]) -> Outcome {
    let mut repaired = false;
    let mut checked_calls = Vec::with_capacity(calls.len());
    let written = |call: &RawCall| serde_json::json!({"tool": call.name, "arguments": call.arguments});
    let raw = || serde_json::json!({"text": text, "calls": calls.iter().map(written).collect::<Vec<_>>()}).to_string();
    for call in calls {
        let arguments = match call.arguments.trim() {
            "" => Ok(Json::Object(Arguments::new())),
            written => parsed(written).or_else(|error| {
                repaired = true;
                mend::json(written, '{').map_err(|_| format!("the arguments are no JSON: {error}"))
            }),
        };
        match arguments.and_then(|arguments| checked(tools, &call.name, arguments)) {
            Ok(call) => checked_calls.push(call),
            Err(why) => return Outcome::Invalid { raw: raw(), why: format!("call of `{}`: {why}", call.name) },
        }
    }
    let value = Value::Calls { text: text.trim().to_owned(), calls: checked_calls };
    let raw = value.to_json(&ResponseFormat::Calls(tools.to_vec().into())).to_string();
    Outcome::Reply { value, raw, repaired }
}

/// Checks a call against the tools that are offered.
fn checked(tools: &[ToolSpec], name: &str, arguments: Json) -> Result<ToolCall, String> {
    let Some(tool) = tools.iter().find(|tool| *tool.name == *name) else {
        let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        let near =
            nearest(name, known.iter().copied()).map_or(String::new(), |near| format!(", did you mean `{near}`?"));
        return Err(format!("there is no tool of that name{near} (offered: {})", known.join(", ")));
    };
    let validator = jsonschema::validator_for(&tool.schema())
        .map_err(|error| format!("the schema of the tool is not usable: {error}"))?;
    if let Some(error) = validator.iter_errors(&arguments).next() {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!(" at `{place}`") };
        return Err(format!("the arguments do not fit{place}: {error}"));
    }
    match arguments {
        Json::Object(arguments) => Ok(ToolCall::new(name, &arguments)),
        other => Err(format!("the arguments are no JSON object, but {}", quoted(&other.to_string()))),
    }
}

/// The outcome of a reply that is a text. It may be the requested object, calls in one of the forms that models are trained to write (a list,
/// a single call, or calls between tags), or words alone.
pub(super) fn in_text(tools: &[ToolSpec], raw: &str) -> Outcome {
    let invalid = |why: String| Outcome::Invalid { raw: raw.to_owned(), why };
    let text = raw.trim();
    if text.is_empty() {
        return invalid("the reply is empty".into());
    }
    let (words, calls, repaired) = match found(text) {
        Ok(found) => found,
        Err(why) => return invalid(why),
    };
    let calls = calls
        .into_iter()
        .map(|(name, arguments)| checked(tools, &name, arguments).map_err(|why| format!("call of `{name}`: {why}")));
    match calls.collect::<Result<Vec<_>, _>>() {
        Ok(calls) if calls.is_empty() && words.trim().is_empty() => {
            invalid("the reply has neither a text nor a call".into())
        }
        Ok(calls) => Outcome::Reply { value: Value::Calls { text: words, calls }, raw: raw.to_owned(), repaired },
        Err(why) => invalid(why),
    }
}

/// Words, calls by name, and whether the form was repaired.
type Found = (String, Vec<(String, Json)>, bool);

fn found(text: &str) -> Result<Found, String> {
    if let Ok(json) = parsed(text)
        && let Some((words, calls)) = object(&json)
    {
        return Ok((words, calls, false));
    }
    if text.contains(TAGS.0) {
        return between_tags(text);
    }
    for open in ['{', '['] {
        if text.contains(open)
            && let Ok(json) = mend::json(text, open)
            && let Some((words, calls)) = object(&json)
        {
            return Ok((words, calls, true));
        }
    }
    // Words without a call are a reply of their own.
    Ok((text.to_owned(), Vec::new(), true))
}

/// Reads the requested object, a list of calls, or a single call.
fn object(json: &Json) -> Option<(String, Vec<(String, Json)>)> {
    if let Json::Array(items) = json {
        let calls: Option<Vec<_>> = items.iter().map(call).collect();
        return calls.filter(|calls| !calls.is_empty()).map(|calls| (String::new(), calls));
    }
    if let Some(call) = call(json) {
        return Some((String::new(), vec![call]));
    }
    let calls = ["calls", "tool_calls"].iter().find_map(|key| json.get(*key)?.as_array());
    let text = json.get("text").and_then(Json::as_str);
    match (text, calls) {
        (text, Some(calls)) => {
            let calls: Option<Vec<_>> = calls.iter().map(call).collect();
            Some((text.unwrap_or_default().to_owned(), calls?))
        }
        (Some(text), None) if json.as_object().is_some_and(|map| map.len() == 1) => Some((text.to_owned(), Vec::new())),
        _ => None,
    }
}

fn call(json: &Json) -> Option<(String, Json)> {
    let json = json.get("function").filter(|function| function.is_object()).unwrap_or(json);
    let name = NAMES.iter().find_map(|key| json.get(*key)?.as_str())?;
    let arguments = ARGUMENTS.iter().find_map(|key| json.get(*key))?;
    let arguments = match arguments {
        // Some models write them as a text, as on OpenAI's wire.
        Json::String(text) => parsed(text).ok()?,
        other => other.clone(),
    };
    Some((name.to_owned(), arguments))
}

/// Reads calls between tags: JSON, or a name followed by pairs of `<arg_key>` and `<arg_value>` (GLM).
fn between_tags(text: &str) -> Result<Found, String> {
    let (mut words, mut calls, mut rest) = (String::new(), Vec::new(), text);
    let mut repaired = false;
    while let Some((before, after)) = rest.split_once(TAGS.0) {
        words.push_str(before);
        let (inside, after) = after.split_once(TAGS.1).unwrap_or_else(|| {
            repaired = true;
            (after, "")
        });
        rest = after;
        let json = parsed(inside.trim()).or_else(|_| {
            repaired = true;
            mend::json(inside, '{')
        });
        match json.ok().as_ref().and_then(call).or_else(|| keyed(inside)) {
            Some(call) => calls.push(call),
            None => return Err(format!("the call {} cannot be read", quoted(inside.trim()))),
        }
    }
    words.push_str(rest);
    Ok((words.trim().to_owned(), calls, repaired))
}

fn keyed(inside: &str) -> Option<(String, Json)> {
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let Some((name, mut rest)) = inside.split_once("<arg_key>") else {
        // A call without arguments is the name alone.
        let name = inside.trim();
        return (!name.is_empty() && name.chars().all(named))
            .then(|| (name.to_owned(), Json::Object(Arguments::new())));
    };
    let mut arguments = Arguments::new();
    loop {
        let (key, after) = rest.split_once("</arg_key>")?;
        let (value, after) = after.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
        // A value that is no JSON is a text.
        arguments.insert(key.trim().to_owned(), parsed(value.trim()).unwrap_or_else(|_| Json::from(value)));
        match after.trim_start().strip_prefix("<arg_key>") {
            Some(next) => rest = next,
            None => return Some((name.trim().to_owned(), Json::Object(arguments))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use polity_kernel::tool::EffectClass;
    use serde_json::json;

    fn tools() -> Vec<ToolSpec> {
        let search = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "k": {"type": "integer", "minimum": 1}},
            "required": ["query"], "additionalProperties": false,
        });
        let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
        vec![
            ToolSpec::new("search", "Finds", &search, EffectClass::Pure),
            ToolSpec::new("now", "The time", &nothing, EffectClass::Reads),
        ]
    }

    fn reply(outcome: Outcome) -> (String, Vec<(String, Json)>, bool) {
        match outcome {
            Outcome::Reply { value: Value::Calls { text, calls }, repaired, .. } => {
                let calls = calls.into_iter().map(|call| (call.tool.clone(), Json::Object(call.read()))).collect();
                (text, calls, repaired)
            }
            other => panic!("{other:?}"),
        }
    }

    fn why(outcome: Outcome) -> String {
        match outcome {
            Outcome::Invalid { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_of_many_models_are_read() {
        let wanted = vec![("search".to_owned(), json!({"query": "rain", "k": 2})), ("now".to_owned(), json!({}))];
        let forms = [
            // The requested object; a list, as xLAM writes it; tags, as Qwen and Hermes write them; OpenAI's form as text.
            (
                r#"{"text": "", "calls": [{"tool": "search", "arguments": {"query": "rain", "k": 2}}, {"tool": "now", "arguments": {}}]}"#,
                false,
            ),
            (
                r#"[{"name": "search", "arguments": {"query": "rain", "k": 2}}, {"name": "now", "arguments": {}}]"#,
                false,
            ),
            (
                "```json\n[{\"name\": \"search\", \"arguments\": {\"query\": \"rain\", \"k\": 2}}, {\"name\": \"now\", \"arguments\": {}}]\n```",
                true,
            ),
            (
                "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"rain\", \"k\": 2}}\n</tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
                false,
            ),
            (
                r#"{"tool_calls": [{"type": "function", "function": {"name": "search", "arguments": "{\"query\": \"rain\", \"k\": 2}"}}, {"function": {"name": "now", "arguments": {}}}]}"#,
                false,
            ),
        ];
        for (text, mended) in forms {
            let (words, calls, repaired) = reply(in_text(&tools(), text));
            assert_eq!((words.as_str(), &calls, repaired), ("", &wanted, mended), "{text}");
        }
        // GLM's form, with words before it.
        let glm = "I look it up.\n<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>rain</arg_value>\n<arg_key>k</arg_key>\n<arg_value>2</arg_value>\n</tool_call>";
        let (words, calls, _) = reply(in_text(&tools(), glm));
        assert_eq!((words.as_str(), calls), ("I look it up.", vec![wanted[0].clone()]));
    }

    #[test]
    fn words_alone_are_a_reply() {
        let (words, calls, _) = reply(in_text(&tools(), "It is 42, I think."));
        assert_eq!((words.as_str(), calls.len()), ("It is 42, I think.", 0));
        let (words, calls, repaired) = reply(in_text(&tools(), r#"{"text": "It is 42.", "calls": []}"#));
        assert_eq!((words.as_str(), calls.len(), repaired), ("It is 42.", 0, false));
        assert!(why(in_text(&tools(), "  ")).contains("empty"));
        assert!(why(in_text(&tools(), r#"{"text": "", "calls": []}"#)).contains("neither"));
    }

    #[test]
    fn wrong_calls_say_what_is_wrong() {
        let call = |name: &str, arguments: &str| RawCall { name: name.into(), arguments: arguments.into() };
        let of = |name: &str, arguments: &str| native(&tools(), "", &[call(name, arguments)]);
        assert!(why(of("serch", "{}")).contains("did you mean `search`"));
        assert!(why(of("search", "{}")).contains("query"));
        assert!(why(of("search", r#"{"query": "x", "k": "two"}"#)).contains("`/k`"));
        assert!(why(of("search", r#"{"query": "x", "n": 1}"#)).contains("'n'"));
        assert!(why(of("search", "[1]")).contains("do not fit"));
        // Odd JSON is mended; a tool without arguments needs none.
        let (_, calls, repaired) = reply(of("search", r#"{"query": "rain",}"#));
        assert_eq!((calls, repaired), (vec![("search".to_owned(), json!({"query": "rain"}))], true));
        assert_eq!(reply(of("now", "")).1, [("now".to_owned(), json!({}))]);
    }
}
