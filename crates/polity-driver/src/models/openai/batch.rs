//! OpenAI's batches: lines are put there as a file, a batch is ordered of it, and results come as files. Its chat completions and its
//! responses share them. (<https://platform.openai.com/docs/api-reference/batch>)

use crate::models::batch::{BatchWire, LineResult, Lines, Standing, State};
use crate::models::remote::path;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// See the module.
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

/// The address of an endpoint as batches name it.
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
            // What was answered before it expired or was cancelled is there, and charged.
            "completed" | "expired" | "cancelled" => {
                let file = |name: &str| told[name].as_str().map(|id| path(["files", id, "content"]));
                State::Ended(["output_file_id", "error_file_id"].into_iter().filter_map(file).collect())
            }
            _ => State::Working,
        };
        Some(Standing {
            id: told["id"].as_str()?.to_owned(),
            // Batches of others have none.
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
                let why = line.error["message"].as_str().unwrap_or("no reason is told");
                LineResult::Lapsed(format!("a batch ended without an answer: {why}"))
            }
        };
        Some((line.custom_id, result))
    }
}
