//! Interprets a server's answer, as far as all wires agree. Pure: every case can be tested without a server.
//!
//! An error is a [`ProviderError`] or an [`Outcome`] of its own; an error text never becomes a reply.

use super::calls::{RawCall, native};
use super::form::fit;
use super::home::{Home, LONGEST_ANSWER};
use super::provider::{ProviderError, RateLimits, Window};
use chrono::DateTime;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use polity_kernel::ask::{Outcome, ResponseFormat, Usage};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::time::SystemTime;

/// Characters of a server message quoted in errors.
const QUOTED: usize = 300;
/// Characters kept of an overlong answer.
const KEPT: usize = 4096;
/// The longest accepted wait, in milliseconds: one hour.
const LONGEST_WAIT: f64 = 3_600_000.0;
/// Error codes for an account without credit: waiting does not help.
const NO_CREDIT: [&str; 2] = ["insufficient_quota", "billing_error"];
/// Error codes for a content filter, which refused.
const FILTERED: [&str; 2] = ["content_filter", "content_policy_violation"];
/// Error codes for an invalid key, if the status does not say so.
const WRONG_KEY: [&str; 1] = ["API_KEY_INVALID"];
/// Error codes for too many requests and for server errors, under a success status.
const LIMITED: [&str; 3] = ["rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"];
const BROKEN: [&str; 5] = ["server_error", "api_error", "overloaded_error", "INTERNAL", "UNAVAILABLE"];
/// Parameter names that servers mention when they reject the form of a reply.
const FORM_WORDS: [&str; 11] = [
    "tools",
    "response_format",
    "schema",
    "output_config",
    "output_format",
    "text.format",
    "json mode",
    "invalid format",
    "structured_outputs",
    "grammar",
    "logprobs",
];

/// A server's answer.
#[derive(Clone, Debug)]
pub struct Received {
    /// The address, without secrets.
    pub url: String,
    /// The model, by the server's name.
    pub model: String,
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it was read.
    pub body: String,
    /// What is wrong with the whole body, if anything: too long, or not text.
    pub fault: Option<String>,
}

/// A model's reply, independent of the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The text; `None` if the server sent none.
    pub text: Option<String>,
    /// How it ended.
    pub end: End,
    /// Tokens, if the server reported them.
    pub usage: Option<Usage>,
    /// The likeliest alternatives of the first token, with natural log-probabilities, if requested.
    pub alternatives: Vec<(String, f64)>,
    /// Calls of tools, in order.
    pub calls: Vec<RawCall>,
    /// What the model thought, if the server shows it. It is no part of the reply.
    pub reasoning: Option<String>,
}

/// How a reply ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    /// Normally, as far as the server reports.
    #[default]
    Whole,
    /// At the token limit; with the server's word for it.
    Cut(String),
    /// The model or a filter refused; with the refusal message, if any.
    Refused(Option<String>),
    /// Otherwise, without a valid reply; holds the reason.
    Broken(String),
}

/// Why there is no reply: an outcome of its own, or no exchange at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The outcome in place of a reply: [`Outcome::Refused`] or [`Outcome::Invalid`].
    Outcome(Outcome),
    /// No exchange took place.
    ProviderError(ProviderError),
}

impl From<ProviderError> for Ended {
    fn from(trouble: ProviderError) -> Self {
        Ended::ProviderError(trouble)
    }
}

