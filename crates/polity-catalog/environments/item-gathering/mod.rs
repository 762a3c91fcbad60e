//! Agents gather items of several types, each of which is an objective of its own. See README.md.

#[cfg(test)]
mod tests;

use crate::grid::{Cell, EAST, NORTH, SOUTH, Size, WEST, Way, declare_cells};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Gathering>(files);
}

/// The ways, in the order of the actions after `stay`.
const WAYS: [Way; 4] = [NORTH, SOUTH, WEST, EAST];
const ACTIONS: [(&str, &str); 5] =
    [("stay", "stay"), ("up", "go up"), ("down", "go down"), ("left", "go to the left"), ("right", "go to the right")];
/// What stands for an agent among the tiles of a map. Items are their types, and 0 is nothing.
const AGENT: u8 = u8::MAX;
/// How many rows and columns at each edge stay as they are when a map is shuffled.
const MARGIN: u8 = 2;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The rows of the field, 1 to 30 of 1 to 30 characters: `@` for an agent (1 to 20 of them), a digit for an item of that type (at least
    /// one of each type from 1 on), `.` for nothing.
    map: Vec<String>,
    /// Whether the rows of the map change places at random before each episode, and then its columns. The two outermost rows and columns of
    /// each side stay as they are.
    shuffle: bool,
    /// Whether each agent gets what all of them gather.
    team: bool,
    /// With which probability an agent gathers an item in a step in its cell, by type. Empty: 1 for all types.
    pickup: Vec<f64>,
    /// Steps after which an episode is cut; 1 to 1,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        let map = [".......@", "........", ".....2..", "..2.23..", "...1....", "..11.3..", "........", "@......."];
        let map = map.map(String::from).into();
        Params { map, shuffle: false, team: false, pickup: Vec::new(), steps: 10 }
    }
}

/// A field.
pub struct Gathering {
    params: Params,
    size: Size,
    /// What is in each cell at first, row by row.
    tiles: Vec<u8>,
    agents: usize,
    types: usize,
    /// By cell: the agent itself, then the other agents by seat, then the types of items.
    cells: Vec<Vec<NumberSlot>>,
    field: TextSlot,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    agents: Vec<Cell>,
    /// The type of the item in each cell, row by row; 0 for none.
    items: Vec<u8>,
    /// How many items of each type each agent got in the last step, agent by agent.
    got: Vec<u8>,
    /// Two random numbers from 0 to below 1 for each agent, for the next step. If the first is below a half, the agent wins a cell from an
    /// agent before it. If the second is below the probability of the item, the agent gathers it. Agents do not see them.
    luck: Vec<[f64; 2]>,
    steps: u32,
}

/// Reads the rows of a map: its size, and its tiles.
fn read(map: &[String]) -> Result<(Size, Vec<u8>), Invalid> {
    let rows: Vec<Vec<char>> = map.iter().map(|row| row.chars().collect()).collect();
    let width = rows.first().map_or(0, Vec::len);
    Invalid::unless((1..=30).contains(&rows.len()), "map", "has 1 to 30 rows")?;
    Invalid::unless((1..=30).contains(&width), "map", "has 1 to 30 columns")?;
    Invalid::unless(rows.iter().all(|row| row.len() == width), "map", "has rows of different lengths")?;
    let tile = |mark: &char| match mark {
        '.' => Ok(0),
        '@' => Ok(AGENT),
        '1'..='9' => Ok(*mark as u8 - b'0'),
        _ => Err(Invalid { key: "map".into(), message: format!("has `{mark}`, which is none of `.`, `@` and 1 to 9") }),
    };
    let tiles = rows.iter().flatten().map(tile).collect::<Result<_, _>>()?;
    Ok((Size { width: width as u8, height: rows.len() as u8 }, tiles))
}

impl Gathering {
    fn luck(&self, draws: &mut Draws) -> Vec<[f64; 2]> {
        (0..self.agents).map(|_| [draws.unit(), draws.unit()]).collect()
    }

    /// Returns the tiles of a map whose inner rows, and then inner columns, have changed places.
    fn shuffled(&self, draws: &mut Draws) -> Vec<u8> {
        let mut inner = |side: u8| {
            let mut order: Vec<u8> = (MARGIN..side.saturating_sub(MARGIN)).collect();
            draws.shuffle(&mut order);
            order
        };
        let (rows, columns) = (inner(self.size.height), inner(self.size.width));
        let mut tiles = self.tiles.clone();
        for (y, row) in (MARGIN..).zip(&rows) {
            for (x, column) in (MARGIN..).zip(&columns) {
                let from = self.size.index(Cell { x: *column, y: *row });
                tiles[self.size.index(Cell { x, y })] = self.tiles[from];
            }
        }
        tiles
    }

