//! What a journal holds already.

use crate::totals::Totals;
use polity_kernel::ask::{Answer, EffectId, Usage};
use polity_kernel::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct Past {
    /// Unused answers by effect.
    pub answers: BTreeMap<EffectId, Answer>,
    /// (sum, chain) by round.
    pub rounds: BTreeMap<u32, (Digest, Digest)>,
    /// Calls delayed and then allowed by a budget.
    pub waves: BTreeSet<EffectId>,
    /// The rounds with such calls.
    pub waved: BTreeSet<u32>,
    /// Requests without an answer, with their maximum usage if they may have been answered.
    pub broken: Vec<(EffectId, Option<Usage>)>,
}

impl Past {
    /// Adds a request without an answer.
    pub(crate) fn broke(&mut self, id: EffectId, charged: Option<Usage>) {
        // Another request was not decided with the first.
        if charged.is_some() {
            self.waves.remove(&id);
        }
        self.broken.push((id, charged));
    }

    /// Requests that may have been answered, although no answer is recorded.
    pub(crate) fn in_doubt(&self) -> BTreeSet<EffectId> {
        self.broken.iter().filter(|(_, charged)| charged.is_some()).map(|(id, _)| *id).collect()
    }

    /// Totals of the recorded answers.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.answers.values().for_each(|answer| totals.count(answer));
        self.broken.iter().for_each(|(_, charged)| totals.broke(charged.as_ref()));
        totals
    }
}
