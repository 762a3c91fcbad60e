//! The OpenAI wire: what its requests say, and the exact shapes of its answers, as its servers send them.

use crate::standin::answer::{Asked, Format, Said};
use polity_kernel::ask::{Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// What the shapes need besides what was said.
pub struct Head {
    pub id: String,
    pub created: u64,
    pub model: String,
    pub logprobs: bool,
    pub include_usage: bool,
}

/// A request for a completion; what only matters to a real model is passed over.
#[derive(Deserialize)]
struct ChatRequest<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_format: Option<&'a RawValue>,
    #[serde(default)]
    tools: Json,
    #[serde(default)]
    tool_choice: Json,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    max_completion_tokens: Option<u64>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    logprobs: Option<bool>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResponseFormat<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    json_schema: Option<NamedSchema<'a>>,
}

#[derive(Deserialize)]
struct NamedSchema<'a> {
    #[serde(borrow)]
    schema: &'a RawValue,
}

/// A request for a completion, read. An error says what is wrong with it.
pub fn asked(body: &[u8]) -> Result<Asked<'_>, String> {
    let request: ChatRequest<'_> =
        serde_json::from_slice(body).map_err(|error| format!("the request is no JSON of its form: {error}"))?;
    let model = request.model.filter(|model| !model.is_empty()).ok_or("you must provide a model parameter")?;
    let conversation = request.messages.map_or("", RawValue::get);
    let messages: Vec<ChatMessage<'_>> = serde_json::from_str(conversation).unwrap_or_default();
    if messages.is_empty() {
        return Err("`messages` must be a list of at least one message".into());
    }
    let (tool, format) = match called_tool(&request.tools, &request.tool_choice)? {
        Some((name, parameters)) => (Some(name), Some(Format::Schema(Cow::Owned(parameters)))),
        None => (None, request.response_format.and_then(|format| formatted(format.get()))),
    };
    Ok(Asked {
        model,
        messages: messages.iter().map(message).collect::<Result<_, _>>()?,
        letters: conversation.chars().count(),
        format,
        in_form: request.response_format.is_some_and(|format| format.get().starts_with('{')),
        tool,
        longest: request.max_completion_tokens.or(request.max_tokens),
        stream: request.stream == Some(true),
        logprobs: request.logprobs == Some(true),
        include_usage: request.stream_options.is_some_and(|options| options.include_usage),
    })
}

/// A message; its content is a text or a list of parts.
fn message(message: &ChatMessage<'_>) -> Result<Message, String> {
    let role = match message.role.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("user" | "tool") => Role::User,
        other => return Err(format!("a message has no role that is known: {}", json!(other))),
    };
    let content = message.content.map_or("null", RawValue::get);
    let text = match serde_json::from_str(content) {
        Ok(Json::String(text)) => text,
        Ok(Json::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    Ok(Message::text(role, text))
}

/// The form of the reply that `response_format` names.
fn formatted(format: &str) -> Option<Format<'_>> {
    let format: ResponseFormat<'_> = serde_json::from_str(format).ok()?;
    match &*format.r#type {
        "json_schema" => format.json_schema.map(|named| Format::Schema(Cow::Borrowed(named.schema.get()))),
        "json_object" => Some(Format::Object),
        _ => None,
    }
}

/// The tool that must be called, with the schema of its arguments. A model that may choose calls none.
fn called_tool(tools: &Json, choice: &Json) -> Result<Option<(String, String)>, String> {
    let named = choice["function"]["name"].as_str();
    if named.is_none() && choice.as_str() != Some("required") {
        return Ok(None);
    }
    let mut tools = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    let tool = tools.find(|tool| named.is_none_or(|name| tool["name"] == name));
    match tool.and_then(|tool| Some((tool["name"].as_str()?, &tool["parameters"]))) {
        Some((name, parameters)) => Ok(Some((name.to_owned(), parameters.to_string()))),
        None => Err("`tool_choice` asks for a tool that is not among `tools`".into()),
    }
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

#[derive(Default, Serialize)]
struct PromptTokens {
    cached_tokens: u64,
    audio_tokens: u64,
}

#[derive(Default, Serialize)]
struct CompletionTokens {
    reasoning_tokens: u64,
    audio_tokens: u64,
    accepted_prediction_tokens: u64,
    rejected_prediction_tokens: u64,
}

fn usage(said: &Said) -> Usage {
    let (tokens_in, tokens_out) = (said.usage.tokens_in, said.usage.tokens_out);
    Usage {
        prompt_tokens: tokens_in,
        completion_tokens: tokens_out,
        total_tokens: tokens_in + tokens_out,
        prompt_tokens_details: PromptTokens::default(),
        completion_tokens_details: CompletionTokens::default(),
    }
}

#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    usage: Usage,
    service_tier: &'static str,
    system_fingerprint: &'static str,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Reply<'a>,
    logprobs: Option<Json>,
    finish_reason: &'a str,
}

