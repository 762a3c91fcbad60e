//! What the world asks at the beginning of a round, before anybody looks. `docs/decisions/worlds-ask.md`.

use super::answers::Answers;
use super::{Society, Stage};
use crate::ask::{Answer, Asker, Effect};
use crate::door::{Book, Door, poll_once};
use crate::ladder::Question;
use crate::{AgentId, Bug};

/// Questions of a world, on their way to values.
pub(super) struct Inquiry {
    questions: Vec<(AgentId, Question)>,
    pub answers: Answers,
}

impl Society {
    /// What the world asks in the round that begins; `None`: nothing.
    pub(super) fn inquiry(&self) -> Option<Inquiry> {
        let world = &self.shards.first()?.world;
        if world.models().is_empty() {
            return None;
        }
        let questions = world.inquire();
        (!questions.is_empty()).then(|| Inquiry { questions, answers: Answers::default() })
    }

    /// Hands answers to the world's questions. When all have come to an end the world takes that in, and agents look.
    pub(super) fn inquire(&mut self, answers: &[Answer]) -> Result<Vec<Effect>, Bug> {
        let Society { stage, shards, round, .. } = self;
        let Stage::Inquiring(inquiry) = stage else { return Ok(Vec::new()) };
        inquiry.answers.hear(answers);
        if !inquiry.answers.open.is_empty() {
            return Ok(Vec::new());
        }
        let mut book = Book::default();
        let mut door = Door::new(Asker::World, 0, *round, &inquiry.answers.heard, &mut book);
        let ends = poll_once(door.settle_all(inquiry.questions.clone()));
        let open = door.close()?;
        match ends {
            Some(ends) => {
                shards[0].world.learn(ends);
                self.look()?;
                Ok(Vec::new())
            }
            None => {
                inquiry.answers.wait_for(&open);
                Ok(open)
            }
        }
    }
}
