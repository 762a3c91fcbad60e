//! Soft actor-critic, with numbers. See README.md.

mod gaussians;
mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Batch, Identity, Learner, LearnerParams, Learning, Model, Now, Numbers, Replayed, Seen, Start, Temperature,
    Trained, Twin, best, check_positive, one_hot,
};
use gaussians::{Gaussians, normals};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_nn::{Array, NotFinite, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<SacContinuous>>(files);
}

/// A learner.
pub struct SacContinuous {
    params: Params,
    policy: Gaussians,
    q: Twin,
    temperature: Temperature,
}

impl SacContinuous {
    /// Returns what a decision should have been worth: r + γ (Q'(s', a') - α log p(a')), with a' drawn anew from a component, p its density,
    /// and Q' the lesser of both values by the weights of some time ago.
    fn goals(&self, weights: &Weights, target: &Weights, batch: &Batch<Numbers>, draws: &mut Draws) -> Vec<f32> {
        let (n, params) = (batch.choices.len(), &self.params);
        let alpha = self.temperature.alpha(weights);
        let mixtures = self.policy.of(weights, &batch.then);
        let mut actions = Array::EMPTY;
        let mut logs = Vec::with_capacity(n);
        for row in 0..n {
            let (action, log) = mixtures.sample(row, draws);
            actions.push(&action);
            logs.push(log);
        }
        let [later] = outputs(target, n, |tape, rows| {
            let (x, action) = (tape.input(batch.then.part(rows.clone())), tape.input(actions.part(rows)));
            let both = tape.join(&[x, action]);
            [self.q.least(tape, both, |_, value| value)]
        });
        let goal = |row: usize| {
            let then = later.data()[row] - alpha * logs[row];
            let then = if batch.ended[row] { 0.0 } else { then };
            batch.rewards[row] * params.reward_scale as f32 + params.discount as f32 * then
        };
        (0..n).map(goal).collect()
    }

    /// Moves the weights against the gradient of the sum of these means over decisions, with Q the lesser of both values, held:
    ///
    /// - (Q₁(s, a) - y)² / 2 and (Q₂(s, a) - y)² / 2, with y the goals;
    /// - the mean over components of α log p(ã) - Q(s, ã), with ã drawn from the component with density p, through which gradients flow;
    /// - log α times the entropy less the one aimed at, both held;
    /// - with several components: Σ (w - v)², with w their weights, and v 1 for the component whose ã has the highest value, 0 for others.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(
        &self,
        model: &Model,
        target: &Weights,
        batch: &Batch<Numbers>,
        draws: &mut Draws,
    ) -> Result<Model, NotFinite> {
        let (mut model, params) = (model.clone(), &self.params);
        let (n, numbers, components) = (batch.choices.len(), self.policy.numbers, self.policy.components);
        let alpha = self.temperature.alpha(&model.weights);
        let goals = self.goals(&model.weights, target, batch, draws);
        let taken = Array::new(n, numbers, batch.choices.concat());
        let noise: Vec<Array> = (0..components).map(|_| normals(n, numbers, draws)).collect();
        let names = ["the loss", "the values' loss", "the policy's loss", "the entropy"];
        let found = gradients(&model.weights, n, names, |tape, rows| {
            let x = tape.input(batch.inputs.part(rows.clone()));
            let goal = tape.input(Array::column(goals[rows.clone()].to_vec()));
            let taken = tape.input(taken.part(rows.clone()));
            let both = tape.join(&[x, taken]);
            let errors = self.q.squares(tape, both, |tape, value| tape.subtract(value, goal));
            let values_loss = tape.scale(errors, 0.5 / n as f32);

            let of = self.policy.net.on(tape, x);
            let (mut logs, mut values) = (Vec::new(), Vec::new());
            for (k, noise) in noise.iter().enumerate() {
                let drawn = self.policy.draw(tape, of, k, noise.part(rows.clone()));
                let both = tape.join(&[x, drawn.action]);
                logs.push(drawn.log);
                values.push(self.q.frozen_least(tape, both));
            }
            let (logs, values) = (tape.join(&logs), tape.join(&values));
            let surprise = tape.sum(logs);
            let each = 1.0 / (n * components) as f32;
            let entropy = tape.scale(surprise, -each);
            let worth = tape.sum(values);
            let worth = tape.scale(worth, -each);
            let surprise = tape.scale(entropy, -alpha);
            let mut policy_loss = tape.add(worth, surprise);
            if components > 1 {
                let values = tape.value(values);
                let highest = (0..values.rows()).map(|row| usize::from(best(values.row(row))));
                let highest = tape.input(one_hot(highest, components));
                let weights = self.policy.log_weights(tape, of);
                let weights = tape.exp(weights);
                let error = tape.subtract(weights, highest);
                let square = tape.square(error);
                let sum = tape.sum(square);
                let gate_loss = tape.scale(sum, 1.0 / n as f32);
                policy_loss = tape.add(policy_loss, gate_loss);
            }
            let loss = tape.add(values_loss, policy_loss);
            let share = tape.value(x).rows() as f32 / n as f32;
            let loss = self.temperature.adjusted(tape, loss, entropy, share);
            [loss, values_loss, policy_loss, entropy]
        })?;
        model.descend(found, params.learning_rate, params.max_grad_norm)?;
        Ok(model)
    }
}

