//! REINFORCE: policy gradients from whole episodes. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Experience, Learner, LearnerParams, Learning, Model, NONE, Now, Parts, Rollout, Seen, Start, Step, Trained,
    logs_of, logs_on, normalised,
};
use params::Params;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Array, Mlp, NotFinite, Weights, gradients};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Reinforce>>(files);
}

/// A learner.
pub struct Reinforce {
    params: Params,
    policy: Mlp,
}

/// The rounds since the last update, and which of them count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Episodes {
    rollout: Rollout,
    parts: Parts,
}

impl Experience for Episodes {
    type Decision = u16;

    fn decided(&self, who: AgentId) -> Option<u16> {
        self.rollout.decided(who)
    }
}

/// The decisions of whole episodes, and what came after each until the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    inputs: Array,
    masks: Array,
    choices: Vec<u32>,
    returns: Vec<f32>,
}

impl Played {
    /// Gathers the episodes that parts of a rollout name. `last`: what is seen now.
    fn gather(rollout: &Rollout, parts: &Parts, last: &Seen, discount: f32) -> Self {
        let mut all = Played::default();
        let steps: Vec<&Step> = rollout.steps().collect();
        let seen = |at: usize| steps.get(at).map_or(last, |step| &step.seen);
        for (who, from, to) in parts.played() {
            let (mut gain, mut after) = (0.0f32, 0.0f32);
            for at in (from as usize..to as usize).rev() {
                if let Ok(row) = seen(at + 1).agents.binary_search(&who) {
                    gain += seen(at + 1).rewards[row];
                }
                let Ok(row) = steps[at].seen.agents.binary_search(&who) else { continue };
                if steps[at].choices[row] != NONE {
                    after = gain + discount * after;
                    gain = 0.0;
                    all.inputs.push(steps[at].seen.inputs.row(row));
                    all.masks.push(steps[at].seen.mask.row(row));
                    all.choices.push(u32::from(steps[at].choices[row]));
                    all.returns.push(after);
                }
            }
        }
        all
    }
}

impl Episodes {
    /// Notes whose episodes have begun and ended. Returns whether every agent has played a whole one. `updates`: those so far.
    fn note(&mut self, seen: &Seen, updates: u32) -> bool {
        let (now, first) = (self.rollout.len() as u32, updates == 0 && self.rollout.is_empty());
        self.parts.note(seen, now, first)
    }
}

impl Reinforce {
    /// Moves the weights along the gradient of the mean of log p (G - b), with p the probability of a decision, G what came after it and b
    /// the mean of G; with a baseline, in units of the standard deviation of G.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, played: &Played) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        let n = played.choices.len();
        let gains = if self.params.baseline { normalised(&played.returns) } else { played.returns.clone() };
        let found = gradients(&model.weights, n, ["the loss"], |tape, rows| {
            let (x, mask) = (tape.input(played.inputs.part(rows.clone())), tape.input(played.masks.part(rows.clone())));
            let gain = tape.input(Array::column(gains[rows.clone()].to_vec()));
            let logs = logs_on(tape, &self.policy, x, mask);
            let log = tape.pick(logs, played.choices[rows].to_vec());
            let weighted = tape.multiply(log, gain);
            let sum = tape.sum(weighted);
            [tape.scale(sum, -1.0 / n as f32)]
        })?;
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for Reinforce {
    const NAME: &'static str = "reinforce";
    const SUMMARY: &'static str =
        "Learns by policy gradients from whole episodes; a cohort shares one network (Williams 1992)";
    type Params = Params;
    type Memory = Trained<Episodes>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        let mut start = Start::open(Self::NAME, &params.keys(), false, setup)?;
        let message = format!("the world `{}` has no episodes, which it learns from", setup.world);
        Invalid::unless(setup.number("episode-ended").is_ok(), "kind", message)?;
        let policy = start.net("policy", [start.inputs(), start.choices()], 0.01);
        Ok((Reinforce { params, policy }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Episodes> {
        Trained::new(first, Episodes::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        // Some hundred rounds; how long episodes are is not known.
        500 * (row + 8)
    }

    fn step(&self, memory: &mut Trained<Episodes>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        if !now.learns {
            // Only the last decisions are read.
            memory.experience.rollout.clear();
        } else if memory.experience.note(seen, memory.updates) {
            let Episodes { rollout, parts } = &memory.experience;
            let played = Played::gather(rollout, parts, seen, self.params.discount as f32);
            if !played.choices.is_empty() {
                let model = self.update(&memory.model, &played)?;
                memory.model.set(model);
            }
            memory.updates += 1;
            memory.experience = Episodes::default();
            memory.experience.note(seen, memory.updates);
        }
        let logs = logs_of(&self.policy, &memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.chosen(seen, &logs);
        memory.experience.rollout.push(Step { seen: seen.clone(), choices, ..Step::default() });
        Ok(())
    }
}
