//! REINFORCE: policy gradients from whole episodes. See README.md.

mod params;
mod played;
#[cfg(test)]
mod tests;

use crate::learning::{
    Chooser, Experience, Identity, Learner, LearnerParams, Learning, Model, Now, Parts, Rollout, Seen, Start, Step,
    Teams, Together, Trained, logs_of,
};
use params::{Baseline, Diversity, Learns, Params};
use played::Played;
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
    policy: Chooser,
    /// Who plays the same episode of the world, where it matters.
    teams: Option<Teams>,
    /// Tells from a state which policy has come there, and what that is worth.
    discriminator: Option<(Mlp, Diversity)>,
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

impl Episodes {
    /// Notes whose episodes have begun and ended. Returns whether every agent has played a whole one. `updates`: those so far.
    fn note(&mut self, seen: &Seen, updates: u32) -> bool {
        let (now, first) = (self.rollout.len() as u32, updates == 0 && self.rollout.is_empty());
        self.parts.note(seen, now, first)
    }
}

impl Reinforce {
    /// Returns the number of inputs that do not tell the policy, which come first.
    fn states(&self, inputs: &Array) -> usize {
        inputs.columns() - if self.params.policies > 1 { self.params.policies as usize } else { 0 }
    }

    /// Rewards states by which the discriminator knows the policy that came there.
    fn reward_diversity(&self, weights: &Weights, played: &mut Played) {
        let Some((net, diversity)) = &self.discriminator else { return };
        let states = played.inputs.columns_of(0..self.states(&played.inputs));
        let logs = logs_of(net, weights, &states, &Array::zeros(states.rows(), self.params.policies as usize));
        let chance = libm::log(f64::from(self.params.policies)) as f32;
        let (weight, least) = (diversity.weight as f32, diversity.from_return as f32);
        played.add_rewards(self.params.discount as f32, |episode, next| {
            let known = logs.row(next)[(episode.who % self.params.policies) as usize] + chance;
            if episode.total >= least { weight * known } else { 0.0 }
        });
    }

    /// Moves the weights along the gradient of the mean of log p (G - b), with p the probability of a decision, G what came after it and b
    /// the baseline ([`Played::gains`]). The discriminator learns from the same states.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, played: &mut Played, now: &Now<'_>) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        self.reward_diversity(&model.weights, played);
        let learns = if now.round < self.params.best_from { Learns::All } else { self.params.learns };
        let gains = played.gains(learns, self.params.baseline, self.teams.as_ref());
        // Only those that count change the policy; the discriminator learns from all.
        let counts: Vec<u32> = (0u32..).zip(&gains).filter(|(_, gain)| **gain != 0.0).map(|(row, _)| row).collect();
        let some = learns == Learns::Best && self.discriminator.is_none() && !counts.is_empty();
        let (played, gains) = match some {
            true => (&played.only(&counts), counts.iter().map(|row| gains[*row as usize]).collect()),
            false => (&*played, gains),
        };
        let (n, states) = (played.choices.len(), self.states(&played.inputs));
        let policies = self.discriminator.as_ref().map(|(_, diversity)| {
            let mut draws = now.draws();
            played.policies(self.params.policies, diversity.scrambled.then_some(&mut draws))
        });
        let found = gradients(&model.weights, n, ["the loss"], |tape, rows| {
            let gain = tape.input(Array::column(gains[rows.clone()].to_vec()));
            let logs = self.policy.logs_on(tape, &played.inputs, &played.masks, rows.clone());
            let log = tape.pick(logs, played.choices[rows.clone()].to_vec());
            let mut weighted = tape.multiply(log, gain);
            if self.params.entropy_weight > 0.0 {
                let p = tape.exp(logs);
                let surprise = tape.multiply(p, logs);
                let entropy = tape.row_sums(surprise);
                let entropy = tape.scale(entropy, -self.params.entropy_weight as f32);
                weighted = tape.add(weighted, entropy);
            }
            if let Some(((net, _), policies)) = self.discriminator.as_ref().zip(policies.as_ref()) {
                let states = tape.input(played.inputs.part(rows.clone()).columns_of(0..states));
                let logits = net.on(tape, states);
                let logs = tape.log_softmax(logits);
                let log = tape.pick(logs, policies[rows].to_vec());
                weighted = tape.add(weighted, log);
            }
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
        params.check()?;
        let identity = if params.policies > 1 { Identity::Policy(params.policies) } else { Identity::Shared };
        let mut start = Start::open(Self::NAME, &params.keys(), identity, setup)?;
        let message = format!("the world `{}` has no episodes, which it learns from", setup.world);
        Invalid::unless(setup.number("episode-ended").is_ok(), "kind", message)?;
        let together = params.learns == Learns::Best || params.baseline == Baseline::Episode;
        let teams = together.then(|| Teams::open(Together::Episode, setup)).transpose()?;
        let policy = start.chooser(params.per_choice)?;
        let discriminator = params.diversity.map(|diversity| {
            let policies = params.policies as usize;
            (start.net("discriminator", [start.inputs() - policies, policies], 0.01), diversity)
        });
        Ok((Reinforce { params, policy, teams, discriminator }, start))
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
            let mut played = Played::gather(rollout, parts, seen, self.params.discount as f32);
            if !played.choices.is_empty() {
                let model = self.update(&memory.model, &mut played, now)?;
                memory.model.set(model);
            }
            memory.updates += 1;
            memory.experience = Episodes::default();
            memory.experience.note(seen, memory.updates);
        }
        let logs = self.policy.logs(&memory.model.weights, &seen.inputs, &seen.mask);
        let choices = match now.learns {
            true => now.chosen(seen, &logs),
            false => now.choices(seen, |row, draws| self.params.choose.of(logs.row(row), draws)),
        };
        memory.experience.rollout.push(Step { seen: seen.clone(), choices, ..Step::default() });
        Ok(())
    }
}
