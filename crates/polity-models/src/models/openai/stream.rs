//! Assembles a completion from a stream of server-sent events.

use super::wire::{Body, Completion, ToolCall, logprobs};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Why there is no completion.
pub(super) enum Broken {
    /// The stream ended before the reply did.
    Cut,
    /// An error instead of a piece.
    Error(Json),
    /// A piece that cannot be parsed.
    Unreadable(String),
}

/// Assembles a finished stream.
pub(super) fn assemble(body: &str) -> Result<Completion, Broken> {
    let mut whole = Completion::default();
    let mut calls: BTreeMap<u64, ToolCall> = BTreeMap::new();
    let mut done = false;
    // Every event is one data line; other lines are comments or names.
    for data in body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim) {
        if data == "[DONE]" {
            done = true;
            break;
        }
        let piece: Body = match serde_json::from_str(data) {
            Ok(piece) => piece,
            // The last line may have been cut; anything else is the server's fault.
            Err(error) if error.is_eof() => return Err(Broken::Cut),
            Err(error) => return Err(Broken::Unreadable(format!("a piece of the stream cannot be read: {error}"))),
        };
        if !piece.error.is_null() {
            return Err(Broken::Error(piece.error));
        }
        whole.usage = piece.usage.0.or(whole.usage);
        for choice in piece.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            append(&mut whole.content, choice.message.content);
            append(&mut whole.refusal, choice.message.refusal);
            append(&mut whole.reasoning, choice.message.reasoning_content.or(choice.message.reasoning));
            whole.finish_reason = choice.finish_reason.or(whole.finish_reason);
            whole.logprobs.extend(logprobs(choice.logprobs));
            for part in choice.message.tool_calls.unwrap_or_default() {
                let call = calls
                    .entry(part.index.unwrap_or(0))
                    .or_insert_with(|| ToolCall { r#type: "function".into(), ..ToolCall::default() });
                // Sent once; some servers repeat them with every part.
                for (told, part) in [(&mut call.id, part.id), (&mut call.function.name, part.function.name)] {
                    if told.is_empty() {
                        *told = part.unwrap_or_default();
                    }
                }
                call.function.arguments.push_str(&part.function.arguments.unwrap_or_default());
            }
        }
    }
    whole.tool_calls = calls.into_values().collect();
    match done || whole.finish_reason.is_some() {
        true => Ok(whole),
        false => Err(Broken::Cut),
    }
}

/// Appends a piece of text; stays `None` without pieces.
fn append(text: &mut Option<String>, piece: Option<String>) {
    if let Some(piece) = piece {
        text.get_or_insert_default().push_str(&piece);
    }
}
