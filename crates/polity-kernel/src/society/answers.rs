//! Answers that a stage of the round waits for, before agents take turns.

use crate::ask::{Answer, Effect, EffectId};
use std::collections::BTreeMap;

/// Questions and their answers, as they come in.
#[derive(Default)]
pub(super) struct Answers {
    /// Answers so far; sorted by id when none is missing.
    pub heard: Vec<Answer>,
    /// Questions without an answer.
    pub open: BTreeMap<EffectId, Effect>,
}

impl Answers {
    /// Takes the answers that are waited for.
    pub fn hear(&mut self, answers: &[Answer]) {
        if self.open.is_empty() {
            return;
        }
        let awaited = answers.iter().filter(|answer| self.open.remove(&answer.id).is_some());
        self.heard.extend(awaited.cloned());
        if self.open.is_empty() {
            self.heard.sort_unstable_by_key(|answer| answer.id);
        }
    }

    /// Waits for answers to these.
    pub fn wait_for(&mut self, open: &[Effect]) {
        self.open = open.iter().map(|effect| (effect.id, effect.clone())).collect();
    }
}
