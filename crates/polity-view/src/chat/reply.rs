//! A team's answer as a chat completion, whole or as server-sent chunks.

use super::Answered;
use super::request::Delivery;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Shapes an answer as the client wants it.
pub(crate) fn reply(model: &str, answered: &Answered, delivery: Delivery) -> Response {
    let completion = Completion { model, answered, created: now_seconds() };
    match delivery {
        Delivery::Whole => json_response(&completion.whole()),
        Delivery::Stream { usage } => {
            let chunks = completion.chunks(usage).into_iter().map(|chunk| chunk.to_string());
            let events: String = chunks.chain(["[DONE]".to_owned()]).map(|data| format!("data: {data}\n\n")).collect();
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
    }
}

pub(crate) fn json_response(body: &Json) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Describes the model.
pub(crate) fn model(name: &str) -> Json {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "polity" })
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

struct Completion<'a> {
    model: &'a str,
    answered: &'a Answered,
    created: u64,
}

impl Completion<'_> {
    fn whole(&self) -> Json {
        let message = json!({ "role": "assistant", "content": self.answered.text, "refusal": null });
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" });
        let mut whole = self.head("chat.completion", &json!([choice]));
        whole["usage"] = self.usage();
        whole["polity"] = self.run();
        whole
    }

    /// The answer is complete when the first chunk is sent, so it is one chunk.
    fn chunks(&self, usage: bool) -> Vec<Json> {
        let chunk = |delta: Json, finish: Json| {
            let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
            self.head("chat.completion.chunk", &json!([choice]))
        };
        let mut chunks = vec![
            chunk(json!({ "role": "assistant", "content": "", "refusal": null }), Json::Null),
            chunk(json!({ "content": self.answered.text }), Json::Null),
            chunk(json!({}), "stop".into()),
        ];
        if usage {
            chunks.iter_mut().for_each(|chunk| chunk["usage"] = Json::Null);
            let mut last = self.head("chat.completion.chunk", &json!([]));
            last["usage"] = self.usage();
            chunks.push(last);
        }
        if let Some(last) = chunks.last_mut() {
            last["polity"] = self.run();
        }
        chunks
    }

    fn head(&self, object: &str, choices: &Json) -> Json {
        json!({
            "id": self.answered.id, "object": object, "created": self.created, "model": self.model, "choices": choices,
        })
    }

    /// The sum over the team's calls.
    fn usage(&self) -> Json {
        let Answered { tokens_in, tokens_out, .. } = self.answered;
        json!({
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in.saturating_add(*tokens_out),
        })
    }

    /// What the OpenAI format has no place for.
    fn run(&self) -> Json {
        let Answered { id, digest, calls, cost_usd, .. } = self.answered;
        json!({ "run": id, "digest": digest, "calls": calls, "cost_usd": cost_usd })
    }
}
