//! Deep Q-learning. See README.md.

mod params;
mod replay;
#[cfg(test)]
mod tests;

use crate::learning::{About, Kept, NONE, Returns, Seen, Senses, best, episode_return, net};
use params::Params;
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Adam, Array, Mlp, NotFinite, Weights, clip, gradients, outputs};
use replay::{Batch, Replay};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Dqn>(files);
}

/// A learner.
pub struct Dqn {
    params: Params,
    senses: Senses,
    about: About,
    q: Mlp,
    first: Weights,
    seed: u64,
    /// The first agent of its cohort, which tells its random numbers from those of other cohorts.
    whose: AgentId,
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
    /// The weights of some time ago, by which later rewards are estimated.
    target: Kept<Weights>,
    replay: Replay,
    updates: u32,
}

impl Dqn {
    /// Returns the values of all choices, for each row of what is seen; those that are not offered have very low ones.
    fn values(&self, weights: &Weights, inputs: &Array, masks: &Array) -> Array {
        let [values] = outputs(weights, inputs.rows(), |tape, rows| {
            let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(masks.part(rows)));
            let values = self.q.on(tape, x);
            [tape.add(values, mask)]
        });
        values
    }

    /// Moves the weights against the gradient of the mean of (Q(s, a) - y)² / 2, with y = r + γ Q'(s', argmax Q(s', ·)), where Q' has the
    /// weights of some time ago.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(&self, model: &Model, target: &Weights, batch: &Batch) -> Result<Model, NotFinite> {
        let Model { mut weights, mut adam } = model.clone();
        let later = self.values(target, &batch.then, &batch.then_masks);
        let judged = match self.params.double {
            true => self.values(&weights, &batch.then, &batch.then_masks),
            false => later.clone(),
        };
        let n = batch.choices.len();
        let goal = |i: usize| {
            let then = if batch.ended[i] { 0.0 } else { later.row(i)[usize::from(best(judged.row(i)))] };
            batch.rewards[i] + self.params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let mut found = gradients(&weights, n, ["the loss"], |tape, rows| {
            let x = tape.input(batch.inputs.part(rows.clone()));
            let goal = tape.input(Array::column(goals[rows.clone()].to_vec()));
            let values = self.q.on(tape, x);
            let value = tape.pick(values, batch.choices[rows].to_vec());
            let error = tape.subtract(value, goal);
            let square = tape.square(error);
            let sum = tape.sum(square);
            [tape.scale(sum, 0.5 / n as f32)]
        })?;
        clip(&mut found.of, self.params.max_grad_norm as f32);
        adam.step(&mut weights, &found.of, self.params.learning_rate as f32);
        weights.finite()?;
        Ok(Model { weights, adam })
    }

    fn learns(&self, round: u32) -> bool {
        self.params.stop.is_none_or(|stop| round < stop)
    }

    /// Returns the probability with which a decision is drawn at random.
    fn explores(&self, round: u32) -> f64 {
        let Params { epsilon_start, epsilon_end, epsilon_rounds, .. } = self.params;
        let part = (f64::from(round) / f64::from(epsilon_rounds.max(1))).min(1.0);
        epsilon_start + part * (epsilon_end - epsilon_start)
    }
}

impl Policy for Dqn {
    const NAME: &'static str = "dqn";
    const SUMMARY: &'static str = "Learns the values of choices with a network; a cohort shares it (Mnih et al. 2015)";
    type Params = Params;
    type State = Returns;
    const COLUMNS: &'static [StateColumn<Self>] = &[episode_return()];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        params.check()?;
        let senses = Senses::open(params.observe.as_deref(), &params.reward, setup)?;
        let about = About::new(Self::NAME, setup, &senses, &params.hidden, params.activation);
        let (seed, whose) = (setup.shared_context.seed, setup.cohort.start);
        let (mut first, mut draws) = (Weights::default(), Draws::new(seed, Stream::Learner, 0, whose));
        let sizes = [about.numbers.len(), about.choices.len()];
        let q = net(&mut first, "policy", sizes, (params.hidden.as_slice(), params.activation), 1.0, &mut draws);
        Ok(Dqn { params, senses, about, q, first, seed, whose })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Returns {
        Returns::default()
    }

    fn memory_bytes(&self) -> usize {
        self.params.buffer_rounds as usize * (self.senses.row_bytes() + 4)
    }

    async fn act(&self, returns: &mut Returns, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let choice = turn.shared::<Shared>()?.replay.decided(turn.who);
        self.senses.act(returns, turn, choice);
        Ok(())
    }
}

impl CohortPolicy for Dqn {
    type Tally = Seen;
    type Shared = Shared;

    fn init_shared(&self) -> Shared {
        let (weights, adam) = (self.first.clone(), Adam::new(&self.first));
        Shared {
            model: Kept::new(Model { weights, adam }),
            target: Kept::new(self.first.clone()),
            replay: Replay::default(),
            updates: 0,
        }
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
        let (round, learns) = (context.round, self.learns(context.round));
        let values = self.values(&shared.model.weights, &seen.inputs, &seen.mask);
        let choose = |(row, who): (usize, &AgentId)| {
            let mut draws = context.draws(*who);
            match seen.active[row] {
                false => NONE,
                true if learns && draws.chance(self.explores(round)) => {
                    let open: Vec<u16> =
                        (0u16..).zip(seen.mask.row(row)).filter(|x| *x.1 == 0.0).map(|x| x.0).collect();
                    open[draws.below(open.len() as u64) as usize]
                }
                true => best(values.row(row)),
            }
        };
        let choices: Vec<u16> = seen.agents.iter().enumerate().map(choose).collect();
        shared.replay.push(seen.clone(), choices, if learns { self.params.buffer_rounds as usize } else { 1 });
        if learns && round >= self.params.learning_starts && round.is_multiple_of(self.params.train_every) {
            let mut draws = Draws::new(self.seed, Stream::Learner, round, self.whose);
            for _ in 0..self.params.gradient_steps {
                let batch = shared.replay.batch(self.params.minibatch as usize, &mut draws);
                if batch.choices.is_empty() {
                    break;
                }
                let model = self.update(&shared.model, &shared.target, &batch);
                let wrong = |error| Fault(format!("update {} of `dqn`: {error}", shared.updates + 1));
                shared.model.set(model.map_err(wrong)?);
                shared.updates += 1;
                if shared.updates.is_multiple_of(self.params.target_update) {
                    shared.target.set(shared.model.weights.clone());
                }
            }
        }
        Ok(())
    }

    fn weights(&self, shared: &Shared) -> Result<Option<Vec<u8>>, Fault> {
        self.about.write(&shared.model.weights).map(Some)
    }
}
