//! The OpenAI wire: reads requests, and shapes answers exactly as its servers send them.

use super::conversation::{self, Choice as ToolChoice, Tools, call_id, linked};
use super::{Failure, Head, Wire, words};
use crate::bucket::Bucket;
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Constrain, Part, Role};
use polity_kernel::tool::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// Chat completions.
pub struct OpenAi;

/// A completion request; fields that matter only to real models are ignored.
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
    parallel_tool_calls: Option<bool>,
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
    #[serde(default)]
    top_logprobs: Option<usize>,
    #[serde(default)]
    structured_outputs: Option<StructuredOutputs>,
    #[serde(default)]
    grammar: Option<String>,
}

/// vLLM's parameters.
#[derive(Deserialize)]
struct StructuredOutputs {
    #[serde(default)]
    choice: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<Json>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'a, str>>,
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

/// Parses a completion request. An error says what is wrong with it.
fn asked(body: &[u8]) -> Result<Asked<'_>, String> {
    let request: ChatRequest<'_> =
        serde_json::from_slice(body).map_err(|error| format!("the request is not a valid chat request: {error}"))?;
    let (held, tools) = (held(&request)?, tools(&request)?);
    let model = request.model.filter(|model| !model.is_empty()).ok_or("you must provide a model parameter")?;
    let conversation = request.messages.map_or("", RawValue::get);
    let messages: Vec<WireMessage<'_>> = serde_json::from_str(conversation)
        .map_err(|error| format!("`messages` must be a list of at least one message: {error}"))?;
    if messages.is_empty() {
        return Err("`messages` must be a list of at least one message".into());
    }
    let format = match (&tools.forced, held) {
        (Some((_, parameters)), _) => Some(Format::Schema(Cow::Owned(parameters.clone()))),
        (None, Some(options)) => Some(options),
        (None, None) => request.response_format.and_then(|format| formatted(format.get())),
    };
    Ok(Asked {
        model,
        messages: linked(messages.iter().map(message).collect::<Result<_, _>>()?)?,
        letters: conversation.chars().count(),
        format,
        in_form: request.response_format.is_some_and(|format| format.get().starts_with('{')),
        tools,
        longest: request.max_completion_tokens.or(request.max_tokens),
        stream: request.stream == Some(true),
        logprobs: request.logprobs == Some(true),
        alternatives: request.top_logprobs.unwrap_or(0),
        include_usage: request.stream_options.is_some_and(|options| options.include_usage),
    })
}

/// The options that constrain the reply, if any.
fn held<'a>(request: &ChatRequest<'_>) -> Result<Option<Format<'a>>, String> {
    let choice = request.structured_outputs.as_ref().map(|held| held.choice.clone().unwrap_or_default());
    if let Some(options) = choice {
        return match options.is_empty() {
            true => {
                Err("`structured_outputs` must list options as `choice`; the mock server supports nothing else in it"
                    .into())
            }
            false => Ok(Some(Format::Options(options, Constrain::Choice))),
        };
    }
    let derived = |grammar: &String| {
        derived(grammar).ok_or_else(|| {
            format!("Failed to parse grammar: the mock server supports only a list of texts, not {grammar}")
        })
    };
    let options = request.grammar.as_ref().map(derived).transpose()?;
    Ok(options.map(|options| Format::Options(options, Constrain::Grammar)))
}

/// The texts derived by a GBNF grammar that lists them.
fn derived(grammar: &str) -> Option<Vec<String>> {
    let mut rest = grammar.trim().strip_prefix("root ::=")?.trim_start();
    let mut options = Vec::new();
    loop {
        let mut letters = rest.strip_prefix('"')?.char_indices();
        let mut option = String::new();
        let end = loop {
            match letters.next()? {
                (end, '"') => break end,
                (_, '\\') => option.push(match letters.next()?.1 {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    letter @ ('"' | '\\') => letter,
                    _ => return None,
                }),
                (_, letter) => option.push(letter),
            }
        };
        options.push(option);
        rest = rest.get(end + 2..)?.trim_start();
        match rest.strip_prefix('|') {
            Some(more) => rest = more.trim_start(),
            None => return rest.is_empty().then_some(options),
        }
    }
}