    /// Moves the agents. Of those who go to the same cell one arrives, unless its agent stays there or has to go back there.
    fn walk(&self, field: &mut Field, actions: &[u16]) {
        let at = &field.agents;
        let aim = |(own, action): (&Cell, &u16)| {
            let way = usize::from(*action).checked_sub(1).and_then(|way| WAYS.get(way));
            way.and_then(|way| self.size.beside(*own, *way)).unwrap_or(*own)
        };
        let mut to: Vec<Cell> = at.iter().zip(actions).map(aim).collect();
        for later in 0..to.len() {
            let rival = |other: &usize| to[*other] == to[later] && to[*other] != at[*other] && to[later] != at[later];
            if let Some(earlier) = (0..later).find(rival) {
                let loser = if field.luck[later][0] < 0.5 { earlier } else { later };
                to[loser] = at[loser];
            }
        }
        let blocked = |to: &[Cell]| {
            let is_taken = |own: usize| (0..to.len()).any(|other| other != own && to[other] == to[own]);
            (0..to.len()).find(|own| to[*own] != at[*own] && is_taken(*own))
        };
        while let Some(back) = blocked(&to) {
            to[back] = at[back];
        }
        field.agents = to;
    }

    /// Lets agents gather the items in their cells.
    fn gather(&self, field: &mut Field) {
        field.got.fill(0);
        for (agent, cell) in field.agents.iter().enumerate() {
            let item = &mut field.items[self.size.index(*cell)];
            let Some(kind) = usize::from(*item).checked_sub(1) else { continue };
            if field.luck[agent][1] < self.params.pickup.get(kind).copied().unwrap_or(1.0) {
                *item = 0;
                let (first, last) = if self.params.team { (0, self.agents - 1) } else { (agent, agent) };
                (first..=last).for_each(|who| field.got[who * self.types + kind] += 1);
            }
        }
    }

    /// Returns who or what an agent sees in a cell: itself, another agent in order of seat, or an item; as a place among the numbers of a
    /// cell. An agent hides the item in its cell.
    fn seen(&self, field: &Field, own: usize, cell: Cell) -> Option<usize> {
        let item = || usize::from(field.items[self.size.index(cell)]).checked_sub(1).map(|kind| self.agents + kind);
        match field.agents.iter().position(|at| *at == cell) {
            Some(agent) if agent == own => Some(0),
            Some(agent) => Some(if agent < own { agent + 1 } else { agent }),
            None => item(),
        }
    }
}

