//! What a wire is: how requests are written and answers parsed.

use super::capabilities::Capabilities;
use super::choice::Held;
use super::home::Home;
use super::provider::Standing;
use super::received::{Ended, Received, Told};
use polity_kernel::ask::{ChatMessage, Constrain, Outcome, Part, Request, Role, Thinking, Usage, Value};
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Default maximum tokens of a reply. It is sent along, and budgets reserve that much.
pub const LONGEST_REPLY: u64 = 8192;

/// Settings sent with every call, as far as the wire supports them. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum tokens of a reply, under the name that most servers use.
    pub max_tokens: Option<u64>,
    /// The same under the name of OpenAI's thinking models; includes thinking.
    pub max_completion_tokens: Option<u64>,
    /// Sampling seed; the sample number is added to it. Few servers guarantee anything.
    pub seed: Option<u64>,
    /// Log-probabilities of the tokens, with this many alternatives each (`openai/` only).
    pub logprobs: Option<u8>,
    /// Whether replies are streamed, which keeps gateways from cutting long ones (`openai/` only).
    pub stream: bool,
    /// Timeout of an answer, in milliseconds (five minutes).
    pub timeout_ms: Option<u64>,
}

/// A request in terms shared by all wires.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The model, by its server's name.
    pub model: &'a str,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// The required form of the reply.
    pub schema: Option<Arc<Json>>,
    /// Tools that are offered in the provider's own form; none if the reply has another form.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Another constraint to the options of a choice.
    pub held: Option<Held>,
    /// Maximum tokens of the reply.
    pub longest: u64,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// It samples from the likeliest tokens with this total probability.
    pub top_p: Option<f64>,
    /// Seed of its sampling.
    pub seed: Option<u64>,
    /// How much it thinks.
    pub thinking: Option<Thinking>,
    /// The settings of every call.
    pub settings: &'a Settings,
    /// Whether the server is the provider itself rather than another one that speaks its wire.
    pub own: bool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// The calls that the model made in it; in the text instead, unless tools are offered in the provider's own form.
    pub calls: Vec<ToolCall>,
    /// The results of calls; in the text instead, likewise.
    pub results: Vec<ToolResult>,
}

impl Turn {
    /// A message of plain text.
    pub(super) fn said(role: Role, text: String) -> Turn {
        Turn { role, text, calls: Vec::new(), results: Vec::new() }
    }

    /// A message, with calls and results apart from its text or in it.
    pub(super) fn of(message: &ChatMessage, apart: bool) -> Turn {
        if !apart {
            return Turn::said(message.role, message.rendered());
        }
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        let mut parts = Vec::new();
        for part in &message.parts {
            match part {
                Part::Calls(made) => calls.extend(made.iter().cloned()),
                Part::Result(result) => results.push(result.clone()),
                part => parts.push(part.clone()),
            }
        }
        let text = ChatMessage { role: message.role, parts }.rendered();
        Turn { role: message.role, text, calls, results }
    }

    /// The text of a result: the tool's own words, with the id by which they can be cited.
    pub(super) fn told(result: &ToolResult) -> String {
        let error = if result.error { "Error: " } else { "" };
        format!("[{}] {error}{}", result.evidence, result.text)
    }
}

impl Question<'_> {
    /// Splits the conversation for wires with a separate system prompt: the system prompt and the rest, which is never empty.
    #[must_use]
    pub fn apart(&self) -> (Option<String>, Vec<&Turn>) {
        let (system, rest): (Vec<&Turn>, Vec<&Turn>) = self.turns.iter().partition(|turn| turn.role == Role::System);
        match rest.is_empty() {
            true => (None, system),
            false => {
                let system: Vec<&str> = system.iter().map(|turn| turn.text.as_str()).collect();
                ((!system.is_empty()).then(|| system.join("\n\n")), rest)
            }
        }
    }

    /// Tokens of a reply that are for thoughts, on wires that count them: an eighth, half or three quarters of it; 0 if thinking is off.
    pub(super) fn budget(&self, thinking: Thinking) -> u64 {
        match thinking {
            Thinking::Off => 0,
            Thinking::Low => self.longest / 8,
            Thinking::Medium => self.longest / 2,
            Thinking::High => self.longest / 4 * 3,
        }
    }

    /// Whether the model is to think.
    pub(super) fn thinks(&self) -> bool {
        self.thinking.is_some_and(|thinking| thinking != Thinking::Off)
    }

    /// Appends text to the last message. Some servers refuse two messages of one speaker in a row.
    pub(super) fn add(&mut self, words: String) {
        match self.turns.last_mut() {
            Some(Turn { role: Role::User, text, .. }) => {
                text.push_str("\n\n");
                text.push_str(&words);
            }
            _ => self.turns.push(Turn::said(Role::User, words)),
        }
    }
}

