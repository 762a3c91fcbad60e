//! Turns that wait for answers.

use super::round::Round;
use crate::AgentId;
use crate::ask::{Answer, Effect};
use crate::interface::Observations;
use crate::messages::{Bucket, Inbox};
use serde::{Deserialize, Serialize};

/// Turns that wait, sorted by agent. Boxed, because those that still wait are moved whenever others finish.
pub(crate) type Waiting = Vec<Box<Suspended>>;

/// A turn that waits for answers: its inputs, never its future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// Who waits.
    pub who: AgentId,
    /// The round in which the turn began.
    pub began: u32,
    /// The round whose barrier it must reach.
    pub due: u32,
    pub(super) observations: Observations,
    pub(super) messages: Bucket,
    /// Answers so far, sorted by id.
    pub(super) answers: Vec<Answer>,
    /// Questions that have no answer yet.
    pub(super) open: Vec<Effect>,
    /// Messages that arrived while it waited; read in the next turn.
    pub(crate) held: Bucket,
}

impl Suspended {
    pub(super) fn new(
        who: AgentId,
        round: &Round<'_>,
        observations: Observations,
        inbox: Inbox<'_>,
        open: Vec<Effect>,
    ) -> Self {
        let mut messages = Bucket::default();
        messages.extend(inbox);
        Suspended {
            who,
            began: round.round,
            due: round.round + round.lag,
            observations,
            messages,
            answers: Vec::new(),
            open,
            held: Bucket::default(),
        }
    }

    /// Takes an answer; returns `true` if it was the last one that the turn waits for.
    pub(crate) fn hear(&mut self, answer: Answer) -> bool {
        let before = self.open.len();
        self.open.retain(|effect| effect.id != answer.id);
        if self.open.len() < before
            && let Err(place) = self.answers.binary_search_by_key(&answer.id, |a| a.id)
        {
            self.answers.insert(place, answer);
        }
        self.open.is_empty()
    }

    /// Returns the questions without an answer.
    pub(crate) fn open(&self) -> &[Effect] {
        &self.open
    }
}
