//! Move away when too few neighbours are similar. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Relocate>(files);
}

/// Parameters of the policy: one of the two.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Minimum share of similar neighbours to be content; 0 to 1. Default if neither is set: 0.5.
    least_share: Option<f64>,
    /// Minimum number of similar neighbours to be content.
    least_count: Option<u32>,
}

/// Moves away when too few neighbours are similar.
pub struct Relocate {
    share: f64,
    count: f64,
    like: NumberSlot,
    neighbours: NumberSlot,
    act: u16,
}

impl Policy for Relocate {
    const NAME: &'static str = "relocate";
    const SUMMARY: &'static str = "Move away when too few neighbours are like oneself";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (share, count) = match (params.least_share, params.least_count) {
            (Some(_), Some(_)) => {
                return Err(Invalid {
                    key: "least_count".into(),
                    message: "give `least_share` or `least_count`, not both".into(),
                });
            }
            (None, Some(count)) => (0.0, f64::from(count)),
            (share, None) => (share.unwrap_or(0.5), 0.0),
        };
        Invalid::within(0.0..=1.0, "least_share", share)?;
        let (like, neighbours) = (setup.number("like")?, setup.number("neighbours")?);
        Ok(Relocate { share, count, like, neighbours, act: setup.act("move")?.0 })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let (like, all) = (turn.observation.number(self.like), turn.observation.number(self.neighbours));
        if like < self.count || like < self.share * all {
            turn.act(self.act, 0.0);
        }
        Ok(())
    }
}
