//! The world's questions at the beginning of a round, before any observation. See `docs/decisions/worlds-ask.md`.

use super::state::{Society, Stage};
use crate::Bug;
use crate::ask::{Answer, Ask, Asker, Book, Effect};

impl Society {
    /// Returns whether the world may ask in this round.
    pub(super) fn world_asks(&self) -> bool {
        self.shards.first().is_some_and(|shard| !shard.world.models().is_empty())
    }

    /// Gives answers to the world's questions. When the world has all of them, agents observe.
    pub(super) fn query(&mut self, answers: &[Answer]) -> Result<Vec<Effect>, Bug> {
        let Society { stage, shards, round, .. } = self;
        let Stage::Inquiring(so_far) = stage else { return Ok(Vec::new()) };
        so_far.hear(answers);
        if !so_far.open.is_empty() {
            return Ok(Vec::new());
        }
        let mut book = Book::default();
        let mut ask = Ask::new(Asker::World, 0, *round, &so_far.heard, &mut book);
        let done = shards[0].world.query(&mut ask);
        let wanted = ask.close()?;
        if done {
            self.look()?;
        } else if wanted.is_empty() {
            return Err(Bug::internal("the world awaits something other than its own questions"));
        } else {
            so_far.wait_for(&wanted);
        }
        Ok(wanted)
    }
}
