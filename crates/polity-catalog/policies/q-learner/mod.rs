//! Tabular Q-learning over numbers that the world shows. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<QLearner>(files);
}

/// The most choices of a learner.
const MOST_CHOICES: usize = 1_000;

/// Parameters of learners.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that make up the state, each rounded to whole numbers.
    state: Vec<String>,
    /// The number that shows the reward of the last round.
    reward: String,
    /// Share of the way that a value goes towards what was experienced (learning rate); above 0, up to 1.
    rate: f64,
    /// What a reward is worth one decision later (discount factor); 0 to 1.
    discount: f64,
    /// Probability with which a decision is drawn at random; 0 to 1.
    explore: f64,
    /// After each decision that probability is multiplied by this; 0 to 1.
    decay: f64,
    /// The round from which an agent neither explores nor learns. Default: never.
    stop: Option<u32>,
    /// A number that the world shows; while it is 1, agents neither explore nor learn.
    pause: Option<String>,
    /// Value of all choices at the start.
    initial: f64,
    /// Numbers that an action with a number can choose from, evenly spaced from its smallest to its largest; at least 2.
    levels: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            state: Vec::new(),
            reward: "last-reward".into(),
            rate: 0.1,
            discount: 0.0,
            explore: 0.1,
            decay: 1.0,
            stop: None,
            pause: None,
            initial: 0.0,
            levels: 5,
        }
    }
}

/// A choice: an action with its number or option.
struct Choice {
    act: u16,
    value: f64,
    /// Shows 1 when the action is offered.
    offered: Option<NumberSlot>,
}

/// Learns values of choices.
pub struct QLearner {
    params: Params,
    state: Vec<NumberSlot>,
    reward: NumberSlot,
    active: Option<NumberSlot>,
    pause: Option<NumberSlot>,
    choices: Vec<Choice>,
}

/// What an agent has learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The value of each choice, by state.
    table: BTreeMap<Vec<i32>, Vec<f64>>,
    /// The last decision: state and choice.
    last: Option<(Vec<i32>, u16)>,
    /// Rewards since the last decision.
    gain: f64,
    explore: f64,
}

impl QLearner {
    /// Moves the value of the last decision towards its reward and the discounted value of what came of it.
    fn learn(&self, learned: &mut Learned, then: f64) {
        let Some((state, choice)) = learned.last.take() else { return };
        let goal = learned.gain + self.params.discount * then;
        let initial = self.params.initial;
        let values = learned.table.entry(state).or_insert_with(|| vec![initial; self.choices.len()]);
        if let Some(value) = values.get_mut(usize::from(choice)) {
            *value += self.params.rate * (goal - *value);
        }
    }
}

impl Policy for QLearner {
    const NAME: &'static str = "q-learner";
    const SUMMARY: &'static str = "Tabular Q-learning over numbers that the world shows (Watkins 1989)";
    type Params = Params;
    type State = Learned;
    const COLUMNS: &'static [StateColumn<Self>] = &[StateColumn {
        name: "known-states",
        doc: "states of which the agent has learned something",
        range: None,
        value: |_, learned| learned.table.len() as f64,
    }];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let fits = params.rate > 0.0 && params.rate <= 1.0;
        Invalid::unless(fits, "rate", format!("must be above 0 and at most 1, is {}", params.rate))?;
        Invalid::within(0.0..=1.0, "discount", params.discount)?;
        Invalid::within(0.0..=1.0, "explore", params.explore)?;
        Invalid::within(0.0..=1.0, "decay", params.decay)?;
        Invalid::unless(params.initial.is_finite(), "initial", "must be a finite number")?;
        Invalid::within(2..=100, "levels", params.levels)?;
        let state = params.state.iter().map(|name| setup.number(name)).collect::<Result<Vec<_>, _>>();
        let state = state.map_err(|error| Invalid { key: "state".into(), ..error })?;
        let reward = setup.number(&params.reward).map_err(|error| Invalid { key: "reward".into(), ..error })?;
        let mut choices = Vec::new();
        for (act, kind) in (0u16..).zip(&setup.interface.acts) {
            let offered = setup.number(&format!("may-{}", kind.name)).ok();
            let values: Vec<f64> = match &kind.argument {
                ActionArgument::Nothing => vec![0.0],
                ActionArgument::Choice(options) => (0..options.len()).map(|option| option as f64).collect(),
                ActionArgument::Number { low, high } => {
                    let step = (high - low) / f64::from(params.levels - 1);
                    (0..params.levels).map(|level| low + step * f64::from(level)).collect()
                }
                ActionArgument::Text | ActionArgument::Seen { .. } | ActionArgument::Record(_) => Vec::new(),
            };
            choices.extend(values.into_iter().map(|value| Choice { act, value, offered }));
        }
        let message = format!("the world `{}` has no action without words or tables that can be learned", setup.world);
        Invalid::unless(!choices.is_empty(), "kind", message)?;
        let message =
            format!("the world `{}` has {} choices; a learner has at most {MOST_CHOICES}", setup.world, choices.len());
        Invalid::unless(choices.len() <= MOST_CHOICES, "kind", message)?;
        let active = setup.number("active").ok();
        let pause = params.pause.as_deref().map(|name| setup.number(name)).transpose();
        let pause = pause.map_err(|error| Invalid { key: "pause".into(), ..error })?;
        Ok(QLearner { params, state, reward, active, pause, choices })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Learned {
        Learned { explore: self.params.explore, ..Learned::default() }
    }

    fn memory_bytes(&self) -> usize {
        // A few states; how many there will be is not known.
        8 * (self.choices.len() * 8 + 48)
    }

    async fn act(&self, learned: &mut Learned, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        learned.gain += seen.number(self.reward);
        if self.active.is_some_and(|active| seen.number(active) == 0.0) {
            return Ok(());
        }
        let offered = |choice: &Choice| choice.offered.is_none_or(|slot| seen.number(slot) != 0.0);
        let open: Vec<usize> = (0..self.choices.len()).filter(|i| offered(&self.choices[*i])).collect();
        if open.is_empty() {
            return Ok(());
        }
        let state: Vec<i32> = self.state.iter().map(|slot| seen.number(*slot).round() as i32).collect();
        let value = |learned: &Learned, choice: usize| {
            let values = learned.table.get(&state);
            values.and_then(|values| values.get(choice)).copied().unwrap_or(self.params.initial)
        };
        let best = |learned: &Learned| open.iter().map(|i| value(learned, *i)).fold(f64::NEG_INFINITY, f64::max);
        let learns = self.params.stop.is_none_or(|stop| turn.round < stop)
            && self.pause.is_none_or(|pause| seen.number(pause) != 1.0);
        if learns {
            let then = best(learned);
            self.learn(learned, then);
        }
        learned.gain = 0.0;
        let chosen = if learns && turn.draws.chance(learned.explore) {
            open[turn.draws.below(open.len() as u64) as usize]
        } else {
            let top = best(learned);
            let good: Vec<usize> = open.iter().copied().filter(|i| value(learned, *i) >= top).collect();
            good[turn.draws.below(good.len() as u64) as usize]
        };
        learned.explore *= self.params.decay;
        learned.last = Some((state, chosen as u16));
        let Choice { act, value, .. } = self.choices[chosen];
        turn.act(act, value);
        Ok(())
    }
}
