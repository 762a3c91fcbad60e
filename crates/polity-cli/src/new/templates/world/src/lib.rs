//! Land that all share: what is left of the grass grows back, up to what the land carries.

use polity::kernel::interface::ActionArgument;
use polity::kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use polity::kernel::{Invalid, policy::Person, registry::Registry, rng::Draws};
use schemars::JsonSchema;
use serde::Deserialize;

polity::made_for!("0.1");

/// Every leaf of Polity, and this one.
pub fn registry() -> Registry {
    let mut registry = polity::registry();
    registry.split_world::<Pasture>(polity::leaf_files!());
    registry
}

/// The world is its parameters: what a scenario may set below `world:`.
#[derive(Deserialize, JsonSchema)]
pub struct Pasture {
    /// Grass an agent that the land carries; above 0.
    capacity: f64,
    /// Share of the grass that grows back in a round on nearly empty land; 0 to 1.
    growth: f64,
}

impl SplitWorld for Pasture {
    const NAME: &'static str = "pasture";
    const SUMMARY: &'static str = "Agents graze on land that all share";
    type Params = Pasture;
    type Row = f64; // What the agent has eaten.
    type Common = f64; // Grass an agent.
    type Tally = (f64, f64); // Grass eaten in the round, agents.
    fn open(world: Pasture, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        Invalid::unless(world.capacity > 0.0, "capacity", "must be above 0")?;
        Invalid::within(0.0..=1.0, "growth", world.growth)?;
        declare.shared_number("grass", "grass left an agent", |_, grass| *grass);
        declare.action("graze", ActionArgument::Number { low: 0.0, high: 1.0 }, "eat");
        declare.column("eaten", "all that the agent has eaten", None, |_, _, eaten| *eaten);
        declare.scalar("grass", "grass left an agent, after the round", |_, grass| *grass);
        Ok(world)
    }
    fn init_common(&self) -> f64 {
        self.capacity
    }
    fn init_row(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        0.0
    }
    fn tally(&self) -> (f64, f64) {
        (0.0, 0.0)
    }
    fn apply(&self, grass: &f64, eaten: &mut f64, actions: &AgentActions<'_>, tally: &mut (f64, f64), _: &mut Future) {
        // Nobody gets more than an equal share, so that the order of the agents does not matter.
        let meal = actions.acts().last().map_or(0.0, |act| act.value.clamp(0.0, 1.0)).min(*grass);
        *eaten += meal;
        *tally = (tally.0 + meal, tally.1 + 1.0);
    }
    fn merge(&self, left: (f64, f64), right: (f64, f64)) -> (f64, f64) {
        (left.0 + right.0, left.1 + right.1)
    }
    fn end_round(&self, grass: &mut f64, (eaten, agents): (f64, f64), _: &mut Draws) -> Option<String> {
        let left = (*grass - eaten / agents).max(0.0);
        *grass = left + self.growth * left * (1.0 - left / self.capacity);
        (*grass < 0.01).then(|| "the land is bare".into())
    }
}
