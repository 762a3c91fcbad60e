//! Anthropic's Messages API: reads requests, shapes answers.

use super::{Failure, Head, Wire, words};
use crate::bucket::Bucket;
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use chrono::{DateTime, SecondsFormat, Utc};
use polity_kernel::ask::{ChatMessage, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::time::SystemTime;

pub struct Anthropic;

/// A content: a text or a list of blocks.
fn text(content: &Json) -> String {
    match content {
        Json::Array(blocks) => {
            // A tool result has a content of its own.
            let block = |block: &Json| block["text"].as_str().map_or_else(|| text(&block["content"]), str::to_owned);
            blocks.iter().map(block).collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn message(message: &Json) -> Result<ChatMessage, String> {
    let role = match message["role"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(format!("messages: a role must be `user` or `assistant`, not {}", message["role"])),
    };
    Ok(ChatMessage::text(role, text(&message["content"])))
}

/// The tool that must be called, with the schema of its input.
fn called_tool(request: &Json) -> Result<Option<(String, String)>, String> {
    let choice = &request["tool_choice"];
    if !["any", "tool"].iter().any(|must| choice["type"] == *must) {
        return Ok(None);
    }
    let mut tools = request["tools"].as_array().into_iter().flatten();
    let tool = tools.find(|tool| choice["type"] == "any" || tool["name"] == choice["name"]);
    let found = tool.and_then(|tool| Some((tool["name"].as_str()?.to_owned(), tool["input_schema"].to_string())));
    found.map(Some).ok_or_else(|| "tool_choice: there is no such tool among `tools`".into())
}

fn usage(said: &Said) -> Json {
    json!({
        "input_tokens": said.usage.tokens_in, "output_tokens": said.usage.tokens_out, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "service_tier": "standard",
    })
}

fn stop_reason(said: &Said) -> &'static str {
    match said.finish {
        _ if said.refusal.is_some() => "refusal",
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Tool => "tool_use",
    }
}

/// The text of a reply, if any.
fn spoken(said: &Said) -> Option<&str> {
    said.content.as_deref().or(said.refusal.as_deref())
}

fn tool_use(head: &Head, name: &str, input: Json) -> Json {
    json!({"type": "tool_use", "id": format!("toolu_{:032x}", head.key), "name": name, "input": input})
}

fn whole(head: &Head, content: &[Json], stop_reason: Option<&str>, usage: Json) -> Json {
    json!({
        "id": format!("msg_{:032x}", head.key), "type": "message", "role": "assistant", "model": head.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
    })
}

impl Wire for Anthropic {
    fn asked<'a>(&self, _: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        let request: Json =
            serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
        let model = request["model"].as_str().filter(|model| !model.is_empty()).ok_or("model: Field required")?;
        let longest = request["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
        let turns = request["messages"].as_array().filter(|turns| !turns.is_empty());
        let turns = turns.ok_or("messages: at least one message is required")?;
        let system = text(&request["system"]);
        let front = (!system.is_empty()).then(|| ChatMessage::text(Role::System, system.as_str()));
        let rest: Vec<ChatMessage> = turns.iter().map(message).collect::<Result<_, _>>()?;
        let format = &request["output_config"]["format"];
        let (tool, form) = match called_tool(&request)? {
            Some((name, schema)) => (Some(name), Some(schema)),
            None => (None, (format["type"] == "json_schema").then(|| format["schema"].to_string())),
        };
        Ok(Asked {
            letters: system.chars().count() + request["messages"].to_string().chars().count(),
            model: Cow::Owned(model.to_owned()),
            messages: front.into_iter().chain(rest).collect(),
            format: form.map(|schema| Format::Schema(Cow::Owned(schema))),
            in_form: !format.is_null(),
            tool,
            longest: Some(longest),
            stream: request["stream"] == true,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        let content = match (&said.call, spoken(said)) {
            (Some((name, input)), _) => vec![tool_use(head, name, serde_json::from_str(input).unwrap_or_default())],
            (None, Some(text)) => vec![json!({"type": "text", "text": text})],
            (None, None) => Vec::new(),
        };
        whole(head, &content, Some(stop_reason(said)), usage(said)).to_string()
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let event = |body: Json| format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default());
        let mut started = usage(said);
        started["output_tokens"] = json!(1);
        let mut events = vec![json!({"type": "message_start", "message": whole(head, &[], None, started)})];
        let (block, deltas): (Json, Vec<Json>) = match &said.call {
            Some((name, input)) => (
                tool_use(head, name, json!({})),
                words(input).iter().map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect(),
            ),
            None => (
                json!({"type": "text", "text": ""}),
                words(spoken(said).unwrap_or_default())
                    .iter()
                    .map(|part| json!({"type": "text_delta", "text": part}))
                    .collect(),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
        events.extend(deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        events.push(json!({"type": "content_block_stop", "index": 0}));
        let delta = json!({"stop_reason": stop_reason(said), "stop_sequence": null});
        events
            .push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": said.usage.tokens_out}}));
        events.push(json!({"type": "message_stop"}));
        Some(("text/event-stream; charset=utf-8", events.into_iter().map(event).collect()))
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        let (status, kind) = match failure {
            Failure::Limit(..) => (429, "rate_limit_error"),
            Failure::Quota => (402, "billing_error"),
            Failure::Server => (500, "api_error"),
            Failure::Full => (529, "overloaded_error"),
            Failure::Key => (401, "authentication_error"),
            Failure::Model | Failure::NotFound => (404, "not_found_error"),
            Failure::Invalid | Failure::Schema => (400, "invalid_request_error"),
        };
        let message = match failure {
            Failure::Schema => "output_config.format: this model does not support structured outputs.",
            _ => message,
        };
        (status, json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stand_in"}))
    }

    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        let full = DateTime::<Utc>::from(SystemTime::now() + bucket.full_in());
        let header = |what: &str, value: String| (format!("anthropic-ratelimit-{name}-{what}"), value);
        vec![
            header("limit", bucket.per_minute().to_string()),
            header("remaining", bucket.left().to_string()),
            header("reset", full.to_rfc3339_opts(SecondsFormat::Secs, true)),
        ]
    }

    fn key(&self) -> &'static str {
        "x-api-key"
    }
}
