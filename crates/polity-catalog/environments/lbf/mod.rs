//! Level-based foraging: agents of different levels pick up food together. See README.md.

#[cfg(test)]
mod tests;

use crate::grid::{Cell, EAST, NORTH, SOUTH, Size, WEST, Way, declare_cells};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Foraging>(files);
}

/// The ways, in the order in which an agent looks for food beside it, and of the actions.
const WAYS: [Way; 4] = [NORTH, SOUTH, WEST, EAST];
const ACTIONS: [(&str, &str); 6] = [
    ("none", "stay"),
    ("north", "go up"),
    ("south", "go down"),
    ("west", "go to the left"),
    ("east", "go to the right"),
    ("load", "pick up the food beside you"),
];
const LOAD: u16 = 5;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Rows and columns of the field; 5 to 30.
    size: u8,
    /// Agents of an episode; 1 to 20.
    players: u32,
    /// Pieces of food of an episode; 1 to 20. A field may have too little room for all.
    food: u8,
    /// How many cells an agent sees each way; 0 for all.
    sight: u8,
    /// The highest level of an agent; 1 to 20. Levels are drawn evenly from 1 on.
    top_level: u8,
    /// Whether every piece of food needs the three agents of the lowest levels together, or all if they are fewer. Otherwise levels of
    /// food are drawn evenly from 1 to that.
    cooperative: bool,
    /// What an agent loses when it tries to pick up food that is too heavy; 0 to 1,000.
    penalty: f64,
    /// Steps after which an episode is cut; 1 to 1,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { size: 8, players: 2, food: 3, sight: 0, top_level: 2, cooperative: false, penalty: 0.0, steps: 50 }
    }
}

/// A field.
pub struct Foraging {
    params: Params,
    size: Size,
    /// Column, row and level of each piece of food and of each agent, as the agent sees them.
    food: Vec<[NumberSlot; 3]>,
    agents: Vec<[NumberSlot; 3]>,
    food_rows: TableSlot,
    agent_rows: TableSlot,
}

/// An agent on the field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forager {
    at: Cell,
    level: u8,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    players: Vec<Forager>,
    /// The level of the food in each cell, row by row; 0 for none.
    food: Vec<u8>,
    /// The levels of all food at the beginning, added.
    spawned: u32,
    steps: u32,
}

impl Foraging {
    fn sight(&self) -> i32 {
        i32::from(if self.params.sight == 0 { self.params.size } else { self.params.sight })
    }

    fn food_at(&self, field: &Field, cell: Cell) -> u8 {
        field.food[self.size.index(cell)]
    }

    /// Returns the food that an agent in a cell would pick up.
    fn food_beside(&self, field: &Field, cell: Cell) -> Option<Cell> {
        self.size.around(cell, &WAYS).find(|beside| self.food_at(field, *beside) > 0)
    }

    /// Returns whether food may be put into a cell: not at the edge, not on an agent, and away from other food.
    fn has_room(&self, field: &Field, cell: Cell) -> bool {
        let last = self.params.size - 1;
        let inside = (1..last).contains(&cell.x) && (1..last).contains(&cell.y);
        let near = |other: Cell| {
            let [dx, dy] = cell.offset(other).map(i32::abs);
            (dx <= 1 && dy <= 1) || (dx == 0 && dy <= 2) || (dy == 0 && dx <= 2)
        };
        inside
            && field.players.iter().all(|player| player.at != cell)
            && self.size.all().all(|other| self.food_at(field, other) == 0 || !near(other))
    }

    /// Moves the agents. Those who would arrive in the same cell stay.
    fn walk(&self, field: &mut Field, actions: &[u16]) {
        let wanted: Vec<Cell> = field
            .players
            .iter()
            .zip(actions)
            .map(|(player, action)| {
                let way = usize::from(*action).checked_sub(1).and_then(|way| WAYS.get(way));
                let next = way.and_then(|way| self.size.beside(player.at, *way));
                next.filter(|cell| self.food_at(field, *cell) == 0).unwrap_or(player.at)
            })
            .collect();
        for (player, cell) in field.players.iter_mut().zip(&wanted) {
            if wanted.iter().filter(|other| *other == cell).count() == 1 {
                player.at = *cell;
            }
        }
    }

