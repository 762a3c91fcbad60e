//! Q-learning with approximated values, over numbers that the world shows. See README.md.

mod params;
#[cfg(test)]
mod tests;

use params::Params;
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot, Observation};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_learn::approximation::{Approximator, Learned};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<ValueLearner>(files);
}

/// The most choices of a learner.
const MOST_CHOICES: usize = 100;
/// Targets that are kept to be dealt out anew.
const TARGETS: usize = 200;

/// A number of the state.
struct Input {
    slot: NumberSlot,
    low: f64,
    high: f64,
}

/// A choice: an action with its option.
struct Choice {
    act: u16,
    value: f64,
}

/// Learns values of choices.
pub struct ValueLearner {
    params: Params,
    approximator: Approximator,
    inputs: Vec<Input>,
    reward: NumberSlot,
    step: Option<NumberSlot>,
    limit: Option<NumberSlot>,
    active: Option<NumberSlot>,
    choices: Vec<Choice>,
}

/// A decision, with the values of all choices as they were known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Decision {
    state: Vec<f64>,
    values: Vec<f64>,
    choice: usize,
}

/// What an agent has learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mind {
    learned: Learned,
    last: Option<Decision>,
    /// Rewards since the last decision.
    gain: f64,
    /// Rewards and decisions of the episode so far.
    total: f64,
    decisions: u32,
    rate: f64,
    /// Total rewards of the last episodes, oldest first.
    returns: VecDeque<f64>,
    /// Episodes that have ended.
    episodes: u32,
    /// Episodes before those that were good enough.
    solved: Option<u32>,
    /// Earlier targets.
    targets: VecDeque<f64>,
}

impl Mind {
    fn end_episode(&mut self, params: &Params) {
        self.episodes += 1;
        self.returns.push_back(self.total);
        (self.total, self.decisions) = (0.0, 0);
        self.rate *= params.fade;
        let most = params.solved.episodes as usize;
        if self.returns.len() > most {
            self.returns.pop_front();
        }
        if self.solved.is_none() && self.returns.len() == most && self.recent() >= params.solved.reward {
            self.solved = Some(self.episodes - params.solved.episodes);
        }
    }

    /// The mean total reward of the last episodes.
    fn recent(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len().max(1) as f64
    }
}

impl ValueLearner {
    fn state(&self, seen: &Observation<'_>) -> Vec<f64> {
        self.inputs.iter().map(|input| (seen.number(input.slot) - input.low) / (input.high - input.low)).collect()
    }