/// A message; its content is a text or a list of parts.
fn message(message: &WireMessage<'_>) -> Result<ChatMessage, String> {
    let role = match message.role.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        Some("tool") => {
            let id = message.tool_call_id.as_deref().filter(|id| !id.is_empty());
            let id = id.ok_or("a message with the role `tool` has no `tool_call_id`")?;
            let result = conversation::result(id, "", text(message), false);
            return Ok(ChatMessage { role: Role::User, parts: vec![result] });
        }
        other => return Err(format!("a message has an unknown role: {}", json!(other))),
    };
    let calls = message.tool_calls.iter().flatten().map(made).collect::<Result<Vec<_>, _>>()?;
    let calls = (!calls.is_empty()).then_some(Part::Calls(calls));
    Ok(conversation::message(role, text(message), calls.into_iter().collect()))
}

fn text(message: &WireMessage<'_>) -> String {
    match serde_json::from_str(message.content.map_or("null", RawValue::get)) {
        Ok(Json::String(text)) => text,
        Ok(Json::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// A call that the model made earlier. Its arguments are a text.
fn made(call: &Json) -> Result<ToolCall, String> {
    let (id, function) = (call["id"].as_str(), &call["function"]);
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| format!("a call has no `id`: {call}"))?;
    let arguments = function["arguments"].as_str();
    let arguments = arguments.ok_or_else(|| format!("the `arguments` of the call `{id}` must be a text of JSON"))?;
    conversation::call(id, &function["name"], &serde_json::from_str(arguments).unwrap_or_default())
}

/// The form of the reply from `response_format`.
fn formatted(format: &str) -> Option<Format<'_>> {
    let format: ResponseFormat<'_> = serde_json::from_str(format).ok()?;
    match &*format.r#type {
        "json_schema" => format.json_schema.map(|named| Format::Schema(Cow::Borrowed(named.schema.get()))),
        "json_object" => Some(Format::Object),
        _ => None,
    }
}

/// The tools of a request.
fn tools(request: &ChatRequest<'_>) -> Result<Tools, String> {
    let tool = |tool: &Json| conversation::tool(&tool["function"], &tool["function"]["parameters"]);
    let offered = request.tools.as_array().into_iter().flatten().map(tool).collect::<Result<_, _>>()?;
    let choice = &request.tool_choice;
    let choice = match (choice["function"]["name"].as_str(), choice.as_str()) {
        (Some(name), _) => ToolChoice::Named(name),
        (None, Some("required")) => ToolChoice::Any,
        (None, Some("none")) => ToolChoice::None,
        _ => ToolChoice::Free,
    };
    Ok(Tools { single: request.parallel_tool_calls == Some(false), ..Tools::read(offered, &choice)? })
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

fn id(head: &Head) -> String {
    format!("chatcmpl-{:032x}", head.key)
}

fn finish_reason(said: &Said) -> &'static str {
    match said.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Tool => "tool_calls",
    }
}

/// Log-probabilities: the model's own for its alternatives, if any; else made up, all words equally likely.
fn logprobs(words: &[&str], alternatives: &[(String, f64)]) -> Json {
    let token = |word: &str, logprob: f64, top: Json| json!({"token": word, "logprob": logprob, "bytes": word.as_bytes(), "top_logprobs": top});
    let top: Json = alternatives
        .iter()
        .map(|(word, logprob)| json!({"token": word, "logprob": logprob, "bytes": word.as_bytes()}))
        .collect();
    let own = |word: &&str| alternatives.iter().find(|(other, _)| other == word).map_or(-0.25, |(_, logprob)| *logprob);
    let content: Vec<Json> = words.iter().map(|word| token(word, own(word), top.clone())).collect();
    json!({"content": content, "refusal": null})
}

