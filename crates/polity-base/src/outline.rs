//! The unknowns of a society's outline.
//!
//! A society can be checked without being built. Its population is then grouped by row ([`crate::population::Population::grouped`])
//! and its topology has a size and no ties ([`crate::topology::Topology::Outline`]). Both give the same answers as the whole
//! society, except for who an agent is and whom it hears. Answers to these two questions are noted as guesses, so that an error
//! that may depend on one can be confirmed with the whole society.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an outline has guessed. Clones share the note.
#[derive(Clone, Debug, Default)]
pub struct Guesses(Arc<AtomicBool>);

impl Guesses {
    /// Notes a guess.
    #[inline]
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether there was a guess.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The note is not part of an outline's identity.
impl PartialEq for Guesses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Guesses {}
