//! Stay at home when ill, or when many others are. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Isolate>(files);
}

/// Parameters of the policy.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Share of the agents that stay at home while they are infectious; 0 to 1.
    compliance: f64,
    /// These agents also stay at home, whatever their health, while more than this share of all is infectious; 0 to 1.
    alarm: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { compliance: 0.0, alarm: 1.0 }
    }
}

/// Stays at home when it is ill, or when many are.
pub struct Isolate {
    params: Params,
    health: NumberSlot,
    prevalence: NumberSlot,
    act: u16,
}

const INFECTIOUS: f64 = 2.0;

impl Policy for Isolate {
    const NAME: &'static str = "isolate";
    const SUMMARY: &'static str = "Stay at home when ill, or when many others are";
    type Params = Params;
    /// Whether the agent complies.
    type State = bool;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        for (key, value) in [("compliance", params.compliance), ("alarm", params.alarm)] {
            Invalid::within(0.0..=1.0, key, value)?;
        }
        let (health, prevalence) = (setup.number("health")?, setup.number("prevalence")?);
        Ok(Isolate { params, health, prevalence, act: setup.act("isolate")?.0 })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> bool {
        draws.chance(self.params.compliance)
    }

    async fn act(&self, complies: &mut bool, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let ill = turn.observation.number(self.health) == INFECTIOUS;
        let alarmed = turn.observation.number(self.prevalence) > self.params.alarm;
        if *complies {
            turn.act(self.act, f64::from(u8::from(ill || alarmed)));
        }
        Ok(())
    }
}
