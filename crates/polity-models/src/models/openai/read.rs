//! Parses a server's answer into a completion. Pure.

use super::stream;
use super::wire::{
    Body, CallPiece, Called, Completion, EmbeddingBody, EmbeddingUsage, HOME, ToolCall, Usage, logprobs,
};
use crate::models::calls::RawCall;
use crate::models::provider::ProviderError;
use crate::models::received::{End, Ended, Received, Told};
use polity_kernel::ask::{Outcome, ResponseFormat};

/// Parses the answer to a completion request. Returns a completion, or the outcome in its place ([`Outcome::Refused`] or
/// [`Outcome::Invalid`]).
pub fn read_completion(received: &Received) -> Result<Result<Completion, Outcome>, ProviderError> {
    match completion(received) {
        Ok(completion) => Ok(Ok(completion)),
        Err(Ended::Outcome(outcome)) => Ok(Err(outcome)),
        Err(Ended::ProviderError(trouble)) => Err(trouble),
    }
}

pub(super) fn completion(received: &Received) -> Result<Completion, Ended> {
    received.whole(&HOME)?;
    if received.is_stream() {
        return match stream::assemble(&received.body) {
            Ok(completion) => Ok(completion),
            Err(stream::Broken::Cut) => Err(received.broken("sent a stream that was cut before its end".into())),
            Err(stream::Broken::Error(error)) => {
                received.error_in_body(&HOME, &error)?;
                Err(received.invalid("the stream has an error of no words".into()))
            }
            Err(stream::Broken::Unreadable(why)) => Err(received.invalid(why)),
        };
    }
    let body: Body = received.json("chat completion")?;
    received.error_in_body(&HOME, &body.error)?;
    let choice = body.choices.unwrap_or_default().into_iter().next();
    let choice = choice.ok_or_else(|| received.invalid("the body has no `choices`".into()))?;
    let call = |call: CallPiece| ToolCall {
        id: call.id.unwrap_or_default(),
        r#type: "function".into(),
        function: Called {
            name: call.function.name.unwrap_or_default(),
            arguments: call.function.arguments.unwrap_or_default(),
        },
    };
    Ok(Completion {
        content: choice.message.content,
        refusal: choice.message.refusal,
        reasoning: choice.message.reasoning_content.or(choice.message.reasoning),
        finish_reason: choice.finish_reason,
        tool_calls: choice.message.tool_calls.unwrap_or_default().into_iter().map(call).collect(),
        logprobs: logprobs(choice.logprobs),
        usage: body.usage.0,
    })
}

impl From<Usage> for polity_kernel::ask::Usage {
    fn from(told: Usage) -> Self {
        polity_kernel::ask::Usage {
            tokens_in: told.prompt_tokens,
            tokens_out: told.completion_tokens,
            tokens_cached: told.cached_in(),
            tokens_thinking: told.reasoning_out(),
            ..Default::default()
        }
    }
}

impl From<Completion> for Told {
    fn from(completion: Completion) -> Self {
        let refusal = completion.refusal.filter(|words| !words.trim().is_empty());
        let end = match (refusal, completion.finish_reason.as_deref()) {
            (Some(words), _) => End::Refused(Some(words)),
            (_, Some("length")) => End::Cut("finish_reason: length".into()),
            (_, Some("content_filter")) => End::Refused(None),
            _ => End::Whole,
        };
        let call = |call: ToolCall| RawCall { name: call.function.name, arguments: call.function.arguments };
        let calls = completion.tool_calls.into_iter().map(call).collect();
        let usage = completion.usage.map(|told| told.into());
        let first = completion.logprobs.into_iter().next();
        let alternatives = first.into_iter().flat_map(|token| token.top_logprobs);
        let alternatives = alternatives.map(|token| (token.token, token.logprob)).collect();
        Told { text: completion.content, end, usage, alternatives, calls, reasoning: completion.reasoning }
    }
}

/// The outcome of a completion. `body` is kept if there is no text.
#[must_use]
pub fn outcome(response_format: &ResponseFormat, completion: &Completion, body: &str) -> Outcome {
    Told::from(completion.clone()).outcome(response_format, body)
}

/// Parses the answer to an embedding request for one text.
pub(super) fn embedding(received: &Received) -> Result<(Vec<f32>, Option<polity_kernel::ask::Usage>), Ended> {
    received.whole(&HOME)?;
    let body: EmbeddingBody = received.json("embedding")?;
    received.error_in_body(&HOME, &body.error)?;
    match body.data.unwrap_or_default().into_iter().next() {
        Some(first) => {
            let usage = |told: EmbeddingUsage| polity_kernel::ask::Usage {
                tokens_in: told.prompt_tokens,
                ..Default::default()
            };
            Ok((first.embedding, body.usage.0.map(usage)))
        }
        None => Err(received.invalid("the body has no `data`".into())),
    }
}
