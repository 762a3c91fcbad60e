//! From what a server sent to what it means. Pure: every case can be tested without a server.
//!
//! An error is a [`Trouble`] or an [`Outcome`] of its own; no text of an error ever becomes a reply.

use super::wire::{Apart, Body, Called, EmbeddingBody, Logprobs, TokenLogprob, ToolCall, Usage};
use super::{Embeddings, LONGEST_ANSWER, stream};
use crate::models::reply::{mended, strict};
use crate::models::{Told, Trouble, Window, read_reply};
use polity_kernel::ask::{Outcome, Value, Want};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value as Json;
use std::time::SystemTime;

/// Letters of a server's words that a message quotes.
const QUOTED: usize = 300;
/// Letters that are kept of an answer that is too long to be kept.
const KEPT: usize = 4096;
/// The longest wait that is believed, in milliseconds: one hour.
const LONGEST_WAIT: f64 = 3_600_000.0;
/// The name under which a reply stands that is no object by itself; servers take only objects at the root of a schema.
pub(super) const ANSWER: &str = "answer";

/// What came back from a server.
#[derive(Clone, Debug)]
pub struct Received {
    /// Whom was asked, without secrets.
    pub url: String,
    /// For which model, as the server knows it.
    pub model: String,
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it was read.
    pub body: String,
    /// What is wrong with the body as a whole, if anything: it was too long, or no text.
    pub fault: Option<String>,
}

/// A completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The text; `None` if the server sent none.
    pub content: Option<String>,
    /// The words with which the model declined.
    pub refusal: Option<String>,
    /// Why it ended: `stop`, `length`, `tool_calls`, `content_filter`.
    pub finish_reason: Option<String>,
    /// The tools it called.
    pub tool_calls: Vec<ToolCall>,
    /// Log-probabilities of its tokens, if they were asked for.
    pub logprobs: Vec<TokenLogprob>,
    /// Tokens, if the server told them.
    pub usage: Option<Usage>,
}

/// Reads the answer to a request for a completion. Without trouble there is a completion, or the outcome that stands in its place
/// ([`Outcome::Refused`] or [`Outcome::Invalid`]).
pub fn read_completion(received: &Received) -> Result<Result<Completion, Outcome>, Trouble> {
    if !(200..300).contains(&received.status) {
        return refused_by_filter(received).map(Err);
    }
    let invalid = |why: String| Ok(Err(Outcome::Invalid { raw: received.body.clone(), why }));
    if let Some(why) = &received.fault {
        let kept = received.body.chars().take(KEPT).collect();
        return Ok(Err(Outcome::Invalid { raw: kept, why: why.clone() }));
    }
    if received.body.trim().is_empty() {
        return invalid("the server sent an empty body".into());
    }
    if is_web_page(received) {
        // No model wrote it: something in between did, for now or, at a wrong address, always.
        return Err(Trouble::Retry {
            why: format!(
                "{} sends a web page (HTML) in place of an answer: check that OPENAI_BASE_URL is the address of a model API, which \
                 usually ends in /v1",
                received.url
            ),
            after_ms: None,
            charged: true,
        });
    }
    if received.content_type().starts_with("text/event-stream") {
        return match stream::assemble(&received.body) {
            Ok(completion) => Ok(Ok(completion)),
            Err(stream::Broken::Cut) => Err(Trouble::Retry {
                why: format!("{}: the stream was cut before its end", received.url),
                after_ms: None,
                charged: true,
            }),
            Err(stream::Broken::Error(error)) => error_in_body(received, &error).map(Err),
            Err(stream::Broken::Unreadable(why)) => invalid(why),
        };
    }
    let body: Body = match serde_json::from_str(&received.body) {
        Ok(body) => body,
        Err(error) if error.is_data() => return invalid(format!("the body is no chat completion: {error}")),
        Err(error) => return invalid(format!("the body is no JSON: {error}")),
    };
    if !body.error.is_null() {
        return error_in_body(received, &body.error).map(Err);
    }
    let Some(choice) = body.choices.unwrap_or_default().into_iter().next() else {
        return invalid("the body has no `choices`".into());
    };
    let call = |call: super::wire::CallPiece| ToolCall {
        id: call.id.unwrap_or_default(),
        r#type: "function".into(),
        function: Called {
            name: call.function.name.unwrap_or_default(),
            arguments: call.function.arguments.unwrap_or_default(),
        },
    };
    Ok(Ok(Completion {
        content: choice.message.content,
        refusal: choice.message.refusal,
        finish_reason: choice.finish_reason,
        tool_calls: choice.message.tool_calls.unwrap_or_default().into_iter().map(call).collect(),
        logprobs: logprobs(choice.logprobs),
        usage: body.usage.0,
    }))
}

