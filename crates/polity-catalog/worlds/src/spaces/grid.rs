//! A grid on a torus with at most one agent per cell (Moore neighbourhoods).

use polity_kernel::rng::Draws;
use polity_kernel::{AgentId, Invalid};
use serde::{Deserialize, Serialize};

/// In an empty cell.
const EMPTY: AgentId = AgentId::MAX;

/// A grid on a torus. Cell `row * width + column` has as neighbours all cells at most `radius` rows and columns away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Cells per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Reach of a neighbourhood: 1 is the eight cells around.
    pub radius: u32,
    /// Groups of agents; agent `i` belongs to group `i % groups`.
    pub groups: u32,
}

impl Grid {
    /// The smallest square, or rectangle one wider than high, in which `agents` take up at most the share `density` of the cells.
    ///
    /// # Errors
    /// Names the parameter, `density` or `radius`, for which there are too many cells to number or neighbourhoods reach around the torus.
    pub fn for_agents(agents: u32, density: f64, radius: u32, groups: u32) -> Result<Self, Invalid> {
        let cells = (f64::from(agents) / density).ceil().max(1.0);
        let height = cells.sqrt().floor().max(1.0);
        let width = (cells / height).ceil();
        let least = 2 * radius + 1;
        if cells > f64::from(u32::MAX) {
            let message = format!("{cells} cells are too many to be numbered; raise the density");
            return Err(Invalid { key: "density".into(), message });
        }
        if height < f64::from(least) {
            let message = format!(
                "neighbourhoods of {least} x {least} cells reach around the torus of {width} x {height}; use more \
                 agents, a lower density or a smaller radius"
            );
            return Err(Invalid { key: "radius".into(), message });
        }
        Ok(Grid { width: width as u32, height: height as u32, radius, groups })
    }

    /// A cell and its neighbours, row by row.
    pub fn around(&self, cell: u32) -> impl Iterator<Item = usize> + use<> {
        let (x, y, r) = (cell % self.width, cell / self.width, self.radius);
        let (width, height) = (self.width, self.height);
        (0..=2 * r).flat_map(move |dy| {
            let row = (y + height - r + dy) % height * width;
            (0..=2 * r).map(move |dx| (row + (x + width - r + dx) % width) as usize)
        })
    }
}

/// Which agent is in which cell. Counts of neighbours by group are kept up to date, so reading them is cheap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Residents {
    /// The cell of each agent.
    at: Vec<u32>,
    /// Empty cells, in an order that moves change.
    vacant: Vec<u32>,
    /// Neighbours of each cell, by group.
    #[serde(skip)]
    near: Vec<u16>,
    /// The agent in each cell, or [`EMPTY`].
    #[serde(skip)]
    who: Vec<AgentId>,
}

impl Residents {
    /// Puts each agent into a cell of its own, at random.
    #[must_use]
    pub fn at_random(grid: &Grid, agents: u32, draws: &mut Draws) -> Self {
        let mut at: Vec<u32> = (0..grid.width * grid.height).collect();
        draws.shuffle(&mut at);
        let vacant = at.split_off(agents as usize);
        let mut residents = Residents { at, vacant, ..Residents::default() };
        residents.restore(grid);
        residents
    }

    /// Makes what is not saved: who is in each cell, and the counts.
    pub fn restore(&mut self, grid: &Grid) {
        let cells = (grid.width * grid.height) as usize;
        self.near = vec![0; cells * grid.groups as usize];
        self.who = vec![EMPTY; cells];
        for (agent, cell) in (0..).zip(self.at.clone()) {
            self.who[cell as usize] = agent;
            self.count(grid, cell, agent, 1, |_| {});
        }
    }

    /// The number of agents.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.at.len()
    }

    /// The number of empty cells.
    #[must_use]
    pub fn vacant(&self) -> usize {
        self.vacant.len()
    }

    /// The cell of an agent.
    #[must_use]
    pub fn cell(&self, agent: AgentId) -> u32 {
        self.at[agent as usize]
    }

    /// The neighbours of an agent: (of its own group, all).
    #[must_use]
    pub fn neighbours(&self, grid: &Grid, agent: AgentId) -> (u32, u32) {
        let groups = grid.groups as usize;
        let start = self.at[agent as usize] as usize * groups;
        let near = &self.near[start..start + groups];
        let like = u32::from(near[agent as usize % groups]);
        (like - 1, near.iter().map(|n| u32::from(*n)).sum::<u32>() - 1)
    }

    /// Moves an agent to the `pick`-th empty cell, if there is one, and calls `seen` with each agent whose neighbourhood has changed.
    /// Returns whether it has moved.
    pub fn relocate(&mut self, grid: &Grid, agent: AgentId, pick: usize, mut seen: impl FnMut(AgentId)) -> bool {
        let Some(free) = self.vacant.get_mut(pick) else { return false };
        let (from, to) = (self.at[agent as usize], *free);
        *free = from;
        self.at[agent as usize] = to;
        self.who[from as usize] = EMPTY;
        self.who[to as usize] = agent;
        self.count(grid, from, agent, -1, &mut seen);
        self.count(grid, to, agent, 1, &mut seen);
        true
    }

    /// Counts an agent in around a cell, or out.
    fn count(&mut self, grid: &Grid, cell: u32, agent: AgentId, by: i16, mut seen: impl FnMut(AgentId)) {
        let (groups, group) = (grid.groups as usize, (agent % grid.groups) as usize);
        for at in grid.around(cell) {
            // Its own cell too: an agent is not its own neighbour, so `neighbours` takes it off.
            let count = &mut self.near[at * groups + group];
            *count = count.wrapping_add_signed(by);
            if self.who[at] != EMPTY {
                seen(self.who[at]);
            }
        }
    }
}
