//! Agents that do what a network has learned. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::{
    Choose, Identity, Learner, Learning, Memory, NONE, Now, Player, RewardSource, Seen, Senses, Start,
};
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::scenario::WeightsSource;
use polity_kernel::{AgentId, Invalid};
use polity_nn::{NotFinite, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Learned>>(files);
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
    /// The number that shows the reward of the last round, for the column `episode-return`; or several numbers with their weights.
    reward: RewardSource,
}

impl Default for Params {
    fn default() -> Self {
        Params { weights: None, choose: Choose::Best, reward: RewardSource::default() }
    }
}

/// Agents with learned weights.
pub struct Learned {
    player: Player,
    choose: Choose,
}

/// What each agent does in this round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    agents: Vec<AgentId>,
    choices: Vec<u16>,
}

impl Memory for Chosen {
    type Decision = u16;

    fn decided(&self, who: AgentId) -> Option<u16> {
        let row = self.agents.binary_search(&who).ok()?;
        self.choices.get(row).copied().filter(|choice| *choice != NONE)
    }

    fn weights(&self) -> Option<&Weights> {
        None
    }

    fn updates(&self) -> u32 {
        0
    }
}

impl Learner for Learned {
    const NAME: &'static str = "learned";
    const SUMMARY: &'static str = "Does what a network has learned, from a file of weights";
    type Params = Params;
    type Memory = Chosen;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        let bytes = params.weights.as_ref().map_or(Ok(EXAMPLE), |source| setup.weights(source))?;
        let (player, about) = Player::open(bytes)?;
        let wrong = |message: String| Invalid { key: "weights".into(), message };
        let message = "were learned with values of choices, which are no probabilities; use `choose: best`";
        Invalid::unless(params.choose == Choose::Best || !about.values, "choose", message)?;
        let senses = Senses::open::<u16>(Some(&about.numbers), &params.reward, None, Identity::Shared, setup).map_err(
            |error| {
                wrong(format!(
                    "they were learned in the world `{}`, and do not fit here: {}",
                    about.world, error.message
                ))
            },
        )?;
        about.fits(&senses, setup.world)?;
        Ok((Learned { player, choose: params.choose }, Start::new(senses, setup)))
    }

    fn begin(&self, _: &Weights) -> Chosen {
        Chosen::default()
    }

    fn memory_bytes(&self, row: usize) -> usize {
        2 * row
    }

    fn step(&self, chosen: &mut Chosen, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let logs = self.player.logs(&seen.inputs, &seen.mask);
        let choices = now.choices(seen, |row, draws| self.choose.of(logs.row(row), draws));
        *chosen = Chosen { agents: seen.agents.clone(), choices };
        Ok(())
    }
}