/// What a completion is to the one who asked. `body` is kept where there is no text.
#[must_use]
pub fn outcome(want: &Want, completion: &Completion, body: &str) -> Outcome {
    let content = completion.content.clone().unwrap_or_default();
    let invalid = |why: &str| {
        let raw = if content.is_empty() { body.to_owned() } else { content.clone() };
        Outcome::Invalid { raw, why: why.to_owned() }
    };
    if let Some(refusal) = completion.refusal.as_ref().filter(|words| !words.trim().is_empty()) {
        return Outcome::Refused { raw: refusal.clone() };
    }
    match completion.finish_reason.as_deref() {
        Some("length") => return invalid("the reply was cut off at the limit of tokens (finish_reason: length)"),
        Some("content_filter") => return Outcome::Refused { raw: content },
        _ => {}
    }
    if let Some(call) = completion.tool_calls.first() {
        return invalid(&format!("the model called the tool `{}`, which was not offered", call.function.name));
    }
    match &completion.content {
        None => invalid("the reply has no content (null)"),
        Some(content) if content.trim().is_empty() => invalid("the content of the reply is empty"),
        Some(content) => fit(want, content),
    }
}

/// What is asked of the server: an object, in which a choice or a number stands as [`ANSWER`].
pub(super) fn enveloped(want: &Want) -> Option<Want> {
    match want {
        Want::Choice(_) | Want::Number { .. } | Want::List { .. } => {
            Some(Want::Record(vec![(ANSWER.into(), want.clone())]))
        }
        Want::Text | Want::Record(_) => None,
    }
}

/// Reads the content: in its envelope, or bare, as servers send it that do not know `response_format`; as it came, or with its form
/// mended.
fn fit(want: &Want, content: &str) -> Outcome {
    let reply = |value, repaired| Outcome::Reply { value, raw: content.to_owned(), repaired };
    let inside = |value| match value {
        Value::Record(mut fields) => fields.pop(),
        _ => None,
    };
    let Some(envelope) = enveloped(want) else {
        return read_reply(want, content);
    };
    if let Ok(value) = strict(want, content) {
        return reply(value, false);
    }
    if let Some(value) = strict(&envelope, content).ok().and_then(inside) {
        return reply(value, false);
    }
    if let Some(value) = mended(&envelope, content).ok().and_then(inside) {
        return reply(value, true);
    }
    // What is wrong with it in the form that it seems to have.
    read_reply(if content.trim_start().starts_with('{') { &envelope } else { want }, content)
}

/// Reads the answer to a request for `count` embeddings.
pub(super) fn read_embeddings(received: &Received, count: usize) -> Result<Embeddings, Trouble> {
    if !(200..300).contains(&received.status) {
        return Err(trouble(received, received.status, &said(&received.body)));
    }
    let bad = |why: String| Trouble::Retry { why: format!("{}: {why}", received.url), after_ms: None, charged: true };
    if let Some(why) = &received.fault {
        return Err(bad(why.clone()));
    }
    let body: EmbeddingBody = serde_json::from_str(&received.body)
        .map_err(|error| bad(format!("the body holds no embeddings: {error}: {}", quoted(&received.body))))?;
    let mut vectors = vec![None; count];
    for embedding in body.data {
        if let Some(place) = vectors.get_mut(embedding.index) {
            *place = Some(embedding.embedding);
        }
    }
    let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    let vectors = vectors.ok_or_else(|| bad(format!("there are not embeddings for all {count} texts")))?;
    Ok(Embeddings { vectors, usage: body.usage.0.unwrap_or_default() })
}

pub(super) fn logprobs(logprobs: Apart<Logprobs>) -> Vec<TokenLogprob> {
    logprobs.0.and_then(|logprobs| logprobs.content).unwrap_or_default()
}

