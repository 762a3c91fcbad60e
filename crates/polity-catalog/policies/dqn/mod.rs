//! Deep Q-learning. See README.md.

mod network;
mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, Trained, best, values_by,
};
use network::Values;
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Array, NotFinite, Weights, gradients};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Dqn>>(files);
}

/// A learner.
pub struct Dqn {
    params: Params,
    q: Values,
}

impl Dqn {
    fn values(&self, weights: &Weights, inputs: &Array, masks: &Array) -> Array {
        values_by(|tape, x| self.q.on(tape, x), weights, inputs, masks)
    }

    /// Moves the weights against the gradient of the mean of (Q(s, a) - y)² / 2, with y = r + γ Q'(s', argmax Q(s', ·)), where Q' has the
    /// weights of some time ago.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, target: &Weights, batch: &Batch) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        let later = self.values(target, &batch.then, &batch.then_masks);
        let judged = match self.params.double {
            true => self.values(&model.weights, &batch.then, &batch.then_masks),
            false => later.clone(),
        };
        let n = batch.choices.len();
        let goal = |i: usize| {
            let then = if batch.ended[i] { 0.0 } else { later.row(i)[usize::from(best(judged.row(i)))] };
            batch.rewards[i] + self.params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let found = gradients(&model.weights, n, ["the loss"], |tape, rows| {
            let x = tape.input(batch.inputs.part(rows.clone()));
            let goal = tape.input(Array::column(goals[rows.clone()].to_vec()));
            let values = self.q.on(tape, x);
            let value = tape.pick(values, batch.choices[rows].to_vec());
            let error = tape.subtract(value, goal);
            let square = tape.square(error);
            let sum = tape.sum(square);
            [tape.scale(sum, 0.5 / n as f32)]
        })?;
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for Dqn {
    const NAME: &'static str = "dqn";
    const SUMMARY: &'static str = "Learns the values of choices with a network; a cohort shares it (Mnih et al. 2015)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?.of_values();
        let q = Values::open(params.patches.as_ref(), &mut start)?;
        Ok((Dqn { params, q }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.params.buffer_rounds as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let values = self.values(&memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.greedy(seen, &values, self.params.exploration().at(now.round));
        memory.experience.replay.push(seen.clone(), choices, now.learns, self.params.buffer_rounds);
        memory.train(&self.params.schedule(), now, |model, Replayed { target, replay }, draws| {
            let batch = replay.batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, target, &batch)).transpose()
        })
    }
}
