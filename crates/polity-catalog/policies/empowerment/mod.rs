//! Skills that reach different states, learned in the world or in a latent model of it. See README.md.

mod episodes;
mod latent;
mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Episodes, Identity, Learner, LearnerParams, Learning, Model, Now, Seen, Start, Step, Trained, logs_of, logs_on,
    one_hot, sampled,
};
use episodes::{Played, Recorded, joined};
use latent::Latent;
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_nn::{Array, Gradients, Mlp, NotFinite, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Empowerment>>(files);
}

/// A learner of skills.
pub struct Empowerment {
    params: Params,
    skills: usize,
    choices: usize,
    /// Numbers of what is seen, less the skill, which comes last.
    observed: usize,
    /// From a state and a skill to a logit for each choice.
    policy: Mlp,
    /// From a state to a logit for each skill: which of them ends there.
    posterior: Mlp,
    /// The model in which episodes are imagined, and whose latent states are then the states.
    latent: Option<Latent>,
}

impl Empowerment {
    /// Returns the states that networks see of what agents see: the same, or its latent state.
    fn states(&self, weights: &Weights, observed: &Array) -> Array {
        self.latent.as_ref().map_or_else(|| observed.clone(), |latent| latent.encoded(weights, observed))
    }

    /// Imagines as many episodes as were recorded, with the same starts and skills. Choices are drawn by the policy, and what follows by the model.
    fn imagine(&self, weights: &Weights, latent: &Latent, recorded: &Recorded, draws: &mut Draws) -> Played {
        let skills = recorded.episodes.skills.clone();
        let own = one_hot(skills.iter().map(|skill| *skill as usize), self.skills);
        let mut all = Played { skills: skills.clone(), ..Played::default() };
        let (open, candidates) =
            (Array::zeros(skills.len(), self.choices), latent.candidates(weights, recorded, draws));
        all.ends = latent.encoded(weights, &recorded.starts);
        for _ in 0..recorded.longest {
            let states = std::mem::take(&mut all.ends);
            let logs = logs_of(&self.policy, weights, &joined(&states, &own), &open);
            let choices: Vec<u32> = (0..logs.rows()).map(|row| u32::from(sampled(logs.row(row), draws))).collect();
            all.ends = latent.next(weights, &candidates, &states, &choices, draws);
            all.states.append(&states);
            all.masks.append(&open);
            all.choices.extend(choices);
            all.of.extend(0..own.rows() as u32);
        }
        all
    }

    /// Returns how much more probable the own skill is in the last state of each episode than by chance, in logarithms. Its mean is a lower
    /// bound of the information of the skill about this state (Barber and Agakov 2003).
    fn rewards(&self, weights: &Weights, episodes: &Played) -> Vec<f32> {
        let [logs] = outputs(weights, episodes.ends.rows(), |tape, rows| {
            let ends = tape.input(episodes.ends.part(rows));
            let logits = self.posterior.on(tape, ends);
            [tape.log_softmax(logits)]
        });
        let chance = libm::log(self.skills as f64) as f32;
        episodes.skills.iter().enumerate().map(|(row, skill)| logs.row(row)[*skill as usize] + chance).collect()
    }

    /// Returns what was got in each episode above the mean of its skill.
    fn advantages(&self, rewards: &[f32], skills: &[u32]) -> Vec<f32> {
        let mut sums = vec![(0.0f32, 0.0f32); self.skills];
        for (reward, skill) in rewards.iter().zip(skills) {
            let (sum, n) = &mut sums[*skill as usize];
            (*sum, *n) = (*sum + reward, *n + 1.0);
        }
        let above = |(reward, skill): (&f32, &u32)| reward - sums[*skill as usize].0 / sums[*skill as usize].1;
        rewards.iter().zip(skills).map(above).collect()
    }

