//! Models behind OpenAI's responses endpoint. See README.md.

use super::calls::RawCall;
use super::capabilities::Capabilities;
use super::form::ANSWER;
use super::home::Home;
use super::openai::Chat;
use super::received::{Apart, End, Ended, Received, Told};
use super::remote::Remote;
use super::wire::{BatchWire, Question, Turn, Wire, path};
use polity_kernel::ask::Role;
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The provider `openai-responses`.
pub type OpenAiResponses = Remote<Responses>;

/// Its wire.
pub struct Responses;

/// The request.
#[derive(Debug, Serialize)]
pub struct Body {
    model: String,
    input: Vec<Input>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    /// The provider stores requests unless this is false.
    store: bool,
    max_output_tokens: u64,
}

/// A message, a call, or the result of one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Input {
    Message { role: &'static str, content: String },
    Call { r#type: &'static str, call_id: String, name: String, arguments: String },
    Result { r#type: &'static str, call_id: String, output: String },
}

fn inputs(turn: &Turn) -> Vec<Input> {
    let result = |result: &ToolResult| Input::Result {
        r#type: "function_call_output",
        call_id: result.call.clone(),
        output: Turn::told(result),
    };
    let call = |call: &ToolCall| Input::Call {
        r#type: "function_call",
        call_id: call.id.clone(),
        name: call.tool.clone(),
        arguments: call.arguments.clone(),
    };
    let mut inputs: Vec<Input> = turn.results.iter().map(result).collect();
    if !turn.text.is_empty() || inputs.is_empty() && turn.calls.is_empty() {
        let role = match turn.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        inputs.push(Input::Message { role, content: turn.text.clone() });
    }
    inputs.extend(turn.calls.iter().map(call));
    inputs
}

fn tool(tool: &ToolSpec) -> Json {
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema(), "strict": false,
    })
}

#[derive(Debug, Serialize)]
struct Reasoning {
    /// `none`, `low`, `medium` or `high`.
    effort: &'static str,
}

#[derive(Debug, Serialize)]
struct Text {
    format: Format,
}

#[derive(Debug, Serialize)]
struct Format {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: Arc<Json>,
}

/// The response.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    error: Json,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default)]
    output: Option<Vec<Item>>,
    #[serde(default)]
    usage: Apart<Usage>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

/// A message, thinking, or a function call.
#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    content: Option<Vec<Part>>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    summary: Option<Vec<Part>>,
}

/// A text, or a refusal.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<InputTokens>,
    #[serde(default)]
    output_tokens_details: Option<OutputTokens>,
}

#[derive(Deserialize)]
struct InputTokens {
    #[serde(default)]
    cached_tokens: u64,
}

#[derive(Deserialize)]
struct OutputTokens {
    #[serde(default)]
    reasoning_tokens: u64,
}

impl Wire for Responses {
    /// As for the other endpoint: the same servers, the same keys.
    const HOME: Home = Home { name: "openai-responses", model: "openai-responses/gpt-5-mini", ..Chat::HOME };
    type Body = Body;

    fn path(_: &str) -> Vec<String> {
        path(["responses"])
    }

    fn body(question: &Question<'_>) -> Body {
        let format = |schema| Format { r#type: "json_schema", name: ANSWER, strict: true, schema };
        Body {
            model: question.model.to_owned(),
            input: question.turns.iter().flat_map(inputs).collect(),
            tools: question.tools.iter().map(tool).collect(),
            temperature: question.temperature,
            top_p: question.top_p,
            text: question.schema.clone().map(|schema| Text { format: format(schema) }),
            reasoning: question
                .thinking
                .map(|thinking| Reasoning { effort: if question.thinks() { thinking.name() } else { "none" } }),
            store: false,
            max_output_tokens: question.longest,
        }
    }

    fn conflict(question: &Question<'_>) -> Option<String> {
        Chat::conflict(question)
    }

    fn told(received: &Received) -> Result<Told, Ended> {
        received.whole(&Self::HOME)?;
        let reply: Reply = received.json("response")?;
        received.error_in_body(&Self::HOME, &reply.error)?;
        let output = reply.output.ok_or_else(|| received.invalid("the body has no `output`".into()))?;
        let parts =
            || output.iter().filter(|item| item.r#type == "message").flat_map(|item| item.content.iter().flatten());
        let texts: Vec<&str> = parts().filter_map(|part| part.text.as_deref()).collect();
        let refusal = parts().find_map(|part| part.refusal.clone()).filter(|words| !words.trim().is_empty());
        let call = |item: &Item| RawCall {
            name: item.name.clone().unwrap_or_else(|| item.r#type.clone()),
            arguments: item.arguments.clone().unwrap_or_default(),
        };
        let calls = output.iter().filter(|item| item.r#type.ends_with("_call")).map(call).collect();
        let thoughts =
            output.iter().filter(|item| item.r#type == "reasoning").flat_map(|item| item.summary.iter().flatten());
        let thoughts: Vec<&str> = thoughts.filter_map(|part| part.text.as_deref()).collect();
        let reasoning = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
        let reason = reply.incomplete_details.and_then(|details| details.reason);
        let end = match (refusal, reply.status.as_deref(), reason.as_deref()) {
            (Some(words), ..) => End::Refused(Some(words)),
            (_, _, Some("max_output_tokens")) => End::Cut("incomplete: max_output_tokens".into()),
            (_, _, Some("content_filter")) => End::Refused(None),
            (_, None | Some("completed"), _) => End::Whole,
            (_, Some(status), _) => End::Broken(format!("the response is not complete (status: {status})")),
        };
        let usage = reply.usage.0.map(|usage| polity_kernel::ask::Usage {
            tokens_in: usage.input_tokens,
            tokens_out: usage.output_tokens,
            tokens_cached: usage.input_tokens_details.map_or(0, |details| details.cached_tokens),
            tokens_thinking: usage.output_tokens_details.map_or(0, |details| details.reasoning_tokens),
            ..Default::default()
        });
        let text = (!texts.is_empty()).then(|| texts.concat());
        Ok(Told { text, end, usage, calls, reasoning, ..Told::default() })
    }

    fn bounds(model: &str) -> bool {
        Chat::bounds(model)
    }

    fn batches() -> Option<&'static dyn BatchWire> {
        Chat::batches()
    }

    fn inquiry(model: &str) -> (Vec<String>, Option<Json>) {
        Chat::inquiry(model)
    }

    fn entry<'a>(model: &str, told: &'a Json) -> &'a Json {
        Chat::entry(model, told)
    }

    fn capabilities(model: &str, own: bool, told: &Json) -> Capabilities {
        Capabilities { logit_bias: Some(false), seed: Some(false), ..Chat::capabilities(model, own, told) }
    }
}
