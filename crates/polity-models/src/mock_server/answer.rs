//! Replies of the mock server: a simulated model's reply that fits the request's JSON schema. It knows no right answers, so replies are
//! merely plausible; equal request bytes get equal replies.

use super::wires::Tools;
use crate::models::sim::{Hold, Sim};
use polity_kernel::ask::schema::{as_option, kind, listed, resolved};
use polity_kernel::ask::{
    Asker, ChatMessage, Constrain, Effect, EffectId, Outcome, Request, ResponseFormat, Settings, Usage, Value,
};
use polity_kernel::digest::{Kind, RowHash};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of parsed forms kept.
const FORMS: usize = 1000;

/// A parsed completion request of any wire, as far as it is used.
pub(super) struct Asked<'a> {
    pub model: Cow<'a, str>,
    pub messages: Vec<ChatMessage>,
    /// Characters of the conversation as sent; rate limits count them.
    pub letters: usize,
    /// The required form of the reply.
    pub format: Option<Format<'a>>,
    /// Whether the form was requested directly rather than through a tool.
    pub in_form: bool,
    /// Its tools.
    pub tools: Tools,
    /// Maximum tokens of the reply.
    pub longest: Option<u64>,
    pub stream: bool,
    pub logprobs: bool,
    /// Number of alternatives requested per token.
    pub alternatives: usize,
    pub include_usage: bool,
}

/// The form of a reply.
pub(super) enum Format<'a> {
    /// A JSON Schema, as sent.
    Schema(Cow<'a, str>),
    /// Any object.
    Object,
    /// Exactly one of these texts, and the constraint mode.
    Options(Vec<String>, Constrain),
}

impl Asked<'_> {
    /// The constraint mode of a form, and the parameter that requests it.
    pub(super) fn constrained(&self) -> Option<(Constrain, &'static str)> {
        match &self.format {
            Some(Format::Options(_, Constrain::Choice)) => Some((Constrain::Choice, "structured_outputs")),
            Some(Format::Options(..)) => Some((Constrain::Grammar, "grammar")),
            _ if self.in_form => Some((Constrain::Schema, "response_format")),
            _ if !self.tools.offered.is_empty() => Some((Constrain::Tools, "tools")),
            _ if self.logprobs => Some((Constrain::Logprobs, "logprobs")),
            _ => None,
        }
    }
}

/// A parsed schema.
pub(super) struct Form {
    schema: Json,
    response_format: ResponseFormat,
}

/// The parsed schemas of recent requests: most requests of a run share a few.
#[derive(Default)]
pub(super) struct Forms(Mutex<BTreeMap<u128, Arc<Form>>>);

impl Forms {
    fn read(&self, format: &Format<'_>) -> Arc<Form> {
        let text = match format {
            Format::Options(options, _) => {
                return Arc::new(Form {
                    schema: json!({"enum": options}),
                    response_format: ResponseFormat::Choice(options.clone()),
                });
            }
            Format::Schema(text) => text.as_ref(),
            Format::Object => r#"{"type": "object", "properties": {"answer": {"type": "string"}}}"#,
        };
        let key = hash(text.as_bytes());
        // The guarded data is valid even after a panic.
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if forms.len() >= FORMS {
            forms.clear();
        }
        let form = forms.entry(key).or_insert_with(|| {
            let schema = serde_json::from_str(text).unwrap_or_default();
            Arc::new(Form { response_format: ResponseFormat::like(&schema), schema })
        });
        form.clone()
    }
}

/// A model's reply.
pub(super) struct Said {
    pub content: Option<String>,
    pub refusal: Option<String>,
    /// Names and arguments of the called tools.
    pub calls: Vec<(String, String)>,
    pub finish: Finish,
    pub usage: Usage,
    /// The likeliest first tokens, with their natural log-probabilities.
    pub alternatives: Vec<(String, f64)>,
}

