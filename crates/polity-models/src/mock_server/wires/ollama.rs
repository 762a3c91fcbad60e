//! Ollama's /api/chat: reads requests, shapes answers.

use super::conversation::{self, Choice, Tools, linked, object};
use super::{Failure, Head, Wire, words};
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Part, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;

pub struct Ollama;

fn message(message: &Json) -> Result<ChatMessage, String> {
    let role = match message["role"].as_str() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("tool") => {
            let name = message["tool_name"].as_str().filter(|name| !name.is_empty());
            let name = name.ok_or("a message with the role `tool` has no `tool_name`")?;
            let text = message["content"].as_str().unwrap_or_default().to_owned();
            let result = conversation::result("", name, text, false);
            return Ok(ChatMessage { role: Role::User, parts: vec![result] });
        }
        Some("assistant") => Role::Assistant,
        _ => return Err(format!("invalid role: {}", message["role"])),
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
    let calls = calls.map(|call| conversation::call("", &call["name"], &call["arguments"]));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    let calls = (!calls.is_empty()).then_some(Part::Calls(calls));
    let text = message["content"].as_str().unwrap_or_default().to_owned();
    Ok(conversation::message(role, text, calls.into_iter().collect()))
}

fn piece(head: &Head, content: Option<&str>) -> Json {
    json!({
        "model": head.model, "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": content},
        "done": false,
    })
}

/// A message with calls, whose arguments are objects; they have no ids.
fn with_calls(mut piece: Json, said: &Said) -> Json {
    let call =
        |(name, arguments): &(String, String)| json!({"function": {"name": name, "arguments": object(arguments)}});
    if !said.calls.is_empty() {
        piece["message"]["tool_calls"] = said.calls.iter().map(call).collect();
        // It has a text in any case.
        let text = piece["message"]["content"].take();
        piece["message"]["content"] = if text.is_null() { json!("") } else { text };
    }
    piece
}

fn done(mut piece: Json, said: &Said) -> Json {
    piece["done"] = json!(true);
    piece["done_reason"] = json!(if said.finish == Finish::Length { "length" } else { "stop" });
    for duration in ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] {
        piece[duration] = json!(1_000_000);
    }
    piece["prompt_eval_count"] = json!(said.usage.tokens_in);
    piece["eval_count"] = json!(said.usage.tokens_out);
    piece
}

/// The text of the reply; a refusal has no other place.
fn spoken(said: &Said) -> Option<&str> {
    said.content.as_deref().or(said.refusal.as_deref())
}

impl Wire for Ollama {
    fn asked<'a>(&self, _: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        let request: Json =
            serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
        let model = request["model"].as_str().filter(|model| !model.is_empty()).ok_or("model is required")?;
        let messages = request["messages"].as_array().filter(|messages| !messages.is_empty());
        let messages = messages.ok_or("messages are required")?;
        let format = match &request["format"] {
            Json::Object(_) => Some(Format::Schema(Cow::Owned(request["format"].to_string()))),
            Json::String(json) if json == "json" => Some(Format::Object),
            _ => None,
        };
        let tool = |tool: &Json| conversation::tool(&tool["function"], &tool["function"]["parameters"]);
        let tools = request["tools"].as_array().into_iter().flatten().map(tool).collect::<Result<_, _>>()?;
        Ok(Asked {
            model: Cow::Owned(model.to_owned()),
            messages: linked(messages.iter().map(message).collect::<Result<_, _>>()?)?,
            letters: request["messages"].to_string().chars().count(),
            in_form: format.is_some(),
            format,
            tools: Tools::read(tools, &Choice::Free)?,
            longest: request["options"]["num_predict"].as_u64(),
            // Streams by default.
            stream: request["stream"] != false,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        done(with_calls(piece(head, spoken(said)), said), said).to_string()
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let pieces = words(spoken(said).unwrap_or_default()).into_iter().map(|word| piece(head, Some(word)));
        let calls = (!said.calls.is_empty()).then(|| with_calls(piece(head, Some("")), said));
        let lines = pieces.chain(calls).chain([done(piece(head, Some("")), said)]).map(|piece| format!("{piece}\n"));
        Some(("application/x-ndjson", lines.collect()))
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        let status = match failure {
            Failure::Limit(..) | Failure::Quota => 429,
            Failure::Server => 500,
            Failure::Full => 503,
            Failure::Key => 401,
            Failure::Model | Failure::NotFound => 404,
            Failure::Invalid | Failure::Schema => 400,
        };
        let message = if matches!(failure, Failure::Schema) { "invalid format: it is not supported" } else { message };
        (status, json!({"error": message}))
    }
}
