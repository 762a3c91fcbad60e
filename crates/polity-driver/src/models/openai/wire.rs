//! The OpenAI wire, typed: chat completions and embeddings. What is sent is complete; what is read is lenient, since servers leave
//! out what they have not, and add what they like.

use crate::models::received::Apart;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// A request for a completion. What is `None` or empty is not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChatRequest {
    /// The model's name, as the server knows it.
    pub model: String,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The form that the reply must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The options of which the reply must be one; vLLM's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_outputs: Option<StructuredOutputs>,
    /// The grammar that must derive the reply (GBNF); llama.cpp's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it must: `"auto"`, `"required"`, `"none"`, or an object that names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Json>,
    /// How freely it samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// It samples from the likeliest tokens that have this probability together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Seed of its sampling; few servers promise anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Tokens of the reply at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The same, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u64>,
    /// Whether log-probabilities are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    /// Of how many alternatives, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u8>,
    /// Whether the reply is to come in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// What the pieces are to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// What is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The calls that the model made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call whose result this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// `structured_outputs` of vLLM, 0.12 and later (docs.vllm.ai, Structured Outputs).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StructuredOutputs {
    /// The reply is exactly one of them.
    pub choice: Vec<String>,
}

/// `response_format`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResponseFormat {
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
    /// Whether the server must keep to it.
    pub strict: bool,
    /// JSON Schema.
    pub schema: Arc<Json>,
}

/// A tool that is offered.
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
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
}

/// `stream_options`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StreamOptions {
    /// Whether a last piece tells the tokens.
    pub include_usage: bool,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its name, which the result repeats.
    #[serde(default)]
    pub id: String,
    /// `function`.
    #[serde(default = "function")]
    pub r#type: String,
    /// What is called.
    pub function: Called,
}

fn function() -> String {
    "function".into()
}

/// The function that is called, and with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// JSON, as the text that the model wrote: it may be broken.
    #[serde(default)]
    pub arguments: String,
}

/// Tokens of a call. Without both counts it tells nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Usage {
    /// Of the request.
    pub prompt_tokens: u64,
    /// Of the reply, thinking included.
    pub completion_tokens: u64,
    /// What of the request was in the provider's cache.
    #[serde(default)]
    pub prompt_tokens_details: Option<PromptTokens>,
    /// What of the reply was thinking.
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
    /// Tokens of the request that were in the provider's cache.
    #[must_use]
    pub fn cached_in(&self) -> u64 {
        self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0)
    }

    /// Tokens of the reply that were thinking.
    #[must_use]
    pub fn reasoning_out(&self) -> u64 {
        self.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0)
    }
}

/// How likely a token was.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct TokenLogprob {
    /// The token.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f64,
    /// The likeliest tokens in its place.
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
    pub tool_calls: Option<Vec<CallPiece>>,
}

/// A call of a tool, or a part of one.
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