/// A completion in one piece.
fn completion(head: &Head, said: &Said) -> String {
    let call = |(nth, (name, arguments)): (usize, &(String, String))| json!({"id": call_id("call_", head, nth), "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls: Vec<Json> = said.calls.iter().enumerate().map(call).collect();
    let reply = Reply {
        role: "assistant",
        content: said.content.as_deref(),
        refusal: said.refusal.as_deref(),
        annotations: [],
        tool_calls: if calls.is_empty() { Json::Null } else { Json::Array(calls) },
    };
    let logprobs =
        head.logprobs.then(|| logprobs(&words(said.content.as_deref().unwrap_or_default()), &said.alternatives));
    let completion = Completion {
        id: &id(head),
        object: "chat.completion",
        created: head.created,
        model: &head.model,
        choices: [Choice { index: 0, message: reply, logprobs, finish_reason: finish_reason(said) }],
        usage: usage(said),
        service_tier: "default",
        system_fingerprint: "polity-mock server",
    };
    // Texts and numbers can always be encoded as JSON.
    serde_json::to_string(&completion).unwrap_or_default()
}

/// A completion as a stream: first the role, then one word at a time, the finish reason, and (if requested) the token counts.
fn stream(head: &Head, said: &Said) -> Vec<String> {
    let event = |choices: Json, usage: Json| {
        let mut chunk = json!({
            "id": id(head), "object": "chat.completion.chunk", "created": head.created, "model": head.model,
            "system_fingerprint": "polity-mock server", "choices": choices,
        });
        if head.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let piece = |delta: Json, logprobs: Json, finish: Option<&str>| {
        event(json!([{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]), Json::Null)
    };
    let (name, text) = match (&said.content, &said.refusal) {
        (Some(content), _) => ("content", content.as_str()),
        (None, Some(refusal)) => ("refusal", refusal.as_str()),
        (None, None) => ("content", ""),
    };
    let empty = said.content.as_ref().map(|_| "");
    let mut events = vec![piece(json!({"role": "assistant", "content": empty, "refusal": null}), Json::Null, None)];
    for word in words(text) {
        let logprobs = if head.logprobs { logprobs(&[word], &said.alternatives) } else { Json::Null };
        events.push(piece(json!({name: word}), logprobs, None));
    }
    for (nth, (name, arguments)) in said.calls.iter().enumerate() {
        // Id and name once, then the arguments in fragments.
        let function = json!({"name": name, "arguments": ""});
        let first = json!({"index": nth, "id": call_id("call_", head, nth), "type": "function", "function": function});
        events.push(piece(json!({"tool_calls": [first]}), Json::Null, None));
        for fragment in words(arguments) {
            let delta = json!({"tool_calls": [{"index": nth, "function": {"arguments": fragment}}]});
            events.push(piece(delta, Json::Null, None));
        }
    }
    events.push(piece(json!({}), Json::Null, Some(finish_reason(said))));
    if head.include_usage {
        events.push(event(json!([]), json!(usage(said))));
    }
    events.push("data: [DONE]\n\n".into());
    events
}

impl Wire for OpenAi {
    fn asked<'a>(&self, _: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        asked(body)
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        completion(head, said)
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        Some(("text/event-stream; charset=utf-8", stream(head, said)))
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        let (status, kind, code) = match failure {
            Failure::Limit(name, _) => (429, name, Some("rate_limit_exceeded")),
            Failure::Quota => (429, "insufficient_quota", Some("insufficient_quota")),
            Failure::Server => (500, "server_error", None),
            Failure::Full => (503, "server_error", Some("overloaded")),
            Failure::Key => (401, "invalid_request_error", Some("invalid_api_key")),
            Failure::Model => (404, "invalid_request_error", Some("model_not_found")),
            Failure::Invalid | Failure::Schema => (400, "invalid_request_error", None),
            Failure::NotFound => (404, "invalid_request_error", Some("unknown_url")),
        };
        let (message, param) = match failure {
            Failure::Schema => (
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
                Some("response_format"),
            ),
            _ => (message, None),
        };
        (status, json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
    }

    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        vec![
            (format!("x-ratelimit-limit-{name}"), bucket.per_minute().to_string()),
            (format!("x-ratelimit-remaining-{name}"), bucket.left().to_string()),
            (format!("x-ratelimit-reset-{name}"), format!("{}ms", (bucket.full_in().as_secs_f64() * 1e3).ceil())),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn grammars_of_options_are_read_back() {
        let options = ["left", "with \"quotes\" and \\", "two\nlines | bars", "ö"].map(String::from).to_vec();
        let crate::models::Held::By(grammar) = crate::models::Held::in_grammar(&options) else { unreachable!() };
        assert_eq!(derived(&grammar).unwrap(), options);
        assert_eq!(derived(r#"root ::= "a" | b"#), None);
    }
}
