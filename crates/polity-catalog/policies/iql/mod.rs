//! Implicit Q-learning. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Data, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, Trained, Twin,
    check_shares, check_weights, logs_of, logs_on,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Array, Gradients, Mlp, NotFinite, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Iql>>(files);
}

/// The largest weight of a decision in the policy's loss, as in the paper's code.
const MOST: f32 = 100.0;

/// A learner.
pub struct Iql {
    params: Params,
    policy: Mlp,
    q: Twin,
    value: Mlp,
    data: Data,
}

impl Iql {
    /// Returns for each row the lesser of both values of what was chosen.
    fn worth(&self, weights: &Weights, batch: &Batch) -> Vec<f32> {
        let [worth] = outputs(weights, batch.choices.len(), |tape, rows| {
            let x = tape.input(batch.inputs.part(rows.clone()));
            [self.q.least(tape, x, |tape, values| tape.pick(values, batch.choices[rows.clone()].to_vec()))]
        });
        worth.data().to_vec()
    }

    /// Returns V(s) for each row of what is seen.
    fn expected(&self, weights: &Weights, inputs: &Array) -> Vec<f32> {
        let [values] = outputs(weights, inputs.rows(), |tape, rows| {
            let x = tape.input(inputs.part(rows));
            [self.value.on(tape, x)]
        });
        values.data().to_vec()
    }

    /// Returns the gradient of the sum of these means over decisions, with A = Q'(s, a) - V(s), where Q' is the lesser of
    /// both values with the weights of some time ago:
    ///
    /// - |τ - 1(A < 0)| A² by V, with Q' held: V is an expectile of what choices in the data are worth;
    /// - (Q₁(s, a) - y)² and (Q₂(s, a) - y)², with y = r + γ V(s') held;
    /// - -min(exp(β A), 100) log p, with A held: the policy imitates choices that are better than expected.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn slope(&self, weights: &Weights, target: &Weights, batch: &Batch) -> Result<Gradients<4>, NotFinite> {
        let params = &self.params;
        let n = batch.choices.len();
        let worth = self.worth(target, batch);
        let expected = self.expected(weights, &batch.inputs);
        let later = self.expected(weights, &batch.then);
        let (expectile, beta) = (params.expectile as f32, params.temperature as f32);
        let advantages: Vec<f32> = worth.iter().zip(&expected).map(|(q, v)| q - v).collect();
        let sides: Vec<f32> = advantages.iter().map(|a| if *a < 0.0 { 1.0 - expectile } else { expectile }).collect();
        let shares: Vec<f32> = advantages.iter().map(|a| libm::expf(beta * a).min(MOST)).collect();
        let goal = |i: usize| {
            let then = if batch.ended[i] { 0.0 } else { later[i] };
            batch.rewards[i] * params.reward_scale as f32 + params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let names = ["the loss", "the expectile's loss", "the values' loss", "the policy's loss"];
        gradients(weights, n, names, |tape, rows| {
            let column = |of: &[f32]| Array::column(of[rows.clone()].to_vec());
            let x = tape.input(batch.inputs.part(rows.clone()));
            let (worth, side) = (tape.input(column(&worth)), tape.input(column(&sides)));
            let value = self.value.on(tape, x);
            let error = tape.subtract(worth, value);
            let square = tape.square(error);
            let weighted = tape.multiply(square, side);
            let expectile_loss = tape.sum(weighted);

            let goal = tape.input(column(&goals));
            let values_loss = self.q.squares(tape, x, |tape, values| {
                let value = tape.pick(values, batch.choices[rows.clone()].to_vec());
                tape.subtract(value, goal)
            });

            let (mask, weight) = (tape.input(batch.masks.part(rows.clone())), tape.input(column(&shares)));
            let logs = logs_on(tape, &self.policy, x, mask);
            let log = tape.pick(logs, batch.choices[rows.clone()].to_vec());
            let weighted = tape.multiply(log, weight);
            let sum = tape.sum(weighted);
            let policy_loss = tape.scale(sum, -1.0);

            let losses = [expectile_loss, values_loss, policy_loss].map(|loss| tape.scale(loss, 1.0 / n as f32));
            let loss = tape.add(losses[0], losses[1]);
            [tape.add(loss, losses[2]), losses[0], losses[1], losses[2]]
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

impl Learner for Iql {
    const NAME: &'static str = "iql";
    const SUMMARY: &'static str =
        "Learns from recorded agents which of their choices were good, by implicit Q-learning (Kostrikov et al. 2021)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_shares(&[("expectile", params.expectile)])?;
        check_weights(&[("temperature", params.temperature)])?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        let data = Data::open(params.data.as_ref(), &start.senses, setup)?;
        let sizes = [start.inputs(), start.choices()];
        let policy = start.net("policy", sizes, 0.01);
        let q = Twin::new(&mut start, sizes);
        let value = start.net("value", [sizes[0], 1], 1.0);
        Ok((Iql { params, policy, q, value, data }, start))
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
        memory.train(&self.params.schedule(), now, |model, Replayed { target, replay }, draws| {
            let batch = self.data.or(replay).batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, target, &batch)).transpose()
        })
    }
}
