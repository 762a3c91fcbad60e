//! A person's memory: the newest facts word for word, earlier ones in summaries.

use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// A fact and its remembered value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub fact: u32,
    pub value: u32,
}

/// Size and quality of the memory.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Facts in clear memory.
    pub clear: usize,
    /// Facts in fuzzy memory.
    pub fuzzy: usize,
    /// Probability that a summary gets a fact wrong.
    pub blur: f64,
    /// Number of possible values of a fact.
    pub values: u32,
}

/// A mixed memory, both parts from oldest to newest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The latest facts, unchanged; a fact may occur several times.
    clear: Vec<Known>,
    /// Each fact once.
    fuzzy: Vec<Known>,
}

impl Memory {
    /// Adds a fact. What no longer fits into clear memory is summarised; what no longer fits there is lost.
    pub fn take(&mut self, known: Known, size: &Size, draws: &mut Draws) {
        self.clear.push(known);
        while self.clear.len() > size.clear {
            let old = self.clear.remove(0);
            if size.fuzzy == 0 {
                continue;
            }
            let value = if draws.chance(size.blur) {
                // Any of the other values.
                (old.value + 1 + draws.below(u64::from(size.values.max(2)) - 1) as u32) % size.values.max(2)
            } else {
                old.value
            };
            self.fuzzy.retain(|other| other.fact != old.fact);
            self.fuzzy.push(Known { fact: old.fact, value });
            let over = self.fuzzy.len().saturating_sub(size.fuzzy);
            self.fuzzy.drain(..over);
        }
    }

    /// Returns the remembered value of a fact, from clear memory, else from fuzzy memory.
    #[must_use]
    pub fn find(&self, fact: u32) -> Option<u32> {
        let newest = self.clear.iter().rev().chain(self.fuzzy.iter().rev());
        newest.into_iter().find(|known| known.fact == fact).map(|known| known.value)
    }
}