impl Said {
    /// Nothing said.
    fn with(usage: Usage) -> Said {
        Said { content: None, refusal: None, calls: Vec::new(), finish: Finish::Stop, usage, alternatives: Vec::new() }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Finish {
    /// It was finished.
    Stop,
    /// It was cut at the token limit.
    Length,
    /// It calls tools.
    Tool,
}

/// Key of some bytes.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    RowHash::new(Kind::Request, 0).bytes(bytes).finish()
}

/// Answers a request whose bytes have the key `body`, as `model`. An error says why it cannot.
pub(super) fn answer(
    sim: &Sim,
    forms: &Forms,
    model: &str,
    seed: u64,
    body: u128,
    asked: &mut Asked<'_>,
) -> Result<Said, String> {
    if asked.tools.forced.is_none()
        && let Some(said) = called(sim, model, seed, body, asked)?
    {
        return Ok(said);
    }
    // A model reads the words: a schema at the end of the conversation, or letters before options.
    let in_words = asked.format.is_none().then(|| schema_in_words(&asked.messages)).flatten();
    let hold = if asked.format.is_some() { Hold::Form } else { Hold::Words };
    let letters = (asked.alternatives > 0).then(|| letters(&asked.messages)).flatten();
    let form = asked.format.as_ref().map(|format| forms.read(format));
    let form = form.or_else(|| in_words.map(|schema| forms.read(&Format::Schema(Cow::Owned(schema)))));
    let response_format = form.as_ref().map_or(ResponseFormat::Text, |form| form.response_format.clone());
    let response_format = letters.map_or(response_format, ResponseFormat::Choice);
    let lettered = matches!((&response_format, &form), (ResponseFormat::Choice(_), None));
    let effect = effect(model, body, asked.longest, std::mem::take(&mut asked.messages), response_format);
    let exchange = sim.held(&effect, seed, hold)?;
    let mut said = Said::with(exchange.usage);
    if lettered {
        let (mut alternatives, token) = sim.alternatives(&effect, seed)?;
        alternatives.truncate(asked.alternatives);
        said.content = Some(token);
        said.alternatives = alternatives;
        // There is space for one token.
        said.finish = Finish::Length;
        return Ok(said);
    }
    match (exchange.outcome, form) {
        (Outcome::Refused { raw }, _) => said.refusal = Some(raw),
        // The model failed. If the text does not show it, the reply was cut.
        (Outcome::Invalid { raw, .. }, form) => {
            said.finish = if form.is_none() { Finish::Length } else { Finish::Stop };
            said.content = Some(raw);
        }
        // Unchanged: nothing constrains it to its form.
        (Outcome::Reply { raw, .. }, Some(_)) if hold == Hold::Words => said.content = Some(raw),
        (Outcome::Reply { value, .. }, Some(form)) => {
            let shaped = shaped(&form.schema, &form.schema, &form.response_format, &value);
            let text = match (shaped, &asked.format) {
                (Json::String(option), Some(Format::Options(..))) => option,
                (other, _) => other.to_string(),
            };
            match asked.tools.forced.take() {
                Some((name, _)) => {
                    said.calls = vec![(name, text)];
                    said.finish = Finish::Tool;
                }
                None => said.content = Some(text),
            }
        }
        (Outcome::Reply { raw, .. }, None) => said.content = Some(raw),
        (Outcome::Failed { why } | Outcome::Denied { why }, _) => return Err(why),
    }
    Ok(said)
}

fn effect(
    model: &str,
    body: u128,
    max_tokens: Option<u64>,
    messages: Vec<ChatMessage>,
    response_format: ResponseFormat,
) -> Effect {
    Effect {
        id: EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 },
        request: Request {
            sample: body as u32,
            settings: Settings { max_tokens, ..Settings::default() },
            ..Request::new(model, messages, response_format)
        },
        hidden: None,
        default: None,
    }
}