impl Told {
    /// Whether the model said something, complete or not.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.end, End::Whole | End::Cut(_))
    }

    /// Takes what a model thinks out of its text, where servers of open models leave it: up to `</think>`. The templates of some models
    /// open the thoughts themselves, so the text may begin in their middle.
    pub(super) fn without_thoughts(mut self) -> Self {
        if let Some((thoughts, text)) = self.text.as_deref().and_then(|text| text.split_once("</think>")) {
            let thoughts = thoughts.trim();
            let thoughts = thoughts.strip_prefix("<think>").unwrap_or(thoughts).trim();
            if !thoughts.is_empty() {
                self.reasoning.get_or_insert_with(|| thoughts.to_owned());
            }
            self.text = Some(text.trim_start().to_owned());
        }
        self
    }

    /// The outcome for the caller. `body` is kept if there is no text.
    #[must_use]
    pub fn outcome(&self, response_format: &ResponseFormat, body: &str) -> Outcome {
        let text = self.text.clone().unwrap_or_default();
        let invalid = |why: String| {
            let raw = if text.is_empty() { body.to_owned() } else { text.clone() };
            Outcome::Invalid { raw, why }
        };
        match &self.end {
            End::Refused(words) => return Outcome::Refused { raw: words.clone().unwrap_or(text) },
            End::Cut(words) => return invalid(format!("the reply was cut off at the limit of tokens ({words})")),
            End::Broken(why) => return invalid(why.clone()),
            End::Whole => {}
        }
        match (response_format, self.calls.first()) {
            (_, None) => {}
            (ResponseFormat::Calls(tools), Some(_)) => return native(tools, &text, &self.calls),
            (_, Some(call)) => {
                return invalid(format!("the model called the tool `{}`, which was not offered", call.name));
            }
        }
        match &self.text {
            None => invalid("the reply has no content (null)".into()),
            Some(text) if text.trim().is_empty() => invalid("the content of the reply is empty".into()),
            Some(text) => fit(response_format, text),
        }
    }
}

/// Parsed separately, so that unreadable token counts do not discard the answer.
#[derive(Debug)]
pub(super) struct Apart<T>(pub Option<T>);

impl<T> Default for Apart<T> {
    fn default() -> Self {
        Apart(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Apart<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Apart(serde_json::from_str(raw.get()).ok()))
    }
}

/// The content encoding of a body, if any: only `identity` is requested.
pub(super) fn encoding(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(CONTENT_ENCODING)?;
    let encoding = String::from_utf8_lossy(encoding.as_bytes()).trim().to_ascii_lowercase();
    (!encoding.is_empty() && encoding != "identity").then_some(encoding)
}

/// The error for an encoded body.
pub(super) fn not_asked_for(encoding: &str) -> String {
    format!(
        "sent a body encoded as {encoding}, which was not asked for: turn compression off there, or in the proxy in between"
    )
}

