//! Responses that are no answers, and answers that a fault spoils.

use super::answer::{Finish, Said};
use super::fault::Fault;
use super::wires::{Failure, Wire};
use crate::models::LONGEST_ANSWER;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};
use std::time::SystemTime;

pub(super) fn now_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

pub(super) fn json_response(status: u16, body: &Json) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// An error in the format of a wire.
pub(super) fn failed(wire: &dyn Wire, failure: Failure<'_>, message: &str) -> Response {
    let (status, body) = wire.error(failure, message);
    let mut response = json_response(status, &body);
    if let Failure::Limit(_, Some(wait)) = failure {
        add(&mut response, wire.wait(wait));
    }
    response
}

pub(super) fn add(response: &mut Response, headers: impl IntoIterator<Item = (String, String)>) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
}

pub(super) fn invalid(wire: &dyn Wire, why: &str) -> Response {
    failed(wire, Failure::Invalid, why)
}

/// Applies a fault to the reply itself.
pub(super) fn spoil(said: &mut Said, fault: Option<Fault>, structured: bool) {
    spoil_calls(said, fault);
    let whole = said.content.take();
    said.content = match (fault, whole) {
        (Some(Fault::Schema), Some(_)) if structured => Some(json!({"unexpected": [1, 2, 3]}).to_string()),
        (Some(Fault::Length), Some(text)) => {
            said.finish = Finish::Length;
            Some(text[..text.floor_char_boundary(text.len() / 2)].to_owned())
        }
        (Some(Fault::Empty), _) => Some(String::new()),
        (Some(Fault::Null), _) => None,
        (Some(Fault::Refusal), _) => {
            said.refusal = Some("I cannot help with that.".into());
            None
        }
        (Some(Fault::Huge), _) => Some("word".repeat(LONGEST_ANSWER / 3)),
        (_, whole) => whole,
    };
}

/// Applies a fault to calls. Where a fault leaves no reply, it leaves no call either.
fn spoil_calls(said: &mut Said, fault: Option<Fault>) {
    match fault {
        Some(Fault::Schema) => {
            for (_, arguments) in &mut said.calls {
                *arguments = json!({"unexpected": [1, 2, 3]}).to_string();
            }
        }
        Some(Fault::Length) => {
            if let Some((_, arguments)) = said.calls.last_mut() {
                arguments.truncate(arguments.floor_char_boundary(arguments.len() / 2));
                said.finish = Finish::Length;
            }
        }
        Some(Fault::Empty | Fault::Null | Fault::Refusal | Fault::Huge) if !said.calls.is_empty() => {
            said.calls.clear();
            said.finish = Finish::Stop;
        }
        _ => {}
    }
}
