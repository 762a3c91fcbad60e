//! Ollama's /api/chat: reads requests, shapes answers.

use super::{Failure, Head, Wire, words};
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;

pub struct Ollama;

fn message(message: &Json) -> Result<ChatMessage, String> {
    let role = match message["role"].as_str() {
        Some("system") => Role::System,
        Some("user" | "tool") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(format!("invalid role: {}", message["role"])),
    };
    Ok(ChatMessage::text(role, message["content"].as_str().unwrap_or_default()))
}

fn piece(head: &Head, content: Option<&str>) -> Json {
    json!({
        "model": head.model, "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": content},
        "done": false,
    })
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
        Ok(Asked {
            model: Cow::Owned(model.to_owned()),
            messages: messages.iter().map(message).collect::<Result<_, _>>()?,
            letters: request["messages"].to_string().chars().count(),
            in_form: format.is_some(),
            format,
            tool: None,
            longest: request["options"]["num_predict"].as_u64(),
            // Streams by default.
            stream: request["stream"] != false,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        done(piece(head, spoken(said)), said).to_string()
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let pieces = words(spoken(said).unwrap_or_default()).into_iter().map(|word| piece(head, Some(word)));
        let lines = pieces.chain([done(piece(head, Some("")), said)]).map(|piece| format!("{piece}\n"));
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
