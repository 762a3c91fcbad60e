//! The wires of the mock server, one per file: reading requests, shaping answers and errors.

mod anthropic;
mod conversation;
mod google;
mod ollama;
mod openai;
mod responses;

pub(super) use anthropic::Anthropic;
pub(super) use conversation::Tools;
pub(super) use google::Google;
pub(super) use ollama::Ollama;
pub(super) use openai::OpenAi;
pub(super) use responses::Responses;

use super::answer::{Asked, Said};
use crate::bucket::Bucket;
use serde_json::Value as Json;
use std::time::Duration;

/// The server side of a wire.
pub(super) trait Wire: Send + Sync {
    /// Parses a request; `model` is the name in the address, if any. The error says what is wrong with it.
    fn asked<'a>(&self, model: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String>;
    /// The reply in one piece.
    fn whole(&self, head: &Head, said: &Said) -> String;
    /// The reply in pieces, with their content type; `None` if this wire does not stream.
    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let _ = (head, said);
        None
    }
    /// A status and the body with it.
    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json);
    /// The headers with which an error asks to wait.
    fn wait(&self, wait: Duration) -> Vec<(String, String)> {
        let seconds = wait.as_secs_f64();
        vec![
            ("retry-after".into(), seconds.ceil().to_string()),
            ("retry-after-ms".into(), (seconds * 1e3).ceil().to_string()),
        ]
    }
    /// The headers that report a limit.
    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        let _ = (name, bucket);
        Vec::new()
    }
    /// The header that holds the key.
    fn key(&self) -> &'static str {
        "authorization"
    }
}

/// What answers need besides the reply.
pub(super) struct Head {
    /// Key of the request's bytes.
    pub key: u128,
    /// Seconds since 1970.
    pub created: u64,
    pub model: String,
    pub logprobs: bool,
    pub include_usage: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy)]
pub(super) enum Failure<'a> {
    /// The name of a limit, and how long to wait.
    Limit(&'a str, Option<Duration>),
    /// The account's quota is used up.
    Quota,
    /// An internal error.
    Server,
    /// It is overloaded.
    Full,
    /// The key is wrong.
    Key,
    /// Unknown model.
    Model,
    /// The request is invalid.
    Invalid,
    /// The model does not support this form of the reply.
    Schema,
    /// Nothing is at this address.
    NotFound,
}

/// Splits a text into words, each with the space before it.
fn words(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begins = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let ends = rest[begins..].find(char::is_whitespace).map_or(rest.len(), |i| begins + i);
        let (piece, tail) = rest.split_at(ends);
        out.push(piece);
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_add_up_to_the_text() {
        for text in ["", " ", "a", " a  bc\n\nd ", "wörter und 🦀 krebse "] {
            assert_eq!(words(text).concat(), text);
        }
        assert_eq!(words("one two"), ["one", " two"]);
    }
}