    /// Lets those agents load who had food beside them, and returns what each gets.
    fn load(&self, field: &mut Field, loads: &[bool]) -> Vec<f64> {
        let mut rewards = vec![0.0; field.players.len()];
        let mut waiting = loads.to_vec();
        for first in 0..field.players.len() {
            if !waiting[first] {
                continue;
            }
            let Some(cell) = self.food_beside(field, field.players[first].at) else { continue };
            let level = self.food_at(field, cell);
            let together: Vec<usize> =
                (0..waiting.len()).filter(|i| waiting[*i] && field.players[*i].at.steps_to(cell) == 1).collect();
            let strength: u32 = together.iter().map(|i| u32::from(field.players[*i].level)).sum();
            for i in together {
                waiting[i] = false;
                rewards[i] = match strength < u32::from(level) {
                    true => 0.0 - self.params.penalty,
                    false => {
                        let part = f64::from(u32::from(field.players[i].level) * u32::from(level));
                        part / f64::from(strength * field.spawned)
                    }
                };
            }
            if strength >= u32::from(level) {
                field.food[self.size.index(cell)] = 0;
            }
        }
        rewards
    }

    /// Returns the cells that an agent sees, row by row.
    fn seen(&self, own: Cell) -> impl Iterator<Item = Cell> {
        let (size, sight) = (self.size, self.sight());
        let ways = (-sight..=sight).flat_map(move |dy| (-sight..=sight).map(move |dx| [dx, dy]));
        ways.filter_map(move |way| size.beyond(own, way))
    }

    /// Returns the column and the row of a cell in the part of the field that an agent sees.
    fn within(&self, own: Cell, cell: Cell) -> [f64; 2] {
        let [dx, dy] = own.offset(cell);
        let from = |own: u8| self.sight().min(i32::from(own));
        [f64::from(dx + from(own.x)), f64::from(dy + from(own.y))]
    }

    /// Returns the agents that an agent sees, itself first.
    fn seen_agents(&self, field: &Field, own: usize) -> Vec<Forager> {
        let at = field.players[own].at;
        let most = 2 * self.sight();
        let visible = |player: &Forager| {
            let within = self.within(at, player.at);
            within.iter().all(|along| (0.0..=f64::from(most)).contains(along))
        };
        let others = field.players.iter().enumerate().filter(|(i, player)| *i != own && visible(player));
        std::iter::once(field.players[own]).chain(others.map(|(_, player)| *player)).collect()
    }
}

