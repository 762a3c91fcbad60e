//! Repeated averaging. See README.md for the source and the equations.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<DeGroot>(files);
}

/// Parameters of the averaging.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Weight of one's own opinion; 0 to 1. The opinions heard share the rest equally.
    self_weight: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { self_weight: 0.5 }
    }
}

/// Averages its opinion with those it hears.
pub struct DeGroot {
    /// Weight of all opinions heard together.
    others: f64,
    opinion: NumberSlot,
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for DeGroot {
    const NAME: &'static str = "degroot";
    const SUMMARY: &'static str = "Average one's own opinion with those heard";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let weight = params.self_weight;
        Invalid::within(0.0..=1.0, "self_weight", weight)?;
        let (act, low, high) = setup.number_act()?;
        Ok(DeGroot { others: 1.0 - weight, opinion: setup.number("opinion")?, act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    fn tells_neighbours(&self) -> bool {
        true
    }

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let own = turn.observation.number(self.opinion);
        // Sums differences from the own opinion, not opinions, to preserve agreement to the last bit.
        let (sum, n) = turn.inbox().numbers().fold((0.0, 0u32), |(sum, n), (_, other)| (sum + (other - own), n + 1));
        let new = if n > 0 { (own + self.others * (sum / f64::from(n))).clamp(self.low, self.high) } else { own };
        turn.act(self.act, new);
        turn.tell_neighbours(0, new);
        Ok(())
    }
}
