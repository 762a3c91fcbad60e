//! REINFORCE: policy gradients from whole episodes. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    About, Kept, NONE, Returns, Rollout, Seen, Senses, Step, best, episode_return, net, normalised, sampled,
};
use params::Params;
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Adam, Array, Mlp, NotFinite, Weights, clip, gradients, outputs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Reinforce>(files);
}

/// A learner.
pub struct Reinforce {
    params: Params,
    senses: Senses,
    about: About,
    policy: Mlp,
    first: Weights,
}

/// A network and the state of its optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    weights: Weights,
    adam: Adam,
}

/// Which rounds since the last update are an agent's first whole episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// None yet: it is in the midst of an episode that began before.
    Waiting,
    /// Those from this one on.
    Playing(u32),
    /// Those from the first to before the second.
    Played(u32, u32),
}

/// What a cohort shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    model: Kept<Model>,
    rollout: Rollout,
    parts: BTreeMap<AgentId, Part>,
    updates: u32,
}

/// The decisions of whole episodes, and what came after each until the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    inputs: Array,
    masks: Array,
    choices: Vec<u32>,
    returns: Vec<f32>,
}

impl Played {
    /// Gathers the episodes that parts of a rollout name. `last`: what is seen now.
    fn gather(rollout: &Rollout, parts: &BTreeMap<AgentId, Part>, last: &Seen, discount: f32) -> Self {
        let mut all = Played::default();
        let steps: Vec<&Step> = rollout.steps().collect();
        let seen = |at: usize| steps.get(at).map_or(last, |step| &step.seen);
        for (who, part) in parts {
            let Part::Played(from, to) = *part else { continue };
            let (mut gain, mut after) = (0.0f32, 0.0f32);
            for at in (from as usize..to as usize).rev() {
                if let Ok(row) = seen(at + 1).agents.binary_search(who) {
                    gain += seen(at + 1).rewards[row];
                }
                let Ok(row) = steps[at].seen.agents.binary_search(who) else { continue };
                if steps[at].choices[row] != NONE {
                    after = gain + discount * after;
                    gain = 0.0;
                    all.inputs.push(steps[at].seen.inputs.row(row));
                    all.masks.push(steps[at].seen.mask.row(row));
                    all.choices.push(u32::from(steps[at].choices[row]));
                    all.returns.push(after);
                }
            }
        }
        all
    }
}

impl Shared {
    /// Notes whose episodes have begun and ended. Returns whether every agent has played a whole one.
    fn note(&mut self, seen: &Seen) -> bool {
        let (now, first) = (self.rollout.len() as u32, self.updates == 0 && self.rollout.is_empty());
        self.parts.retain(|who, _| seen.agents.binary_search(who).is_ok());
        for (row, who) in seen.agents.iter().enumerate() {
            let begins = first || seen.ended[row];
            let part = self.parts.entry(*who).or_insert(Part::Waiting);
            *part = match *part {
                Part::Waiting if begins => Part::Playing(now),
                Part::Playing(from) if seen.ended[row] => Part::Played(from, now),
                same => same,
            };
        }
        !self.parts.is_empty() && self.parts.values().all(|part| matches!(part, Part::Played(..)))
    }
}

impl Reinforce {
    /// Returns the logarithms of the probabilities of all choices for each agent.
    fn logs(&self, weights: &Weights, seen: &Seen) -> Array {
        let [logs] = outputs(weights, seen.agents.len(), |tape, rows| {
            let (x, mask) = (tape.input(seen.inputs.part(rows.clone())), tape.input(seen.mask.part(rows)));
            let logits = self.policy.on(tape, x);
            let logits = tape.add(logits, mask);
            [tape.log_softmax(logits)]
        });
        logs
    }