impl Received {
    /// What came: `body` as far as it was read.
    #[must_use]
    pub fn new(url: &str, model: &str, status: u16, headers: HeaderMap, body: Vec<u8>) -> Self {
        let mut fault = (body.len() > LONGEST_ANSWER).then(|| {
            let most = LONGEST_ANSWER / 1_000_000;
            format!("the answer is longer than {most} MB: it was cut off, and only its beginning is kept")
        });
        let body = String::from_utf8(body).unwrap_or_else(|error| {
            fault.get_or_insert_with(|| "the body is not text (UTF-8)".into());
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        Received { url: url.to_owned(), model: model.to_owned(), status, headers, body, fault }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn content_type(&self) -> &str {
        self.header(CONTENT_TYPE.as_str()).unwrap_or_default().trim()
    }
}

fn is_web_page(received: &Received) -> bool {
    let body = received.body.trim_start();
    let begins = |start: &str| body.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    begins("<!doctype html") || begins("<html") || received.content_type().starts_with("text/html")
}

/// What a server says of an error.
#[derive(Default)]
struct Said {
    message: String,
    /// Its code and its type, which are words of a fixed list.
    tokens: Vec<String>,
    /// A status in place of HTTP's, as gateways send it.
    status: Option<u16>,
}

impl Said {
    fn of(error: &Json) -> Self {
        let text = |name: &str| error.get(name).and_then(Json::as_str).map(str::to_owned);
        let message = match error {
            Json::String(message) => message.clone(),
            _ => text("message").unwrap_or_else(|| error.to_string()),
        };
        let status = error.get("code").and_then(Json::as_u64).and_then(|code| u16::try_from(code).ok());
        Said { message: quoted(&message), tokens: ["code", "type"].into_iter().filter_map(text).collect(), status }
    }

    fn is(&self, token: &str) -> bool {
        self.tokens.iter().any(|said| said == token)
    }
}

/// An error's body: `{"error": {...}}` as a rule, `{"error": "..."}`, `{"message": "..."}` or `{"detail": ...}` elsewhere, or any text.
fn said(body: &str) -> Said {
    let json: Json = serde_json::from_str(body).unwrap_or_default();
    match ["error", "detail"].into_iter().find_map(|name| json.get(name)) {
        Some(error) => Said::of(error),
        None if json.is_object() => Said::of(&json),
        None => Said { message: quoted(body), ..Said::default() },
    }
}

/// A filter in front of the model declines with an error's status; all other errors are trouble.
fn refused_by_filter(received: &Received) -> Result<Outcome, Trouble> {
    let said = said(&received.body);
    if said.is("content_filter") || said.is("content_policy_violation") {
        return Ok(Outcome::Refused { raw: said.message });
    }
    Err(trouble(received, received.status, &said))
}

/// Whether a server may have refused a request for its schema, and then whether it says so.
pub(super) fn refuses_schema(received: &Received) -> Option<bool> {
    if ![400, 422].contains(&received.status) || refused_by_filter(received).is_ok() {
        return None;
    }
    // All that it sent: which field holds the words differs, and so do the words.
    let said = received.body.to_lowercase();
    Some(["response_format", "json_schema", "schema"].iter().any(|name| said.contains(name)))
}

/// An error in the place of an answer, under a status that says all is well.
fn error_in_body(received: &Received, error: &Json) -> Result<Outcome, Trouble> {
    let said = Said::of(error);
    match said.status {
        Some(status) if (400..600).contains(&status) => Err(trouble(received, status, &said)),
        _ if said.is("insufficient_quota") || said.is("rate_limit_exceeded") => Err(trouble(received, 429, &said)),
        _ if said.is("server_error") => Err(trouble(received, 500, &said)),
        _ => Ok(Outcome::Invalid {
            raw: received.body.clone(),
            why: format!("the server sent an error in place of an answer: {}", said.message),
        }),
    }
}

fn trouble(received: &Received, status: u16, said: &Said) -> Trouble {
    let Received { url, model, .. } = received;
    let words = if said.message.is_empty() { String::new() } else { format!(": {}", said.message) };
    let fatal = |why: String| Trouble::Fatal { why };
    match status {
        429 if said.is("insufficient_quota") => fatal(format!(
            "the account has no quota left (insufficient_quota), and waiting does not help: add credit at the provider, or set \
             OPENAI_API_KEY to a key of another account. {url} says{words}"
        )),
        // An error under status 200 comes from behind something that had begun to answer.
        429 | 503 | 529 if !(200..300).contains(&received.status) => Trouble::Crowded {
            why: match status {
                429 => format!("{url} limits the rate (429){words}"),
                _ => format!("{url} has no room (status {status}){words}"),
            },
            after_ms: wait_ms(&received.headers, SystemTime::now()),
        },
        408 | 409 | 429 | 500..=599 => Trouble::Retry {
            why: match status {
                429 => format!("{url} limits the rate (429){words}"),
                _ => format!("{url} answers with status {status}{words}"),
            },
            after_ms: wait_ms(&received.headers, SystemTime::now()),
            // An error in the place of an answer comes from behind something that had begun to answer.
            charged: (200..300).contains(&received.status),
        },
        401 | 403 => fatal(format!(
            "{url} does not accept the key ({status}): check OPENAI_API_KEY, in the environment or in `.env`, and what that key may \
             do. It says{words}"
        )),
        404 if said.is("model_not_found") => fatal(format!(
            "{url} has no model `{model}` (404): check the name after `openai/`, and whether the key may use it. It says{words}"
        )),
        404 => fatal(format!(
            "{url} is not there (404), or has no model `{model}`: check OPENAI_BASE_URL, which usually ends in /v1, and the name after \
             `openai/`. It says{words}"
        )),
        300..=399 => fatal(format!(
            "{url} sends elsewhere (status {status}), where a key is not to follow: set OPENAI_BASE_URL to the address itself"
        )),
        400..=499 => Trouble::Never {
            why: format!("{url} refuses the request for the model `{model}` (status {status}){words}"),
        },
        _ => fatal(format!("{url} answers with status {status}, which is none that a model API has{words}")),
    }
}

/// What the server says of its limits.
pub(super) fn told(headers: &HeaderMap) -> Told {
    let number = |name: String| headers.get(name)?.to_str().ok()?.trim().parse().ok().filter(|x: &f64| *x >= 0.0);
    let window = |what: &str| {
        let limit = number(format!("x-ratelimit-limit-{what}")).filter(|limit| *limit > 0.0)?;
        Some(Window { limit, left: number(format!("x-ratelimit-remaining-{what}"))? })
    };
    Told { requests: window("requests"), tokens: window("tokens") }
}

/// How long a server asks to wait: Retry-After in its three forms, else when its limits are full again.
fn wait_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite());
    let after = text("retry-after-ms").and_then(number).or_else(|| {
        let after = text(RETRY_AFTER.as_str())?;
        number(after).map(|seconds| seconds * 1e3).or_else(|| {
            // A date that has passed: at once.
            let date = httpdate::parse_http_date(after).ok()?;
            Some(date.duration_since(now).map_or(0.0, |wait| wait.as_secs_f64() * 1e3))
        })
    });
    let reset = || {
        let of = |limit: &str| {
            let wait = duration_ms(text(&format!("x-ratelimit-reset-{limit}"))?)?;
            Some((text(&format!("x-ratelimit-remaining-{limit}")) == Some("0"), wait))
        };
        let limits = [of("requests"), of("tokens")];
        // The limit that is used up counts; where none says so, the longer wait.
        limits.into_iter().flatten().max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, wait)| wait)
    };
    after.or_else(reset).map(|wait| wait.clamp(0.0, LONGEST_WAIT).ceil() as u64)
}