/// A wire: how requests are written and answers parsed.
pub trait Wire: Send + Sync + 'static {
    /// Its address and credentials.
    const HOME: Home;
    /// The type of its requests.
    type Body: Serialize + Send + Sync;

    /// The constraint modes it supports.
    const WAYS: &'static [Constrain] = &[Constrain::Tools, Constrain::Schema, Constrain::Words];

    /// The path of a request.
    fn path(model: &str) -> Vec<String>;
    /// Writes a request.
    fn body(question: &Question<'_>) -> Self::Body;
    /// Which of its settings do not go together, for people; checked before a request is sent.
    fn conflict(question: &Question<'_>) -> Option<String> {
        let _ = question;
        None
    }
    /// Parses a server's answer; pure.
    fn told(received: &Received) -> Result<Told, Ended>;
    /// Whether schemas for this model may have bounds on numbers and lengths. Bounds are checked here in any case.
    fn bounds(model: &str) -> bool {
        let _ = model;
        true
    }
    /// The path for a model's capabilities, and the body to send, if it is free.
    fn inquiry(model: &str) -> (Vec<String>, Option<Json>);
    /// The model's entry in the answer; null if none.
    fn entry<'a>(model: &str, told: &'a Json) -> &'a Json {
        let _ = model;
        told
    }
    /// Its batches, if any.
    fn batches() -> Option<&'static dyn BatchWire> {
        None
    }
    /// Its embeddings, if any.
    fn embedding() -> Option<&'static dyn EmbeddingWire> {
        None
    }
    /// The capabilities of a model, from its server's entry (null if none).
    fn capabilities(model: &str, own: bool, told: &Json) -> Capabilities;
}

/// The embedding part of a wire.
pub trait EmbeddingWire: Send + Sync {
    /// The path of a request.
    fn path(&self, model: &str) -> Vec<String>;
    /// The body of a request.
    fn body(&self, model: &str, text: &str) -> Json;
    /// The vector, and its usage if reported; pure.
    fn vector(&self, received: &Received) -> Result<(Vec<f32>, Option<Usage>), Ended>;
}

/// The text to embed.
pub(super) fn text_of(asked: &Request) -> String {
    asked.messages.iter().map(ChatMessage::rendered).collect::<Vec<_>>().join("\n\n")
}

/// A vector as an outcome; it must have a direction.
pub(super) fn embedded(vector: Vec<f32>) -> Outcome {
    let raw = format!("a vector of {} numbers", vector.len());
    let why = match vector.iter().find(|x| !x.is_finite()) {
        Some(x) => Some(format!("one of its numbers is {x}")),
        None if vector.iter().all(|x| *x == 0.0) => Some("it has no number other than 0".to_owned()),
        None => None,
    };
    match why {
        None => Outcome::Reply { value: Value::Vector(vector), raw, repaired: false },
        Some(why) => Outcome::Invalid { raw, why },
    }
}

/// A path of these parts.
pub(super) fn path<const N: usize>(parts: [&str; N]) -> Vec<String> {
    parts.map(str::to_owned).to_vec()
}

/// The result in a line.
pub enum LineResult {
    /// A status and a body, as for a single request.
    Answer(u16, String),
    /// It was not answered, and may be sent again.
    Lapsed(String),
}

/// The lines in an order.
pub enum Lines<'a> {
    /// The lines themselves.
    Here(&'a [String]),
    /// The id of the file that holds them.
    File(&'a str),
}

/// A wire's batches: their addresses and formats. Pure.
pub trait BatchWire: Sync {
    /// Maximum requests and bytes of a batch, as published by the provider.
    fn holds(&self) -> (usize, usize);
    /// A request as a line; `path` is its address as a single request.
    fn line(&self, name: &str, path: &[String], body: &RawValue) -> String;
    /// Where lines are first uploaded as a file, if at all.
    fn files(&self) -> Option<Vec<String>>;
    /// Where batches are created and listed; a single one is below, by id.
    fn home(&self) -> Vec<String>;
    /// The order that creates a batch.
    fn order(&self, name: &str, path: &[String], lines: &Lines<'_>) -> String;
    /// Parses the status of a batch.
    fn standing(&self, told: &Json) -> Option<Standing>;
    /// The list parameter that names the last batch of the previous page.
    fn after(&self) -> &'static str;
    /// Parses a line of results: its name and result.
    fn result(&self, line: &str) -> Option<(String, LineResult)>;
}