    /// Returns the gradients by which decisions become more probable that led to telling states, and by which the posterior learns.
    fn learn(&self, weights: &Weights, episodes: &Played) -> Result<Gradients<1>, NotFinite> {
        let advantages = self.advantages(&self.rewards(weights, episodes), &episodes.skills);
        let skills = episodes.of.iter().map(|episode| episodes.skills[*episode as usize] as usize);
        let inputs = joined(&episodes.states, &one_hot(skills, self.skills));
        let n = episodes.choices.len();
        let mut found = gradients(weights, n, ["the loss of the policy"], |tape, rows| {
            let gains = episodes.of[rows.clone()].iter().map(|episode| advantages[*episode as usize]).collect();
            let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(episodes.masks.part(rows.clone())));
            let logs = logs_on(tape, &self.policy, x, mask);
            let log = tape.pick(logs, episodes.choices[rows].to_vec());
            let advantage = tape.input(Array::column(gains));
            let gain = tape.multiply(log, advantage);
            let p = tape.exp(logs);
            let surprise = tape.multiply(p, logs);
            let entropy = tape.row_sums(surprise);
            let entropy = tape.scale(entropy, -self.params.entropy_weight as f32);
            let gain = tape.add(gain, entropy);
            let sum = tape.sum(gain);
            [tape.scale(sum, -1.0 / n as f32)]
        })?;
        let n = episodes.skills.len();
        let posterior = gradients(weights, n, ["the loss of the posterior"], |tape, rows| {
            let ends = tape.input(episodes.ends.part(rows.clone()));
            let logits = self.posterior.on(tape, ends);
            let logs = tape.log_softmax(logits);
            let log = tape.pick(logs, episodes.skills[rows].to_vec());
            let sum = tape.sum(log);
            [tape.scale(sum, -1.0 / n as f32)]
        })?;
        add(&mut found, &posterior);
        Ok(found)
    }

    /// Learns from recorded episodes: directly, or the latent model from these and the skills from imagined ones.
    fn update(&self, model: &Model, recorded: &Recorded, draws: &mut Draws) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        if recorded.then.rows() == 0 {
            return Ok(model);
        }
        let found = match &self.latent {
            None => self.learn(&model.weights, &recorded.episodes)?,
            Some(latent) => {
                let imagined = self.imagine(&model.weights, latent, recorded, draws);
                let mut found = self.learn(&model.weights, &imagined)?;
                add(&mut found, &latent.learn(&model.weights, recorded, draws)?);
                found
            }
        };
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

/// Adds gradients of the same weights.
fn add(sum: &mut Gradients<1>, more: &Gradients<1>) {
    sum.of.iter_mut().zip(&more.of).for_each(|(sum, x)| sum.add(x));
}

impl Learner for Empowerment {
    const NAME: &'static str = "empowerment";
    const SUMMARY: &'static str =
        "Learns skills that reach different states, in the world or in a latent model of it (Levy et al. 2024)";
    type Params = Params;
    type Memory = Trained<Episodes>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        params.check()?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Policy(params.skills), setup)?;
        start.senses.check_episodes(setup)?;
        let (skills, choices) = (params.skills as usize, start.choices());
        let observed = start.inputs() - skills;
        let state = params.latent.map_or(observed, |latent| latent.size);
        let policy = start.net("policy", [state + skills, choices], 0.01);
        let posterior = start.net("posterior", [state, skills], 0.01);
        let latent = params.latent.map(|source| Latent::open(source, observed, &mut start));
        // Other policies could not play weights that see latent states.
        start.about = None;
        Ok((Empowerment { params, skills, choices, observed, policy, posterior, latent }, start))
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
            let recorded = Recorded::gather(rollout, parts, self.observed);
            let model = self.update(&memory.model, &recorded, &mut now.draws())?;
            memory.learned(model);
            memory.experience = Episodes::default();
            memory.experience.note(seen, memory.updates);
        }
        let weights = &memory.model.weights;
        let columns = seen.inputs.columns();
        let states = self.states(weights, &seen.inputs.columns_of(0..self.observed));
        let inputs = joined(&states, &seen.inputs.columns_of(self.observed..columns));
        let logs = logs_of(&self.policy, weights, &inputs, &seen.mask);
        let choices = now.chosen(seen, &logs, self.params.choose);
        memory.experience.rollout.push(Step { seen: seen.clone(), choices, ..Step::default() });
        Ok(())
    }
}
