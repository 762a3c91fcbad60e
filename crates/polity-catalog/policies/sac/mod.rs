//! Soft actor-critic, with choices. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Choose, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, Temperature, Trained,
    Twin, check_positive, check_shares, logs_of, logs_on,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Array, Mlp, NotFinite, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Sac>>(files);
}

/// A learner.
pub struct Sac {
    params: Params,
    policy: Mlp,
    q: Twin,
    temperature: Temperature,
}

impl Sac {
    /// Returns the lesser of both values of all choices.
    fn values(&self, weights: &Weights, inputs: &Array) -> Array {
        let [values] = outputs(weights, inputs.rows(), |tape, rows| {
            let x = tape.input(inputs.part(rows));
            [self.q.least(tape, x, |_, values| values)]
        });
        values
    }

    /// Moves the weights against the gradient of the sum of these means over decisions, with p the probabilities of choices, Q the lesser of
    /// both values, and sums over choices:
    ///
    /// - (Q₁(s, a) - y)² / 2 and (Q₂(s, a) - y)² / 2, with y = r + γ Σ p(s') (Q'(s') - α log p(s')), where Q' has the weights of some time ago;
    /// - Σ p (α log p - Q), with Q and α held;
    /// - log α times the entropy less the one aimed at, both held.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, target: &Weights, batch: &Batch) -> Result<Model, NotFinite> {
        let (mut model, params) = (model.clone(), &self.params);
        let n = batch.choices.len();
        let alpha = self.temperature.alpha(&model.weights);
        let later_logs = logs_of(&self.policy, &model.weights, &batch.then, &batch.then_masks);
        let later = self.values(target, &batch.then);
        let goal = |i: usize| {
            let terms = later_logs.row(i).iter().zip(later.row(i));
            let then: f32 = terms.map(|(log, q)| libm::expf(*log) * (q - alpha * log)).sum();
            let then = if batch.ended[i] { 0.0 } else { then };
            batch.rewards[i] * params.reward_scale as f32 + params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let values = self.values(&model.weights, &batch.inputs);
        let names = ["the loss", "the values' loss", "the policy's loss", "the entropy"];
        let found = gradients(&model.weights, n, names, |tape, rows| {
            let x = tape.input(batch.inputs.part(rows.clone()));
            let goal = tape.input(Array::column(goals[rows.clone()].to_vec()));
            let errors = self.q.squares(tape, x, |tape, values| {
                let value = tape.pick(values, batch.choices[rows.clone()].to_vec());
                tape.subtract(value, goal)
            });
            let values_loss = tape.scale(errors, 0.5 / n as f32);

            let mask = tape.input(batch.masks.part(rows.clone()));
            let values = tape.input(values.part(rows));
            let logs = logs_on(tape, &self.policy, x, mask);
            let p = tape.exp(logs);
            let surprise = tape.multiply(p, logs);
            let surprise = tape.sum(surprise);
            let entropy = tape.scale(surprise, -1.0 / n as f32);
            let expected = tape.multiply(p, values);
            let expected = tape.sum(expected);
            let expected = tape.scale(expected, 1.0 / n as f32);
            let worth = tape.scale(entropy, -alpha);
            let policy_loss = tape.subtract(worth, expected);
            let loss = tape.add(values_loss, policy_loss);
            let share = tape.value(x).rows() as f32 / n as f32;
            let loss = self.temperature.adjusted(tape, loss, entropy, share);
            [loss, values_loss, policy_loss, entropy]
        })?;
        model.descend(found, params.learning_rate, params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for Sac {
    const NAME: &'static str = "sac";
    const SUMMARY: &'static str =
        "Learns by soft actor-critic, with choices; a cohort shares its networks (Haarnoja et al. 2018)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("alpha", params.alpha)])?;
        check_shares(&[("target_entropy", params.target_entropy.unwrap_or_default())])?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        let sizes = [start.inputs(), start.choices()];
        let policy = start.net("policy", sizes, 0.01);
        let q = Twin::new(&mut start, sizes);
        let target = params.target_entropy.map(|part| part * libm::log(sizes[1] as f64));
        let temperature = Temperature::new(&mut start, params.alpha, target);
        Ok((Sac { params, policy, q, temperature }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.params.buffer_rounds as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let logs = logs_of(&self.policy, &memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.chosen(seen, &logs, Choose::Best);
        memory.experience.replay.push(seen.clone(), choices, now.learns, self.params.buffer_rounds);
        memory.train(&self.params.schedule(), now, |model, Replayed { target, replay }, draws| {
            let batch = replay.batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, target, &batch)).transpose()
        })
    }
}
