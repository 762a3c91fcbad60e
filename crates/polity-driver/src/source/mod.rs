//! Sources of answers: live providers, a seeded simulation of them, or (in a replay) only the journal.
//!
//! People are asked separately from models (`people.rs`). `scheduler/` handles what concerns all calls of a run: order, limits, shared
//! answers, retries. A separate task makes the calls (`calling.rs`); `batches.rs` sends batches, and `cache.rs` keeps answers across
//! runs.

mod batches;
mod cache;
mod calling;
mod live;
mod notes;
mod people;
mod rehearsal;
mod scheduler;
mod simulated;

pub(crate) use batches::Batches;
pub(crate) use calling::Ledger;
pub use live::{Live, Outside, Ranks};
pub use notes::Notes;
pub use people::WithPeople;
pub(crate) use rehearsal::{Donors, Rehearsal};
pub use scheduler::{Declared, Schedule, SharedLimits};
pub use simulated::{Faults, Simulated};

use polity_kernel::ask::{Answer, Constrain, Effect, Outcome, Usage};
use std::time::Duration;

/// A request without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The request.
    pub effect: Effect,
    /// The maximum usage of the request, if its provider may have answered it; `None` if it was rejected.
    pub charged: Option<Usage>,
    /// Whether to retry it with [`Source::start`], once the budget allows another request.
    pub again: bool,
}

/// A change in a model's constraint modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormChange {
    /// The model (full name).
    pub model: String,
    /// The mode that changed.
    pub way: Constrain,
    /// Whether it is used from now on.
    pub used: bool,
    /// The server's message.
    pub why: String,
}

/// An answer that says why there is none.
fn failed(effect: Effect, why: String, shared: bool) -> Answer {
    let usage = Usage { shared, ..Usage::default() };
    Answer { id: effect.id, request: effect.request, outcome: Outcome::Failed { why }, usage, reasoning: None }
}

/// A source of answers. The order of arrival is free and affects no result.
pub trait Source {
    /// Starts effects.
    fn start(&mut self, effects: Vec<Effect>);
    /// Number of started effects without an answer.
    fn in_flight(&self) -> usize;
    /// Waits up to `patience` for an answer, and returns all that have arrived. Returns at once if nothing is in flight.
    fn wait(&mut self, patience: Duration) -> Vec<Answer>;
    /// For a source that stops when no one listens and must be read while turns start: whether so many requests wait that more would only
    /// wait longer.
    fn is_sated(&self) -> Option<bool> {
        None
    }
    /// Nothing proceeds without an answer: sends requests gathered for a batch.
    fn flush(&mut self) {}
    /// Requests without an answer, each returned once, before later answers.
    fn broken(&mut self) -> Vec<Broken> {
        Vec::new()
    }
    /// Changes in constraint modes, each returned once.
    fn forms(&mut self) -> Vec<FormChange> {
        Vec::new()
    }
    /// Starts nothing more: unsent effects are dropped. A resumed run sends them.
    fn hold(&mut self) {}
    /// Sets the maximum of concurrent calls; 0: no new calls. Calls in progress continue.
    fn connections(&mut self, most: usize) {
        let _ = most;
    }
    /// Returns started effects of which nothing has been sent yet.
    fn take_back(&mut self) -> Vec<Effect> {
        Vec::new()
    }
    /// Why no answer can arrive for any request, if so: the run stops, and can be resumed.
    fn lost(&self) -> Option<&str> {
        None
    }
    /// Why answers are awaited, for people.
    fn reason(&self) -> String;
}

/// The source of a strict replay, which has no answers.
pub struct NullSource;

impl Source for NullSource {
    fn start(&mut self, _: Vec<Effect>) {}

    fn in_flight(&self) -> usize {
        0
    }

    fn wait(&mut self, _: Duration) -> Vec<Answer> {
        Vec::new()
    }

    fn reason(&self) -> String {
        "a replay makes no calls".into()
    }
}
