//! Batches of OpenAI and Anthropic, in memory: files of lines, orders, and results after the configured delay. A line is answered like
//! the same single request, at half the cost. Answer faults apply to lines; connection faults do not.

use super::answer::{Finish, answer, hash};
use super::batch_store::{Api, Batch, Ending, Phase};
use super::fault::Fault;
use super::response::{failed, invalid, json_response, now_seconds, spoil};
use super::state::Shared;
use super::wires::{Anthropic, Failure, Head, OpenAi, Responses, Wire};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chrono::{DateTime, SecondsFormat};
use polity_store::clock::now_ms;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum bytes of a file, or of an order with its lines.
const LONGEST: usize = 300_000_000;
/// Cost of a line relative to a single request, as published by both.
const PART: f64 = 0.5;
/// Lines between checks for cancellation in a long batch.
const LOOK: usize = 100;

/// The routes of batches.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/files", post(upload))
        .route("/v1/files/{id}", get(file))
        .route("/v1/files/{id}/content", get(content))
        .route("/v1/batches", get(list).post(order))
        .route("/v1/batches/{id}", get(one))
        .route("/v1/batches/{id}/cancel", post(cancel))
        .route("/v1/messages/batches", get(list_messages).post(order_messages))
        .route("/v1/messages/batches/{id}", get(one_of_messages))
        .route("/v1/messages/batches/{id}/cancel", post(cancel_messages))
        .route("/v1/messages/batches/{id}/results", get(results_of_messages))
        .layer(DefaultBodyLimit::max(LONGEST))
}

fn nothing(api: Api, what: &str, id: &str) -> Response {
    let wire: &dyn Wire = if api == Api::OpenAi { &OpenAi } else { &Anthropic };
    failed(wire, Failure::NotFound, &format!("No {what} found with id '{id}'."))
}

// ------------------------------------------------------------------ files

/// The parts of a multipart form (RFC 7578), by name.
fn parts(headers: &HeaderMap, body: &Bytes) -> Option<BTreeMap<String, Bytes>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let border = kind.split_once("boundary=")?.1.trim_matches('"');
    let border = format!("\r\n--{border}");
    let find = |from: usize, what: &[u8]| {
        body.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| from + at)
    };
    let mut parts = BTreeMap::new();
    // The first border is not preceded by a line break.
    let mut at = border.len() - 2;
    while body.get(at..at + 2) == Some(b"\r\n") {
        let head_end = find(at, b"\r\n\r\n")?;
        let head = std::str::from_utf8(body.get(at..head_end)?).ok()?;
        let end = find(head_end + 2, border.as_bytes())?;
        let name = head.split("; name=\"").nth(1)?.split('"').next()?;
        parts.insert(name.to_owned(), body.slice((head_end + 4).min(end)..end));
        at = end + border.len();
    }
    Some(parts)
}

fn told_of_file(id: &str, purpose: &str, bytes: usize) -> Json {
    json!({
        "id": id, "object": "file", "bytes": bytes, "created_at": now_seconds(), "filename": format!("{id}.jsonl"),
        "purpose": purpose, "status": "processed",
    })
}

async fn upload(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let parts = parts(&headers, &body).unwrap_or_default();
    let (Some(file), Some(purpose)) = (parts.get("file"), parts.get("purpose")) else {
        return invalid(&OpenAi, "a file must be sent as a form with the parts `file` and `purpose`");
    };
    let purpose = String::from_utf8_lossy(purpose).into_owned();
    let mut store = shared.store();
    let id = format!("file-{:06}", store.files.len() + 1);
    let told = told_of_file(&id, &purpose, file.len());
    store.files.insert(id, (purpose, file.clone()));
    json_response(200, &told)
}

async fn file(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    match shared.store().files.get(&id) {
        Some((purpose, file)) => json_response(200, &told_of_file(&id, purpose, file.len())),
        None => nothing(Api::OpenAi, "file", &id),
    }
}

async fn content(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    match shared.store().files.get(&id) {
        Some((_, file)) => ([(header::CONTENT_TYPE, "application/octet-stream")], file.clone()).into_response(),
        None => nothing(Api::OpenAi, "file", &id),
    }
}

