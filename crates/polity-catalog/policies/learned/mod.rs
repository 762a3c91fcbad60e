//! Agents that do what a network has learned. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::{NONE, Player, Returns, Seen, Senses, best, episode_return, sampled};
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::WeightsSource;
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learned>(files);
}

/// Weights for a first try, learned in `cart-pole`.
const EXAMPLE: &[u8] = include_bytes!("cart-pole.safetensors");

/// Parameters of agents with learned weights.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The weights, from a file that a learner has written: {file: NAME}. Default: some that were learned in `cart-pole`, for a first try.
    weights: Option<WeightsSource>,
    /// How a choice is taken.
    choose: Choose,
    /// The number that shows the reward of the last round, for the column `episode-return`.
    reward: String,
}

impl Default for Params {
    fn default() -> Self {
        Params { weights: None, choose: Choose::Best, reward: "last-reward".into() }
    }
}

/// How a choice is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Choose {
    /// The best one.
    #[default]
    Best,
    /// By lot, with the probabilities of the network.
    Sampled,
}

/// Agents with learned weights.
pub struct Learned {
    senses: Senses,
    player: Player,
    choose: Choose,
}

/// What each agent does in this round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    agents: Vec<AgentId>,
    choices: Vec<u16>,
}

impl Policy for Learned {
    const NAME: &'static str = "learned";
    const SUMMARY: &'static str = "Does what a network has learned, from a file of weights";
    type Params = Params;
    type State = Returns;
    const COLUMNS: &'static [StateColumn<Self>] = &[episode_return()];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let bytes = params.weights.as_ref().map_or(Ok(EXAMPLE), |source| setup.weights(source))?;
        let (player, about) = Player::open(bytes)?;
        let wrong = |message: String| Invalid { key: "weights".into(), message };
        let message = "were learned with values of choices, which are no probabilities; use `choose: best`";
        Invalid::unless(params.choose == Choose::Best || about.learner != "dqn", "choose", message)?;
        let senses = Senses::open(Some(&about.numbers), &params.reward, setup).map_err(|error| {
            wrong(format!("they were learned in the world `{}`, and do not fit here: {}", about.world, error.message))
        })?;
        about.fits(&senses, setup.world)?;
        Ok(Learned { senses, player, choose: params.choose })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Returns {
        Returns::default()
    }

    fn memory_bytes(&self) -> usize {
        2 * self.senses.row_bytes()
    }

    async fn act(&self, returns: &mut Returns, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Chosen { agents, choices } = turn.shared()?;
        let choice = agents.binary_search(&turn.who).ok().map(|row| choices[row]);
        self.senses.act(returns, turn, choice);
        Ok(())
    }
}

impl CohortPolicy for Learned {
    type Tally = Seen;
    type Shared = Chosen;

    fn init_shared(&self) -> Chosen {
        Chosen::default()
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
        chosen: &mut Chosen,
        seen: &Seen,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        let logs = self.player.logs(&seen.inputs, &seen.mask);
        let choose = |(row, who): (usize, &AgentId)| match (seen.active[row], self.choose) {
            (false, _) => NONE,
            (true, Choose::Best) => best(logs.row(row)),
            (true, Choose::Sampled) => sampled(logs.row(row), &mut context.draws(*who)),
        };
        let choices = seen.agents.iter().enumerate().map(choose).collect();
        *chosen = Chosen { agents: seen.agents.clone(), choices };
        Ok(())
    }
}
