//! Errors in the format of the OpenAI API.
//!
//! Its clients repeat requests with the statuses 408, 409, 429 and 500 and above, unless `x-should-retry` forbids it. Here only a request
//! that has cost nothing and may succeed later is to be repeated.

use super::Unanswered;
use crate::problem::Problem;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An error as clients of the OpenAI API know it.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    /// `type` in the body.
    kind: &'static str,
    code: Option<&'static str>,
    /// The parameter that is wrong.
    param: Option<String>,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, kind: &'static str, code: Option<&'static str>, message: String) -> Self {
        Failure { status, kind, code, param: None, message }
    }

    fn server(status: StatusCode, code: &'static str, message: String) -> Self {
        Failure::new(status, "server_error", Some(code), message)
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, "invalid_request_error", None, message.into())
    }

    /// A parameter of the request is wrong.
    pub fn param(param: &str, message: impl std::fmt::Display) -> Self {
        Failure { param: Some(param.into()), ..Failure::invalid(format!("`{param}`: {message}")) }
    }

    /// A parameter that a team does not support.
    pub fn unsupported(param: &str, message: impl std::fmt::Display) -> Self {
        Failure { code: Some("unsupported_parameter"), ..Failure::param(param, message) }
    }

    /// The body could not be read; mostly, it is too long.
    pub fn of_body(status: StatusCode, why: String) -> Self {
        let message = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the request is longer than 1 MiB; send a shorter conversation".into(),
            _ => why,
        };
        Failure::new(status, "invalid_request_error", None, message)
    }

    pub fn no_model(name: &str, team: &str) -> Self {
        let message = format!("there is no model `{name}` here; this server has one, `{team}`");
        let status = StatusCode::NOT_FOUND;
        let failure = Failure::new(status, "invalid_request_error", Some("model_not_found"), message);
        Failure { param: Some("model".into()), ..failure }
    }

    pub fn no_path() -> Self {
        let message = "there is no such path; a team has POST /v1/chat/completions and GET /v1/models";
        Failure::new(StatusCode::NOT_FOUND, "invalid_request_error", None, message.into())
    }

    /// Too many questions wait.
    pub fn busy() -> Self {
        let message = "too many requests are waiting for the team; try again later";
        Failure::server(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message.into())
    }

    pub fn ending() -> Self {
        Unanswered::Ending("the server is ending; ask again when it has been started again".into()).into()
    }

    /// Whether the same request may succeed later, and has cost nothing yet.
    fn may_succeed(&self) -> bool {
        self.code == Some("overloaded")
    }
}

impl From<Unanswered> for Failure {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Budget(why) => {
                let quota = "insufficient_quota";
                Failure::new(StatusCode::TOO_MANY_REQUESTS, quota, Some(quota), why)
            }
            Unanswered::Ending(why) => Failure::server(StatusCode::SERVICE_UNAVAILABLE, "stopped", why),
            Unanswered::Silent(why) => Failure::server(StatusCode::INTERNAL_SERVER_ERROR, "no_answer", why),
            Unanswered::Unreachable(why) => Failure::server(StatusCode::BAD_GATEWAY, "model_unreachable", why),
            Unanswered::Failed(why) => Failure::server(StatusCode::INTERNAL_SERVER_ERROR, "failed", why),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = (problem.status == StatusCode::UNAUTHORIZED).then_some("invalid_api_key");
        Failure::new(problem.status, "invalid_request_error", code, problem.error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = json!({ "message": self.message, "type": self.kind, "param": self.param, "code": self.code });
        let body = json!({ "error": error }).to_string();
        let again = if self.may_succeed() { "true" } else { "false" };
        (self.status, [(header::CONTENT_TYPE, "application/json"), (SHOULD_RETRY, again)], body).into_response()
    }
}
