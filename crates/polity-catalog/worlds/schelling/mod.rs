//! Segregation on a torus: people of several groups on a grid with empty cells. See README.md.

#[cfg(test)]
mod tests;

use crate::spaces::grid::{Grid, Residents};
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, Axis, NumberSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Schelling>(files);
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Share of occupied cells; above 0, at most 1.
    density: f64,
    /// Maximum distance of a neighbour in columns and rows; 1 (the eight around) to 10.
    radius: u32,
    /// Groups of equal size; 1 to 20.
    groups: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { density: 0.8, radius: 1, groups: 2 }
    }
}

/// Segregation on a torus.
pub struct Schelling {
    grid: Grid,
    /// Observations: neighbours of the own group, and all neighbours.
    seen: [NumberSlot; 2],
}

/// The occupants of the cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Town {
    residents: Residents,
    /// Number of agents that moved in the current round.
    moved: u32,
    /// Share of the agents that moved in the last round.
    moving: f64,
}

impl World for Schelling {
    const NAME: &'static str = "schelling";
    const SUMMARY: &'static str = "People of several groups on a torus, who may move (Schelling's segregation)";
    type Params = Params;
    type State = Town;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { density, radius, groups } = params;
        if !(density > 0.0 && density <= 1.0) {
            let message = format!("must be above 0 and at most 1, is {density}");
            return Err(Invalid { key: "density".into(), message });
        }
        Invalid::within(1..=10, "radius", radius)?;
        Invalid::within(1..=20, "groups", groups)?;
        let grid = Grid::for_agents(setup.agents, density, radius, groups)?;
        let seen = [
            declare.number_slot("like", "neighbours of the agent's own group"),
            declare.number_slot("neighbours", "all neighbours"),
        ];
        declare.action("move", ActionArgument::Nothing, "move to an empty cell, each as likely as any other");
        let doc = "share of the neighbours that are of the agent's group; 1 without neighbours";
        let like_share = |world: &Self, town: &Town, who: &u32| match town.residents.neighbours(&world.grid, *who) {
            (_, 0) => 1.0,
            (like, all) => f64::from(like) / f64::from(all),
        };
        // First, so that pictures of the town are coloured by it.
        let group = |world: &Self, _: &Town, who: &u32| f64::from(who % world.grid.groups);
        declare.column("group", "the agent's group, from 0", Some((0.0, f64::from(groups - 1))), group);
        declare.column("like-share", doc, Some((0.0, 1.0)), like_share);
        let last = |cells: u32| (0.0, f64::from(cells - 1));
        declare.coordinate(Axis::CellX, "x", "column of the agent's cell", last(grid.width), |world, town, who| {
            f64::from(town.residents.cell(*who) % world.grid.width)
        });
        declare.coordinate(Axis::CellY, "y", "row of the agent's cell", last(grid.height), |world, town, who| {
            f64::from(town.residents.cell(*who) / world.grid.width)
        });
        declare.reward(doc, like_share);
        declare.scalar("moving", "share of the agents that moved in the round", |_, town| town.moving);
        declare.random_order();
        declare.reports_disturbed();
        Ok(Schelling { grid, seen })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Town {
        Town { residents: Residents::at_random(&self.grid, setup.agents, draws), ..Town::default() }
    }

    fn observe(&self, town: &Town, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (like, all) = town.residents.neighbours(&self.grid, person.id);
        observation.number(self.seen[0], f64::from(like));
        observation.number(self.seen[1], f64::from(all));
    }

    fn apply(&self, town: &mut Town, actions: &AgentActions<'_>, future: &mut Future) {
        let pick = actions.draws().below(town.residents.vacant() as u64) as usize;
        town.moved +=
            u32::from(town.residents.relocate(&self.grid, actions.person.id, pick, |who| future.disturb(who)));
    }

    fn end_round(&self, town: &mut Town, _: &mut Draws) -> Option<String> {
        town.moving = f64::from(town.moved) / (town.residents.agents().max(1) as f64);
        (std::mem::take(&mut town.moved) == 0).then(|| "nobody moves any more".into())
    }

    fn restore(&self, town: &mut Town) {
        town.residents.restore(&self.grid);
    }
}
