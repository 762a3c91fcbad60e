//! What the stand-in answers: a simulated model's reply, in the form of the request's JSON schema. No right answer is known to it, so it is
//! a plausible one that fits; the same bytes of a request get the same answer.

use crate::models::Provider;
use crate::models::sim::Sim;
use polity_kernel::ask::schema::{as_option, kind, listed, resolved};
use polity_kernel::ask::{Effect, EffectId, Message, Outcome, Request, Role, Settings, Usage, Value, Want};
use polity_kernel::digest::{Kind, RowHash};
use serde_json::{Map, Value as Json, json};

/// What a model said.
pub(super) struct Said {
    pub content: Option<String>,
    pub refusal: Option<String>,
    /// Name and arguments of the tool that is called.
    pub call: Option<(String, String)>,
    pub finish_reason: &'static str,
    pub usage: Usage,
}

/// Key of a text.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    RowHash::new(Kind::Request, 0).bytes(bytes).finish()
}

/// Answers a request for a completion. An error says what is wrong with the request.
pub(super) async fn answer(sim: &Sim, model: &str, seed: u64, body: &[u8], request: &Json) -> Result<Said, String> {
    let messages = messages(&request["messages"])?;
    let tool = called_tool(request)?;
    let object = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    let format = &request["response_format"];
    let schema = match (&tool, format["type"].as_str()) {
        (Some((_, parameters)), _) => Some(*parameters),
        (None, Some("json_schema")) => Some(&format["json_schema"]["schema"]),
        (None, Some("json_object")) => Some(&object),
        _ => None,
    };
    let want = schema.map_or(Want::Text, Want::like);
    let effect = Effect {
        id: EffectId { item: 0, round: 0, actor: 0, n: 0 },
        request: Request {
            sample: hash(body) as u32,
            settings: Settings { max_tokens: longest(request), ..Settings::default() },
            ..Request::new(model, messages, want)
        },
        hidden: None,
        default: None,
    };
    let exchange = sim.answer(&effect, seed).await.map_err(|trouble| trouble.to_string())?;
    let mut said = Said { content: None, refusal: None, call: None, finish_reason: "stop", usage: exchange.usage };
    match (exchange.outcome, schema) {
        (Outcome::Refused { raw }, _) => said.refusal = Some(raw),
        // The model failed. Where the text does not show it, it was cut.
        (Outcome::Invalid { raw, .. }, schema) => {
            said.finish_reason = if schema.is_none() { "length" } else { "stop" };
            said.content = Some(raw);
        }
        (Outcome::Reply { value, .. }, Some(schema)) => {
            let text = shaped(schema, schema, &effect.request.want, &value).to_string();
            match tool {
                Some((name, _)) => {
                    said.call = Some((name.to_owned(), text));
                    said.finish_reason = "tool_calls";
                }
                None => said.content = Some(text),
            }
        }
        (Outcome::Reply { raw, .. }, None) => said.content = Some(raw),
        (Outcome::Failed { why } | Outcome::Denied { why }, _) => return Err(why),
    }
    Ok(said)
}

/// Tokens of the reply at most, under either of their names.
fn longest(request: &Json) -> Option<u64> {
    ["max_completion_tokens", "max_tokens"].into_iter().find_map(|name| request[name].as_u64())
}

