//! The options of a mock server, and what all of its requests share.

use super::answer::{Asked, Forms};
use super::batch_store::BatchStore;
use super::fault::Faults;
use super::wires::Failure;
use crate::bucket::Bucket;
use crate::models::sim::Sim;
use polity_kernel::ask::Constrain;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Port on 127.0.0.1; 0 picks a free one.
    pub port: u16,
    /// The simulated model that answers. A request that names another one (`large`) is answered by that one.
    pub model: String,
    /// Requests per minute; more get a 429.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, likewise.
    pub tokens_per_minute: Option<u32>,
    /// Maximum concurrent calls; more get a 503, as from an overloaded server.
    pub at_once: Option<u32>,
    /// Time before an answer.
    pub latency: Duration,
    /// Time before a batch is answered.
    pub batch_delay: Duration,
    /// Number of first batches that expire after half of their lines are answered.
    pub batch_expires: u64,
    /// Faults and their frequencies.
    pub faults: Faults,
    /// Seed of faults and answers.
    pub seed: u64,
    /// Supported constraint modes; others are refused with a 400.
    pub offers: Vec<Constrain>,
}

/// The constraint modes supported by default: those of OpenAI.
pub const OFFERS: [Constrain; 3] = [Constrain::Tools, Constrain::Schema, Constrain::Logprobs];

impl Default for Options {
    fn default() -> Self {
        Options {
            port: 0,
            model: "sim/medium".into(),
            requests_per_minute: None,
            tokens_per_minute: None,
            at_once: None,
            latency: Duration::ZERO,
            batch_delay: Duration::ZERO,
            batch_expires: 0,
            faults: Faults::default(),
            seed: 1,
            offers: OFFERS.to_vec(),
        }
    }
}

/// What has been served so far, counted by the mock server (`GET /stats`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Requests for completions and embeddings.
    pub calls: u64,
    /// Answered calls, including broken answers; only these cost.
    pub answered: u64,
    /// Answers to requests with exactly the bytes of an earlier answered one.
    pub repeated: u64,
    /// Calls in progress.
    pub in_flight: u64,
    /// The most concurrent calls so far.
    pub most_in_flight: u64,
    /// Calls that named another model than the call before: how often a server that holds one model at a time has to load one.
    pub loads: u64,
    /// Calls refused by a declared limit.
    pub limited: u64,
    /// Tokens of answered requests.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// US dollars, at the simulated models' declared prices.
    pub cost_usd: f64,
    /// Batches created.
    pub batches: u64,
    /// Their lines. Answered lines are included in `answered`, at half cost.
    pub lines: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

pub(super) struct Shared {
    pub(super) sim: Sim,
    pub(super) forms: Forms,
    pub(super) options: Options,
    pub(super) books: Mutex<Books>,
    pub(super) batches: Mutex<BatchStore>,
}

pub(super) struct Books {
    pub(super) stats: Stats,
    /// The model of the last call.
    pub(super) held: Option<String>,
    /// Keys of answered requests.
    pub(super) answered: BTreeSet<u128>,
    /// Requests and tokens.
    pub(super) limits: Vec<(&'static str, Bucket)>,
}

impl Books {
    /// Records the answer to a request whose bytes have the key `body`.
    pub(super) fn answer(&mut self, body: u128, tokens_in: u64, tokens_out: u64, cost_usd: f64) {
        let again = !self.answered.insert(body);
        self.stats.answered += 1;
        self.stats.repeated += u64::from(again);
        self.stats.tokens_in += tokens_in;
        self.stats.tokens_out += tokens_out;
        self.stats.cost_usd += cost_usd;
    }
}

impl Shared {
    pub(super) fn store(&self) -> MutexGuard<'_, BatchStore> {
        // Valid even after a panic.
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The refusal of a request whose constraint mode is not supported.
    pub(super) fn not_offered(&self, asked: &Asked<'_>) -> Option<(Failure<'static>, String)> {
        match asked.constrained().filter(|(way, _)| !self.options.offers.contains(way))? {
            (Constrain::Schema, _) => Some((Failure::Schema, String::new())),
            (_, parameter) => Some((Failure::Invalid, format!("Unrecognized request argument supplied: {parameter}"))),
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        // The guarded numbers are valid even after a panic.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The simulated model for a name: its own if it exists, else the default.
    pub(super) fn model_for(&self, name: &str) -> String {
        match self.sim.model(name) {
            Ok(_) => format!("sim/{}", name.strip_prefix("sim/").unwrap_or(name)),
            Err(_) => self.options.model.clone(),
        }
    }
}
