//! Models behind the OpenAI wire: OpenAI itself, and every compatible server and gateway. See README.md.

pub(super) mod batch;
mod read;
mod stream;
pub mod wire;

pub use super::received::Received;
pub use super::wire::Settings;
pub use read::{outcome, read_completion};
pub use wire::Completion;

use super::capabilities::Capabilities;
use super::choice::{Held, MOST_LETTERS};
use super::form::ANSWER;
use super::home::Home;
use super::provider::ProviderError;
use super::received::{Ended, Told};
use super::remote::Remote;
use super::wire::{BatchWire, EmbeddingWire, Question, Turn, Wire, path};
use polity_kernel::ask::{Constrain, Outcome, Role, Thinking, Usage};
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde_json::{Value as Json, json};
use wire::{
    Called, ChatRequest, Function, HostedThinking, NamedSchema, StreamOptions, StructuredOutputs, TemplateThinking,
    Tool, WireFormat, WireMessage,
};

/// The provider `openai`.
pub type OpenAi = Remote<Chat>;

/// Its wire.
pub struct Chat;

/// Its embeddings.
struct Embeddings;

impl EmbeddingWire for Embeddings {
    fn path(&self, _: &str) -> Vec<String> {
        path(["embeddings"])
    }

    fn body(&self, model: &str, text: &str) -> Json {
        json!({"model": model, "input": text, "encoding_format": "float"})
    }

    fn vector(&self, received: &Received) -> Result<(Vec<f32>, Option<Usage>), Ended> {
        read::embedding(received)
    }
}

impl Wire for Chat {
    const HOME: Home = wire::HOME;
    type Body = ChatRequest;
    /// Modes other than schemas belong to particular servers, and are refused elsewhere.
    const WAYS: &'static [Constrain] = &Constrain::ALL;

    fn path(_: &str) -> Vec<String> {
        path(["chat", "completions"])
    }

    fn body(question: &Question<'_>) -> ChatRequest {
        let Settings { max_completion_tokens, logprobs, stream, .. } = *question.settings;
        let (structured_outputs, grammar, logprobs) = match &question.held {
            Some(Held::To(options)) => (Some(StructuredOutputs { choice: options.clone() }), None, logprobs),
            Some(Held::By(grammar)) => (None, Some(grammar.clone()), logprobs),
            Some(Held::Letters) => (None, None, Some(MOST_LETTERS as u8)),
            None => (None, None, logprobs),
        };
        // OpenAI's newer models accept only one name, most other servers only the other.
        let newer = question.own || max_completion_tokens.is_some();
        // Open models have a switch; where it is depends on the server, and the others take no notice of it.
        let switch = question.thinking.filter(|_| !question.own).map(|_| question.thinks());
        ChatRequest {
            model: question.model.to_owned(),
            messages: question.turns.iter().flat_map(messages).collect(),
            tools: question.tools.iter().map(tool).collect(),
            response_format: question.schema.clone().map(|schema| WireFormat {
                r#type: "json_schema",
                json_schema: NamedSchema { name: ANSWER, strict: true, schema },
            }),
            structured_outputs,
            grammar,
            temperature: question.temperature,
            top_p: question.top_p,
            // The wire's integers are signed.
            seed: question.seed.map(|seed| seed & i64::MAX as u64),
            max_tokens: (!newer).then_some(question.longest),
            max_completion_tokens: newer.then_some(question.longest),
            logprobs: logprobs.map(|_| true),
            top_logprobs: logprobs.filter(|alternatives| *alternatives > 0),
            reasoning_effort: effort(question),
            chat_template_kwargs: switch.map(|on| TemplateThinking { enable_thinking: on, thinking: on }),
            thinking: switch.map(|on| HostedThinking { r#type: if on { "enabled" } else { "disabled" } }),
            stream: stream.then_some(true),
            stream_options: stream.then_some(StreamOptions { include_usage: true }),
            ..ChatRequest::default()
        }
    }

    fn conflict(question: &Question<'_>) -> Option<String> {
        // Other servers have their own rules.
        let odd = |value: Option<f64>| value.is_some_and(|value| value != 1.0);
        let sampled = question.own && question.thinks() && (odd(question.temperature) || odd(question.top_p));
        sampled.then(|| "a model that thinks takes no other `temperature` and `top_p` than 1: leave them out".into())
    }

    fn told(received: &Received) -> Result<Told, Ended> {
        read::completion(received).map(Told::from)
    }

    /// OpenAI's fine-tuned models refuse bounds.
    fn bounds(model: &str) -> bool {
        !model.starts_with("ft:")
    }

    fn batches() -> Option<&'static dyn BatchWire> {
        Some(&batch::Jobs)
    }

    fn embedding() -> Option<&'static dyn EmbeddingWire> {
        Some(&Embeddings)
    }

