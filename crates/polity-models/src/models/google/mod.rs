//! Gemini behind Google's generateContent. See README.md.

use super::calls::RawCall;
use super::capabilities::Capabilities;
use super::home::Home;
use super::received::{Apart, End, Ended, Received, Told};
use super::remote::Remote;
use super::wire::{Question, Turn, Wire, path};
use polity_kernel::ask::{Role, Thinking};
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The provider `google`.
pub type Google = Remote<GenerateContent>;

/// Its wire.
pub struct GenerateContent;

/// The request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content>,
    contents: Vec<Content>,
    generation_config: GenerationConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Json>,
}

#[derive(Debug, Serialize)]
struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Json>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Arc<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Json>,
    max_output_tokens: u64,
}

/// The response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    #[serde(default)]
    error: Json,
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    usage_metadata: Apart<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    parts: Option<Vec<Part>>,
}

/// A text, a thought, or a function call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(default)]
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default)]
    name: String,
    #[serde(default)]
    args: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    #[serde(default)]
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: u64,
    /// Absent if the reply is empty.
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default)]
    thoughts_token_count: u64,
    #[serde(default)]
    cached_content_token_count: u64,
}

/// Stands for the signature of a thought that is not kept. Models from the third generation on refuse a call without one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Whether a model is of the third generation or later, which wants a signature with the first call of a message.
fn signs(model: &str) -> bool {
    !["gemini-1", "gemini-2"].iter().any(|older| bare(model).starts_with(older))
}

/// Most tokens for thoughts.
const MOST_BUDGET: u64 = 24_576;

/// Up to the second generation, thoughts have a budget; later models have levels, and always think a little.
fn thinking_config(question: &Question<'_>, thinking: Thinking) -> Json {
    let mut config = match (signs(question.model), thinking) {
        (false, thinking) => json!({"thinkingBudget": question.budget(thinking).min(MOST_BUDGET)}),
        (true, Thinking::Off) => json!({"thinkingLevel": "minimal"}),
        (true, thinking) => json!({"thinkingLevel": thinking.name()}),
    };
    if question.thinks() {
        config["includeThoughts"] = json!(true);
    }
    config
}

fn content(turn: &Turn, signs: bool) -> Content {
    let result = |result: &ToolResult| {
        let key = if result.error { "error" } else { "result" };
        json!({"functionResponse": {"name": result.tool, "response": {key: Turn::told(result)}}})
    };
    let call = |(nth, call): (usize, &ToolCall)| {
        let mut part = json!({"functionCall": {"name": call.tool, "args": call.read()}});
        if signs && nth == 0 {
            part["thoughtSignature"] = json!(NO_SIGNATURE);
        }
        part
    };
    let mut parts: Vec<Json> = turn.results.iter().map(result).collect();
    if !turn.text.is_empty() || parts.is_empty() && turn.calls.is_empty() {
        parts.push(json!({"text": turn.text}));
    }
    parts.extend(turn.calls.iter().enumerate().map(call));
    Content { role: Some(if turn.role == Role::Assistant { "model" } else { "user" }), parts }
}

fn tool(tool: &ToolSpec) -> Json {
    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema()})
}

/// The name without the folder of the API's list.
fn bare(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

impl Wire for GenerateContent {
    const HOME: Home = Home {
        name: "google",
        aliases: &["gemini"],
        model: "google/gemini-2.5-flash",
        base_variable: "GOOGLE_GEMINI_BASE_URL",
        base_url: "https://generativelanguage.googleapis.com",
        base_example: "http://127.0.0.1:8000",
        base_end: "",
        base_of: str::to_owned,
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        needs_key: true,
        // Not in the address, which gateways log.
        key_header: ("x-goog-api-key", ""),
        headers: &[],
        listed_as: "google",
    };
    type Body = Body;

    fn path(model: &str) -> Vec<String> {
        path(["v1beta", "models", &format!("{}:generateContent", bare(model))])
    }

    fn body(question: &Question<'_>) -> Body {
        let (system, turns) = question.apart();
        let tools: Vec<Json> = question.tools.iter().map(tool).collect();
        Body {
            system_instruction: system.map(|text| Content { role: None, parts: vec![json!({"text": text})] }),
            contents: turns.into_iter().map(|turn| content(turn, signs(question.model))).collect(),
            tools: (!tools.is_empty()).then(|| json!([{"functionDeclarations": tools}])),
            generation_config: GenerationConfig {
                temperature: question.temperature,
                top_p: question.top_p,
                // The wire's integers are signed 32-bit.
                seed: question.seed.map(|seed| seed & i32::MAX as u64),
                response_mime_type: question.schema.is_some().then_some("application/json"),
                response_json_schema: question.schema.clone(),
                thinking_config: question.thinking.map(|thinking| thinking_config(question, thinking)),
                max_output_tokens: question.longest,
            },
        }
    }

    fn told(received: &Received) -> Result<Told, Ended> {
        received.whole(&Self::HOME)?;
        let reply: Reply = received.json("answer of generateContent")?;
        received.error_in_body(&Self::HOME, &reply.error)?;
        let usage = reply.usage_metadata.0.map(|usage| polity_kernel::ask::Usage {
            tokens_in: usage.prompt_token_count,
            // The wire counts thoughts separately.
            tokens_out: usage.candidates_token_count.saturating_add(usage.thoughts_token_count),
            tokens_cached: usage.cached_content_token_count,
            tokens_thinking: usage.thoughts_token_count,
            ..Default::default()
        });
        let Some(candidate) = reply.candidates.unwrap_or_default().into_iter().next() else {
            let blocked = reply.prompt_feedback.and_then(|feedback| feedback.block_reason);
            let blocked = blocked.ok_or_else(|| received.invalid("the body has no `candidates`".into()))?;
            let end = End::Refused(Some(format!("blockReason: {blocked}")));
            return Ok(Told { end, usage, ..Told::default() });
        };
        let parts = candidate.content.and_then(|said| said.parts).unwrap_or_default();
        let texts: Vec<&str> =
            parts.iter().filter(|part| !part.thought).filter_map(|part| part.text.as_deref()).collect();
        let thoughts: Vec<&str> =
            parts.iter().filter(|part| part.thought).filter_map(|part| part.text.as_deref()).collect();
        let reasoning = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
        let call = |call: &FunctionCall| RawCall {
            name: call.name.clone(),
            arguments: if call.args.is_null() { String::new() } else { call.args.to_string() },
        };
        let calls = parts.iter().filter_map(|part| part.function_call.as_ref()).map(call).collect();
        let end = match candidate.finish_reason.as_deref() {
            Some("MAX_TOKENS") => End::Cut("finishReason: MAX_TOKENS".into()),
            Some(reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "MODEL_ARMOR")) => {
                let words = candidate.finish_message.filter(|words| !words.trim().is_empty());
                let silent = texts.is_empty().then(|| format!("finishReason: {reason}"));
                End::Refused(words.or(silent))
            }
            None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => End::Whole,
            Some(other) => End::Broken(format!("the reply is not whole (finishReason: {other})")),
        };
        let text = (!texts.is_empty()).then(|| texts.concat());
        Ok(Told { text, end, usage, calls, reasoning, ..Told::default() })
    }

    fn inquiry(model: &str) -> (Vec<String>, Option<Json>) {
        (path(["v1beta", "models", bare(model)]), None)
    }

    fn capabilities(_: &str, _: bool, told: &Json) -> Capabilities {
        Capabilities {
            logit_bias: Some(false),
            seed: Some(true),
            context: told["inputTokenLimit"].as_u64(),
            ..Capabilities::default()
        }
    }
}
