//! Where answers come from: live providers, a seeded simulation of them, or (in a replay) nowhere but the journal.
//!
//! People are asked beside whatever asks models (`people.rs`). What concerns all calls of a run together (who waits, within which limits, who
//! shares an answer, what is tried again) is in `traffic/`; the calls are made by a task of their own (`calling.rs`); what is sent
//! in batches is in `batches.rs`, what is kept across runs in `cache.rs`.

mod batches;
mod cache;
mod calling;
mod live;
mod notes;
mod people;
mod rehearsal;
mod simulated;
mod traffic;

pub(crate) use batches::Batches;
pub(crate) use calling::Ledger;
pub use live::{Live, Outside, Ranks};
pub use notes::Notes;
pub use people::WithPeople;
pub(crate) use rehearsal::{Donors, Rehearsal};
pub use simulated::{Faults, Simulated};
pub use traffic::{Declared, Schedule};

use polity_kernel::ask::{Answer, Constrain, Effect, Outcome, Usage};
use std::time::Duration;

/// A request that brought no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The question.
    pub effect: Effect,
    /// The most that the request can have taken, if its provider may have answered it; `None` if it was turned away.
    pub charged: Option<Usage>,
    /// Whether the question is to be tried again: by [`Source::start`], once the budget holds another request.
    pub again: bool,
}

/// A change in how a model is held to the form of its replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormChange {
    /// The model (full name).
    pub model: String,
    /// The way that changed.
    pub way: Constrain,
    /// Whether it is used from now on.
    pub used: bool,
    /// What the server said.
    pub why: String,
}

/// An answer that says why there is none.
fn failed(effect: Effect, why: String, shared: bool) -> Answer {
    let usage = Usage { shared, ..Usage::default() };
    Answer { id: effect.id, request: effect.request, outcome: Outcome::Failed { why }, usage }
}

/// A source of answers. Order of arrival is free: it can not reach a result.
pub trait Source {
    /// Begins effects.
    fn start(&mut self, effects: Vec<Effect>);
    /// Effects begun and not yet answered.
    fn in_flight(&self) -> usize;
    /// Waits until an answer is there, at most `patience`, and returns all that are. Nothing in flight: returns at once.
    fn wait(&mut self, patience: Duration) -> Vec<Answer>;
    /// Of a source that stops when nobody hears it, and is to be heard while turns begin: whether so much waits to be asked that more would
    /// only wait longer.
    fn is_sated(&self) -> Option<bool> {
        None
    }
    /// Nothing moves on without an answer: what was held back to be sent together is sent.
    fn flush(&mut self) {}
    /// Requests that brought no answer, each handed out once, before answers that come after it are.
    fn broken(&mut self) -> Vec<Broken> {
        Vec::new()
    }
    /// Changes in how models are held to a form, each told once.
    fn forms(&mut self) -> Vec<FormChange> {
        Vec::new()
    }
    /// Begins nothing more: effects that were not sent yet are dropped. A resumed run asks them.
    fn hold(&mut self) {}
    /// Asks so many at once at most from now on; 0: nobody new is asked. What is under way goes on.
    fn connections(&mut self, most: usize) {
        let _ = most;
    }
    /// Hands back effects that were begun and of which nothing has been sent yet.
    fn take_back(&mut self) -> Vec<Effect> {
        Vec::new()
    }
    /// Why no answer can come whatever is asked, if so: the run stops, and can be resumed.
    fn lost(&self) -> Option<&str> {
        None
    }
    /// Why answers are awaited, for people.
    fn reason(&self) -> String;
}

/// The source of a strict replay: it has no answers.
pub struct Nowhere;

impl Source for Nowhere {
    fn start(&mut self, _: Vec<Effect>) {}

    fn in_flight(&self) -> usize {
        0
    }

    fn wait(&mut self, _: Duration) -> Vec<Answer> {
        Vec::new()
    }

    fn reason(&self) -> String {
        "a replay asks nobody".into()
    }
}
