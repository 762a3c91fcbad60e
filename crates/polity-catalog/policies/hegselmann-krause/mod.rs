//! Bounded confidence, all at once: the mean of all opinions near one's own. See README.md for the source and the equations.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<HegselmannKrause>(files);
}

/// Parameters of bounded confidence.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Opinions farther away than this are ignored; in units of the scale, 0 or more.
    epsilon: f64,
}

/// Takes the mean of all opinions near its own.
pub struct HegselmannKrause {
    epsilon: f64,
    opinion: NumberSlot,
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for HegselmannKrause {
    const NAME: &'static str = "hegselmann-krause";
    const SUMMARY: &'static str = "Take the mean of all opinions near one's own (bounded confidence)";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let epsilon = params.epsilon;
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Invalid { key: "epsilon".into(), message: format!("must be 0 or more, is {epsilon}") });
        }
        let (act, low, high) = setup.number_act()?;
        Ok(HegselmannKrause { epsilon, opinion: setup.number("opinion")?, act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    fn tells_neighbours(&self) -> bool {
        true
    }

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let own = turn.observation.number(self.opinion);
        // The own opinion is one of those near it. Summing differences from it preserves agreement to the last bit.
        let (sum, n) =
            turn.inbox().numbers().map(|(_, other)| other - own).fold((0.0, 1u32), |(sum, n), difference| {
                if difference.abs() <= self.epsilon { (sum + difference, n + 1) } else { (sum, n) }
            });
        let new = (own + sum / f64::from(n)).clamp(self.low, self.high);
        turn.act(self.act, new);
        turn.tell_neighbours(0, new);
        Ok(())
    }
}
