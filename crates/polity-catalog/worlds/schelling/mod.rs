//! Segregation on a torus: people of several groups on squared paper, with room to move. See README.md.

use polity_kernel::declare::DeclareWorld;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, NumberSlot};
use polity_kernel::world::{Activation, Deeds, Future, Setup, SightRow, World};
use polity_kernel::{AgentId, Invalid};
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
    /// Share of the cells that are taken; above 0, at most 1.
    density: f64,
    /// Who lives at most so many columns and rows away is a neighbour; 1 (the eight around) to 10.
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
    params: Params,
    width: u32,
    height: u32,
    /// What agents see: neighbours of their group, and all.
    seen: [NumberSlot; 2],
}

/// Who lives where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Town {
    /// The cell of each agent, `row * width + column`.
    at: Vec<u32>,
    /// Empty cells, in an order that moves change.
    vacant: Vec<u32>,
    /// Agents that moved in the round under way.
    moved: u32,
    /// Share of the agents that moved in the last round.
    moving: f64,
    /// Neighbours of each cell, by group: to look costs nothing, and most rounds have few moves.
    #[serde(skip)]
    near: Vec<u16>,
    /// Who lives in each cell, or [`NOBODY`].
    #[serde(skip)]
    who: Vec<AgentId>,
}

/// In an empty cell.
const NOBODY: AgentId = AgentId::MAX;

impl Schelling {
    /// The cells from which one can see a cell, its own among them.
    fn cells_around(&self, cell: u32) -> impl Iterator<Item = usize> {
        let (x, y, r) = (cell % self.width, cell / self.width, self.params.radius);
        let (width, height) = (self.width, self.height);
        (0..=2 * r).flat_map(move |dy| {
            let row = (y + height - r + dy) % height * width;
            (0..=2 * r).map(move |dx| (row + (x + width - r + dx) % width) as usize)
        })
    }

    /// Counts an agent in around its cell, or out, before those who live there.
    fn count(&self, town: &mut Town, cell: u32, agent: AgentId, by: i16, mut seen: impl FnMut(AgentId)) {
        let (groups, group) = (self.params.groups as usize, (agent % self.params.groups) as usize);
        for at in self.cells_around(cell) {
            // Its own cell too: an agent is no neighbour of itself, and `around` takes it off.
            let count = &mut town.near[at * groups + group];
            *count = count.wrapping_add_signed(by);
            seen(town.who[at]);
        }
    }

    /// An agent's neighbours: (of its group, all).
    fn around(&self, town: &Town, agent: AgentId) -> (u32, u32) {
        let groups = self.params.groups as usize;
        let start = town.at[agent as usize] as usize * groups;
        let near = &town.near[start..start + groups];
        let like = u32::from(near[agent as usize % groups]);
        (like - 1, near.iter().map(|n| u32::from(*n)).sum::<u32>() - 1)
    }
}

impl World for Schelling {
    const NAME: &'static str = "schelling";
    const SUMMARY: &'static str = "People of several groups on a torus, who may move (Schelling's segregation)";
    type Params = Params;
    type State = Town;

    fn open(params: Params, setup: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { density, radius, groups } = params;
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        if !(density > 0.0 && density <= 1.0) {
            return invalid("density", format!("must be above 0 and at most 1, is {density}"));
        }
        Invalid::within(1..=10, "radius", radius)?;
        Invalid::within(1..=20, "groups", groups)?;
        // The smallest square, or rectangle one wider than high, that has room.
        let cells = (f64::from(setup.agents) / density).ceil().max(1.0);
        let height = cells.sqrt().floor().max(1.0);
        let width = (cells / height).ceil();
        let least = 2 * radius + 1;
        if cells > f64::from(u32::MAX) {
            return invalid("density", format!("{cells} cells are more than there are numbers for; raise it"));
        }
        if height < f64::from(least) {
            let message = format!(
                "neighbourhoods of {least} x {least} cells reach around the torus of {width} x {height}; take more agents, a lower \
                 density or a smaller radius"
            );
            return invalid("radius", message);
        }
        let seen = [
            declare.number_slot("like", "neighbours of the agent's own group"),
            declare.number_slot("neighbours", "all neighbours"),
        ];
        declare.action("move", ActArgument::Nothing, "move to an empty cell, each as likely as any other");
        let doc = "share of the neighbours that are of the agent's group; 1 without neighbours";
        declare.column("like-share", doc, Some((0.0, 1.0)), |world, town, who| match world.around(town, *who) {
            (_, 0) => 1.0,
            (like, all) => f64::from(like) / f64::from(all),
        });
        declare.column("x", "column of the agent's cell", None, |world, town, who| {
            f64::from(town.at[*who as usize] % world.width)
        });
        declare.column("y", "row of the agent's cell", None, |world, town, who| {
            f64::from(town.at[*who as usize] / world.width)
        });
        declare.scalar("moving", "share of the agents that moved in the round", |_, town| town.moving);
        Ok(Schelling { params, width: width as u32, height: height as u32, seen })
    }

    fn activation(&self) -> Activation {
        Activation::RandomOrder
    }

    fn disturbs(&self) -> bool {
        true
    }

    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Town {
        let mut cells: Vec<u32> = (0..self.width * self.height).collect();
        draws.shuffle(&mut cells);
        let vacant = cells.split_off(setup.agents as usize);
        let mut town = Town { at: cells, vacant, ..Town::default() };
        self.restore(&mut town);
        town
    }

    fn observe(&self, town: &Town, person: Person<'_>, sight: &mut SightRow<'_>) {
        let (like, all) = self.around(town, person.id);
        sight.number(self.seen[0], f64::from(like));
        sight.number(self.seen[1], f64::from(all));
    }

    fn apply(&self, town: &mut Town, deeds: &Deeds<'_>, future: &mut Future) {
        let agent = deeds.person.id;
        let pick = deeds.draws().below(town.vacant.len() as u64) as usize;
        if let Some(free) = town.vacant.get_mut(pick) {
            let (from, to) = (town.at[agent as usize], *free);
            *free = from;
            town.at[agent as usize] = to;
            town.moved += 1;
            town.who[from as usize] = NOBODY;
            town.who[to as usize] = agent;
            let mut seen = |who| {
                if who != NOBODY {
                    future.disturb(who);
                }
            };
            self.count(town, from, agent, -1, &mut seen);
            self.count(town, to, agent, 1, &mut seen);
        }
    }

    fn settle(&self, town: &mut Town, _: &mut Draws) -> Option<String> {
        town.moving = f64::from(town.moved) / (town.at.len().max(1) as f64);
        (std::mem::take(&mut town.moved) == 0).then(|| "nobody moves any more".into())
    }

    fn restore(&self, town: &mut Town) {
        let cells = (self.width * self.height) as usize;
        town.near = vec![0; cells * self.params.groups as usize];
        town.who = vec![NOBODY; cells];
        for (agent, cell) in (0..).zip(town.at.clone()) {
            town.who[cell as usize] = agent;
            self.count(town, cell, agent, 1, |_| {});
        }
    }
}
