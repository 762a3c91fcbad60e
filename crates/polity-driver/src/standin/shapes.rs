//! The exact shapes of the OpenAI wire, as its servers send them.

use super::answer::Said;
use serde_json::{Value as Json, json};

/// What the shapes need besides what was said.
pub(super) struct Head {
    pub id: String,
    pub created: u64,
    pub model: String,
    pub logprobs: bool,
    pub include_usage: bool,
}

fn usage(said: &Said) -> Json {
    let (tokens_in, tokens_out) = (said.usage.tokens_in, said.usage.tokens_out);
    json!({
        "prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
        },
    })
}

/// The id of a call of a tool, from that of its completion.
fn call_id(head: &Head) -> String {
    head.id.replace("chatcmpl-", "call_")
}

/// A text in pieces of a word each, with the space before it.
fn pieces(text: &str) -> Vec<&str> {
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

/// Made-up log-probabilities: every word is as likely.
fn logprobs(words: &[&str]) -> Json {
    let token = |word: &&str| json!({"token": word, "logprob": -0.25, "bytes": word.as_bytes(), "top_logprobs": []});
    json!({"content": words.iter().map(token).collect::<Vec<_>>(), "refusal": null})
}

/// A completion in one piece.
pub(super) fn completion(head: &Head, said: &Said) -> Json {
    let mut message = json!({"role": "assistant", "content": said.content, "refusal": said.refusal, "annotations": []});
    if let Some((name, arguments)) = &said.call {
        message["tool_calls"] =
            json!([{"id": call_id(head), "type": "function", "function": {"name": name, "arguments": arguments}}]);
    }
    let logprobs = head.logprobs.then(|| logprobs(&pieces(said.content.as_deref().unwrap_or_default())));
    json!({
        "id": head.id, "object": "chat.completion", "created": head.created, "model": head.model,
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": said.finish_reason}],
        "usage": usage(said), "service_tier": "default", "system_fingerprint": "polity-stand-in",
    })
}

/// A completion as a stream: the role first, then a word at a time, then why it ended, then (if asked for) the tokens.
pub(super) fn stream(head: &Head, said: &Said) -> Vec<String> {
    let event = |choices: Json, usage: Json| {
        let mut chunk = json!({
            "id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model,
            "system_fingerprint": "polity-stand-in", "choices": choices,
        });
        if head.include_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let piece = |delta: Json, logprobs: Json, finish: Option<&str>| {
        event(json!([{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]), Json::Null)
    };
    let mut events = Vec::new();
    let mut first = json!({"role": "assistant", "content": null, "refusal": null});
    match &said.call {
        Some((name, arguments)) => {
            // Id and name once, then the arguments in fragments.
            first["tool_calls"] = json!([{"index": 0, "id": call_id(head), "type": "function", "function": {"name": name, "arguments": ""}}]);
            events.push(piece(first, Json::Null, None));
            for fragment in pieces(arguments) {
                let delta = json!({"tool_calls": [{"index": 0, "function": {"arguments": fragment}}]});
                events.push(piece(delta, Json::Null, None));
            }
        }
        None => {
            let (name, text) = match (&said.content, &said.refusal) {
                (Some(content), _) => ("content", content.as_str()),
                (None, Some(refusal)) => ("refusal", refusal.as_str()),
                (None, None) => ("content", ""),
            };
            if said.content.is_some() {
                first["content"] = json!("");
            }
            events.push(piece(first, Json::Null, None));
            for word in pieces(text) {
                let logprobs = if head.logprobs { logprobs(&[word]) } else { Json::Null };
                events.push(piece(json!({name: word}), logprobs, None));
            }
        }
    }
    events.push(piece(json!({}), Json::Null, Some(said.finish_reason)));
    if head.include_usage {
        events.push(event(json!([]), usage(said)));
    }
    events.push("data: [DONE]\n\n".into());
    events
}

/// An error.
pub(super) fn error(message: &str, kind: &str, code: Option<&str>) -> Json {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_add_up_to_the_text() {
        for text in ["", " ", "a", " a  bc\n\nd ", "wörter und 🦀 krebse "] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(pieces("one two"), ["one", " two"]);
    }
}