impl Learner for SacContinuous {
    const NAME: &'static str = "sac-continuous";
    const SUMMARY: &'static str = "Learns numbers by soft actor-critic, with a Gaussian or a mixture of them (Haarnoja et al. 2018; Ren et al. 2021)";
    type Params = Params;
    type Memory = Trained<Replayed<Numbers>>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("alpha", params.alpha)])?;
        Invalid::within(1..=64, "components", params.components)?;
        let aims = params.target_entropy.is_none_or(f64::is_finite);
        Invalid::unless(aims, "target_entropy", "must be a finite number")?;
        let mut start = Start::open_for::<Numbers>(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        let (inputs, numbers, components) = (start.inputs(), start.choices(), params.components as usize);
        let net = start.net("policy", [inputs, Gaussians::outputs(numbers, components)], 0.01);
        if components > 1 {
            // Components that begin at the same place would all go to the same optimum.
            start.scatter(&net, Gaussians::means(numbers, components));
        }
        let q = Twin::new(&mut start, [inputs + numbers, 1]);
        let target = params.target_entropy.map(|each| each * numbers as f64);
        let temperature = Temperature::new(&mut start, params.alpha, target);
        if let Some(source) = &params.weights {
            start.take(source, setup)?;
        }
        let policy = Gaussians { net, numbers, components };
        Ok((SacContinuous { params, policy, q, temperature }, start))
    }

    fn begin(&self, first: &Weights) -> Self::Memory {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.params.buffer_rounds as usize * (row + 4 * self.policy.numbers + size_of::<Numbers>())
    }

    fn step(&self, memory: &mut Self::Memory, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let mixtures = self.policy.of(&memory.model.weights, &seen.inputs);
        let starts = self.params.learning_starts;
        let actions = now.choices(seen, |row, draws| match now.learns {
            true if now.round < starts => (0..self.policy.numbers).map(|_| draws.range(-1.0, 1.0) as f32).collect(),
            true => mixtures.sample(row, draws).0,
            false => mixtures.most_probable(row),
        });
        memory.experience.replay.push(seen.clone(), actions, now.learns, self.params.buffer_rounds);
        memory.train(&self.params.schedule(), now, |model, Replayed { target, replay }, draws| {
            let batch = replay.batch(self.params.minibatch as usize, draws);
            (!batch.choices.is_empty()).then(|| self.update(model, target, &batch, draws)).transpose()
        })
    }
}