/// `6m0s`, `1.5s`, `20ms`; a bare number is seconds.
fn duration_ms(text: &str) -> Option<f64> {
    let mut sum = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit = match unit {
            "ms" => 1.0,
            "s" | "" => 1e3,
            "m" => 6e4,
            "h" => 3.6e6,
            "d" => 8.64e7,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * unit;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

/// A server's words on one line; a web page is not quoted.
fn quoted(text: &str) -> String {
    if text.trim_start().starts_with('<') {
        return "a web page (HTML), so this may not be the address of a model API".into();
    }
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn waits_are_read_in_every_form() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 07:00:00 GMT").unwrap();
        let wait = |headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (reqwest::header::HeaderName::from_static(name), reqwest::header::HeaderValue::from_static(value))
            });
            wait_ms(&headers.collect(), now)
        };
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "2")]), Some(2_000));
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(250));
        assert_eq!(wait(&[("retry-after-ms", "17"), ("retry-after", "1")]), Some(17));
        assert_eq!(wait(&[("retry-after", "Sat, 21 Nov 2026 07:00:05 GMT")]), Some(5_000));
        assert_eq!(wait(&[("retry-after", "Sat, 21 Nov 2026 06:00:00 GMT")]), Some(0));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("retry-after", "-3")]), Some(0));
        assert_eq!(wait(&[("retry-after", "1e300")]), Some(3_600_000));
        assert_eq!(wait(&[("x-ratelimit-reset-requests", "6m0s")]), Some(360_000));
        let both = [("x-ratelimit-reset-requests", "20ms"), ("x-ratelimit-reset-tokens", "1m1.5s")];
        assert_eq!(wait(&both), Some(61_500));
        assert_eq!(wait(&[both[0], both[1], ("x-ratelimit-remaining-requests", "0")]), Some(20));
        assert_eq!(wait(&[("x-ratelimit-reset-tokens", "3x")]), None);
        assert_eq!(duration_ms("1..5s"), None);
    }
}
