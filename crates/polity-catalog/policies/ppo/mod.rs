//! Proximal policy optimisation. See README.md.

mod params;
#[cfg(test)]
mod tests;
mod update;

use crate::learning::{
    About, Kept, NONE, Player, Returns, Rollout, Seen, Senses, Step, best, episode_return, net, sampled,
};
use params::Params;
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Adam, Array, Mlp, Weights, outputs};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Ppo>(files);
}

/// A learner.
pub struct Ppo {
    params: Params,
    senses: Senses,
    about: About,
    policy: Mlp,
    value: Mlp,
    first: Weights,
    teacher: Option<Player>,
    seed: u64,
    /// The first agent of its cohort, which tells its random numbers from those of other cohorts.
    whose: AgentId,
    rounds: u32,
}

/// A network and the state of its optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    weights: Weights,
    adam: Adam,
}

/// What a cohort shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    model: Kept<Model>,
    rollout: Rollout,
    updates: u32,
}

impl Ppo {
    /// Returns the logarithms of the probabilities of all choices for each agent, and what each can expect.
    fn outlook(&self, weights: &Weights, seen: &Seen) -> [Array; 2] {
        outputs(weights, seen.agents.len(), |tape, rows| {
            let (x, mask) = (tape.input(seen.inputs.part(rows.clone())), tape.input(seen.mask.part(rows)));
            let logits = self.policy.on(tape, x);
            let logits = tape.add(logits, mask);
            [tape.log_softmax(logits), self.value.on(tape, x)]
        })
    }

    fn learns(&self, round: u32) -> bool {
        self.params.stop.is_none_or(|stop| round < stop)
    }
}

impl Policy for Ppo {
    const NAME: &'static str = "ppo";
    const SUMMARY: &'static str =
        "Learns by proximal policy optimisation; a cohort shares one network (Schulman et al. 2017)";
    type Params = Params;
    type State = Returns;
    const COLUMNS: &'static [StateColumn<Self>] = &[episode_return()];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        params.check()?;
        let senses = Senses::open(params.observe.as_deref(), &params.reward, setup)?;
        let about = About::new(Self::NAME, setup, &senses, &params.hidden, params.activation);
        let (seed, whose) = (setup.shared_context.seed, setup.cohort.start);
        let mut draws = Draws::new(seed, Stream::Learner, 0, whose);
        let (mut first, layers) = (Weights::default(), (params.hidden.as_slice(), params.activation));
        let inputs = about.numbers.len();
        let policy = net(&mut first, "policy", [inputs, about.choices.len()], layers, 0.01, &mut draws);
        let value = net(&mut first, "value", [inputs, 1], layers, 1.0, &mut draws);
        if let Some(source) = &params.weights {
            let (weights, of) = About::read(setup.weights(source)?)?;
            of.fits(&senses, setup.world)?;
            first.take(&weights).map_err(|error| Invalid { key: "weights".into(), message: error.to_string() })?;
        }
        let teacher = params.teacher.as_ref().map(|teacher| {
            let (player, of) = Player::open(setup.weights(&teacher.weights)?)?;
            of.fits(&senses, setup.world).map(|()| player)
        });
        let teacher =
            teacher.transpose().map_err(|error| Invalid { key: format!("teacher.{}", error.key), ..error })?;
        Ok(Ppo { params, senses, about, policy, value, first, teacher, seed, whose, rounds: setup.rounds })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Returns {
        Returns::default()
    }

    fn memory_bytes(&self) -> usize {
        // What waits to be learned from, and the batch that is made of it.
        2 * self.params.horizon as usize * (self.senses.row_bytes() + 24)
    }

    async fn act(&self, returns: &mut Returns, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let choice = turn.shared::<Shared>()?.rollout.decided(turn.who);
        self.senses.act(returns, turn, choice);
        Ok(())
    }
}

impl CohortPolicy for Ppo {
    type Tally = Seen;
    type Shared = Shared;

    fn init_shared(&self) -> Shared {
        let (weights, adam) = (self.first.clone(), Adam::new(&self.first));
        Shared { model: Kept::new(Model { weights, adam }), rollout: Rollout::default(), updates: 0 }
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
        let [mut logs, mut values] = self.outlook(&shared.model.weights, seen);
        if learns && shared.rollout.len() >= self.params.horizon as usize {
            let mut decisions = shared.rollout.decisions(seen, values.data());
            decisions.rewards.iter_mut().for_each(|reward| *reward *= self.params.reward_scale as f32);
            let mut draws = Draws::new(self.seed, Stream::Learner, context.round, self.whose);
            let model = self.update(&shared.model, &decisions, (context.round, shared.updates), &mut draws);
            let wrong = |error| Fault(format!("update {} of `ppo`: {error}", shared.updates + 1));
            shared.model.set(model.map_err(wrong)?);
            shared.updates += 1;
            [logs, values] = self.outlook(&shared.model.weights, seen);
            shared.rollout.clear();
        }
        if !learns {
            // Only the last decisions are read.
            shared.rollout.clear();
        }
        let choose = |(row, who): (usize, &AgentId)| match (seen.active[row], learns) {
            (false, _) => NONE,
            (true, true) => sampled(logs.row(row), &mut context.draws(*who)),
            (true, false) => best(logs.row(row)),
        };
        let choices: Vec<u16> = seen.agents.iter().enumerate().map(choose).collect();
        let log = |(row, choice): (usize, &u16)| logs.row(row).get(usize::from(*choice)).copied().unwrap_or_default();
        let logs = choices.iter().enumerate().map(log).collect();
        shared.rollout.push(Step { seen: seen.clone(), choices, logs, values: values.data().to_vec() });
        Ok(())
    }

    fn weights(&self, shared: &Shared) -> Result<Option<Vec<u8>>, Fault> {
        self.about.write(&shared.model.weights).map(Some)
    }
}