#[derive(Serialize)]
struct Reply<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    annotations: [(); 0],
    #[serde(skip_serializing_if = "Json::is_null")]
    tool_calls: Json,
}

/// The id of a call of a tool, from that of its completion.
fn call_id(head: &Head) -> String {
    head.id.replace("chatcmpl-", "call_")
}

/// A text in pieces of a word each, with the space before it.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begins = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let ends = rest[begins..].find(char::is_whitespace).map_or(rest.len(), |i| begins + i);
        let (piece, tail) = rest.split_at(ends);
        out.push(piece);
        rest = tail;
    }
    out
}

/// Made-up log-probabilities: every word is as likely.
fn logprobs(words: &[&str]) -> Json {
    let token = |word: &&str| json!({"token": word, "logprob": -0.25, "bytes": word.as_bytes(), "top_logprobs": []});
    json!({"content": words.iter().map(token).collect::<Vec<_>>(), "refusal": null})
}

/// A completion in one piece.
pub fn completion(head: &Head, said: &Said) -> String {
    let calls = said.call.as_ref().map(|(name, arguments)| {
        json!([{"id": call_id(head), "type": "function", "function": {"name": name, "arguments": arguments}}])
    });
    let reply = Reply {
        role: "assistant",
        content: said.content.as_deref(),
        refusal: said.refusal.as_deref(),
        annotations: [],
        tool_calls: calls.unwrap_or_default(),
    };
    let logprobs = head.logprobs.then(|| logprobs(&pieces(said.content.as_deref().unwrap_or_default())));
    let completion = Completion {
        id: &head.id,
        object: "chat.completion",
        created: head.created,
        model: &head.model,
        choices: [Choice { index: 0, message: reply, logprobs, finish_reason: said.finish_reason }],
        usage: usage(said),
        service_tier: "default",
        system_fingerprint: "polity-stand-in",
    };
    // Of texts and numbers JSON can always be made.
    serde_json::to_string(&completion).unwrap_or_default()
}

/// A completion as a stream: the role first, then a word at a time, then why it ended, then (if asked for) the tokens.
pub fn stream(head: &Head, said: &Said) -> Vec<String> {
    let event = |choices: Json, usage: Json| {
        let mut chunk = json!({
            "id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model,
            "system_fingerprint": "polity-stand-in", "choices": choices,
        });
        if head.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let piece = |delta: Json, logprobs: Json, finish: Option<&str>| {
        event(json!([{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]), Json::Null)
    };
    let mut events = Vec::new();
    let mut first = json!({"role": "assistant", "content": null, "refusal": null});
    match &said.call {
        Some((name, arguments)) => {
            // Id and name once, then the arguments in fragments.
            first["tool_calls"] = json!([{"index": 0, "id": call_id(head), "type": "function", "function": {"name": name, "arguments": ""}}]);
            events.push(piece(first, Json::Null, None));
            for fragment in pieces(arguments) {
                let delta = json!({"tool_calls": [{"index": 0, "function": {"arguments": fragment}}]});
                events.push(piece(delta, Json::Null, None));
            }
        }
        None => {
            let (name, text) = match (&said.content, &said.refusal) {
                (Some(content), _) => ("content", content.as_str()),
                (None, Some(refusal)) => ("refusal", refusal.as_str()),
                (None, None) => ("content", ""),
            };
            if said.content.is_some() {
                first["content"] = json!("");
            }
            events.push(piece(first, Json::Null, None));
            for word in pieces(text) {
                let logprobs = if head.logprobs { logprobs(&[word]) } else { Json::Null };
                events.push(piece(json!({name: word}), logprobs, None));
            }
        }
    }
    events.push(piece(json!({}), Json::Null, Some(said.finish_reason)));
    if head.include_usage {
        events.push(event(json!([]), json!(usage(said))));
    }
    events.push("data: [DONE]\n\n".into());
    events
}

/// An error.
pub fn error(message: &str, kind: &str, code: Option<&str>) -> Json {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_add_up_to_the_text() {
        for text in ["", " ", "a", " a  bc\n\nd ", "wörter und 🦀 krebse "] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(pieces("one two"), ["one", " two"]);
    }
}