impl Environment for Gathering {
    const NAME: &'static str = "item-gathering";
    const SUMMARY: &'static str = "Agents gather items of several types, each an objective of its own, as in MOMAland";
    type Params = Params;
    type State = Field;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        let (size, tiles) = read(&params.map)?;
        let agents = tiles.iter().filter(|tile| **tile == AGENT).count();
        let types = tiles.iter().filter(|tile| **tile != AGENT).max().map_or(0, |most| usize::from(*most));
        Invalid::unless((1..=20).contains(&agents), "map", format!("has {agents} agents; 1 to 20 are needed"))?;
        Invalid::unless(types > 0, "map", "has no items")?;
        let missing = (1..types as u8).find(|kind| !tiles.contains(kind));
        Invalid::unless(missing.is_none(), "map", format!("has items of type {types}, but not of all types before"))?;
        let fits = params.pickup.is_empty() || params.pickup.len() == types;
        Invalid::unless(fits, "pickup", format!("needs a probability for each of {types} types, or none"))?;
        params.pickup.iter().try_for_each(|probability| Invalid::within(0.0..=1.0, "pickup", *probability))?;
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        let doc = "the agent's place in the order of seats, from 0 for the first to 1 for the last";
        declare.number("place", doc, |of: &Gathering, _, seat| f64::from(*seat) / (of.agents.max(2) - 1) as f64);
        let slots = |Cell { x, y }| {
            let own = declare.number_slot(format!("own-{x}-{y}"), "1 if the agent is in this cell");
            let doc = "1 if this other agent, by seat, is in this cell";
            let other = |i: usize| declare.number_slot(format!("other-{i}-{x}-{y}"), doc);
            let mut slots: Vec<NumberSlot> = std::iter::once(own).chain((0..agents - 1).map(other)).collect();
            let doc = "1 if an item of this type, and no agent, is in this cell";
            slots.extend((1..=types).map(|kind| declare.number_slot(format!("item-{kind}-{x}-{y}"), doc)));
            slots
        };
        let cells = size.all().map(slots).collect();
        let field = declare.text_slot("field", "the field, drawn");
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        for kind in 0..types {
            let doc = format!("items of type {} that the agent got", kind + 1);
            declare.objective(format!("item-{}", kind + 1), doc, move |of: &Gathering, field: &Field, seat| {
                f64::from(field.got[*seat as usize * of.types + kind])
            });
        }
        declare_cells(declare, size, "agent", |field: &Field, seat| field.agents[seat as usize]);
        declare.scalar("items-left", "items that are left", |_, field: &Field| {
            field.items.iter().filter(|item| **item > 0).count() as f64
        });
        Ok(Gathering { params, size, tiles, agents, types, cells, field })
    }

    fn seats(&self) -> u32 {
        self.agents as u32
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Field {
        let mut items = if self.params.shuffle { self.shuffled(draws) } else { self.tiles.clone() };
        let agents = self.size.all().filter(|cell| items[self.size.index(*cell)] == AGENT).collect();
        items.iter_mut().filter(|tile| **tile == AGENT).for_each(|tile| *tile = 0);
        Field { agents, items, got: vec![0; self.agents * self.types], luck: self.luck(draws), steps: 0 }
    }

    fn accepts(&self, field: &Field) -> Result<(), String> {
        let lengths = [field.agents.len(), field.items.len(), field.got.len(), field.luck.len()];
        let expected = [self.agents, self.size.cells(), self.agents * self.types, self.agents];
        if lengths != expected {
            return Err(format!("agents, items, got and luck have the lengths {expected:?}, not {lengths:?}"));
        }
        let many = |of: &[u8], kind: &u8| of.iter().filter(|tile| *tile == kind).count();
        let is_known = |item: &u8| *item <= self.types as u8 && many(&field.items, item) <= many(&self.tiles, item);
        if !field.items.iter().filter(|item| **item > 0).all(is_known) {
            return Err("there are at most as many items of each type as on the map".into());
        }
        let stands =
            |(i, cell): (usize, &Cell)| self.size.has(*cell) && field.agents[..i].iter().all(|other| other != cell);
        if !field.agents.iter().enumerate().all(stands) {
            return Err("agents are on the field, each in a cell of its own".into());
        }
        let steps = self.params.steps;
        match field.luck.iter().flatten().all(|number| (0.0..1.0).contains(number)) && field.steps < steps {
            true => Ok(()),
            false => {
                Err(format!("numbers of luck are at least 0 and less than 1, and fewer than {steps} steps are over"))
            }
        }
    }

    fn cut(&self, field: &Field) -> bool {
        field.items.iter().any(|item| *item > 0)
    }

    fn observe(&self, field: &Field, seat: Seat, observation: &mut ObservationRow<'_>) {
        let mut drawn = String::new();
        for (cell, slots) in self.size.all().zip(&self.cells) {
            let seen = self.seen(field, seat as usize, cell);
            for (i, slot) in slots.iter().enumerate() {
                observation.number(*slot, f64::from(u8::from(seen == Some(i))));
            }
            if cell.x == 0 && cell.y > 0 {
                drawn.push('\n');
            }
            drawn.push(match seen {
                None => '.',
                Some(0) => '@',
                Some(other) if other < self.agents => 'A',
                Some(item) => char::from(b'1' + (item - self.agents) as u8),
            });
        }
        observation.text(self.field, drawn);
    }

    /// An agent without a move stays.
    fn step(&self, field: &mut Field, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut actions = vec![0; self.agents];
        moves.iter().for_each(|made| actions[made.seat as usize] = made.action);
        self.walk(field, &actions);
        self.gather(field);
        field.luck = self.luck(draws);
        field.steps += 1;
        let all = |got: &[u8]| got.iter().copied().map(f64::from).sum::<f64>();
        let rewards = field.got.chunks(self.types).map(all).collect();
        let done = !self.cut(field) || field.steps >= self.params.steps;
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }

    fn solved(&self, field: &Field, _: Option<&str>) -> Option<bool> {
        Some(!self.cut(field))
    }
}
