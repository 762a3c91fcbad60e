//! Where answers come from: live providers, a seeded simulation of them, or (in a replay) nowhere but the journal.

mod live;
mod simulated;

pub use live::Live;
pub use simulated::{Faults, Simulated};

use polity_kernel::ask::{Answer, Effect};
use std::time::Duration;

/// A source of answers. Order of arrival is free: it can not reach a result.
pub trait Source {
    /// Begins effects.
    fn start(&mut self, effects: Vec<Effect>);
    /// Effects begun and not yet answered.
    fn in_flight(&self) -> usize;
    /// Waits until an answer is there, at most `patience`, and returns all that are. Nothing in flight: returns at once.
    fn wait(&mut self, patience: Duration) -> Vec<Answer>;
    /// Begins nothing more: effects that were not sent yet are dropped. A resumed run asks them.
    fn hold(&mut self) {}
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