    /// Moves the weights along the gradient of the mean of log p (G - b), with p the probability of a decision, G what came after it and b
    /// the mean of G; with a baseline, in units of the standard deviation of G.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, played: &Played) -> Result<Model, NotFinite> {
        let Model { mut weights, mut adam } = model.clone();
        let n = played.choices.len();
        let gains = if self.params.baseline { normalised(&played.returns) } else { played.returns.clone() };
        let mut found = gradients(&weights, n, ["the loss"], |tape, rows| {
            let (x, mask) = (tape.input(played.inputs.part(rows.clone())), tape.input(played.masks.part(rows.clone())));
            let gain = tape.input(Array::column(gains[rows.clone()].to_vec()));
            let logits = self.policy.on(tape, x);
            let logits = tape.add(logits, mask);
            let logs = tape.log_softmax(logits);
            let log = tape.pick(logs, played.choices[rows].to_vec());
            let weighted = tape.multiply(log, gain);
            let sum = tape.sum(weighted);
            [tape.scale(sum, -1.0 / n as f32)]
        })?;
        clip(&mut found.of, self.params.max_grad_norm as f32);
        adam.step(&mut weights, &found.of, self.params.learning_rate as f32);
        weights.finite()?;
        Ok(Model { weights, adam })
    }

    fn learns(&self, round: u32) -> bool {
        self.params.stop.is_none_or(|stop| round < stop)
    }
}

impl Policy for Reinforce {
    const NAME: &'static str = "reinforce";
    const SUMMARY: &'static str =
        "Learns by policy gradients from whole episodes; a cohort shares one network (Williams 1992)";
    type Params = Params;
    type State = Returns;
    const COLUMNS: &'static [StateColumn<Self>] = &[episode_return()];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        params.check()?;
        let senses = Senses::open(params.observe.as_deref(), &params.reward, setup)?;
        let message = format!("the world `{}` has no episodes, which it learns from", setup.world);
        Invalid::unless(setup.number("episode-ended").is_ok(), "kind", message)?;
        let about = About::new(Self::NAME, setup, &senses, &params.hidden, params.activation);
        let mut draws = Draws::new(setup.shared_context.seed, Stream::Learner, 0, setup.cohort.start);
        let mut first = Weights::default();
        let sizes = [about.numbers.len(), about.choices.len()];
        let policy = net(&mut first, "policy", sizes, (params.hidden.as_slice(), params.activation), 0.01, &mut draws);
        Ok(Reinforce { params, senses, about, policy, first })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Returns {
        Returns::default()
    }

    fn memory_bytes(&self) -> usize {
        // Some hundred rounds; how long episodes are is not known.
        500 * (self.senses.row_bytes() + 8)
    }

    async fn act(&self, returns: &mut Returns, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let choice = turn.shared::<Shared>()?.rollout.decided(turn.who);
        self.senses.act(returns, turn, choice);
        Ok(())
    }
}

impl CohortPolicy for Reinforce {
    type Tally = Seen;
    type Shared = Shared;

    fn init_shared(&self) -> Shared {
        let (weights, adam) = (self.first.clone(), Adam::new(&self.first));
        let model = Kept::new(Model { weights, adam });
        Shared { model, rollout: Rollout::default(), parts: BTreeMap::new(), updates: 0 }
    }

    fn tally(&self) -> Seen {
        Seen::default()
    }

    fn count(&self, seen: &mut Seen, _: u32, _: &Returns, person: Person<'_>, observation: Observation<'_>) {
        self.senses.count(seen, person.id, observation);
    }

    fn merge(&self, left: Seen, right: Seen) -> Seen {
        left.merged(right)
    }

    async fn cohort_step(
        &self,
        shared: &mut Shared,
        seen: &Seen,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        let learns = self.learns(context.round);
        if !learns {
            // Only the last decisions are read.
            shared.rollout.clear();
        } else if shared.note(seen) {
            let played = Played::gather(&shared.rollout, &shared.parts, seen, self.params.discount as f32);
            if !played.choices.is_empty() {
                let model = self.update(&shared.model, &played);
                let wrong = |error| Fault(format!("update {} of `reinforce`: {error}", shared.updates + 1));
                shared.model.set(model.map_err(wrong)?);
            }
            shared.updates += 1;
            shared.rollout.clear();
            shared.parts.clear();
            shared.note(seen);
        }
        let logs = self.logs(&shared.model.weights, seen);
        let choose = |(row, who): (usize, &AgentId)| match (seen.active[row], learns) {
            (false, _) => NONE,
            (true, true) => sampled(logs.row(row), &mut context.draws(*who)),
            (true, false) => best(logs.row(row)),
        };
        let choices: Vec<u16> = seen.agents.iter().enumerate().map(choose).collect();
        shared.rollout.push(Step { seen: seen.clone(), choices, ..Step::default() });
        Ok(())
    }

    fn weights(&self, shared: &Shared) -> Result<Option<Vec<u8>>, Fault> {
        self.about.write(&shared.model.weights).map(Some)
    }
}
