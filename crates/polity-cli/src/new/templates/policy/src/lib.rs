//! Goes part of the way to the median of the opinions it hears: a loud extremist moves a mean, not a median.

use polity::kernel::Invalid;
use polity::kernel::interface::NumberSlot;
use polity::kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity::kernel::registry::Registry;
use polity::kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

polity::made_for!("0.1");

/// Every leaf of Polity, and this one.
pub fn registry() -> Registry {
    let mut registry = polity::registry();
    registry.policy::<Midway>(polity::leaf_files!());
    registry
}

/// What a scenario may set below `policy:`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The part of the way that is gone in a round; 0 to 1.
    rate: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { rate: 0.5 }
    }
}

/// The policy, bound to a society.
pub struct Midway {
    rate: f64,
    opinion: NumberSlot,
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for Midway {
    const NAME: &'static str = "midway";
    const SUMMARY: &'static str = "Go part of the way to the median of the opinions heard";
    type Params = Params;
    type State = (); // What an agent would carry from turn to turn.

    fn open(Params { rate }: Params, society: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "rate", rate)?;
        let (act, low, high) = society.number_act()?;
        Ok(Midway { rate, opinion: society.number("opinion")?, act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    // The estimate of memory counts a message for each tie.
    fn tells_neighbours(&self) -> bool {
        true
    }

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let own = turn.observation.number(self.opinion);
        let mut heard: Vec<f64> = turn.inbox().numbers().map(|(_, opinion)| opinion).collect();
        heard.sort_by(f64::total_cmp);
        let goal = heard.get(heard.len() / 2).copied().unwrap_or(own);
        let new = (own + self.rate * (goal - own)).clamp(self.low, self.high);
        turn.act(self.act, new);
        turn.tell_neighbours(0, new);
        Ok(())
    }
}
