//! OpenAI's responses endpoint: reads requests, shapes answers. Errors and limits are OpenAI's.

use super::{Failure, Head, OpenAi, Wire};
use crate::bucket::Bucket;
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;

pub struct Responses;

fn message(item: &Json) -> Result<ChatMessage, String> {
    let role = match item["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(format!("an item of `input` has an unknown role: {}", item["role"])),
    };
    let text = match &item["content"] {
        Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    Ok(ChatMessage::text(role, text))
}

impl Wire for Responses {
    fn asked<'a>(&self, _: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        let request: Json =
            serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
        let model = request["model"].as_str().filter(|model| !model.is_empty());
        let model = model.ok_or("you must provide a model parameter")?;
        if request["stream"] == true {
            return Err("the mock server does not stream responses".into());
        }
        let front = request["instructions"].as_str().map(|text| ChatMessage::text(Role::System, text));
        let rest = match &request["input"] {
            Json::String(text) => vec![ChatMessage::text(Role::User, text.as_str())],
            Json::Array(items) if !items.is_empty() => items.iter().map(message).collect::<Result<_, _>>()?,
            _ => return Err("`input` must be a text or a list of at least one item".into()),
        };
        let format = &request["text"]["format"];
        let form = match format["type"].as_str() {
            Some("json_schema") => Some(Format::Schema(Cow::Owned(format["schema"].to_string()))),
            Some("json_object") => Some(Format::Object),
            _ => None,
        };
        Ok(Asked {
            model: Cow::Owned(model.to_owned()),
            letters: request["input"].to_string().chars().count() + request["instructions"].to_string().chars().count(),
            messages: front.into_iter().chain(rest).collect(),
            in_form: form.is_some(),
            format: form,
            tool: None,
            longest: request["max_output_tokens"].as_u64(),
            stream: false,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        let part = match (&said.content, &said.refusal) {
            (Some(text), _) => Some(json!({"type": "output_text", "text": text, "annotations": []})),
            (None, Some(words)) => Some(json!({"type": "refusal", "refusal": words})),
            (None, None) => None,
        };
        let cut = said.finish == Finish::Length;
        let status = if cut { "incomplete" } else { "completed" };
        let item = |part: Json| {
            let id = format!("msg_{:032x}", head.key);
            json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": [part]})
        };
        let output: Vec<Json> = part.map(item).into_iter().collect();
        let (tokens_in, tokens_out) = (said.usage.tokens_in, said.usage.tokens_out);
        json!({
            "id": format!("resp_{:032x}", head.key), "object": "response", "created_at": head.created, "status": status,
            "error": null, "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"})), "model": head.model,
            "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
            "usage": {
                "input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": tokens_out, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens_in + tokens_out,
            },
        })
        .to_string()
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        let (status, mut body) = OpenAi.error(failure, message);
        if matches!(failure, Failure::Schema) {
            body["error"]["message"] =
                json!("Invalid parameter: 'text.format' of type 'json_schema' is not supported.");
            body["error"]["param"] = json!("text.format");
        }
        (status, body)
    }

    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        OpenAi.limit(name, bucket)
    }
}
