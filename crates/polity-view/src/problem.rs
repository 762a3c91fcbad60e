//! Errors as responses.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use polity_store::DriveError;
use polity_store::tables::TableError;
use serde_json::json;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) struct Problem {
    pub status: StatusCode,
    pub error: String,
}

impl Problem {
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Problem { status, error: error.into() }
    }

    /// The request is wrong.
    pub fn bad(error: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub fn absent(error: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, error)
    }
}

impl From<DriveError> for Problem {
    fn from(error: DriveError) -> Self {
        let status = match &error {
            DriveError::Input(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match &error {
            // Nothing is closed yet, or the run has no such table.
            TableError::Rounds { .. } => Problem::absent(error.to_string()),
            TableError::Spec { .. } => Problem::bad(error.to_string()),
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error }).to_string();
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

pub(crate) type Answer<T> = Result<T, Problem>;
