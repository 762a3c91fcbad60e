//! What a scenario is assembled to: one machine, whatever it is made of.

use crate::Bug;
use crate::ask::{Answer, Effect, EffectId, ResponseFormat};
use crate::evaluation::Evaluation;
use crate::interface::Actions;
use crate::layout::Frame;
use crate::machine::{Machine, Step};
use crate::saved::Sink;
use crate::society::Society;

/// A machine, ready to be driven.
pub enum Assembled {
    /// Agents in a world.
    Society(Box<Society>),
    /// A method that works on a data set.
    Evaluation(Box<Evaluation>),
}

impl Assembled {
    /// Returns the models that its world may ask for embedding vectors of texts.
    #[must_use]
    pub fn models_of_vectors(&self) -> Vec<String> {
        let Assembled::Society(society) = self else { return Vec::new() };
        of_vectors(society.models_of_world())
    }

    /// Returns the models that it may ask, each once, in order of first use.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        once(match self {
            Assembled::Society(society) => society.models(),
            Assembled::Evaluation(evaluation) => evaluation.models(),
        })
    }

    fn machine(&self) -> &dyn Machine {
        match self {
            Assembled::Society(society) => society.as_ref(),
            Assembled::Evaluation(evaluation) => evaluation.as_ref(),
        }
    }

    fn machine_mut(&mut self) -> &mut dyn Machine {
        match self {
            Assembled::Society(society) => society.as_mut(),
            Assembled::Evaluation(evaluation) => evaluation.as_mut(),
        }
    }

    /// Returns the society, if it is one.
    #[must_use]
    pub fn society(&self) -> Option<&Society> {
        match self {
            Assembled::Society(society) => Some(society),
            Assembled::Evaluation(_) => None,
        }
    }

    /// Returns the evaluation, if it is one.
    #[must_use]
    pub fn evaluation(&self) -> Option<&Evaluation> {
        match self {
            Assembled::Society(_) => None,
            Assembled::Evaluation(evaluation) => Some(evaluation),
        }
    }

    /// Returns the number of agents so far, dead ones included; of an evaluation the members of its team.
    #[must_use]
    pub fn agents(&self) -> u32 {
        match self {
            Assembled::Society(society) => society.ids_assigned(),
            Assembled::Evaluation(evaluation) => evaluation.team().len() as u32,
        }
    }

    /// Returns the group of an answer, whose answers are used together: the agent whose turn asked, or the item.
    #[must_use]
    pub fn group(&self, id: EffectId) -> u32 {
        match self {
            Assembled::Society(_) => id.actor,
            Assembled::Evaluation(_) => id.item,
        }
    }

    /// Returns the cohort of the agent that asks; an evaluation has none.
    #[must_use]
    pub fn cohort(&self, id: EffectId) -> Option<u16> {
        self.society()?.cohort(id.actor)
    }

    /// Returns the actions of the last complete round: (item, actions) in order of item; those of a society, block by block, under item 0.
    #[must_use]
    pub fn acts(&self) -> Vec<(u32, &Actions)> {
        match self {
            Assembled::Society(society) => society.acts().map(|acts| (0, acts)).collect(),
            Assembled::Evaluation(evaluation) => evaluation.acts().iter().map(|(item, acts)| (*item, acts)).collect(),
        }
    }

    /// Continues from a snapshot.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of this machine.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Bug> {
        match self {
            Assembled::Society(society) => society.restore(bytes),
            Assembled::Evaluation(evaluation) => evaluation.restore(bytes),
        }
    }
}

impl Machine for Assembled {
    fn poll(&mut self, answers: Vec<Answer>) -> Result<Step, Bug> {
        self.machine_mut().poll(answers)
    }

    fn receive(&mut self, frames: Vec<Frame>) -> Result<(), Bug> {
        self.machine_mut().receive(frames)
    }

    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug> {
        self.machine().save(to)
    }

    fn next_round(&self) -> u32 {
        self.machine().next_round()
    }

    fn open_effects(&self) -> Vec<Effect> {
        self.machine().open_effects()
    }
}

/// Returns the models that are asked for embedding vectors of texts.
pub(super) fn of_vectors(models: impl IntoIterator<Item = (String, ResponseFormat)>) -> Vec<String> {
    models
        .into_iter()
        .filter(|(_, response_format)| *response_format == ResponseFormat::Vector)
        .map(|(model, _)| model)
        .collect()
}

/// Returns each model once, in order of first use.
pub(super) fn once(all: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for model in all {
        if !once.contains(&model) {
            once.push(model);
        }
    }
    once
}
