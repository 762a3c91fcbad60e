//! Rows as an Arrow stream.

use super::problem::Problem;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The media type of an Arrow stream.
pub(crate) const STREAM: &str = "application/vnd.apache.arrow.stream";

/// Whether a request wants Arrow.
pub(crate) fn wanted(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains(STREAM))
}

/// Batches of one schema as a response; without a batch, an empty stream.
pub(crate) fn stream(batches: &[RecordBatch]) -> Result<Response, Problem> {
    let schema: SchemaRef = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let write = || -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.into_inner()
    };
    let bytes = write().map_err(|error| {
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, format!("the rows cannot be written: {error}"))
    })?;
    Ok(([(header::CONTENT_TYPE, STREAM)], bytes).into_response())
}
