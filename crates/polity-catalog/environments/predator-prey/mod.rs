//! Hunters catch prey together, and are punished for trying alone. See README.md.

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
    registry.environment::<PredatorPrey>(files);
}

/// The ways, in the order of the actions.
const WAYS: [Way; 4] = [EAST, SOUTH, WEST, NORTH];
const ACTIONS: [(&str, &str); 6] = [
    ("right", "go to the right"),
    ("down", "go down"),
    ("left", "go to the left"),
    ("up", "go up"),
    ("stay", "stay"),
    ("catch", "try to catch the prey beside you"),
];
const STAY: u16 = 4;
const CATCH: u16 = 5;
/// A number that 1, 2, 3 and 4 divide: a draw below it picks evenly from as many ways.
const CHANCES: u8 = 12;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Rows and columns; 4 to 50.
    size: u8,
    /// Hunters of an episode; 1 to 50.
    hunters: u32,
    /// Prey of an episode; 1 to 50. All must fit into half of the cells.
    prey: u32,
    /// Hunters that have to catch a prey together; 1 to 4.
    needed: u8,
    /// What all hunters get for a catch; 0 to 1,000.
    reward: f64,
    /// What all hunters lose for each prey that too few of them try to catch; 0 to 1,000.
    penalty: f64,
    /// How many cells a hunter sees each way; 1 to 10.
    sight: u8,
    /// Steps after which an episode is cut; 1 to 1,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { size: 10, hunters: 8, prey: 8, needed: 2, reward: 10.0, penalty: 2.0, sight: 2, steps: 200 }
    }
}

/// A hunting ground.
pub struct PredatorPrey {
    params: Params,
    size: Size,
    /// For each cell in sight, row by row: whether a hunter is there, and whether prey is.
    hunters: Vec<NumberSlot>,
    prey: Vec<NumberSlot>,
    hunter_rows: TableSlot,
    prey_rows: TableSlot,
}

/// A hunter or a prey.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Animal {
    at: Cell,
    /// Whether it is on the ground: prey that has not been caught, a hunter that has not caught any.
    there: bool,
}

/// What chance does in the next step: it is drawn before, and nobody sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Luck {
    /// The order in which hunters and prey move.
    hunters: Vec<u32>,
    prey: Vec<u32>,
    /// A number for each prey, by which it chooses from the ways that are free: 0 to 11.
    ways: Vec<u8>,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hunt {
    hunters: Vec<Animal>,
    prey: Vec<Animal>,
    luck: Luck,
    steps: u32,
}

fn is_there(animals: &[Animal], cell: Cell) -> bool {
    animals.iter().any(|animal| animal.there && animal.at == cell)
}

impl Hunt {
    fn is_free(&self, cell: Cell) -> bool {
        !is_there(&self.hunters, cell) && !is_there(&self.prey, cell)
    }
}

impl PredatorPrey {
    fn luck(&self, draws: &mut Draws) -> Luck {
        let mut order = |n: u32| {
            let mut order: Vec<u32> = (0..n).collect();
            draws.shuffle(&mut order);
            order
        };
        let (hunters, prey) = (order(self.params.hunters), order(self.params.prey));
        let ways = (0..self.params.prey).map(|_| draws.below(u64::from(CHANCES)) as u8).collect();
        Luck { hunters, prey, ways }
    }

    /// Lets a prey be caught or move away, and returns what the hunters get.
    fn chase(&self, hunt: &mut Hunt, prey: usize, actions: &[u16]) -> f64 {
        let at = hunt.prey[prey].at;
        let catching: Vec<usize> = (0..hunt.hunters.len())
            .filter(|i| actions[*i] == CATCH && hunt.hunters[*i].there && hunt.hunters[*i].at.steps_to(at) == 1)
            .collect();
        if catching.len() >= usize::from(self.params.needed) {
            hunt.prey[prey].there = false;
            catching.iter().for_each(|i| hunt.hunters[*i].there = false);
            return self.params.reward;
        }
        let free: Vec<Cell> = self.size.around(at, &WAYS).filter(|cell| hunt.is_free(*cell)).collect();
        if !free.is_empty() {
            hunt.prey[prey].at = free[usize::from(hunt.luck.ways[prey]) % free.len()];
        }
        if catching.is_empty() { 0.0 } else { 0.0 - self.params.penalty }
    }

    /// Returns the cells that a hunter sees, row by row, with `None` beyond the edge.
    fn in_sight(&self, own: Cell) -> impl Iterator<Item = Option<Cell>> {
        let (size, sight) = (self.size, i32::from(self.params.sight));
        let ways = (-sight..=sight).flat_map(move |dy| (-sight..=sight).map(move |dx| [dx, dy]));
        ways.map(move |way| size.beyond(own, way))
    }
}

