//! Anthropic's message batches: lines are part of the order, and results are one file.
//! (<https://platform.claude.com/docs/en/api/messages/batches>)

use crate::models::provider::{Standing, State};
use crate::models::wire::{BatchWire, LineResult, Lines, path};
use chrono::DateTime;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// See the module docs.
pub struct MessageBatches;

/// A line of results.
#[derive(Deserialize)]
struct Line<'a> {
    custom_id: String,
    #[serde(borrow)]
    result: Outcome<'a>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    r#type: String,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The status that an error would have for a single request.
/// (<https://platform.claude.com/docs/en/api/errors>)
fn status(error: &Json) -> u16 {
    // The error's body contains the error.
    match error["error"]["type"].as_str().or_else(|| error["type"].as_str()).unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

impl BatchWire for MessageBatches {
    fn holds(&self) -> (usize, usize) {
        (100_000, 256_000_000)
    }

    fn line(&self, name: &str, _: &[String], body: &RawValue) -> String {
        format!(r#"{{"custom_id":{},"params":{}}}"#, json!(name), body.get())
    }

    fn files(&self) -> Option<Vec<String>> {
        None
    }

    fn home(&self) -> Vec<String> {
        path(["v1", "messages", "batches"])
    }

    fn order(&self, _: &str, _: &[String], lines: &Lines<'_>) -> String {
        match lines {
            Lines::Here(lines) => format!(r#"{{"requests":[{}]}}"#, lines.join(",")),
            Lines::File(_) => String::new(),
        }
    }

    fn standing(&self, told: &Json) -> Option<Standing> {
        let id = told["id"].as_str()?;
        let count = |name: &str| told["request_counts"][name].as_u64().unwrap_or(0) as usize;
        let ended: usize = ["succeeded", "errored", "canceled", "expired"].map(count).iter().sum();
        let state = match told["processing_status"].as_str()? {
            // This equals its `results_url`; a key must follow no other address.
            "ended" => State::Ended(vec![path(["v1", "messages", "batches", id, "results"])]),
            _ => State::Working,
        };
        let made = told["created_at"].as_str().and_then(|date| DateTime::parse_from_rfc3339(date).ok());
        Some(Standing {
            id: id.to_owned(),
            name: None,
            lines: ended + count("processing"),
            ended,
            made_ms: made.map_or(0, |date| date.timestamp_millis().max(0) as u64),
            after_ms: None,
            state,
        })
    }

    fn after(&self) -> &'static str {
        "after_id"
    }

    fn result(&self, line: &str) -> Option<(String, LineResult)> {
        let Line { custom_id, result } = serde_json::from_str(line).ok()?;
        let result = match (result.message, result.error) {
            (Some(message), _) => LineResult::Answer(200, message.get().to_owned()),
            (None, Some(error)) => {
                let json: Json = serde_json::from_str(error.get()).unwrap_or_default();
                LineResult::Answer(status(&json), error.get().to_owned())
            }
            (None, None) => {
                LineResult::Lapsed(format!("the batch ended without an answer to this request ({})", result.r#type))
            }
        };
        Some((custom_id, result))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_the_provider_documents_is_read() {
        let batch = |status: &str, processing: u64| {
            json!({
                "id": "msgbatch_01HkcTjaV5", "type": "message_batch", "processing_status": status,
                "request_counts": {"processing": processing, "succeeded": 50, "errored": 30, "canceled": 10, "expired": 10},
                "created_at": "2024-09-24T18:37:24.100435Z", "results_url": "https://elsewhere.example/results",
            })
        };
        let working = MessageBatches.standing(&batch("in_progress", 7)).unwrap();
        assert_eq!((working.lines, working.ended, working.name, working.state), (107, 100, None, State::Working));
        let ended = MessageBatches.standing(&batch("ended", 0)).unwrap();
        let results = path(["v1", "messages", "batches", "msgbatch_01HkcTjaV5", "results"]);
        assert_eq!((ended.made_ms, ended.state), (1_727_203_044_100, State::Ended(vec![results])));
        let answered = r#"{"custom_id": "a-1", "result": {"type": "succeeded", "message": {"id": "msg_1"}}}"#;
        let Some((name, LineResult::Answer(200, body))) = MessageBatches.result(answered) else { panic!("{answered}") };
        assert_eq!((name.as_str(), body.as_str()), ("a-1", r#"{"id": "msg_1"}"#));
        let errored = r#"{"custom_id": "a-2", "result": {"type": "errored", "error": {"type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"}}}}"#;
        assert!(matches!(MessageBatches.result(errored), Some((_, LineResult::Answer(529, _)))));
        for kind in ["expired", "canceled"] {
            let line = json!({"custom_id": "a-3", "result": {"type": kind}}).to_string();
            assert!(matches!(MessageBatches.result(&line), Some((_, LineResult::Lapsed(why))) if why.contains(kind)));
        }
    }
}
