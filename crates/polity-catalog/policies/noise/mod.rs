//! Names a number at random, uniformly over what the action allows. The baseline without reasoning.

use polity_kernel::prelude::*;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Noise>(files);
}

/// Names a number at random.
pub struct Noise(u16, f64, f64);

impl Policy for Noise {
    const NAME: &'static str = "noise";
    const SUMMARY: &'static str = "Name a number at random";
    type Params = NoParams;
    type State = ();

    fn open(_: NoParams, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        setup.number_act().map(|(action, low, high)| Noise(action, low, high))
    }
    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}
    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let value = turn.draws.range(self.1, self.2);
        turn.act(self.0, value);
        Ok(())
    }
}
