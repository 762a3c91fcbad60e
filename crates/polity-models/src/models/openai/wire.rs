//! Types of the OpenAI wire: chat completions and embeddings. Requests are complete; parsing is lenient, since servers omit what they
//! lack, and add what they like.

use crate::models::home::Home;
use crate::models::received::Apart;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// Where OpenAI is.
pub(super) const HOME: Home = Home {
    name: "openai",
    aliases: &[],
    model: "openai/gpt-4o-mini",
    base_variable: "OPENAI_BASE_URL",
    base_url: "https://api.openai.com/v1",
    base_example: "http://127.0.0.1:8000/v1",
    base_end: "/v1",
    base_of: str::to_owned,
    key_variables: &["OPENAI_API_KEY"],
    needs_key: true,
    key_header: ("authorization", "Bearer "),
    headers: &[],
    listed_as: "openai",
};

/// A completion request. Fields that are `None` or empty are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChatRequest {
    /// The model's name, as the server knows it.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<WireMessage>,
    /// The required form of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<WireFormat>,
    /// The options to which the reply is constrained; vLLM's parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_outputs: Option<StructuredOutputs>,
    /// The grammar to which the reply is constrained (GBNF); llama.cpp's parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it must: `"auto"`, `"required"`, `"none"`, or an object that names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Json>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// It samples from the likeliest tokens with this total probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sampling seed; few servers guarantee anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Maximum tokens of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The same, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u64>,
    /// Whether log-probabilities are requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    /// Number of alternatives per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u8>,
    /// How much the model thinks: `none`, `low`, `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<&'static str>,
    /// Whether it thinks, for the templates of open models: vLLM's, SGLang's and llama.cpp's parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_template_kwargs: Option<TemplateThinking>,
    /// The same as the providers of DeepSeek, GLM and Kimi take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<HostedThinking>,
    /// Whether the reply is streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Options of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WireMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The tool calls of the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call whose result this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// `chat_template_kwargs`. A template takes the name that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TemplateThinking {
    /// For Qwen, GLM and Gemma.
    pub enable_thinking: bool,
    /// For DeepSeek and Granite.
    pub thinking: bool,
}

/// `thinking`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostedThinking {
    /// `enabled` or `disabled`.
    pub r#type: &'static str,
}

/// `structured_outputs` of vLLM, 0.12 and later (docs.vllm.ai, Structured Outputs).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StructuredOutputs {
    /// The reply must be exactly one of them.
    pub choice: Vec<String>,
}

/// `response_format`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WireFormat {
    /// `json_schema`.
    pub r#type: &'static str,
    /// The schema.
    pub json_schema: NamedSchema,
}

/// A schema with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedSchema {
    /// Letters, digits, `_` and `-`.
    pub name: &'static str,
    /// Whether the server must enforce it.
    pub strict: bool,
    /// JSON Schema.
    pub schema: Arc<Json>,
}

/// An offered tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// `function`.
    pub r#type: &'static str,
    /// What it is.
    pub function: Function,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its description, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
}

/// `stream_options`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StreamOptions {
    /// Whether a last piece reports the token counts.
    pub include_usage: bool,
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, repeated by the result.
    #[serde(default)]
    pub id: String,
    /// `function`.
    #[serde(default = "function")]
    pub r#type: String,
    /// The called function.
    pub function: Called,
}

fn function() -> String {
    "function".into()
}

/// The called function and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// JSON as written by the model: it may be invalid.
    #[serde(default)]
    pub arguments: String,
}

/// Token counts of a call. If one of the first two is missing, nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Usage {
    /// Of the request.
    pub prompt_tokens: u64,
    /// Of the reply, thinking included.
    pub completion_tokens: u64,
    /// Cached part of the request.
    #[serde(default)]
    pub prompt_tokens_details: Option<PromptTokens>,
    /// Thinking part of the reply.
    #[serde(default)]
    pub completion_tokens_details: Option<CompletionTokens>,
}

/// Parts of a request's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct PromptTokens {
    /// Read from the provider's cache.
    pub cached_tokens: Option<u64>,
}

/// Parts of a reply's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct CompletionTokens {
    /// Spent on thinking.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Cached tokens of the request.
    #[must_use]
    pub fn cached_in(&self) -> u64 {
        self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0)
    }

    /// Thinking tokens of the reply.
    #[must_use]
    pub fn reasoning_out(&self) -> u64 {
        self.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0)
    }
}

/// The probability of a token.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct TokenLogprob {
    /// The token.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f64,
    /// The likeliest tokens at its position.
    #[serde(default)]
    pub top_logprobs: Vec<TokenLogprob>,
}

/// Log-probabilities of a reply.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Logprobs {
    #[serde(default)]
    pub content: Option<Vec<TokenLogprob>>,
}

/// The body of a completion, and of a piece of one.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    #[serde(default)]
    pub error: Json,
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub usage: Apart<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: u64,
    #[serde(default, alias = "delta")]
    pub message: Piece,
    #[serde(default)]
    pub finish_reason: Option<String>,
    #[serde(default)]
    pub logprobs: Apart<Logprobs>,
}

/// A message, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    pub content: Option<String>,
    pub refusal: Option<String>,
    /// DeepSeek's, GLM's and vLLM's name for what a model thinks; others write `reasoning`.
    pub reasoning_content: Option<String>,
    pub reasoning: Option<String>,
    pub tool_calls: Option<Vec<CallPiece>>,
}

/// A tool call, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    pub index: Option<u64>,
    pub id: Option<String>,
    pub function: CalledPiece,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CalledPiece {
    pub name: Option<String>,
    pub arguments: Option<String>,
}

/// The body of embeddings.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingBody {
    pub data: Option<Vec<Embedding>>,
    #[serde(default)]
    pub usage: Apart<EmbeddingUsage>,
    #[serde(default)]
    pub error: Json,
}

/// Tokens of a text.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingUsage {
    pub prompt_tokens: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Embedding {
    pub embedding: Vec<f32>,
}

/// A completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The text; `None` if the server sent none.
    pub content: Option<String>,
    /// The model's refusal message.
    pub refusal: Option<String>,
    /// What the model thought, if the server shows it.
    pub reasoning: Option<String>,
    /// The finish reason: `stop`, `length`, `tool_calls`, `content_filter`.
    pub finish_reason: Option<String>,
    /// The tools it called.
    pub tool_calls: Vec<ToolCall>,
    /// Log-probabilities of its tokens, if requested.
    pub logprobs: Vec<TokenLogprob>,
    /// Tokens, if the server reported them.
    pub usage: Option<Usage>,
}

pub(super) fn logprobs(logprobs: Apart<Logprobs>) -> Vec<TokenLogprob> {
    logprobs.0.and_then(|logprobs| logprobs.content).unwrap_or_default()
}