// ------------------------------------------------------------------ orders

/// A line: its name, and the request as sent.
type Line = (String, Box<RawValue>);

#[derive(Deserialize)]
struct OpenAiLine {
    custom_id: String,
    method: String,
    url: String,
    body: Box<RawValue>,
}

#[derive(Deserialize)]
struct MessageLine {
    custom_id: String,
    params: Box<RawValue>,
}

#[derive(Deserialize)]
struct Messages {
    requests: Vec<MessageLine>,
}

/// The lines of a file, all for this endpoint.
fn lines_of(file: &[u8], endpoint: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (n, line) in file.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let line: OpenAiLine = serde_json::from_slice(line)
            .map_err(|error| format!("line {}: it is not a valid request: {error}", n + 1))?;
        if line.method != "POST" || line.url != endpoint {
            return Err(format!("line {}: it is not a request for POST {endpoint}", n + 1));
        }
        lines.push((line.custom_id, line.body));
    }
    named_once(lines)
}

fn named_once(lines: Vec<Line>) -> Result<Vec<Line>, String> {
    let names: BTreeSet<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    match (lines.is_empty(), names.len() == lines.len()) {
        (true, _) => Err("there are no lines".into()),
        (_, false) => Err("a custom_id occurs twice".into()),
        _ => Ok(lines),
    }
}

async fn order(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let order: Json = serde_json::from_slice(&body).unwrap_or_default();
    let (file, endpoint) = (order["input_file_id"].as_str(), order["endpoint"].as_str());
    let (Some(file), Some(endpoint), Some("24h")) = (file, endpoint, order["completion_window"].as_str()) else {
        return invalid(
            &OpenAi,
            "a batch needs `input_file_id`, `endpoint` and `completion_window`, which must be `24h`",
        );
    };
    let wire: &'static dyn Wire = match endpoint {
        "/v1/chat/completions" => &OpenAi,
        "/v1/responses" => &Responses,
        _ => return invalid(&OpenAi, "`endpoint`: the mock server supports /v1/chat/completions and /v1/responses"),
    };
    let Some((_, lines)) = shared.store().files.get(file).cloned() else {
        return nothing(Api::OpenAi, "file", file);
    };
    // A provider checks the lines later and then fails the batch; here the error is immediate.
    match lines_of(&lines, endpoint) {
        Ok(lines) => begin(&shared, Api::OpenAi, wire, lines, order["metadata"].clone(), endpoint, file),
        Err(why) => invalid(&OpenAi, &why),
    }
}