impl Received {
    /// An answer with its `body` as far as it was read.
    #[must_use]
    pub fn new(url: &str, model: &str, status: u16, headers: HeaderMap, mut body: Vec<u8>) -> Self {
        if let Some(encoding) = encoding(&headers) {
            body = format!("a body encoded as {encoding}").into_bytes();
        }
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

    /// Whether the status is a success.
    pub(super) fn is_answer(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it is a stream (server-sent events).
    pub(super) fn is_stream(&self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    /// The server's reported rate limits, from OpenAI's or Anthropic's headers.
    pub(super) fn limits(&self) -> Option<RateLimits> {
        // Most servers report none.
        if !self.headers.keys().any(|name| name.as_str().contains("-ratelimit-")) {
            return None;
        }
        let number = |name: String| {
            let text = self.headers.get(name)?.to_str().ok()?;
            text.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0)
        };
        let window = |what: &str| {
            let [limit, left] = ["limit", "remaining"].map(|of| {
                number(format!("x-ratelimit-{of}-{what}"))
                    .or_else(|| number(format!("anthropic-ratelimit-{what}-{of}")))
            });
            Some(Window { limit: limit.filter(|limit| *limit > 0.0)?, left: left? })
        };
        let limits = RateLimits { requests: window("requests"), tokens: window("tokens") };
        (limits != RateLimits::default()).then_some(limits)
    }

    /// How long the server asks to wait before the next call, in milliseconds.
    pub(super) fn asks_to_wait(&self) -> Option<u64> {
        retry_after(&self.headers, SystemTime::now()).map(believed)
    }

    fn content_type(&self) -> &str {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.unwrap_or_default().trim()
    }

    fn is_web_page(&self) -> bool {
        let body = self.body.trim_start();
        let begins = |start: &str| body.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
        begins("<!doctype html") || begins("<html") || self.content_type().starts_with("text/html")
    }

    /// The server's error message, for people.
    pub(super) fn said(&self) -> String {
        Complaint::in_body(&self.body).message
    }

    /// Checks that the body is a complete answer, as far as possible without parsing it.
    pub(super) fn whole(&self, home: &Home) -> Result<(), Ended> {
        if !self.is_answer() {
            return Err(self.refused(home));
        }
        if let Some(encoding) = encoding(&self.headers) {
            return Err(self.broken(not_asked_for(&encoding)));
        }
        if let Some(why) = &self.fault {
            let raw = self.body.chars().take(KEPT).collect();
            return Err(Ended::Outcome(Outcome::Invalid { raw, why: why.clone() }));
        }
        if self.body.trim().is_empty() {
            return Err(self.broken("sent an empty body".into()));
        }
        if self.is_web_page() {
            // Not from a model but from something in between, either temporarily or, at a wrong address, always.
            return Err(self.broken(format!(
                "sends a web page (HTML) in place of an answer: check that {} is the address of a model API{}",
                home.base_variable,
                home.usual_end()
            )));
        }
        Ok(())
    }

    /// Parses the body of a complete answer; `what` names it. Any `error` in bodies is handled by [`Received::error_in_body`].
    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self, what: &str) -> Result<T, Ended> {
        serde_json::from_str(&self.body).map_err(|error| match error.is_data() {
            // A truncated body is not an answer.
            _ if error.is_eof() => self.broken(format!("sent a body that was cut off: {error}")),
            true => self.invalid(format!("the body is no {what}: {error}")),
            false => self.invalid(format!("the body is no JSON: {error}")),
        })
    }

    /// An answer that is not a valid reply.
    pub(super) fn invalid(&self, why: String) -> Ended {
        Ended::Outcome(Outcome::Invalid { raw: self.body.clone(), why })
    }

    /// An answer that was damaged on the way: a retry may help.
    pub(super) fn broken(&self, why: String) -> Ended {
        Ended::ProviderError(ProviderError::Retry { why: format!("{} {why}", self.url), after_ms: None, charged: true })
    }

    /// A content filter refuses with an error status; all other errors are provider errors.
    fn refused(&self, home: &Home) -> Ended {
        let said = Complaint::in_body(&self.body);
        match said.is_any(&FILTERED) {
            true => Ended::Outcome(Outcome::Refused { raw: said.message }),
            false => Ended::ProviderError(self.trouble(home, self.status, &said)),
        }
    }

    /// The provider error of an answer with an error status.
    pub(super) fn error(&self, home: &Home) -> ProviderError {
        self.trouble(home, self.status, &Complaint::in_body(&self.body))
    }

    /// Whether a server may have rejected the form of the reply, and if so, whether it says so.
    pub(super) fn refuses_form(&self, home: &Home) -> Option<bool> {
        let may = [400, 422].contains(&self.status)
            && matches!(self.refused(home), Ended::ProviderError(ProviderError::Never { .. }));
        // Search the whole body: fields and wording differ between servers.
        let said = || self.body.to_lowercase();
        may.then(|| FORM_WORDS.iter().any(|word| said().contains(word)))
    }

    /// An error instead of an answer, under a success status; null means none.
    pub(super) fn error_in_body(&self, home: &Home, error: &Json) -> Result<(), Ended> {
        if error.is_null() {
            return Ok(());
        }
        let said = Complaint::of(error);
        Err(match said.status {
            Some(status) if (400..600).contains(&status) => self.trouble(home, status, &said).into(),
            _ if said.is_any(&LIMITED) || said.is_any(&NO_CREDIT) => self.trouble(home, 429, &said).into(),
            _ if said.is_any(&BROKEN) => self.trouble(home, 500, &said).into(),
            _ => self.invalid(format!("the server sent an error in place of an answer: {}", said.message)),
        })
    }

    fn trouble(&self, home: &Home, status: u16, said: &Complaint) -> ProviderError {
        let Received { url, model, .. } = self;
        let Home { name, base_variable, .. } = home;
        let key = home.key_variable();
        let words = if said.message.is_empty() { String::new() } else { format!(": {}", said.message) };
        let fatal = |why: String| ProviderError::Fatal { why };
        match status {
            402 | 400 | 429 if status == 402 || said.is_any(&NO_CREDIT) => {
                let token = said.tokens.iter().find(|token| NO_CREDIT.contains(&token.as_str()));
                let token = token.map_or_else(|| status.to_string(), Clone::clone);
                fatal(format!(
                    "the account has no quota left ({token}), and waiting does not help: add credit at the provider, or set \
                     {key} to a key of another account. {url} says{words}"
                ))
            }
            400 if said.is("FAILED_PRECONDITION") => fatal(format!(
                "{url} does not serve the account of this key in its present state (FAILED_PRECONDITION): check its \
                 billing and the region that requests come from, or set {key} to a key of another account. It \
                 says{words}"
            )),
            401 | 403 => self.wrong_key(home, status, &words),
            400 if said.is_any(&WRONG_KEY) => self.wrong_key(home, status, &words),
            // An error under status 200 comes from a server that had started to answer.
            429 | 503 | 529 if !self.is_answer() => ProviderError::RateLimited {
                why: match status {
                    429 => format!("{url} limits the rate (429){words}"),
                    _ => format!("{url} has no capacity (status {status}){words}"),
                },
                after_ms: wait_ms(&self.headers, said.wait_ms, SystemTime::now()),
            },
            408 | 409 | 429 | 500..=599 => ProviderError::Retry {
                why: match status {
                    429 => format!("{url} limits the rate (429){words}"),
                    _ => format!("{url} answers with status {status}{words}"),
                },
                after_ms: wait_ms(&self.headers, said.wait_ms, SystemTime::now()),
                // An error instead of an answer comes from a server that had started to answer.
                charged: self.is_answer(),
            },
            404 if said.is("model_not_found") => fatal(format!(
                "{url} has no model `{model}` (404): check the name after `{name}/`, and whether the key may use it. It says{words}"
            )),
            404 => fatal(format!(
                "{url} does not exist (404), or has no model `{model}`: check {base_variable}{}, and the name after \
                 `{name}/`. It says{words}",
                home.usual_end()
            )),
            300..=399 => fatal(format!(
                "{url} redirects (status {status}), which a key must not follow: set {base_variable} to the final \
                 address"
            )),
            400..=499 => ProviderError::Never {
                why: format!("{url} refuses the request for the model `{model}` (status {status}){words}"),
            },
            _ => fatal(format!("{url} answers with status {status}, which no model API uses{words}")),
        }
    }

    fn wrong_key(&self, home: &Home, status: u16, words: &str) -> ProviderError {
        ProviderError::Fatal {
            why: format!(
                "{} does not accept the key ({status}): check {}, in the environment or in `.env`, and the permissions \
                 of that key. It says{words}",
                self.url,
                home.key_variable()
            ),
        }
    }
}

/// The details of a server's error.
#[derive(Default)]
struct Complaint {
    message: String,
    /// Its code, type, status and reasons, which are from fixed lists.
    tokens: Vec<String>,
    /// A status that replaces HTTP's, as gateways send it.
    status: Option<u16>,
    /// How long it asks to wait, in milliseconds (Google's `RetryInfo`).
    wait_ms: Option<f64>,
}

impl Complaint {
    fn of(error: &Json) -> Self {
        let text = |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        let message = match error {
            Json::String(message) => message.clone(),
            _ => text(error, "message").unwrap_or_else(|| error.to_string()),
        };
        let status = error.get("code").and_then(Json::as_u64).and_then(|code| u16::try_from(code).ok());
        let details = || error.get("details").and_then(Json::as_array).into_iter().flatten();
        let mut tokens: Vec<String> = ["code", "type", "status"].iter().filter_map(|name| text(error, name)).collect();
        tokens.extend(details().filter_map(|detail| text(detail, "reason")));
        let wait_ms = details().find_map(|detail| duration_ms(detail.get("retryDelay")?.as_str()?));
        Complaint { message: quoted(&message), tokens, status, wait_ms }
    }

