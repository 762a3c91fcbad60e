//! Fly with the neighbours, towards them, but not too near. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Boid>(files);
}

/// Weights of a bird's goals.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Weight of the mean direction to the neighbours.
    cohere: f64,
    /// Weight of the direction away from neighbours that are too near.
    separate: f64,
    /// Weight of the neighbours' mean heading.
    align: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { cohere: 0.03, separate: 0.015, align: 0.05 }
    }
}

/// Flies with its neighbours.
pub struct Boid {
    params: Params,
    heading: [NumberSlot; 2],
    align: [NumberSlot; 2],
    cohere: [NumberSlot; 2],
    apart: [NumberSlot; 2],
    acts: [u16; 2],
}

impl Policy for Boid {
    const NAME: &'static str = "boid";
    const SUMMARY: &'static str = "Fly with the neighbours, towards them, but not too near";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        for (key, value) in [("cohere", params.cohere), ("separate", params.separate), ("align", params.align)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Invalid { key: key.into(), message: format!("must be 0 or more, is {value}") });
            }
        }
        let both = |x, y| Ok::<_, Invalid>([setup.number(x)?, setup.number(y)?]);
        Ok(Boid {
            params,
            heading: both("heading-x", "heading-y")?,
            align: both("match-x", "match-y")?,
            cohere: both("cohere-x", "cohere-y")?,
            apart: both("apart-x", "apart-y")?,
            acts: [setup.act("head-x")?.0, setup.act("head-y")?.0],
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Params { cohere, separate, align } = self.params;
        for axis in 0..2 {
            let see = |slots: &[NumberSlot; 2]| turn.observation.number(slots[axis]);
            let wanted = cohere * see(&self.cohere) + separate * see(&self.apart) + align * see(&self.align);
            let heading = see(&self.heading) + wanted;
            turn.act(self.acts[axis], heading);
        }
        Ok(())
    }
}
