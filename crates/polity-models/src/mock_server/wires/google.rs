//! Google's generateContent: reads requests, shapes answers.

use super::conversation::{self, Choice, Tools, call_id, linked, object};
use super::{Failure, Head, Wire};
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Part, Role};
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
    let parts = || content["parts"].as_array().into_iter().flatten();
    // Older models give calls no ids; results then name the tool alone.
    let id = |of: &Json| of["id"].as_str().unwrap_or_default().to_owned();
    let calls = parts().map(|part| &part["functionCall"]).filter(|call| call.is_object());
    let calls = calls.map(|call| conversation::call(&id(call), &call["name"], &call["args"]));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    let results = parts().map(|part| &part["functionResponse"]).filter(|result| result.is_object());
    let results = results.map(|result| {
        let (name, response) = (result["name"].as_str().unwrap_or_default(), &result["response"]);
        // By custom, the output is under one of these names; any other object is the output as a whole.
        let output = ["result", "output", "error"].iter().find_map(|key| response[*key].as_str());
        let output = output.map_or_else(|| response.to_string(), str::to_owned);
        conversation::result(&id(result), name, output, response.get("error").is_some())
    });
    let calls = (!calls.is_empty()).then_some(Part::Calls(calls));
    Ok(conversation::message(role, text(content), results.chain(calls).collect()))
}

/// The tools of a request.
fn tools(request: &Json) -> Result<Tools, String> {
    let tool = |declared: &Json| {
        // The official client writes the second.
        let names = ["parametersJsonSchema", "parameters_json_schema", "parameters"];
        let schema = names.into_iter().map(|name| &declared[name]);
        let mut schema = schema.into_iter().find(|schema| !schema.is_null()).cloned().unwrap_or_default();
        lowercase(&mut schema);
        conversation::tool(declared, &schema)
    };
    let declared = request["tools"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
    let offered = declared.map(tool).collect::<Result<_, _>>()?;
    let config = &request["toolConfig"]["functionCallingConfig"];
    let choice = match (config["mode"].as_str(), config["allowedFunctionNames"][0].as_str()) {
        (Some("NONE"), _) => Choice::None,
        (Some("ANY"), Some(name)) => Choice::Named(name),
        (Some("ANY"), None) => Choice::Any,
        _ => Choice::Free,
    };
    Tools::read(offered, &choice)
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
        let tools = tools(&request)?;
        let in_form = format(config);
        let is_form = in_form.is_some();
        let forced = tools.forced.as_ref().map(|(_, schema)| Format::Schema(Cow::Owned(schema.clone())));
        Ok(Asked {
            model: Cow::Borrowed(model),
            letters: system.chars().count() + request["contents"].to_string().chars().count(),
            messages: front.into_iter().chain(linked(rest)?).collect(),
            in_form: is_form,
            format: forced.or(in_form),
            tools,
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
        let text = said.content.as_ref().map(|text| json!({"text": text}));
        let calls = said.calls.iter().enumerate().map(|(nth, (name, arguments))| {
            json!({"functionCall": {"id": call_id("", head, nth), "name": name, "args": object(arguments)}})
        });
        let parts: Vec<Json> = text.into_iter().chain(calls).collect();
        let mut candidate = json!({"content": {"role": "model"}, "finishReason": reason, "index": 0});
        if !parts.is_empty() {
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