    /// The list, since not every server has an address per model.
    fn inquiry(_: &str) -> (Vec<String>, Option<Json>) {
        (path(["models"]), None)
    }

    fn entry<'a>(model: &str, told: &'a Json) -> &'a Json {
        let listed = told["data"].as_array().and_then(|models| models.iter().find(|entry| entry["id"] == model));
        listed.unwrap_or(&Json::Null)
    }

    /// OpenAI reports only a name. vLLM and llama.cpp are recognised by the owner in the entry, and report `max_model_len` and
    /// `meta.n_ctx_train`; gateways report `context_length` and, some, `supported_parameters`; the mock server reports `capabilities` as
    /// Anthropic does.
    fn capabilities(_: &str, own: bool, told: &Json) -> Capabilities {
        let context =
            ["max_model_len", "context_length", "context_window"].iter().find_map(|name| told[*name].as_u64());
        let context = context.or_else(|| told["meta"]["n_ctx_train"].as_u64());
        let owner = told["owned_by"].as_str().unwrap_or_default();
        let of = |owners: &[&str], parameter: &str, name: &str| {
            let listed = told["supported_parameters"].as_array();
            let listed = listed.filter(|_| !parameter.is_empty()).map(|all| all.iter().any(|one| one == parameter));
            let said = told["capabilities"][name]["supported"].as_bool();
            owners.contains(&owner).then_some(true).or(said).or(listed)
        };
        let others = if own { Some(false) } else { None };
        Capabilities {
            schema: of(&["vllm", "llamacpp"], "structured_outputs", "structured_outputs"),
            tools: of(&[], "tools", "tools"),
            choice: of(&["vllm"], "", "choice").or(others),
            grammar: of(&["llamacpp"], "", "grammar").or(others),
            logprobs: of(&["vllm", "llamacpp"], "top_logprobs", "logprobs"),
            context,
            ..Capabilities::default()
        }
    }
}

/// `reasoning_effort`. Only OpenAI has a word for none; other servers have a switch for that.
pub(super) fn effort(question: &Question<'_>) -> Option<&'static str> {
    match question.thinking? {
        Thinking::Off => question.own.then_some("none"),
        thinking => Some(thinking.name()),
    }
}

/// A message, and a message of its own for every result in it, which comes first.
fn messages(turn: &Turn) -> Vec<WireMessage> {
    let result = |result: &ToolResult| WireMessage {
        role: "tool",
        content: Some(Turn::told(result)),
        tool_call_id: Some(result.call.clone()),
        ..WireMessage::default()
    };
    let call = |call: &ToolCall| wire::ToolCall {
        id: call.id.clone(),
        r#type: "function".into(),
        function: Called { name: call.tool.clone(), arguments: call.arguments.clone() },
    };
    let mut messages: Vec<WireMessage> = turn.results.iter().map(result).collect();
    if !turn.text.is_empty() || messages.is_empty() {
        messages.push(WireMessage {
            role: match turn.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            },
            content: (!turn.text.is_empty() || turn.calls.is_empty()).then(|| turn.text.clone()),
            tool_calls: turn.calls.iter().map(call).collect(),
            ..WireMessage::default()
        });
    }
    messages
}

fn tool(tool: &ToolSpec) -> Tool {
    let function = Function {
        name: tool.name.to_string(),
        description: Some(tool.description.to_string()),
        parameters: Some(tool.schema()),
    };
    Tool { r#type: "function", function }
}

impl OpenAi {
    /// Requests a completion with everything the wire supports: tools, log-probabilities. Returns a completion, or the outcome in its
    /// place.
    pub async fn complete(&self, request: &ChatRequest) -> Result<Result<Completion, Outcome>, ProviderError> {
        let received = self.line.send_once(&Chat::path(&request.model), &request.model, Some(request)).await?;
        read_completion(&received).map_err(|trouble| self.line.scrubbed(trouble))
    }
}
