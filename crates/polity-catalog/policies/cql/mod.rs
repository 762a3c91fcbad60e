//! Conservative Q-learning, with choices. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Data, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, Trained, best,
    check_weights, values_of,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Array, Gradients, Mlp, NotFinite, Weights, gradients};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Cql>>(files);
}

/// A learner.
pub struct Cql {
    params: Params,
    q: Mlp,
    data: Data,
}

impl Cql {
    /// Returns the gradient of the mean of
    ///
    /// (Q(s, a) - y)² / 2 + α (log Σ exp Q(s, ·) - Q(s, a)),
    ///
    /// with y = r + γ Q'(s', argmax Q(s', ·)), where Q' has the weights of some time ago. The second part makes choices that are not in the
    /// data worth less.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn slope(&self, weights: &Weights, target: &Weights, batch: &Batch) -> Result<Gradients<3>, NotFinite> {
        let params = &self.params;
        let later = values_of(&self.q, target, &batch.then, &batch.then_masks);
        let judged = values_of(&self.q, weights, &batch.then, &batch.then_masks);
        let n = batch.choices.len();
        let goal = |i: usize| {
            let then = if batch.ended[i] { 0.0 } else { later.row(i)[usize::from(best(judged.row(i)))] };
            batch.rewards[i] * params.reward_scale as f32 + params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let names = ["the loss", "the values' loss", "the conservative loss"];
        gradients(weights, n, names, |tape, rows| {
            let (x, mask) = (tape.input(batch.inputs.part(rows.clone())), tape.input(batch.masks.part(rows.clone())));
            let goal = tape.input(Array::column(goals[rows.clone()].to_vec()));
            let values = self.q.on(tape, x);
            let value = tape.pick(values, batch.choices[rows.clone()].to_vec());
            let error = tape.subtract(value, goal);
            let square = tape.square(error);
            let sum = tape.sum(square);
            let values_loss = tape.scale(sum, 0.5 / n as f32);

            // The second part is the cross entropy of choices, with values as logits.
            let offered = tape.add(values, mask);
            let logs = tape.log_softmax(offered);
            let log = tape.pick(logs, batch.choices[rows].to_vec());
            let sum = tape.sum(log);
            let conservative = tape.scale(sum, -params.alpha as f32 / n as f32);
            [tape.add(values_loss, conservative), values_loss, conservative]
        })
    }

    /// Moves the weights against the gradient.
    fn update(&self, model: &Model, target: &Weights, batch: &Batch) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        let found = self.slope(&model.weights, target, batch)?;
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for Cql {
    const NAME: &'static str = "cql";
    const SUMMARY: &'static str =
        "Learns what choices of recorded agents were worth, by conservative Q-learning (Kumar et al. 2020)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_weights(&[("alpha", params.alpha)])?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?.of_values();
        let data = Data::open(params.data.as_ref(), &start.senses, setup)?;
        let q = start.net("policy", [start.inputs(), start.choices()], 1.0);
        Ok((Cql { params, q, data }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.data.remembers(self.params.buffer_rounds) as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let values = values_of(&self.q, &memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.choices(seen, |row, _| best(values.row(row)));
        let most = self.data.remembers(self.params.buffer_rounds);
        memory.experience.replay.push(seen.clone(), choices, now.learns, most);
        memory.train(&self.params.schedule(), now, |model, Replayed { target, replay }, draws| {
            let batch = self.data.or(replay).batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, target, &batch)).transpose()
        })
    }
}