/// The reply to a request with tools: calls, or words. `None`: it has no tools, or the words have a form of their own.
fn called(sim: &Sim, model: &str, seed: u64, body: u128, asked: &Asked<'_>) -> Result<Option<Said>, String> {
    if asked.tools.offered.is_empty() {
        return Ok(None);
    }
    let format = ResponseFormat::Calls(asked.tools.offered.clone());
    let exchange = sim.held(&effect(model, body, asked.longest, asked.messages.clone(), format), seed, Hold::Form)?;
    let mut said = Said::with(exchange.usage);
    match exchange.outcome {
        Outcome::Reply { value: Value::Calls { text, mut calls }, .. } => {
            if calls.is_empty() && asked.format.is_some() {
                return Ok(None);
            }
            calls.truncate(if asked.tools.single { 1 } else { calls.len() });
            said.finish = if calls.is_empty() { Finish::Stop } else { Finish::Tool };
            said.content = Some(text).filter(|text| !text.is_empty());
            said.calls = calls.into_iter().map(|call| (call.tool, call.arguments)).collect();
        }
        Outcome::Refused { raw } => said.refusal = Some(raw),
        // Cut, or a call that is not offered: the text shows it.
        Outcome::Invalid { raw, .. } | Outcome::Reply { raw, .. } => {
            (said.content, said.finish) = (Some(raw), Finish::Length);
        }
        Outcome::Failed { why } | Outcome::Denied { why } => return Err(why),
    }
    Ok(Some(said))
}

/// The schema in the last line of a conversation, where polity puts it for servers without schema support.
fn schema_in_words(messages: &[ChatMessage]) -> Option<String> {
    let last = messages.last()?.rendered();
    let (_, line) = last.rsplit_once("JSON Schema")?.1.rsplit_once('\n')?;
    let schema: Json = serde_json::from_str(line).ok()?;
    schema["properties"].is_object().then(|| line.to_owned())
}

/// The letters before options at the end of a conversation (`A) left`).
fn letters(messages: &[ChatMessage]) -> Option<Vec<String>> {
    let last = messages.last()?.rendered();
    let mut letters: Vec<String> = Vec::new();
    for line in last.lines() {
        match line.split_once(") ") {
            Some((letter, _)) if letter.chars().eq([char::from(b'A' + letters.len() as u8)]) => {
                letters.push(letter.into())
            }
            _ => {}
        }
    }
    (letters.len() > 1).then_some(letters)
}

/// Shapes the model's reply by the schema.
fn shaped(root: &Json, schema: &Json, response_format: &ResponseFormat, value: &Value) -> Json {
    fn go(root: &Json, schema: &Json, response_format: &ResponseFormat, value: &Value, depth: usize) -> Json {
        let schema = resolved(root, schema, depth);
        let chosen = || match (response_format, value) {
            (ResponseFormat::Choice(options), Value::Choice(i)) => options.get(*i as usize).cloned(),
            _ => None,
        };
        if let Some(values) = listed(schema) {
            let chosen = chosen();
            let found = values.iter().find(|value| Some(as_option(value)) == chosen).or(values.first());
            return found.map_or(Json::Null, |value| (*value).clone());
        }
        match (kind(schema), response_format, value) {
            ("object", ResponseFormat::Record(wants), Value::Record(values)) => {
                let fields = wants.iter().zip(values).map(|((name, response_format), value)| {
                    (name.clone(), go(root, &schema["properties"][name.as_str()], response_format, value, depth + 1))
                });
                Json::Object(fields.collect::<Map<_, _>>())
            }
            ("array", ResponseFormat::List { of, .. }, Value::List(items)) => {
                items.iter().map(|item| go(root, &schema["items"], of, item, depth + 1)).collect()
            }
            ("integer", _, Value::Number(x)) => json!(*x as i64),
            (_, _, Value::Number(x)) => json!(x),
            ("boolean", _, _) => json!(chosen().as_deref() == Some("true")),
            (_, _, Value::Text(text)) => json!(text),
            _ => Json::Null,
        }
    }
    go(root, schema, response_format, value, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::Role;

    fn reply(schema: Json) -> Json {
        let response_format = ResponseFormat::like(&schema);
        let effect = Effect {
            id: EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 },
            request: Request {
                sample: 7,
                ..Request::new("sim/perfect", vec![ChatMessage::text(Role::User, "?")], response_format)
            },
            hidden: None,
            default: None,
        };
        let sim = Sim::standard();
        let exchange = sim.held(&effect, 1, Hold::Form).unwrap();
        match exchange.outcome {
            Outcome::Reply { value, .. } => shaped(&schema, &schema, &effect.request.response_format, &value),
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
}
