//! Files and batches that the mock server holds in memory.

use axum::body::Bytes;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The provider of a batch, which decides its JSON shapes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Api {
    OpenAi,
    Anthropic,
}

/// The result of a line.
pub(super) enum Ending {
    /// The body of an answer.
    Answered(String),
    /// Status and body of an error.
    Refused(u16, Json),
    Canceled,
    Expired,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase {
    Working,
    Canceling,
    Ended,
}

pub(super) struct Batch {
    pub(super) id: String,
    pub(super) api: Api,
    pub(super) made_ms: u64,
    pub(super) ended_ms: u64,
    /// Its name at OpenAI, and the file of its lines.
    pub(super) metadata: Json,
    pub(super) endpoint: String,
    pub(super) file: String,
    pub(super) lines: usize,
    /// By line name.
    pub(super) results: Vec<(String, Ending)>,
    pub(super) phase: Phase,
}

/// Files and batches.
#[derive(Default)]
pub(super) struct BatchStore {
    /// By id.
    pub(super) files: BTreeMap<String, (String, Bytes)>,
    /// In creation order.
    pub(super) batches: Vec<Batch>,
}

impl BatchStore {
    pub(super) fn batch(&mut self, id: &str, api: Api) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|batch| batch.id == id && batch.api == api)
    }
}