/// The conversation; content is a text or a list of parts.
fn messages(list: &Json) -> Result<Vec<Message>, String> {
    let list =
        list.as_array().filter(|list| !list.is_empty()).ok_or("`messages` must be a list of at least one message")?;
    let message = |message: &Json| {
        let role = match message["role"].as_str() {
            Some("system" | "developer") => Role::System,
            Some("assistant") => Role::Assistant,
            Some("user" | "tool") => Role::User,
            _ => return Err(format!("a message has no role that is known: {}", message["role"])),
        };
        let text = match &message["content"] {
            Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        Ok(Message::text(role, text))
    };
    list.iter().map(message).collect()
}

/// The tool that must be called, with the schema of its arguments. A model that may choose calls none.
fn called_tool(request: &Json) -> Result<Option<(&str, &Json)>, String> {
    let choice = &request["tool_choice"];
    let named = choice["function"]["name"].as_str();
    if named.is_none() && choice.as_str() != Some("required") {
        return Ok(None);
    }
    let mut tools = request["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]);
    let tool = tools.find(|tool| named.is_none_or(|name| tool["name"] == name));
    match tool.and_then(|tool| Some((tool["name"].as_str()?, &tool["parameters"]))) {
        Some(tool) => Ok(Some(tool)),
        None => Err("`tool_choice` asks for a tool that is not among `tools`".into()),
    }
}

/// What the model replied, as the schema has it.
fn shaped(root: &Json, schema: &Json, want: &Want, value: &Value) -> Json {
    fn go(root: &Json, schema: &Json, want: &Want, value: &Value, depth: usize) -> Json {
        let schema = resolved(root, schema, depth);
        let chosen = || match (want, value) {
            (Want::Choice(options), Value::Choice(i)) => options.get(*i as usize).cloned(),
            _ => None,
        };
        if let Some(values) = listed(schema) {
            let chosen = chosen();
            let found = values.iter().find(|value| Some(as_option(value)) == chosen).or(values.first());
            return found.map_or(Json::Null, |value| (*value).clone());
        }
        match (kind(schema), want, value) {
            ("object", Want::Record(wants), Value::Record(values)) => {
                let fields = wants.iter().zip(values).map(|((name, want), value)| {
                    (name.clone(), go(root, &schema["properties"][name.as_str()], want, value, depth + 1))
                });
                Json::Object(fields.collect::<Map<_, _>>())
            }
            ("array", Want::List { of, .. }, Value::List(items)) => {
                items.iter().map(|item| go(root, &schema["items"], of, item, depth + 1)).collect()
            }
            ("integer", _, Value::Number(x)) => json!(*x as i64),
            (_, _, Value::Number(x)) => json!(x),
            ("boolean", _, _) => json!(chosen().as_deref() == Some("true")),
            (_, _, Value::Text(text)) => json!(text),
            _ => Json::Null,
        }
    }
    go(root, schema, want, value, 0)
}

/// A vector of a text: every word adds to one place, up or down. Texts with common words are near each other.
pub(super) fn embedding(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0f32; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = hash(word.to_lowercase().as_bytes());
        if let Some(place) = vector.get_mut((hash % dimensions as u128) as usize) {
            *place += if hash >> 127 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    match length > 0.0 {
        true => vector.iter_mut().for_each(|x| *x /= length),
        // A text without words is one, too.
        false => vector.iter_mut().take(1).for_each(|x| *x = 1.0),
    }
    vector
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reply(schema: Json) -> Json {
        let want = Want::like(&schema);
        let effect = Effect {
            id: EffectId { item: 0, round: 0, actor: 0, n: 0 },
            request: Request { sample: 7, ..Request::new("sim/perfect", vec![Message::text(Role::User, "?")], want) },
            hidden: None,
            default: None,
        };
        let sim = Sim::standard();
        let answering = sim.answer(&effect, 1);
        let exchange = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answering).unwrap();
        match exchange.outcome {
            Outcome::Reply { value, .. } => shaped(&schema, &schema, &effect.request.want, &value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replies_fit_their_schema() {
        let person = json!({"type": "object", "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "minimum": 3, "maximum": 5},
            "party": {"enum": ["left", "right"]}, "votes": {"type": "boolean"}, "rank": {"const": 4},
            "friends": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/person"}},
            "boss": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
            "trust": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 2},
        }});
        let mut schema = person.clone();
        schema["$defs"] = json!({"person": {"type": "object", "properties": {"name": {"type": "string"},
            "friends": {"type": "array", "items": {"$ref": "#/$defs/person"}}}}});
        let reply = reply(schema);
        assert!(reply["name"].is_string() && reply["votes"].is_boolean());
        assert!((3..=5).contains(&reply["age"].as_i64().unwrap()));
        assert!(["left", "right"].contains(&reply["party"].as_str().unwrap()));
        assert_eq!(reply["rank"], 4);
        assert_eq!(reply["friends"].as_array().unwrap().len(), 2);
        assert!(reply["friends"][0]["friends"][0]["name"].is_string());
        assert!(reply["boss"]["name"].is_string());
        assert!((1.0..=2.0).contains(&reply["trust"].as_f64().unwrap()));
    }

    #[test]
    fn texts_with_common_words_are_near() {
        let near = |a: &str, b: &str| {
            let (a, b) = (embedding(a, 256), embedding(b, 256));
            a.iter().zip(&b).map(|(x, y)| x * y).sum::<f32>()
        };
        assert!((near("a red house", "A RED house!") - 1.0).abs() < 1e-5);
        assert!(near("a red house", "a red car") > near("a red house", "ten loud dogs"));
        assert_eq!(embedding("", 4), [1.0, 0.0, 0.0, 0.0]);
    }
}