    /// Parses an error body: usually `{"error": {...}}`, also `{"error": "..."}`, `{"message": "..."}`, `{"detail": ...}`, or any text.
    fn in_body(body: &str) -> Self {
        let json: Json = serde_json::from_str(body).unwrap_or_default();
        match ["error", "detail"].into_iter().find_map(|name| json.get(name)) {
            Some(error) => Complaint::of(error),
            None if json.is_object() => Complaint::of(&json),
            None => Complaint { message: quoted(body), ..Complaint::default() },
        }
    }

    fn is(&self, token: &str) -> bool {
        self.tokens.iter().any(|said| said == token)
    }

    fn is_any(&self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| self.is(token))
    }
}

/// How long a server asks to wait: by Retry-After, else by its body, else until its limits are reset.
fn wait_ms(headers: &HeaderMap, in_body: Option<f64>, now: SystemTime) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let until = |date| until(date, now);
    let reset = || {
        let openai = ["requests", "tokens"].map(|limit| {
            let wait = duration_ms(text(&format!("x-ratelimit-reset-{limit}"))?)?;
            Some((text(&format!("x-ratelimit-remaining-{limit}")) == Some("0"), wait))
        });
        let anthropic = ["requests", "tokens", "input-tokens", "output-tokens"].map(|limit| {
            let date = DateTime::parse_from_rfc3339(text(&format!("anthropic-ratelimit-{limit}-reset"))?).ok()?;
            let empty = text(&format!("anthropic-ratelimit-{limit}-remaining")) == Some("0");
            Some((empty, until(date.into())))
        });
        let limits = openai.into_iter().chain(anthropic);
        // The exhausted limit counts; if none is marked, the longer wait.
        limits.flatten().max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, wait)| wait)
    };
    retry_after(headers, now).or(in_body).or_else(reset).map(believed)
}

