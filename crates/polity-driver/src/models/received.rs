//! From what a server sent to what it means, as far as it is the same on every wire. Pure: every case can be tested without a server.
//!
//! An error is a [`Trouble`] or an [`Outcome`] of its own; no text of an error ever becomes a reply.

use super::form::fit;
use super::line::{Home, LONGEST_ANSWER};
use super::{RateLimits, Trouble, Window};
use chrono::DateTime;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use polity_kernel::ask::{Outcome, Usage, Want};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::time::SystemTime;

/// Letters of a server's words that a message quotes.
const QUOTED: usize = 300;
/// Letters that are kept of an answer that is too long to be kept.
const KEPT: usize = 4096;
/// The longest wait that is believed, in milliseconds: one hour.
const LONGEST_WAIT: f64 = 3_600_000.0;
/// Words of servers for an account that can not pay: waiting does not help.
const NO_CREDIT: [&str; 2] = ["insufficient_quota", "billing_error"];
/// Words for a filter in front of the model, which declined.
const FILTERED: [&str; 2] = ["content_filter", "content_policy_violation"];
/// Words for a key that is none, where the status does not say it.
const WRONG_KEY: [&str; 1] = ["API_KEY_INVALID"];
/// Words for too many requests, and for trouble of the server's own, under a status that says all is well.
const LIMITED: [&str; 3] = ["rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"];
const BROKEN: [&str; 5] = ["server_error", "api_error", "overloaded_error", "INTERNAL", "UNAVAILABLE"];
/// What servers speak of that do not take the form of a reply: the names of parameters.
const FORM_WORDS: [&str; 10] = [
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

/// What a model said, whichever wire told it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The text; `None` if the server sent none.
    pub text: Option<String>,
    /// How it ended.
    pub end: End,
    /// Tokens, if the server told them.
    pub usage: Option<Usage>,
    /// The likeliest tokens in the place of the first, with the natural logarithms of their probabilities, if they were asked for.
    pub alternatives: Vec<(String, f64)>,
}

/// How a reply ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    /// As it should, as far as the server tells.
    #[default]
    Whole,
    /// At the limit of tokens; with the server's words for that.
    Cut(String),
    /// The model or a filter declined; with its words, if it has any besides the text.
    Refused(Option<String>),
    /// In a call of a tool of this name, which nobody offered.
    Called(String),
    /// Otherwise, which is no reply; why.
    Broken(String),
}

/// Why nothing was told: an outcome of its own, or no exchange at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// What stands in the place of a reply: [`Outcome::Refused`] or [`Outcome::Invalid`].
    Outcome(Outcome),
    /// No exchange took place.
    Trouble(Trouble),
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Self {
        Ended::Trouble(trouble)
    }
}

impl Told {
    /// Whether the model said something, to its end or not.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.end, End::Whole | End::Cut(_))
    }

    /// What it is to the one who asked. `body` is kept where there is no text.
    #[must_use]
    pub fn outcome(&self, want: &Want, body: &str) -> Outcome {
        let text = self.text.clone().unwrap_or_default();
        let invalid = |why: String| {
            let raw = if text.is_empty() { body.to_owned() } else { text.clone() };
            Outcome::Invalid { raw, why }
        };
        match &self.end {
            End::Refused(words) => return Outcome::Refused { raw: words.clone().unwrap_or(text) },
            End::Cut(words) => return invalid(format!("the reply was cut off at the limit of tokens ({words})")),
            End::Called(name) => return invalid(format!("the model called the tool `{name}`, which was not offered")),
            End::Broken(why) => return invalid(why.clone()),
            End::Whole => {}
        }
        match &self.text {
            None => invalid("the reply has no content (null)".into()),
            Some(text) if text.trim().is_empty() => invalid("the content of the reply is empty".into()),
            Some(text) => fit(want, text),
        }
    }
}

/// Read apart: tokens that can not be counted, for instance, are no reason to lose the answer.
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

/// How a body is encoded, where it is: nothing but `identity` is asked for.
pub(super) fn encoding(headers: &HeaderMap) -> Option<String> {
    let encoding = headers.get(CONTENT_ENCODING)?;
    let encoding = String::from_utf8_lossy(encoding.as_bytes()).trim().to_ascii_lowercase();
    (!encoding.is_empty() && encoding != "identity").then_some(encoding)
}

/// What is told of a body so encoded.
pub(super) fn not_asked_for(encoding: &str) -> String {
    format!(
        "sent a body encoded as {encoding}, which was not asked for: turn compression off there, or in the proxy in between"
    )
}

impl Received {
    /// What came: `body` as far as it was read.
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

    /// Whether an answer of any kind was made.
    pub(super) fn is_answer(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it comes in pieces (server-sent events).
    pub(super) fn is_stream(&self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    /// What the server tells of its limits on the rate: in OpenAI's headers, or in Anthropic's.
    pub(super) fn limits(&self) -> Option<RateLimits> {
        // Most servers tell nothing.
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

    /// How long the server asks to wait before it is asked again, in milliseconds.
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

    /// What the server says of an error, for people.
    pub(super) fn said(&self) -> String {
        Complaint::in_body(&self.body).message
    }

    /// Something whose body is the answer's and whole, as far as that can be told without reading it.
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
            // No model wrote it: something in between did, for now or, at a wrong address, always.
            return Err(self.broken(format!(
                "sends a web page (HTML) in place of an answer: check that {} is the address of a model API{}",
                home.base_variable,
                home.usual_end()
            )));
        }
        Ok(())
    }

    /// The body of a whole answer; `what` it is. Bodies have their `error`, if any, in [`Received::error_in_body`].
    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self, what: &str) -> Result<T, Ended> {
        serde_json::from_str(&self.body).map_err(|error| match error.is_data() {
            // What was cut off on the way is no answer.
            _ if error.is_eof() => self.broken(format!("sent a body that was cut off: {error}")),
            true => self.invalid(format!("the body is no {what}: {error}")),
            false => self.invalid(format!("the body is no JSON: {error}")),
        })
    }