    /// Learns from the last decision. `then` has the values of what came of it, unless the episode has ended.
    fn learn(&self, mind: &mut Mind, decision: Decision, then: Option<&[f64]>, draws: &mut Draws) {
        let best = then.map_or(0.0, |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let mut target = mind.gain / self.params.unit + self.params.discount * best.min(self.params.highest());
        if self.params.scrambled {
            mind.targets.push_back(target);
            if mind.targets.len() > TARGETS {
                mind.targets.pop_front();
            }
            target = mind.targets[draws.below(mind.targets.len() as u64) as usize];
        }
        let Decision { state, values, choice } = decision;
        self.approximator.learn(&mut mind.learned, &state, &values, (choice, target), mind.rate);
    }
}

impl Policy for ValueLearner {
    const NAME: &'static str = "value-learner";
    const SUMMARY: &'static str =
        "Q-learning over numbers, with values from a Gaussian mixture (IGMN) or a small network";
    type Params = Params;
    type State = Mind;
    const COLUMNS: &'static [StateColumn<Self>] = &[
        StateColumn {
            name: "fitted-numbers",
            doc: "numbers that are fitted: of a mixture its weights, means and covariances; of a network its weights",
            range: None,
            value: |learner, mind| learner.approximator.size(&mind.learned) as f64,
        },
        StateColumn {
            name: "components",
            doc: "components of the mixture; 0 of a network",
            range: None,
            value: |_, mind| match &mind.learned {
                Learned::Mixture(mixture) => mixture.components.len() as f64,
                Learned::Network(_) => 0.0,
            },
        },
        StateColumn {
            name: "recent-return",
            doc: "mean total reward of the last episodes, as many as `solved` says; 0 before the first has ended",
            range: None,
            value: |_, mind| mind.recent(),
        },
        StateColumn {
            name: "solved",
            doc: "1 from when the mean total reward of so many episodes in a row was good enough",
            range: Some((0.0, 1.0)),
            value: |_, mind| f64::from(u8::from(mind.solved.is_some())),
        },
        StateColumn {
            name: "episodes-to-solve",
            doc: "episodes before those; all so far if there were none",
            range: None,
            value: |_, mind| f64::from(mind.solved.unwrap_or(mind.episodes)),
        },
    ];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        params.check()?;
        let at = |key: &str, name: &str| {
            setup.number(name).map_err(|error| Invalid { key: key.into(), message: error.message })
        };
        let mut inputs = Vec::new();
        for input in &params.state {
            inputs.push(Input { slot: at("state", &input.number)?, low: input.low, high: input.high });
        }
        let reward = at("reward", &params.reward)?;
        let step = params.step.as_deref().map(|name| at("step", name)).transpose()?;
        let limit = params.limit.as_deref().map(|name| at("limit", name)).transpose()?;
        let mut choices = Vec::new();
        for (act, kind) in (0u16..).zip(&setup.interface.acts) {
            let options = match &kind.argument {
                ActionArgument::Nothing => 1,
                ActionArgument::Choice(options) => options.len(),
                _ => 0,
            };
            choices.extend((0..options).map(|option| Choice { act, value: option as f64 }));
        }
        let message = format!(
            "the world `{}` has {} choices without numbers or words; a learner needs 2 to {MOST_CHOICES}",
            setup.world,
            choices.len()
        );
        Invalid::unless((2..=MOST_CHOICES).contains(&choices.len()), "kind", message)?;
        let approximator = params.approximator(inputs.len(), choices.len());
        let active = setup.number("active").ok();
        Ok(ValueLearner { params, approximator, inputs, reward, step, limit, active, choices })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> Mind {
        Mind {
            learned: self.approximator.start(self.inputs.len(), self.choices.len(), draws),
            last: None,
            gain: 0.0,
            total: 0.0,
            decisions: 0,
            rate: self.params.rate,
            returns: VecDeque::new(),
            episodes: 0,
            solved: None,
            targets: VecDeque::new(),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.params.memory_bytes(self.inputs.len(), self.choices.len())
    }

    async fn act(&self, mind: &mut Mind, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        mind.gain += seen.number(self.reward);
        if self.active.is_some_and(|active| seen.number(active) == 0.0) {
            return Ok(());
        }
        let state = self.state(&seen);
        let values = |mind: &Mind| self.approximator.values(&mind.learned, &state, self.choices.len());
        if let Some(decision) = mind.last.take() {
            mind.total += mind.gain;
            let ended = self.step.is_some_and(|step| seen.number(step) == 0.0);
            let cut = ended && self.limit.is_some_and(|limit| f64::from(mind.decisions) >= seen.number(limit));
            if !cut {
                let then = (!ended).then(|| values(mind));
                self.learn(mind, decision, then.as_deref(), &mut turn.draws);
            }
            if ended {
                mind.end_episode(&self.params);
            }
        }
        mind.gain = 0.0;
        let values = values(mind);
        let choice = if turn.draws.chance(self.params.explore) {
            turn.draws.below(self.choices.len() as u64) as usize
        } else {
            let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let good: Vec<usize> = (0..values.len()).filter(|i| values[*i] >= top).collect();
            // None is as good as the best where a value is not a number.
            if good.is_empty() { 0 } else { good[turn.draws.below(good.len() as u64) as usize] }
        };
        mind.decisions += 1;
        mind.last = Some(Decision { state, values, choice });
        let Choice { act, value } = self.choices[choice];
        turn.act(act, value);
        Ok(())
    }
}
