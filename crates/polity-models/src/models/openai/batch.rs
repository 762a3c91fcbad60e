//! OpenAI's batches: lines are uploaded as a file, a batch is created from it, and results are files. Chat completions and responses
//! share them. (<https://platform.openai.com/docs/api-reference/batch>)

use crate::models::provider::{Standing, State};
use crate::models::wire::{BatchWire, LineResult, Lines, path};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// See the module docs.
pub struct Jobs;

/// A line of results.
#[derive(Deserialize)]
struct Line<'a> {
    custom_id: String,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    #[serde(default)]
    error: Json,
}

#[derive(Deserialize)]
struct Response<'a> {
    status_code: u16,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// The name of an endpoint in batches.
fn endpoint(path: &[String]) -> String {
    format!("/v1/{}", path.join("/"))
}

impl BatchWire for Jobs {
    fn holds(&self) -> (usize, usize) {
        (50_000, 200_000_000)
    }

    fn line(&self, name: &str, path: &[String], body: &RawValue) -> String {
        let (name, url) = (json!(name), json!(endpoint(path)));
        format!(r#"{{"custom_id":{name},"method":"POST","url":{url},"body":{}}}"#, body.get())
    }

    fn files(&self) -> Option<Vec<String>> {
        Some(path(["files"]))
    }

    fn home(&self) -> Vec<String> {
        path(["batches"])
    }

    fn order(&self, name: &str, path: &[String], lines: &Lines<'_>) -> String {
        let file = match lines {
            Lines::File(file) => *file,
            Lines::Here(_) => "",
        };
        json!({
            "input_file_id": file, "endpoint": endpoint(path), "completion_window": "24h", "metadata": {"polity": name},
        })
        .to_string()
    }

    fn standing(&self, told: &Json) -> Option<Standing> {
        let count = |name: &str| told["request_counts"][name].as_u64().unwrap_or(0) as usize;
        let state = match told["status"].as_str()? {
            "failed" => {
                let errors = || told["errors"]["data"].as_array().into_iter().flatten();
                let words: Vec<&str> = errors().filter_map(|error| error["message"].as_str()).take(3).collect();
                let crowded = errors().any(|error| error["code"] == "token_limit_exceeded");
                State::Failed { why: words.join("; "), crowded }
            }
            // Lines answered before it expired or was cancelled are available, and charged.
            "completed" | "expired" | "cancelled" => {
                let file = |name: &str| told[name].as_str().map(|id| path(["files", id, "content"]));
                State::Ended(["output_file_id", "error_file_id"].into_iter().filter_map(file).collect())
            }
            _ => State::Working,
        };
        Some(Standing {
            id: told["id"].as_str()?.to_owned(),
            // Other users' batches have none.
            name: Some(told["metadata"]["polity"].as_str().unwrap_or_default().to_owned()),
            lines: count("total"),
            ended: count("completed") + count("failed"),
            made_ms: told["created_at"].as_u64().unwrap_or(0) * 1000,
            after_ms: None,
            state,
        })
    }

    fn after(&self) -> &'static str {
        "after"
    }

    fn result(&self, line: &str) -> Option<(String, LineResult)> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        let result = match line.response {
            Some(Response { status_code, body }) => LineResult::Answer(status_code, body.get().to_owned()),
            None => {
                let why = line.error["message"].as_str().unwrap_or("no reason is given");
                LineResult::Lapsed(format!("the batch ended without an answer to this request: {why}"))
            }
        };
        Some((line.custom_id, result))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_the_provider_documents_is_read() {
        let batch = |status: &str| {
            json!({
                "id": "batch_abc123", "object": "batch", "status": status, "output_file_id": "file-cvaTdG",
                "error_file_id": "file-HOWS94", "created_at": 1711471533, "metadata": {"polity": "000001-ab"},
                "request_counts": {"total": 100, "completed": 95, "failed": 5},
            })
        };
        let content = |id: &str| path(["files", id, "content"]);
        for (status, ended) in [("completed", true), ("expired", true), ("cancelled", true), ("finalizing", false)] {
            let standing = Jobs.standing(&batch(status)).unwrap();
            assert_eq!((standing.lines, standing.ended, standing.made_ms), (100, 100, 1_711_471_533_000));
            assert_eq!((standing.id.as_str(), standing.name.as_deref()), ("batch_abc123", Some("000001-ab")));
            let files = State::Ended(vec![content("file-cvaTdG"), content("file-HOWS94")]);
            assert_eq!(standing.state, if ended { files } else { State::Working });
        }
        let failed = json!({
            "id": "batch_1", "status": "failed", "errors": {"data": [
                {"code": "token_limit_exceeded", "message": "Enqueued token limit reached for gpt-4o in organization.", "line": null},
            ]},
        });
        let why = "Enqueued token limit reached for gpt-4o in organization.".to_owned();
        assert_eq!(Jobs.standing(&failed).unwrap().state, State::Failed { why, crowded: true });
        assert!(Jobs.standing(&json!({"error": {"message": "no"}})).is_none());
        let answered = r#"{"id": "batch_req_1", "custom_id": "a-1", "response": {"status_code": 200, "request_id": "r",
            "body": {"id": "chatcmpl-1", "choices": []}}, "error": null}"#;
        let Some((name, LineResult::Answer(200, body))) = Jobs.result(answered) else { panic!("{answered}") };
        assert_eq!((name.as_str(), body.as_str()), ("a-1", r#"{"id": "chatcmpl-1", "choices": []}"#));
        let expired = r#"{"id": "batch_req_1", "custom_id": "a-2", "response": null, "error": {"code": "batch_expired",
            "message": "This request could not be executed before the completion window expired."}}"#;
        assert!(
            matches!(Jobs.result(expired), Some((_, LineResult::Lapsed(why))) if why.contains("completion window"))
        );
        assert!(Jobs.result("half a li").is_none());
    }

    #[test]
    fn a_line_holds_the_request_as_it_is_sent_alone() {
        let body = RawValue::from_string(r#"{"model":"m", "x":1.50}"#.into()).unwrap();
        let line = Jobs.line("a-1", &path(["chat", "completions"]), &body);
        assert!(line.contains(body.get()) && !line.contains('\n'));
        let json: Json = serde_json::from_str(&line).unwrap();
        assert_eq!((&json["url"], &json["method"]), (&json!("/v1/chat/completions"), &json!("POST")));
    }
}