async fn order_messages(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let fits = |name: &str| {
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let lines = serde_json::from_slice::<Messages>(&body).map_err(|error| format!("requests: {error}"));
    let lines = lines.map(|order| order.requests.into_iter().map(|line| (line.custom_id, line.params)).collect());
    match lines.and_then(named_once) {
        Ok(lines) if lines.iter().all(|(name, _)| fits(name)) => {
            begin(&shared, Api::Anthropic, &Anthropic, lines, Json::Null, "", "")
        }
        Ok(_) => invalid(&Anthropic, "requests: a custom_id must have 1 to 64 letters, digits, hyphens or underscores"),
        Err(why) => invalid(&Anthropic, &why),
    }
}

fn begin(
    shared: &Arc<Shared>,
    api: Api,
    wire: &'static dyn Wire,
    lines: Vec<Line>,
    metadata: Json,
    endpoint: &str,
    file: &str,
) -> Response {
    let mut store = shared.store();
    let number = store.batches.len() + 1;
    let id = format!("{}_{number:06}", if api == Api::OpenAi { "batch" } else { "msgbatch" });
    let batch = Batch {
        id: id.clone(),
        api,
        made_ms: now_ms(),
        ended_ms: 0,
        metadata,
        endpoint: endpoint.to_owned(),
        file: file.to_owned(),
        lines: lines.len(),
        results: Vec::new(),
        phase: Phase::Working,
    };
    let told = told(&batch);
    store.batches.push(batch);
    drop(store);
    let mut books = shared.books();
    books.stats.batches += 1;
    books.stats.lines += lines.len() as u64;
    let expires = books.stats.batches <= shared.options.batch_expires;
    // Calls and lines have separate counts and separate faults.
    let first = books.stats.lines - lines.len() as u64;
    drop(books);
    tokio::spawn(work(shared.clone(), id, api, wire, lines, first, expires));
    json_response(200, &told)
}

/// Answers the lines of a batch after its delay.
async fn work(
    shared: Arc<Shared>,
    id: String,
    api: Api,
    wire: &'static dyn Wire,
    lines: Vec<Line>,
    first: u64,
    expires: bool,
) {
    tokio::time::sleep(shared.options.batch_delay).await;
    let answered = if expires { lines.len() / 2 } else { lines.len() };
    let mut canceled = false;
    for (n, (name, body)) in lines.into_iter().enumerate() {
        if n.is_multiple_of(LOOK) {
            canceled = shared.store().batch(&id, api).is_none_or(|batch| batch.phase == Phase::Canceling);
        }
        let result = match (canceled, n < answered) {
            (true, _) => Ending::Canceled,
            (_, false) => Ending::Expired,
            _ => answered_line(&shared, wire, body.get().as_bytes(), first + n as u64).await,
        };
        if let Some(batch) = shared.store().batch(&id, api) {
            batch.results.push((name, result));
        }
    }
    let mut store = shared.store();
    let Some(batch) = store.batch(&id, api) else { return };
    (batch.phase, batch.ended_ms) = (Phase::Ended, now_ms());
    if api == Api::OpenAi {
        let of = |errors: bool| {
            let lines = batch.results.iter().filter(|(_, result)| matches!(result, Ending::Answered(_)) != errors);
            lines.map(|(name, result)| openai_line(&id, name, result)).collect::<String>()
        };
        let files = [(file_of(&id, "output"), of(false)), (file_of(&id, "error"), of(true))];
        let files = files.into_iter().filter(|(_, text)| !text.is_empty());
        store.files.extend(files.map(|(name, text)| (name, ("batch_output".into(), text.into()))));
    }
}

fn file_of(batch: &str, what: &str) -> String {
    format!("file-{what}-{batch}")
}

async fn answered_line(shared: &Shared, wire: &'static dyn Wire, body: &[u8], n: u64) -> Ending {
    let refused = |failure, message: &str| {
        let (status, body) = wire.error(failure, message);
        Ending::Refused(status, body)
    };
    let mut asked = match wire.asked("", body) {
        Ok(asked) if asked.stream => return refused(Failure::Invalid, "a batch cannot stream"),
        Ok(asked) => asked,
        Err(why) => return refused(Failure::Invalid, &why),
    };
    let fault = shared.options.faults.of(shared.options.seed, n);
    if let Some(fault) = fault {
        *shared.books().stats.faults.entry(fault.name()).or_default() += 1;
    }
    match fault {
        Some(Fault::RateLimit | Fault::RateLimitBare) => {
            return refused(Failure::Limit("requests", None), "Rate limit reached");
        }
        Some(Fault::Quota) => return refused(Failure::Quota, "You exceeded your current quota."),
        Some(Fault::Server) => {
            return refused(Failure::Server, "The server had an error while processing your request.");
        }
        Some(Fault::Key) => return refused(Failure::Key, "Incorrect API key provided."),
        Some(Fault::Model) => {
            return refused(Failure::Model, "The model does not exist or you do not have access to it.");
        }
        Some(Fault::NoSchema) if asked.in_form => return refused(Failure::Schema, ""),
        _ => {}
    }
    if let Some((failure, why)) = shared.not_offered(&asked) {
        return refused(failure, &why);
    }
    let (model, seed, key) = (shared.model_for(&asked.model), shared.options.seed, hash(body));
    let mut said = match answer(&shared.sim, &shared.forms, &model, seed, key, &mut asked) {
        Ok(said) => said,
        Err(why) => return refused(Failure::Invalid, &why),
    };
    shared.books().answer(key, said.usage.tokens_in, said.usage.tokens_out, PART * said.usage.cost_usd);
    let structured = said.finish == Finish::Tool || asked.in_form;
    spoil(&mut said, fault, structured);
    let (logprobs, include_usage) = (asked.logprobs, asked.include_usage);
    let head = Head { key, created: now_seconds(), model: asked.model.into_owned(), logprobs, include_usage };
    Ending::Answered(wire.whole(&head, &said))
}

// ------------------------------------------------------------------ shapes

fn openai_line(batch: &str, name: &str, result: &Ending) -> String {
    let head = format!(r#"{{"id":"batch_req_{batch}_{name}","custom_id":{},"#, json!(name));
    let response = |status: u16, body: &str| {
        format!(
            "{head}\"response\":{{\"status_code\":{status},\"request_id\":\"req_{name}\",\"body\":{body}}},\"error\":null}}\n"
        )
    };
    let none = |code: &str, message: &str| {
        format!("{head}\"response\":null,\"error\":{}}}\n", json!({"code": code, "message": message}))
    };
    match result {
        Ending::Answered(body) => response(200, body),
        Ending::Refused(status, body) => response(*status, &body.to_string()),
        Ending::Canceled => none("batch_cancelled", "This request was not executed because the batch was cancelled."),
        Ending::Expired => {
            none("batch_expired", "This request could not be executed before the completion window expired.")
        }
    }
}

fn message_line(name: &str, result: &Ending) -> String {
    let name = json!(name);
    let (kind, more) = match result {
        Ending::Answered(body) => ("succeeded", format!(",\"message\":{body}")),
        Ending::Refused(_, body) => ("errored", format!(",\"error\":{body}")),
        Ending::Canceled => ("canceled", String::new()),
        Ending::Expired => ("expired", String::new()),
    };
    format!("{{\"custom_id\":{name},\"result\":{{\"type\":\"{kind}\"{more}}}}}\n")
}

fn told(batch: &Batch) -> Json {
    let count = |of: fn(&Ending) -> bool| batch.results.iter().filter(|(_, result)| of(result)).count();
    let answered = count(|result| matches!(result, Ending::Answered(_)));
    let refused = count(|result| matches!(result, Ending::Refused(..)));
    let (canceled, expired) = (count(|r| matches!(r, Ending::Canceled)), count(|r| matches!(r, Ending::Expired)));
    let ended = batch.phase == Phase::Ended;
    const DAY: u64 = 86_400;
    match batch.api {
        Api::OpenAi => {
            let status = match batch.phase {
                Phase::Working if batch.results.is_empty() => "validating",
                Phase::Working => "in_progress",
                Phase::Canceling => "cancelling",
                Phase::Ended if expired > 0 => "expired",
                Phase::Ended if canceled > 0 => "cancelled",
                Phase::Ended => "completed",
            };
            let (made, at) = (batch.made_ms / 1000, batch.ended_ms / 1000);
            let at = |of: &str| (status == of).then_some(at);
            let file = |what: &str, any: bool| (ended && any).then(|| file_of(&batch.id, what));
            json!({
                "id": batch.id, "object": "batch", "endpoint": batch.endpoint, "errors": null, "input_file_id": batch.file,
                "completion_window": "24h", "status": status, "output_file_id": file("output", answered > 0),
                "error_file_id": file("error", answered < batch.lines), "created_at": made, "in_progress_at": made,
                "expires_at": made + DAY, "finalizing_at": null, "completed_at": at("completed"), "failed_at": null,
                "expired_at": at("expired"), "cancelling_at": null, "cancelled_at": at("cancelled"),
                "request_counts": {"total": batch.lines, "completed": answered, "failed": refused}, "metadata": batch.metadata,
            })
        }
        Api::Anthropic => {
            let date = |ms: u64| {
                let date = DateTime::from_timestamp_millis(ms as i64).unwrap_or_default();
                date.to_rfc3339_opts(SecondsFormat::Millis, true)
            };
            let status = match batch.phase {
                Phase::Working => "in_progress",
                Phase::Canceling => "canceling",
                Phase::Ended => "ended",
            };
            // Lines count as processing until all have ended.
            let now = |count: usize| if ended { count } else { 0 };
            json!({
                "id": batch.id, "type": "message_batch", "processing_status": status, "created_at": date(batch.made_ms),
                "expires_at": date(batch.made_ms + DAY * 1000), "ended_at": ended.then(|| date(batch.ended_ms)),
                "archived_at": null, "cancel_initiated_at": null,
                "request_counts": {
                    "processing": if ended { 0 } else { batch.lines }, "succeeded": now(answered), "errored": now(refused),
                    "canceled": now(canceled), "expired": now(expired),
                },
                "results_url": null,
            })
        }
    }
}

/// The same, with the address of the results.
fn told_of_messages(batch: &Batch, headers: &HeaderMap) -> Json {
    let mut told = told(batch);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1");
    if batch.phase == Phase::Ended {
        told["results_url"] = json!(format!("http://{host}/v1/messages/batches/{}/results", batch.id));
    }
    told
}

/// A page of batches, newest first.
fn page(shared: &Shared, api: Api, asked: &Uri, told: impl Fn(&Batch) -> Json) -> Json {
    // Parsed as a full address, since there is no parser for a query alone.
    let asked = url::Url::parse(&format!("http://here{asked}")).ok();
    let wanted = |names: &[&str]| {
        let mut pairs = asked.as_ref()?.query_pairs();
        pairs.find(|(name, _)| names.contains(&name.as_ref())).map(|(_, value)| value.into_owned())
    };
    let limit = wanted(&["limit"]).and_then(|limit| limit.parse().ok()).unwrap_or(20usize);
    let store = shared.store();
    let mut all = store.batches.iter().rev().filter(|batch| batch.api == api).peekable();
    if let Some(after) = wanted(&["after", "after_id"]) {
        all.by_ref().find(|batch| batch.id == after);
    }
    let data: Vec<Json> = all.by_ref().take(limit.clamp(1, 100)).map(told).collect();
    let id = |entry: Option<&Json>| entry.map(|entry| entry["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    json!({"object": "list", "has_more": all.peek().is_some(), "first_id": first, "last_id": last, "data": data})
}

async fn list(State(shared): State<Arc<Shared>>, asked: Uri) -> Response {
    json_response(200, &page(&shared, Api::OpenAi, &asked, told))
}

async fn list_messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, asked: Uri) -> Response {
    json_response(200, &page(&shared, Api::Anthropic, &asked, |batch| told_of_messages(batch, &headers)))
}

async fn one(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    match shared.store().batch(&id, Api::OpenAi) {
        Some(batch) => json_response(200, &told(batch)),
        None => nothing(Api::OpenAi, "batch", &id),
    }
}

async fn one_of_messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    match shared.store().batch(&id, Api::Anthropic) {
        Some(batch) => json_response(200, &told_of_messages(batch, &headers)),
        None => nothing(Api::Anthropic, "message batch", &id),
    }
}

fn canceling(batch: &mut Batch) {
    if batch.phase == Phase::Working {
        batch.phase = Phase::Canceling;
    }
}

async fn cancel(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    if let Some(batch) = shared.store().batch(&id, Api::OpenAi) {
        canceling(batch);
    }
    one(State(shared), Path(id)).await
}

async fn cancel_messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    if let Some(batch) = shared.store().batch(&id, Api::Anthropic) {
        canceling(batch);
    }
    one_of_messages(State(shared), headers, Path(id)).await
}

async fn results_of_messages(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let text = shared
        .store()
        .batch(&id, Api::Anthropic)
        .filter(|batch| batch.phase == Phase::Ended)
        .map(|batch| batch.results.iter().map(|(name, result)| message_line(name, result)).collect::<String>());
    match text {
        Some(text) => ([(header::CONTENT_TYPE, "application/x-jsonl")], text).into_response(),
        None => nothing(Api::Anthropic, "result of a message batch", &id),
    }
}
