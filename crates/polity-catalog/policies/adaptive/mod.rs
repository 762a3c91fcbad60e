//! Learning direction: move from the last guess towards what would have won. See README.md for the source and the equations.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Adaptive>(files);
}

/// Parameters of the learner.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Share of the way from the last guess to the announced target; 0 to 1.
    rate: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { rate: 0.5 }
    }
}

/// Moves its guess towards what would have won.
pub struct Adaptive {
    rate: f64,
    slots: [NumberSlot; 4],
    act: u16,
}

impl Policy for Adaptive {
    const NAME: &'static str = "adaptive";
    const SUMMARY: &'static str = "Move the last guess towards the announced target";
    type Params = Params;
    /// The last guess; `None` in the first round, since NaN is not a plain value.
    type State = Option<f64>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "rate", params.rate)?;
        let slot = |name| setup.number(name);
        Ok(Adaptive {
            rate: params.rate,
            slots: [slot("low")?, slot("high")?, slot("announced")?, slot("last-target")?],
            act: setup.number_act()?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Option<f64> {
        None
    }

    async fn act(&self, last: &mut Option<f64>, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let [low, high, announced, target] = self.slots.map(|slot| turn.observation.number(slot));
        let guess = match *last {
            None => turn.draws.range(low, high),
            Some(guess) if announced > 0.0 => guess + self.rate * (target.clamp(low, high) - guess),
            Some(guess) => guess,
        };
        *last = Some(guess);
        turn.act(self.act, guess);
        Ok(())
    }
}