    /// An answer that is no reply.
    pub(super) fn invalid(&self, why: String) -> Ended {
        Ended::Outcome(Outcome::Invalid { raw: self.body.clone(), why })
    }

    /// An answer that did not come as it was sent: asking again may help.
    pub(super) fn broken(&self, why: String) -> Ended {
        Ended::Trouble(Trouble::Retry { why: format!("{} {why}", self.url), after_ms: None, charged: true })
    }

    /// A filter in front of the model declines with an error's status; all other errors are trouble.
    fn refused(&self, home: &Home) -> Ended {
        let said = Complaint::in_body(&self.body);
        match said.is_any(&FILTERED) {
            true => Ended::Outcome(Outcome::Refused { raw: said.message }),
            false => Ended::Trouble(self.trouble(home, self.status, &said)),
        }
    }

    /// The trouble of an answer with an error's status.
    pub(super) fn error(&self, home: &Home) -> Trouble {
        self.trouble(home, self.status, &Complaint::in_body(&self.body))
    }

    /// Whether a server may have refused a request for the form of its reply, and then whether it says so.
    pub(super) fn refuses_form(&self, home: &Home) -> Option<bool> {
        let may =
            [400, 422].contains(&self.status) && matches!(self.refused(home), Ended::Trouble(Trouble::Never { .. }));
        // All that it sent: which field holds the words differs, and so do the words.
        let said = || self.body.to_lowercase();
        may.then(|| FORM_WORDS.iter().any(|word| said().contains(word)))
    }

    /// An error in the place of an answer, under a status that says all is well; null is none.
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

    fn trouble(&self, home: &Home, status: u16, said: &Complaint) -> Trouble {
        let Received { url, model, .. } = self;
        let Home { name, base_variable, .. } = home;
        let key = home.key_variable();
        let words = if said.message.is_empty() { String::new() } else { format!(": {}", said.message) };
        let fatal = |why: String| Trouble::Fatal { why };
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
                "{url} does not serve the account of this key as it is (FAILED_PRECONDITION): check its billing and the place that is \
                 asked from, or set {key} to a key of another account. It says{words}"
            )),
            401 | 403 => self.wrong_key(home, status, &words),
            400 if said.is_any(&WRONG_KEY) => self.wrong_key(home, status, &words),
            // An error under status 200 comes from behind something that had begun to answer.
            429 | 503 | 529 if !self.is_answer() => Trouble::Crowded {
                why: match status {
                    429 => format!("{url} limits the rate (429){words}"),
                    _ => format!("{url} has no room (status {status}){words}"),
                },
                after_ms: wait_ms(&self.headers, said.wait_ms, SystemTime::now()),
            },
            408 | 409 | 429 | 500..=599 => Trouble::Retry {
                why: match status {
                    429 => format!("{url} limits the rate (429){words}"),
                    _ => format!("{url} answers with status {status}{words}"),
                },
                after_ms: wait_ms(&self.headers, said.wait_ms, SystemTime::now()),
                // An error in the place of an answer comes from behind something that had begun to answer.
                charged: self.is_answer(),
            },
            404 if said.is("model_not_found") => fatal(format!(
                "{url} has no model `{model}` (404): check the name after `{name}/`, and whether the key may use it. It says{words}"
            )),
            404 => fatal(format!(
                "{url} is not there (404), or has no model `{model}`: check {base_variable}{}, and the name after `{name}/`. It \
                 says{words}",
                home.usual_end()
            )),
            300..=399 => fatal(format!(
                "{url} sends elsewhere (status {status}), where a key is not to follow: set {base_variable} to the address itself"
            )),
            400..=499 => Trouble::Never {
                why: format!("{url} refuses the request for the model `{model}` (status {status}){words}"),
            },
            _ => fatal(format!("{url} answers with status {status}, which is none that a model API has{words}")),
        }
    }

    fn wrong_key(&self, home: &Home, status: u16, words: &str) -> Trouble {
        Trouble::Fatal {
            why: format!(
                "{} does not accept the key ({status}): check {}, in the environment or in `.env`, and what that key may do. It \
                 says{words}",
                self.url,
                home.key_variable()
            ),
        }
    }
}

/// What a server says of an error.
#[derive(Default)]
struct Complaint {
    message: String,
    /// Its code, type, status and reasons, which are words of a fixed list.
    tokens: Vec<String>,
    /// A status in place of HTTP's, as gateways send it.
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

    /// An error's body: `{"error": {...}}` as a rule, `{"error": "..."}`, `{"message": "..."}` or `{"detail": ...}` elsewhere, or any
    /// text.
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

/// How long a server asks to wait: Retry-After, else in its body, else when its limits are full again.
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
        // The limit that is used up counts; where none says so, the longer wait.
        limits.flatten().max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, wait)| wait)
    };
    retry_after(headers, now).or(in_body).or_else(reset).map(believed)
}

fn believed(wait_ms: f64) -> u64 {
    wait_ms.clamp(0.0, LONGEST_WAIT).ceil() as u64
}

/// The time until a date, in milliseconds; one that has passed: at once.
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

/// A server's words on one line; a web page is not quoted.
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
