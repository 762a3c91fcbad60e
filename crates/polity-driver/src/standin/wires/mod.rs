//! The wires that the stand-in speaks, a file each: reading requests, and the shapes of answers and errors.

mod anthropic;
mod google;
mod ollama;
mod openai;
mod responses;

pub(super) use anthropic::Anthropic;
pub(super) use google::Google;
pub(super) use ollama::Ollama;
pub(super) use openai::OpenAi;
pub(super) use responses::Responses;

use super::answer::{Asked, Said};
use crate::bucket::Bucket;
use serde_json::Value as Json;
use std::time::Duration;

/// A wire, as a server speaks it.
pub(super) trait Wire: Send + Sync {
    /// A request, read; `model` is the one that its address names, if it does. An error says what is wrong with it.
    fn asked<'a>(&self, model: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String>;
    /// What was said, in one piece.
    fn whole(&self, head: &Head, said: &Said) -> String;
    /// What was said, in pieces, and the type of their content; `None` if the wire here has no such thing.
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
    /// The headers that tell of a limit.
    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        let _ = (name, bucket);
        Vec::new()
    }
    /// The header that holds the key.
    fn key(&self) -> &'static str {
        "authorization"
    }
}

/// What the shapes need besides what was said.
pub(super) struct Head {
    /// Of the request's bytes.
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
    /// A limit of this name, and how long to wait.
    Limit(&'a str, Option<Duration>),
    /// The account can not pay.
    Quota,
    /// Of the server's own.
    Server,
    /// It has no room for more.
    Full,
    /// The key is wrong.
    Key,
    /// There is no such model.
    Model,
    /// The request can not be understood.
    Invalid,
    /// The form of the reply is none that this model takes.
    Schema,
    /// There is nothing at this address.
    Nowhere,
}

/// A text in pieces of a word each, with the space before it.
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
