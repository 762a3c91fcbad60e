//! Claude behind Anthropic's Messages API. See README.md.

mod batch;

use super::calls::RawCall;
use super::capabilities::Capabilities;
use super::home::Home;
use super::received::{Apart, End, Ended, Received, Told};
use super::remote::Remote;
use super::wire::{BatchWire, Question, Turn, Wire, path};
use polity_kernel::ask::{Role, Thinking};
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The provider `anthropic`.
pub type Anthropic = Remote<Messages>;

/// Its wire.
pub struct Messages;

/// The request.
#[derive(Debug, Serialize)]
pub struct Body {
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Json>,
    max_tokens: u64,
}

#[derive(Debug, Serialize)]
struct Message {
    role: &'static str,
    content: Content,
}

/// A text, or blocks with calls or results in them.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Json>),
}

fn message(turn: &Turn) -> Message {
    let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
    if turn.calls.is_empty() && turn.results.is_empty() {
        return Message { role, content: Content::Text(turn.text.clone()) };
    }
    let result = |result: &ToolResult| json!({"type": "tool_result", "tool_use_id": result.call, "content": Turn::told(result), "is_error": result.error});
    let call = |call: &ToolCall| json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.read()});
    let mut blocks: Vec<Json> = turn.results.iter().map(result).collect();
    if !turn.text.is_empty() {
        blocks.push(json!({"type": "text", "text": turn.text}));
    }
    blocks.extend(turn.calls.iter().map(call));
    Message { role, content: Content::Blocks(blocks) }
}

#[derive(Debug, Serialize)]
struct OutputConfig {
    format: Format,
}

#[derive(Debug, Serialize)]
struct Format {
    r#type: &'static str,
    schema: Arc<Json>,
}

/// The response.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    error: Json,
    #[serde(default)]
    content: Option<Vec<Block>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Apart<Usage>,
}

/// A block of text, of thinking, or a tool call.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Json,
    #[serde(default)]
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputTokens>,
}

#[derive(Deserialize)]
struct OutputTokens {
    #[serde(default)]
    thinking_tokens: u64,
}

/// Fewest tokens for thoughts, and smallest `top_p` with thoughts.
const LEAST_BUDGET: u64 = 1024;
const LEAST_TOP_P: f64 = 0.95;

/// Whether the conversation goes on after calls. The server wants the thoughts before such calls back, signed, and they are not kept; so
/// the model does not think here.
fn continues(question: &Question<'_>) -> bool {
    let last = question.turns.iter().rev().find(|turn| turn.role == Role::Assistant);
    last.is_some_and(|turn| !turn.calls.is_empty())
}

fn tool(tool: &ToolSpec) -> Json {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema()})
}

impl Wire for Messages {
    const HOME: Home = Home {
        name: "anthropic",
        aliases: &[],
        model: "anthropic/claude-haiku-4-5",
        base_variable: "ANTHROPIC_BASE_URL",
        base_url: "https://api.anthropic.com",
        base_example: "http://127.0.0.1:8000",
        base_end: "",
        base_of: str::to_owned,
        key_variables: &["ANTHROPIC_API_KEY"],
        needs_key: true,
        key_header: ("x-api-key", ""),
        headers: &[("anthropic-version", "2023-06-01")],
        listed_as: "anthropic",
    };
    type Body = Body;

    fn path(_: &str) -> Vec<String> {
        path(["v1", "messages"])
    }

    fn body(question: &Question<'_>) -> Body {
        let (system, turns) = question.apart();
        Body {
            model: question.model.to_owned(),
            system,
            messages: turns.into_iter().map(message).collect(),
            tools: question.tools.iter().map(tool).collect(),
            temperature: question.temperature,
            top_p: question.top_p,
            output_config: question
                .schema
                .clone()
                .map(|schema| OutputConfig { format: Format { r#type: "json_schema", schema } }),
            thinking: question.thinking.filter(|_| !continues(question)).map(|thinking| match thinking {
                Thinking::Off => json!({"type": "disabled"}),
                thinking => json!({"type": "enabled", "budget_tokens": question.budget(thinking).max(LEAST_BUDGET)}),
            }),
            max_tokens: question.longest,
        }
    }

    fn conflict(question: &Question<'_>) -> Option<String> {
        if !question.thinks() {
            return None;
        }
        if question.longest <= LEAST_BUDGET {
            return Some(format!(
                "the thoughts have at least {LEAST_BUDGET} tokens of the reply: set `max_tokens` above {LEAST_BUDGET}, is {}",
                question.longest
            ));
        }
        if question.temperature.is_some_and(|temperature| temperature != 1.0) {
            return Some("a model that thinks takes no other `temperature` than 1: leave it out".into());
        }
        let narrow = question.top_p.is_some_and(|top_p| top_p < LEAST_TOP_P);
        narrow.then(|| format!("a model that thinks takes no `top_p` below {LEAST_TOP_P}: raise it, or leave it out"))
    }

    fn told(received: &Received) -> Result<Told, Ended> {
        received.whole(&Self::HOME)?;
        let reply: Reply = received.json("message")?;
        received.error_in_body(&Self::HOME, &reply.error)?;
        let blocks = reply.content.ok_or_else(|| received.invalid("the body has no `content`".into()))?;
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text.as_deref()).collect();
        let called = |block: &Block| RawCall {
            name: block.name.clone().unwrap_or_default(),
            arguments: if block.input.is_null() { String::new() } else { block.input.to_string() },
        };
        let calls = blocks.iter().filter(|block| block.r#type == "tool_use").map(called).collect();
        let thoughts: Vec<&str> = blocks.iter().filter_map(|block| block.thinking.as_deref()).collect();
        let reasoning = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
        let end = match reply.stop_reason.as_deref() {
            Some("refusal") => End::Refused(None),
            Some(cut @ ("max_tokens" | "model_context_window_exceeded")) => End::Cut(format!("stop_reason: {cut}")),
            Some("pause_turn") => End::Broken("the reply stopped in its middle (stop_reason: pause_turn)".into()),
            _ => End::Whole,
        };
        let usage = reply.usage.0.map(|usage| {
            let cached = usage.cache_read_input_tokens.unwrap_or(0);
            polity_kernel::ask::Usage {
                // The wire counts cached and uncached tokens separately.
                tokens_in: usage
                    .input_tokens
                    .saturating_add(cached)
                    .saturating_add(usage.cache_creation_input_tokens.unwrap_or(0)),
                tokens_out: usage.output_tokens,
                tokens_cached: cached,
                tokens_thinking: usage.output_tokens_details.map_or(0, |details| details.thinking_tokens),
                ..Default::default()
            }
        });
        let text = (!texts.is_empty()).then(|| texts.concat());
        Ok(Told { text, end, usage, calls, reasoning, ..Told::default() })
    }

    /// Its schemas do not support bounds.
    fn bounds(_: &str) -> bool {
        false
    }

    fn batches() -> Option<&'static dyn BatchWire> {
        Some(&batch::MessageBatches)
    }

    fn inquiry(model: &str) -> (Vec<String>, Option<Json>) {
        (path(["v1", "models", model]), None)
    }

    fn capabilities(_: &str, _: bool, told: &Json) -> Capabilities {
        Capabilities {
            schema: told["capabilities"]["structured_outputs"]["supported"].as_bool(),
            logprobs: Some(false),
            logit_bias: Some(false),
            seed: Some(false),
            context: told["max_input_tokens"].as_u64(),
            ..Capabilities::default()
        }
    }
}
