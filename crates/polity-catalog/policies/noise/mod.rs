//! Names a number at random, uniformly over what the act allows. The baseline without reasoning.

use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Noise>(files);
}

/// There is nothing to set.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// Names a number at random.
pub struct Noise {
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for Noise {
    const NAME: &'static str = "noise";
    const SUMMARY: &'static str = "Name a number at random";
    type Params = Params;
    type State = ();

    fn open(_: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (act, low, high) = binding.number_act()?;
        Ok(Noise { act, low, high })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let value = turn.draws.range(self.low, self.high);
        turn.act(self.act, value);
        Ok(())
    }
}