impl Environment for PredatorPrey {
    const NAME: &'static str = "predator-prey";
    const SUMMARY: &'static str = "Hunters catch prey in pairs; who tries it alone costs all of them";
    type Params = Params;
    type State = Hunt;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(4..=50, "size", params.size)?;
        Invalid::within(1..=50, "hunters", params.hunters)?;
        Invalid::within(1..=50, "prey", params.prey)?;
        Invalid::within(1..=4, "needed", params.needed)?;
        Invalid::within(0.0..=1_000.0, "reward", params.reward)?;
        Invalid::within(0.0..=1_000.0, "penalty", params.penalty)?;
        Invalid::within(1..=10, "sight", params.sight)?;
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        let size = Size::square(params.size);
        let room = 2 * (params.hunters + params.prey) as usize <= size.cells();
        Invalid::unless(room, "size", "hunters and prey do not fit into half of the cells")?;
        let sight = i32::from(params.sight);
        let mut cells = |what: &str, doc: &'static str| -> Vec<NumberSlot> {
            let ways = (-sight..=sight).flat_map(|dy| (-sight..=sight).map(move |dx| (dx, dy)));
            ways.map(|(dx, dy)| declare.number_slot(format!("{what}-{}-{}", dx + sight, dy + sight), doc)).collect()
        };
        let doc = "1 if a hunter is in this cell of what the hunter sees, by column and row";
        let hunters = cells("hunter", doc);
        let prey = cells("prey", "1 if prey is in this cell of what the hunter sees, by column and row");
        let columns = ["right", "down"];
        let doc = "the other hunters that it sees: columns to the right of it, rows down";
        let hunter_rows = declare.table_slot("hunters", columns, doc);
        let prey_rows = declare.table_slot("preys", columns, "the prey that it sees, in the same way");
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, Size::square(params.size), "hunter", |hunt: &Hunt, seat| hunt.hunters[seat as usize].at);
        declare.scalar("caught", "prey that has been caught", |_, hunt: &Hunt| {
            hunt.prey.iter().filter(|prey| !prey.there).count() as f64
        });
        Ok(PredatorPrey { params, size, hunters, prey, hunter_rows, prey_rows })
    }

    fn seats(&self) -> u32 {
        self.params.hunters
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Hunt {
        let mut cells: Vec<Cell> = self.size.all().collect();
        draws.shuffle(&mut cells);
        let mut cells = cells.into_iter().map(|at| Animal { at, there: true });
        let hunters = cells.by_ref().take(self.params.hunters as usize).collect();
        let prey = cells.take(self.params.prey as usize).collect();
        Hunt { hunters, prey, luck: self.luck(draws), steps: 0 }
    }

    fn accepts(&self, hunt: &Hunt) -> Result<(), String> {
        let (hunters, prey) = (self.params.hunters, self.params.prey);
        let is_order = |order: &[u32], n: u32| {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            sorted.into_iter().eq(0..n)
        };
        let luck = &hunt.luck;
        if !is_order(&luck.hunters, hunters) || !is_order(&luck.prey, prey) || luck.ways.len() != prey as usize {
            return Err(format!("luck has an order of {hunters} hunters and {prey} prey, and a number for each prey"));
        }
        let (h, p) = (hunt.hunters.len(), hunt.prey.len());
        if (h, p) != (hunters as usize, prey as usize) {
            return Err(format!("there are {hunters} hunters and {prey} prey, not {h} and {p}"));
        }
        let mut all = hunt.hunters.iter().chain(&hunt.prey);
        match all.all(|animal| self.size.has(animal.at)) {
            true => Ok(()),
            false => Err(format!("columns and rows are less than {}", self.params.size)),
        }
    }

    fn cut(&self, hunt: &Hunt) -> bool {
        hunt.prey.iter().any(|prey| prey.there) && hunt.hunters.iter().any(|hunter| hunter.there)
    }

    /// A hunter that has caught prey can only stay. Nobody can go beyond the edge, or catch without prey beside it.
    fn offers(&self, hunt: &Hunt, seat: Seat, action: u16) -> bool {
        let Animal { at, there } = hunt.hunters[seat as usize];
        match (WAYS.get(usize::from(action)), action) {
            (Some(way), _) => there && self.size.beside(at, *way).is_some(),
            (None, STAY) => true,
            (None, _) => there && self.size.around(at, &WAYS).any(|cell| is_there(&hunt.prey, cell)),
        }
    }

    fn observe(&self, hunt: &Hunt, seat: Seat, observation: &mut ObservationRow<'_>) {
        let Animal { at, there } = hunt.hunters[seat as usize];
        if !there {
            return;
        }
        for (slots, animals, table) in
            [(&self.hunters, &hunt.hunters, self.hunter_rows), (&self.prey, &hunt.prey, self.prey_rows)]
        {
            for (slot, cell) in slots.iter().zip(self.in_sight(at)) {
                let seen = cell.is_some_and(|cell| is_there(animals, cell));
                observation.number(*slot, f64::from(u8::from(seen)));
            }
            let seen = self.in_sight(at).flatten().filter(|cell| *cell != at && is_there(animals, *cell));
            observation.table(table, |rows| seen.for_each(|cell| rows.extend(at.offset(cell).map(f64::from))));
        }
    }

    /// A hunter without a move stays.
    fn step(&self, hunt: &mut Hunt, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut actions = vec![STAY; hunt.hunters.len()];
        moves.iter().for_each(|made| actions[made.seat as usize] = made.action);
        for i in hunt.luck.hunters.clone() {
            let Animal { at, there } = hunt.hunters[i as usize];
            let way = WAYS.get(usize::from(actions[i as usize])).filter(|_| there);
            if let Some(cell) = way.and_then(|way| self.size.beside(at, *way)).filter(|cell| hunt.is_free(*cell)) {
                hunt.hunters[i as usize].at = cell;
            }
        }
        let mut reward = 0.0;
        for i in hunt.luck.prey.clone() {
            if hunt.prey[i as usize].there {
                reward += self.chase(hunt, i as usize, &actions);
            }
        }
        hunt.luck = self.luck(draws);
        hunt.steps += 1;
        StepResult {
            rewards: vec![reward; hunt.hunters.len()],
            results: vec![String::new(); moves.len()],
            done: !self.cut(hunt) || hunt.steps >= self.params.steps,
        }
    }
}
