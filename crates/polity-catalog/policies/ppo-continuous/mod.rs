//! Proximal policy optimisation, with numbers. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    ClippedLoss, Decisions, Identity, Learner, LearnerParams, Learning, Model, Now, Numbers, Rollout, Seen, Start,
    Step, Trained, check_positive, generalised_advantages, normalised,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, NotFinite, Tape, Var, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<PpoContinuous>>(files);
}

/// Returns the logarithm of an action's density, less a constant. An action without numbers has 0.
fn log_density(means: &[f32], log_deviations: &[f32], action: &[f32]) -> f32 {
    let numbers = action.iter().zip(means).zip(log_deviations);
    let each = numbers.map(|((number, mean), log)| {
        let z = (number - mean) * libm::expf(-log);
        f64::from(-0.5 * z * z - log)
    });
    each.sum::<f64>() as f32
}

/// A learner.
pub struct PpoContinuous {
    params: Params,
    /// The means of the numbers.
    policy: Mlp,
    value: Mlp,
    /// The number of the tensor with the logarithms of their standard deviations, which are the same for all that is seen.
    deviations: usize,
    numbers: usize,
}

impl PpoContinuous {
    /// Returns the logarithms of the deviations, in a row for each of so many.
    fn log_deviations(&self, tape: &mut Tape<'_>, rows: usize) -> Var {
        let (ones, of) = (tape.input(Array::column(vec![1.0; rows])), tape.weight(self.deviations));
        let zeros = tape.input(Array::zeros(1, self.numbers));
        tape.affine(ones, of, zeros)
    }

    /// Returns the same as [`log_density`] on a tape, as a column.
    fn log_densities(&self, tape: &mut Tape<'_>, [means, log_deviations]: [Var; 2], actions: Var) -> Var {
        let away = tape.subtract(actions, means);
        let precision = tape.scale(log_deviations, -1.0);
        let precision = tape.exp(precision);
        let z = tape.multiply(away, precision);
        let square = tape.square(z);
        let square = tape.scale(square, -0.5);
        let each = tape.subtract(square, log_deviations);
        tape.row_sums(each)
    }

    /// Returns the mean of each action, the logarithms of its deviations, and what can be expected.
    fn outlook(&self, weights: &Weights, inputs: &Array) -> [Array; 3] {
        outputs(weights, inputs.rows(), |tape, rows| {
            let n = rows.len();
            let x = tape.input(inputs.part(rows));
            [self.policy.on(tape, x), self.log_deviations(tape, n), self.value.on(tape, x)]
        })
    }

    /// Learns from decisions by [`ClippedLoss`], with the densities of actions in place of probabilities.
    fn update(
        &self,
        model: &Model,
        decisions: &Decisions<Numbers>,
        now: &Now<'_>,
        draws: &mut Draws,
    ) -> Result<Model, NotFinite> {
        let (params, mut model) = (&self.params, model.clone());
        let advantages = generalised_advantages(decisions, params.discount as f32, params.lambda as f32);
        let returns: Vec<f32> = advantages.iter().zip(&decisions.values).map(|(a, v)| a + v).collect();
        let left = if params.anneal { 1.0 - f64::from(now.round) / f64::from(now.rounds.max(1)) } else { 1.0 };
        let clipped =
            ClippedLoss { clip: params.clip, value_weight: params.value_weight, entropy_weight: params.entropy_weight };
        let mut order: Vec<u32> = (0..decisions.len() as u32).collect();
        for _ in 0..params.epochs {
            draws.shuffle(&mut order);
            for batch in order.chunks(params.minibatch as usize) {
                let of = |numbers: &[f32]| batch.iter().map(|i| numbers[*i as usize]).collect::<Vec<f32>>();
                let (advantages, returns, old) = (normalised(&of(&advantages)), of(&returns), of(&decisions.logs));
                let names = ["the loss", "the policy's loss", "the value's loss", "the entropy"];
                let found = gradients(&model.weights, batch.len(), names, |tape, rows| {
                    let picked = &batch[rows.clone()];
                    let x = tape.input(decisions.inputs.pick(picked));
                    let column = |numbers: &[f32]| Array::column(numbers[rows.clone()].to_vec());
                    let (advantage, goal, old) =
                        (tape.input(column(&advantages)), tape.input(column(&returns)), tape.input(column(&old)));
                    let actions = picked.iter().flat_map(|i| decisions.choices[*i as usize].iter().copied()).collect();
                    let actions = tape.input(Array::new(picked.len(), self.numbers, actions));
                    let (means, log_deviations) = (self.policy.on(tape, x), self.log_deviations(tape, picked.len()));
                    let log = self.log_densities(tape, [means, log_deviations], actions);
                    let value = self.value.on(tape, x);
                    // The entropy of a Gaussian is the logarithm of its deviation and a constant.
                    clipped.on(tape, [log, old], advantage, [value, goal], (log_deviations, 1.0), batch.len())
                })?;
                model.descend(found, params.learning_rate * left, params.max_grad_norm)?;
            }
        }
        Ok(model)
    }
}

impl Learner for PpoContinuous {
    const NAME: &'static str = "ppo-continuous";
    const SUMMARY: &'static str =
        "Learns numbers by proximal policy optimisation with a Gaussian (Schulman et al. 2017)";
    type Params = Params;
    type Memory = Trained<Rollout<Numbers>>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("deviation", params.deviation)])?;
        let mut start = Start::open_for::<Numbers>(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        let (inputs, numbers) = (start.inputs(), start.choices());
        let policy = start.net("policy", [inputs, numbers], 0.01);
        let value = start.net("value", [inputs, 1], 1.0);
        let first = vec![libm::log(params.deviation) as f32; numbers];
        let deviations = start.first.push("log-deviations", Array::new(1, numbers, first));
        if let Some(source) = &params.weights {
            start.take(source, setup)?;
        }
        Ok((PpoContinuous { params, policy, value, deviations, numbers }, start))
    }

    fn begin(&self, first: &Weights) -> Self::Memory {
        Trained::new(first, Rollout::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        // What waits to be learned from, and the batch that is made of it.
        self.params.horizon as usize * 2 * (row + 4 * self.numbers + size_of::<Numbers>() + 24)
    }

    fn step(&self, memory: &mut Self::Memory, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let mut outlook = self.outlook(&memory.model.weights, &seen.inputs);
        if now.learns && memory.experience.len() >= self.params.horizon as usize {
            let mut decisions = memory.experience.decisions(seen, outlook[2].data(), None, |_| true);
            decisions.rewards.iter_mut().for_each(|reward| *reward *= self.params.reward_scale as f32);
            let model = self.update(&memory.model, &decisions, now, &mut now.draws())?;
            memory.learned(model);
            outlook = self.outlook(&memory.model.weights, &seen.inputs);
            memory.experience.clear();
        }
        if !now.learns {
            // Only the last decisions are read.
            memory.experience.clear();
        }
        let [means, log_deviations, values] = outlook;
        let choices: Vec<Numbers> = now.choices(seen, |row, draws| {
            let mean = means.row(row).iter();
            match now.learns {
                true => {
                    let draw = |(mean, log): (&f32, &f32)| mean + libm::expf(*log) * draws.normal() as f32;
                    mean.zip(log_deviations.row(row)).map(draw).collect()
                }
                false => mean.copied().collect(),
            }
        });
        let log = |(row, action): (usize, &Numbers)| log_density(means.row(row), log_deviations.row(row), action);
        let logs = choices.iter().enumerate().map(log).collect();
        memory.experience.push(Step { seen: seen.clone(), choices, logs, values: values.data().to_vec() });
        Ok(())
    }
}
