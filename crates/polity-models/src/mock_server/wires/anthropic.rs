//! Anthropic's Messages API: reads requests, shapes answers.

use super::conversation::{self, Choice, Tools, call_id, linked, object};
use super::{Failure, Head, Wire, words};
use crate::bucket::Bucket;
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use chrono::{DateTime, SecondsFormat, Utc};
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::tool::ToolCall;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::time::SystemTime;

pub struct Anthropic;

/// A content: a text or a list of blocks.
fn text(content: &Json) -> String {
    match content {
        Json::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn message(message: &Json) -> Result<ChatMessage, String> {
    let (role, wanted) = match message["role"].as_str() {
        Some("user") => (Role::User, "tool_result"),
        Some("assistant") => (Role::Assistant, "tool_use"),
        _ => return Err(format!("messages: a role must be `user` or `assistant`, not {}", message["role"])),
    };
    let blocks = || message["content"].as_array().into_iter().flatten();
    let of = |kind: &'static str| blocks().filter(move |block| block["type"] == kind);
    let other = if wanted == "tool_use" { "tool_result" } else { "tool_use" };
    if of(other).next().is_some() {
        return Err(format!("messages: a `{other}` block does not belong in a message of this role"));
    }
    let id = |block: &Json, name: &str| {
        block[name].as_str().map(str::to_owned).ok_or_else(|| format!("messages: a block has no `{name}`: {block}"))
    };
    let call = |block: &Json| conversation::call(&id(block, "id")?, &block["name"], &block["input"]);
    let calls: Vec<ToolCall> = of("tool_use").map(call).collect::<Result<_, _>>()?;
    let result = |block: &Json| -> Result<Part, String> {
        let (call, failed) = (id(block, "tool_use_id")?, block["is_error"] == true);
        Ok(conversation::result(&call, "", text(&block["content"]), failed))
    };
    let results = of("tool_result").map(result).collect::<Result<Vec<_>, _>>()?;
    let calls = (!calls.is_empty()).then_some(Part::Calls(calls));
    Ok(conversation::message(role, text(&message["content"]), results.into_iter().chain(calls).collect()))
}

/// The tools of a request.
fn tools(request: &Json) -> Result<Tools, String> {
    let tool = |tool: &Json| conversation::tool(tool, &tool["input_schema"]);
    let offered = request["tools"].as_array().into_iter().flatten().map(tool).collect::<Result<_, _>>()?;
    let choice = &request["tool_choice"];
    let single = choice["disable_parallel_tool_use"] == true;
    let choice = match choice["type"].as_str() {
        Some("any") => Choice::Any,
        Some("tool") => Choice::Named(choice["name"].as_str().unwrap_or_default()),
        Some("none") => Choice::None,
        _ => Choice::Free,
    };
    Ok(Tools { single, ..Tools::read(offered, &choice)? })
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

fn tool_use(head: &Head, nth: usize, name: &str, input: &Json) -> Json {
    json!({"type": "tool_use", "id": call_id("toolu_", head, nth), "name": name, "input": input})
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
        let tools = tools(&request)?;
        let form = match &tools.forced {
            Some((_, schema)) => Some(schema.clone()),
            None => (format["type"] == "json_schema").then(|| format["schema"].to_string()),
        };
        Ok(Asked {
            letters: system.chars().count() + request["messages"].to_string().chars().count(),
            model: Cow::Owned(model.to_owned()),
            messages: front.into_iter().chain(linked(rest)?).collect(),
            format: form.map(|schema| Format::Schema(Cow::Owned(schema))),
            in_form: !format.is_null(),
            tools,
            longest: Some(longest),
            stream: request["stream"] == true,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        let text = spoken(said).map(|text| json!({"type": "text", "text": text}));
        let calls = said.calls.iter().enumerate();
        let calls = calls.map(|(nth, (name, input))| tool_use(head, nth, name, &object(input)));
        let content: Vec<Json> = text.into_iter().chain(calls).collect();
        whole(head, &content, Some(stop_reason(said)), usage(said)).to_string()
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let event = |body: Json| format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default());
        let mut started = usage(said);
        started["output_tokens"] = json!(1);
        let mut events = vec![json!({"type": "message_start", "message": whole(head, &[], None, started)})];
        let text = spoken(said).or(said.calls.is_empty().then_some(""));
        let text = text.map(|text| {
            let deltas = words(text).into_iter().map(|part| json!({"type": "text_delta", "text": part}));
            (json!({"type": "text", "text": ""}), deltas.collect::<Vec<_>>())
        });
        let calls = said.calls.iter().enumerate().map(|(nth, (name, input))| {
            let deltas = words(input).into_iter().map(|part| json!({"type": "input_json_delta", "partial_json": part}));
            (tool_use(head, nth, name, &json!({})), deltas.collect::<Vec<_>>())
        });
        for (index, (block, deltas)) in text.into_iter().chain(calls).enumerate() {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            let deltas = deltas.into_iter();
            events.extend(deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
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