impl Environment for Foraging {
    const NAME: &'static str = "lbf";
    const SUMMARY: &'static str = "Level-based foraging: agents pick up food together that is too heavy for one";
    type Params = Params;
    type State = Field;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(5..=30, "size", params.size)?;
        Invalid::within(1..=20, "players", params.players)?;
        Invalid::within(1..=20, "food", params.food)?;
        Invalid::within(0..=30, "sight", params.sight)?;
        Invalid::within(1..=20, "top-level", params.top_level)?;
        Invalid::within(0.0..=1_000.0, "penalty", params.penalty)?;
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        let mut three = |what: String, doc: &'static str| {
            ["y", "x", "level"].map(|of| declare.number_slot(format!("{what}-{of}"), doc))
        };
        let doc = "row, column or level of food in what the agent sees; -1, -1 and 0 if there is none";
        let food = (0..params.food).map(|i| three(format!("food-{i}"), doc)).collect();
        let doc =
            "row, column or level of an agent in what the agent sees, itself first; -1, -1 and 0 if it sees no more";
        let agents = (0..params.players).map(|i| three(format!("player-{i}"), doc)).collect();
        let columns = ["right", "down", "level"];
        let doc = "the food that the agent sees: columns to the right of it, rows down, level";
        let food_rows = declare.table_slot("foods", columns, doc);
        let doc = "the other agents that it sees: columns to the right of it, rows down, level";
        let agent_rows = declare.table_slot("others", columns, doc);
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, Size::square(params.size), "agent", |field: &Field, seat| {
            field.players[seat as usize].at
        });
        declare.column("level", "the agent's level", None, |_, field, seat| {
            f64::from(field.players[*seat as usize].level)
        });
        declare.scalar("food-left", "pieces of food that are left", |_, field: &Field| {
            field.food.iter().filter(|level| **level > 0).count() as f64
        });
        let size = Size::square(params.size);
        Ok(Foraging { params, size, food, agents, food_rows, agent_rows })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Field {
        let Params { players, food, top_level, cooperative, .. } = self.params;
        let mut field = Field { players: Vec::new(), food: vec![0; self.size.cells()], spawned: 0, steps: 0 };
        let mut cells: Vec<Cell> = self.size.all().collect();
        draws.shuffle(&mut cells);
        let level = |draws: &mut Draws| 1 + draws.below(u64::from(top_level)) as u8;
        field.players =
            cells.into_iter().take(players as usize).map(|at| Forager { at, level: level(draws) }).collect();
        let mut levels: Vec<u8> = field.players.iter().map(|player| player.level).collect();
        levels.sort_unstable();
        let most: u8 = levels.iter().take(3).sum();
        for _ in 0..food {
            let free: Vec<Cell> = self.size.all().filter(|cell| self.has_room(&field, *cell)).collect();
            if free.is_empty() {
                break;
            }
            let cell = free[draws.below(free.len() as u64) as usize];
            let level = if cooperative { most } else { 1 + draws.below(u64::from(most)) as u8 };
            field.food[self.size.index(cell)] = level;
            field.spawned += u32::from(level);
        }
        field
    }

    fn accepts(&self, field: &Field) -> Result<(), String> {
        let Params { players, food, size, .. } = self.params;
        let (agents, cells) = (field.players.len(), field.food.len());
        if agents != players as usize || cells != self.size.cells() {
            return Err(format!("there are {players} players and {size} times {size} cells, not {agents} and {cells}"));
        }
        let pieces = field.food.iter().filter(|level| **level > 0).count();
        let left: u32 = field.food.iter().map(|level| u32::from(*level)).sum();
        if pieces > usize::from(food) || left > field.spawned {
            return Err(format!("there are at most {food} pieces of food, of which none has come later"));
        }
        let stands = |player: &Forager| self.size.has(player.at) && self.food_at(field, player.at) == 0;
        match field.players.iter().all(|player| player.level > 0 && stands(player)) {
            true => Ok(()),
            false => Err("players have levels and stand on the field, beside the food".into()),
        }
    }

    fn cut(&self, field: &Field) -> bool {
        field.food.iter().any(|level| *level > 0)
    }

    fn observe(&self, field: &Field, seat: Seat, observation: &mut ObservationRow<'_>) {
        let own = field.players[seat as usize].at;
        let mut write = |slots: &[NumberSlot; 3], seen: Option<(Cell, u8)>| {
            let [x, y] = seen.map_or([-1.0; 2], |(cell, _)| self.within(own, cell));
            let level = seen.map_or(0.0, |(_, level)| f64::from(level));
            slots.iter().zip([y, x, level]).for_each(|(slot, value)| observation.number(*slot, value));
        };
        let foods = || self.seen(own).map(|cell| (cell, self.food_at(field, cell))).filter(|(_, level)| *level > 0);
        let mut pieces = foods();
        self.food.iter().for_each(|slots| write(slots, pieces.next()));
        let agents = self.seen_agents(field, seat as usize);
        let mut seen = agents.iter().map(|player| (player.at, player.level));
        self.agents.iter().for_each(|slots| write(slots, seen.next()));
        let row = |cell: Cell, level: u8| {
            let [right, down] = own.offset(cell).map(f64::from);
            [right, down, f64::from(level)]
        };
        observation.table(self.food_rows, |rows| foods().for_each(|(cell, level)| rows.extend(row(cell, level))));
        observation.table(self.agent_rows, |rows| {
            agents[1..].iter().for_each(|player| rows.extend(row(player.at, player.level)));
        });
    }

    /// An agent without a move stays.
    fn step(&self, field: &mut Field, moves: &[Move], _: &mut Draws) -> StepResult {
        let mut actions = vec![0; field.players.len()];
        moves.iter().for_each(|made| actions[made.seat as usize] = made.action);
        // Who has no food beside it before the moves does not load.
        let loads: Vec<bool> = field
            .players
            .iter()
            .zip(&actions)
            .map(|(player, action)| *action == LOAD && self.food_beside(field, player.at).is_some())
            .collect();
        self.walk(field, &actions);
        let rewards = self.load(field, &loads);
        field.steps += 1;
        let done = field.food.iter().all(|level| *level == 0) || field.steps >= self.params.steps;
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }

    fn solved(&self, field: &Field, _: Option<&str>) -> Option<bool> {
        Some(!self.cut(field))
    }
}
