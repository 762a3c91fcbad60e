//! Behaviour cloning. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Data, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, Trained, logs_of,
    logs_on,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Gradients, Mlp, NotFinite, Weights, gradients};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Bc>>(files);
}

/// A learner.
pub struct Bc {
    params: Params,
    policy: Mlp,
    data: Data,
}

impl Bc {
    /// Returns the gradient of the mean of -log p, with p the probability of what was chosen.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn slope(&self, weights: &Weights, batch: &Batch) -> Result<Gradients<1>, NotFinite> {
        let n = batch.choices.len();
        gradients(weights, n, ["the loss"], |tape, rows| {
            let (x, mask) = (tape.input(batch.inputs.part(rows.clone())), tape.input(batch.masks.part(rows.clone())));
            let logs = logs_on(tape, &self.policy, x, mask);
            let log = tape.pick(logs, batch.choices[rows].to_vec());
            let sum = tape.sum(log);
            [tape.scale(sum, -1.0 / n as f32)]
        })
    }

    /// Moves the weights against the gradient.
    fn update(&self, model: &Model, batch: &Batch) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        let found = self.slope(&model.weights, batch)?;
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for Bc {
    const NAME: &'static str = "bc";
    const SUMMARY: &'static str = "Learns to choose as recorded agents did, by behaviour cloning (Pomerleau 1988)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        let data = Data::open(params.data.as_ref(), &start.senses, setup)?;
        let policy = start.net("policy", [start.inputs(), start.choices()], 0.01);
        Ok((Bc { params, policy, data }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.data.remembers(self.params.buffer_rounds) as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let logs = logs_of(&self.policy, &memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.choices(seen, |row, draws| self.params.choose.of(logs.row(row), draws));
        let most = self.data.remembers(self.params.buffer_rounds);
        memory.experience.replay.push(seen.clone(), choices, now.learns, most);
        memory.train(&self.params.schedule(), now, |model, Replayed { replay, .. }, draws| {
            let batch = self.data.or(replay).batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, &batch)).transpose()
        })
    }
}
