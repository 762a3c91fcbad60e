//! Imitation: adopt the opinion of a random agent heard. See README.md for the source and the limits.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Voter>(files);
}

/// Parameters of imitation.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Probability of imitating per round; 0 to 1.
    rate: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { rate: 1.0 }
    }
}

/// Adopts the opinion of somebody heard.
pub struct Voter {
    rate: f64,
    opinion: NumberSlot,
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for Voter {
    const NAME: &'static str = "voter";
    const SUMMARY: &'static str = "Adopt the opinion of somebody heard, picked at random";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let rate = params.rate;
        Invalid::within(0.0..=1.0, "rate", rate)?;
        let (act, low, high) = setup.number_act()?;
        Ok(Voter { rate, opinion: setup.number("opinion")?, act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    fn tells_neighbours(&self) -> bool {
        true
    }

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let own = turn.observation.number(self.opinion);
        let heard = turn.inbox().numbers().count();
        let new = if heard > 0 && turn.draws.chance(self.rate) {
            let pick = turn.draws.below(heard as u64) as usize;
            turn.inbox().numbers().nth(pick).map_or(own, |(_, other)| other).clamp(self.low, self.high)
        } else {
            own
        };
        turn.act(self.act, new);
        turn.tell_neighbours(0, new);
        Ok(())
    }
}
