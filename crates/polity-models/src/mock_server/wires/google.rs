//! Google's generateContent: reads requests, shapes answers.

use super::{Failure, Head, Wire};
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::time::Duration;

pub struct Google;

fn text(content: &Json) -> String {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn message(content: &Json) -> Result<ChatMessage, String> {
    let role = match content["role"].as_str() {
        None | Some("user") => Role::User,
        Some("model") => Role::Assistant,
        Some(other) => return Err(format!("Please use a valid role: user, model. Got `{other}`")),
    };
    Ok(ChatMessage::text(role, text(content)))
}

/// Converts a schema with OpenAPI type names (`STRING`), as in `responseSchema`, to JSON Schema.
fn lowercase(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            if let Some(Json::String(kind)) = map.get_mut("type") {
                *kind = kind.to_lowercase();
            }
            map.values_mut().for_each(lowercase);
        }
        Json::Array(items) => items.iter_mut().for_each(lowercase),
        _ => {}
    }
}

/// The requested form of the reply, if any.
fn format(config: &Json) -> Option<Format<'static>> {
    if config["responseMimeType"] != "application/json" {
        return None;
    }
    let schema = ["responseJsonSchema", "responseSchema"].into_iter().map(|name| &config[name]);
    Some(match schema.into_iter().find(|schema| !schema.is_null()).cloned() {
        None => Format::Object,
        Some(mut schema) => {
            lowercase(&mut schema);
            Format::Schema(Cow::Owned(schema.to_string()))
        }
    })
}

impl Wire for Google {
    fn asked<'a>(&self, model: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        let request: Json =
            serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
        let contents = request["contents"].as_array().filter(|contents| !contents.is_empty());
        let contents = contents.ok_or("* GenerateContentRequest.contents: contents is not specified")?;
        let system = text(&request["systemInstruction"]);
        let front = (!system.is_empty()).then(|| ChatMessage::text(Role::System, system.as_str()));
        let rest: Vec<ChatMessage> = contents.iter().map(message).collect::<Result<_, _>>()?;
        let config = &request["generationConfig"];
        let format = format(config);
        Ok(Asked {
            model: Cow::Borrowed(model),
            letters: system.chars().count() + request["contents"].to_string().chars().count(),
            messages: front.into_iter().chain(rest).collect(),
            in_form: format.is_some(),
            format,
            tool: None,
            longest: config["maxOutputTokens"].as_u64(),
            stream: false,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        let reason = match said.finish {
            _ if said.refusal.is_some() => "SAFETY",
            Finish::Length => "MAX_TOKENS",
            Finish::Stop | Finish::Tool => "STOP",
        };
        let parts: Option<[Json; 1]> = said.content.as_ref().map(|text| [json!({"text": text})]);
        let mut candidate = json!({"content": {"role": "model"}, "finishReason": reason, "index": 0});
        if let Some(parts) = parts {
            candidate["content"]["parts"] = json!(parts);
        }
        if let Some(words) = &said.refusal {
            candidate["finishMessage"] = json!(words);
        }
        let (tokens_in, tokens_out) = (said.usage.tokens_in, said.usage.tokens_out);
        json!({
            "candidates": [candidate], "modelVersion": head.model, "responseId": format!("{:032x}", head.key),
            "usageMetadata": {
                "promptTokenCount": tokens_in, "candidatesTokenCount": tokens_out, "totalTokenCount": tokens_in + tokens_out,
            },
        })
        .to_string()
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        // Only its message tells that a quota is used up for good.
        let (code, status) = match failure {
            Failure::Limit(..) | Failure::Quota => (429, "RESOURCE_EXHAUSTED"),
            Failure::Server => (500, "INTERNAL"),
            Failure::Full => (503, "UNAVAILABLE"),
            Failure::Key | Failure::Invalid | Failure::Schema => (400, "INVALID_ARGUMENT"),
            Failure::Model | Failure::NotFound => (404, "NOT_FOUND"),
        };
        let details = match failure {
            Failure::Limit(_, Some(wait)) => json!([{
                "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{}s", wait.as_secs_f64()),
            }]),
            Failure::Key => json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
            }]),
            _ => json!([]),
        };
        let message = match failure {
            Failure::Schema => "Response schema is not enabled for this model",
            _ => message,
        };
        (code, json!({"error": {"code": code, "message": message, "status": status, "details": details}}))
    }

    /// The body holds it.
    fn wait(&self, _: Duration) -> Vec<(String, String)> {
        Vec::new()
    }

    fn key(&self) -> &'static str {
        "x-goog-api-key"
    }
}