fn believed(wait_ms: f64) -> u64 {
    wait_ms.clamp(0.0, LONGEST_WAIT).ceil() as u64
}

/// The time until a date, in milliseconds; none if it has passed.
fn until(date: SystemTime, now: SystemTime) -> f64 {
    date.duration_since(now).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
}

/// Retry-After in its three forms, in milliseconds.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<f64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite());
    text("retry-after-ms").and_then(number).or_else(|| {
        let after = text(RETRY_AFTER.as_str())?;
        number(after)
            .map(|seconds| seconds * 1e3)
            .or_else(|| httpdate::parse_http_date(after).ok().map(|date| until(date, now)))
    })
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

/// A server's message on one line; web pages are not quoted.
pub(super) fn quoted(text: &str) -> String {
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
                (http::header::HeaderName::from_static(name), http::header::HeaderValue::from_static(value))
            });
            wait_ms(&headers.collect(), None, now)
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
        let input = ("anthropic-ratelimit-input-tokens-reset", "2026-11-21T07:00:09Z");
        let requests = ("anthropic-ratelimit-requests-reset", "2026-11-21T07:00:02.5Z");
        assert_eq!(wait(&[input, requests]), Some(9_000));
        assert_eq!(wait(&[input, requests, ("anthropic-ratelimit-requests-remaining", "0")]), Some(2_500));
        assert_eq!(wait_ms(&HeaderMap::new(), Some(17_300.0), now), Some(17_300));
        assert_eq!(duration_ms("1..5s"), None);
    }
}
