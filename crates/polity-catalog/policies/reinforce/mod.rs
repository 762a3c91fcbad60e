//! REINFORCE: policy gradients from whole episodes. See README.md.

mod params;
mod played;
#[cfg(test)]
mod tests;

use crate::learning::{
    Chooser, Episodes, Identity, Learner, LearnerParams, Learning, Model, Now, Seen, Start, Step, Teams, Together,
    Trained,
};
use params::{Baseline, Diversity, Learns, Params};
use played::Played;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_nn::{Array, Mlp, NotFinite, Tape, Var, Weights, gradients, outputs};
use std::ops::Range;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Reinforce>>(files);
}

/// A learner.
pub struct Reinforce {
    params: Params,
    policy: Chooser,
    /// Who plays the same episode of the world, where it matters.
    teams: Option<Teams>,
    discriminator: Option<Discriminator>,
}

/// A network that tells from a state which policy has come there.
struct Discriminator {
    net: Mlp,
    /// Numbers of a state: what is seen, less the policy, which comes last.
    state: usize,
    policies: usize,
    reward: Diversity,
}

impl Discriminator {
    /// Returns the logarithms of the probabilities of all policies for states on a tape.
    fn logs_on(&self, tape: &mut Tape<'_>, inputs: &Array, rows: Range<usize>) -> Var {
        let states = tape.input(inputs.part(rows).columns_of(0..self.state));
        let logits = self.net.on(tape, states);
        tape.log_softmax(logits)
    }

    /// Rewards states by how much more probable their own policy is there than by chance.
    fn reward(&self, weights: &Weights, played: &mut Played, discount: f32) {
        let rows = played.choices.len();
        let [logs] = outputs(weights, rows, |tape, rows| [self.logs_on(tape, &played.inputs, rows)]);
        let chance = libm::log(self.policies as f64) as f32;
        let (weight, least) = (self.reward.weight as f32, self.reward.from_return as f32);
        played.add_rewards(discount, |episode, next| {
            let known = logs.row(next)[episode.who as usize % self.policies] + chance;
            if episode.total >= least { weight * known } else { 0.0 }
        });
    }
}

impl Reinforce {
    /// Moves the weights along the gradient of the mean of A log p, with p the probability of a decision and A its advantage
    /// ([`Played::advantages`]). The discriminator learns from the same states.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, mut played: Played, now: &Now<'_>) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        if let Some(discriminator) = &self.discriminator {
            discriminator.reward(&model.weights, &mut played, self.params.discount as f32);
        }
        let learns = if now.round < self.params.best_from { Learns::All } else { self.params.learns };
        let mut advantages = played.advantages(learns, self.params.baseline, self.teams.as_ref());
        if learns == Learns::Best && self.discriminator.is_none() {
            // Most decisions have the advantage 0 and would cost most of the time.
            played.keep(&mut advantages);
        }
        let policies = self.discriminator.as_ref().map(|discriminator| {
            let mut draws = now.draws();
            played.policies(self.params.policies, discriminator.reward.scrambled.then_some(&mut draws))
        });
        let n = played.choices.len();
        if n == 0 {
            return Ok(model);
        }
        let found = gradients(&model.weights, n, ["the loss"], |tape, rows| {
            let advantage = tape.input(Array::column(advantages[rows.clone()].to_vec()));
            let logs = self.policy.logs_on(tape, &played.inputs, &played.masks, rows.clone());
            let log = tape.pick(logs, played.choices[rows.clone()].to_vec());
            let mut gain = tape.multiply(log, advantage);
            if self.params.entropy_weight > 0.0 {
                let p = tape.exp(logs);
                let surprise = tape.multiply(p, logs);
                let entropy = tape.row_sums(surprise);
                let entropy = tape.scale(entropy, -self.params.entropy_weight as f32);
                gain = tape.add(gain, entropy);
            }
            if let Some((discriminator, policies)) = self.discriminator.as_ref().zip(policies.as_ref()) {
                let logs = discriminator.logs_on(tape, &played.inputs, rows.clone());
                let log = tape.pick(logs, policies[rows].to_vec());
                gain = tape.add(gain, log);
            }
            let sum = tape.sum(gain);
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
        params.check()?;
        let identity = if params.policies > 1 { Identity::Policy(params.policies) } else { Identity::Shared };
        let mut start = Start::open(Self::NAME, &params.keys(), identity, setup)?;
        start.senses.check_episodes(setup)?;
        let together = params.learns == Learns::Best || params.baseline == Baseline::Episode;
        let teams = together.then(|| Teams::open(Together::Episode, setup)).transpose()?;
        let policy = start.chooser(params.per_choice)?;
        let discriminator = params.diversity.map(|reward| {
            let policies = params.policies as usize;
            let state = start.inputs() - policies;
            Discriminator { net: start.net("discriminator", [state, policies], 0.01), state, policies, reward }
        });
        Ok((Reinforce { params, policy, teams, discriminator }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Episodes> {
        Trained::new(first, Episodes::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        Episodes::bytes(row)
    }

    fn step(&self, memory: &mut Trained<Episodes>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        if !now.learns {
            // Only the last decisions are read.
            memory.experience.rollout.clear();
        } else if memory.experience.note(seen, memory.updates) {
            let Episodes { rollout, parts } = &memory.experience;
            let played = Played::gather(rollout, parts, seen, self.params.discount as f32);
            let model = self.update(&memory.model, played, now)?;
            memory.model.set(model);
            memory.updates += 1;
            memory.experience = Episodes::default();
            memory.experience.note(seen, memory.updates);
        }
        let logs = self.policy.logs(&memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.chosen(seen, &logs, self.params.choose);
        memory.experience.rollout.push(Step { seen: seen.clone(), choices, ..Step::default() });
        Ok(())
    }
}
