//! Robots bring shelves to the stations of a warehouse and have to keep its lanes free. See README.md.

#[cfg(test)]
mod tests;
mod traffic;

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
    registry.environment::<Warehouse>(files);
}

/// The directions that a robot can face, by number, and the order in which it turns to the right.
const FACING: [Way; 4] = [NORTH, SOUTH, WEST, EAST];
const NAMES: [&str; 4] = ["up", "down", "left", "right"];
const TURNS: [u8; 4] = [0, 3, 1, 2];
const ACTIONS: [(&str, &str); 5] = [
    ("wait", "do nothing"),
    ("forward", "go forward"),
    ("left", "turn to the left"),
    ("right", "turn to the right"),
    ("toggle-load", "lift the shelf above you, or put down the one that you carry"),
];

/// Who is rewarded for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rewards {
    /// A robot that brings a shelf that was asked for gets 1.
    Individual,
    /// All robots get it.
    Global,
    /// It gets a half, and the other half when it has put the shelf back.
    TwoStage,
}

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Blocks of shelves from the top to the bottom; 1 to 10.
    shelf_rows: u8,
    /// Blocks of shelves from the left to the right, two shelves wide each; odd, 1 to 15. There are none before the stations.
    shelf_columns: u8,
    /// Shelves of a block from its top to its bottom; 1 to 20.
    column_height: u8,
    /// Robots of an episode; 1 to 19.
    robots: u32,
    /// Shelves that are asked for at a time; 1 to 50, and fewer than there are.
    requests: u32,
    /// How many cells a robot sees each way; 1 to 5.
    sight: u8,
    /// Who is rewarded for what.
    rewards: Rewards,
    /// Steps of an episode; 1 to 1,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            shelf_rows: 1,
            shelf_columns: 3,
            column_height: 8,
            robots: 2,
            requests: 2,
            sight: 1,
            rewards: Rewards::Individual,
            steps: 500,
        }
    }
}

/// A warehouse.
pub struct Warehouse {
    params: Params,
    size: Size,
    /// Where shelves belong, row by row.
    places: Vec<Cell>,
    own: Vec<NumberSlot>,
    /// By cell in sight, row by row, and by what is shown of it.
    cells: Vec<[NumberSlot; 7]>,
    lanes: TextSlot,
}

/// A robot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Robot {
    at: Cell,
    facing: u8,
    /// The shelf that it carries, by number.
    carries: Option<u16>,
    /// Whether it has to put a shelf back that it has delivered.
    delivered: bool,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    robots: Vec<Robot>,
    /// Where each shelf is.
    shelves: Vec<Cell>,
    /// The shelves that are asked for.
    requests: Vec<u16>,
    /// Which shelf is asked for next if one is delivered in the next step, and if another is: the place among those that are not asked for.
    /// It is drawn before, and nobody sees it.
    luck: [u16; 2],
    steps: u32,
}

impl Floor {
    fn shelf_at(&self, cell: Cell) -> Option<u16> {
        // The last one, if a robot stands below a shelf with another.
        self.shelves.iter().rposition(|at| *at == cell).map(|shelf| shelf as u16)
    }

    fn robot_at(&self, cell: Cell) -> Option<usize> {
        self.robots.iter().position(|robot| robot.at == cell)
    }

    /// Returns the shelves that are not asked for, in their order.
    fn others(&self) -> impl Iterator<Item = u16> {
        (0..self.shelves.len() as u16).filter(|shelf| !self.requests.contains(shelf))
    }
}

impl Warehouse {
    fn stations(&self) -> [Cell; 2] {
        let (middle, last) = (self.size.width / 2, self.size.height - 1);
        [Cell { x: middle - 1, y: last }, Cell { x: middle, y: last }]
    }

    fn luck(&self, draws: &mut Draws) -> [u16; 2] {
        [(); 2].map(|()| draws.below((self.places.len() - self.params.requests as usize) as u64) as u16)
    }

    /// Returns the cell that a robot wants to be in: the one before it if it goes forward and nothing is in the way of its shelf.
    fn wanted(&self, floor: &Floor, robot: usize, action: u16) -> Cell {
        let Robot { at, facing, carries, .. } = floor.robots[robot];
        let ahead = self.size.beside(at, FACING[usize::from(facing)]).filter(|_| action == 1);
        let is_blocked = |cell: &Cell| {
            let leaves = floor.robot_at(*cell).is_some_and(|other| floor.robots[other].carries.is_some());
            carries.is_some() && floor.shelf_at(*cell).is_some() && !leaves
        };
        ahead.filter(|cell| !is_blocked(cell)).unwrap_or(at)
    }

    /// Lets a robot lift a shelf or put one down; returns its reward.
    fn toggle(&self, floor: &mut Floor, robot: usize, lies: Option<u16>) -> f64 {
        let Robot { at, carries, delivered, .. } = floor.robots[robot];
        if carries.is_none() {
            floor.robots[robot].carries = lies;
        } else if self.places.contains(&at) {
            floor.robots[robot].carries = None;
            floor.robots[robot].delivered = false;
            if delivered && self.params.rewards == Rewards::TwoStage {
                return 0.5;
            }
        }
        0.0
    }

    /// Delivers what stands at the stations and was asked for.
    fn deliver(&self, floor: &mut Floor, rewards: &mut [f64]) {
        let mut luck = floor.luck.into_iter();
        for station in self.stations() {
            let Some(shelf) = floor.shelf_at(station) else { continue };
            let Some(place) = floor.requests.iter().position(|asked| *asked == shelf) else { continue };
            let next = luck.next().and_then(|next| floor.others().nth(usize::from(next)));
            floor.requests[place] = next.unwrap_or(shelf);
            let robot = floor.robot_at(station);
            match self.params.rewards {
                Rewards::Global => rewards.iter_mut().for_each(|reward| *reward += 1.0),
                Rewards::Individual => robot.into_iter().for_each(|robot| rewards[robot] += 1.0),
                Rewards::TwoStage => robot.into_iter().for_each(|robot| {
                    floor.robots[robot].delivered = true;
                    rewards[robot] += 0.5;
                }),
            }
        }
    }

    /// Returns the cells that a robot sees, row by row, with `None` beyond the walls.
    fn in_sight(&self, own: Cell) -> impl Iterator<Item = Option<Cell>> {
        let (size, sight) = (self.size, i32::from(self.params.sight));
        let ways = (-sight..=sight).flat_map(move |dy| (-sight..=sight).map(move |dx| [dx, dy]));
        ways.map(move |way| size.beyond(own, way))
    }

    fn told(&self, floor: &Floor, own: usize) -> String {
        let Robot { at, facing, carries, .. } = floor.robots[own];
        let mark = |cell: Option<Cell>| {
            let Some(cell) = cell else { return '#' };
            let shelf = floor.shelf_at(cell).map(|shelf| floor.requests.contains(&shelf));
            match (floor.robot_at(cell), shelf) {
                (Some(robot), _) if robot == own => '@',
                (Some(_), _) => 'R',
                (None, Some(true)) => '!',
                (None, Some(false)) => 'X',
                (None, None) if self.stations().contains(&cell) => 'S',
                (None, None) => '.',
            }
        };
        let cells: Vec<char> = self.in_sight(at).map(mark).collect();
        let side = 2 * usize::from(self.params.sight) + 1;
        let rows: Vec<String> = cells.chunks(side).map(|row| row.iter().collect()).collect();
        let [station, _] = self.stations();
        let load = match carries.map(|shelf| floor.requests.contains(&shelf)) {
            None => "You carry nothing.",
            Some(true) => "You carry a shelf that is asked for.",
            Some(false) => "You carry a shelf that is not asked for.",
        };
        let (name, x, y) = (NAMES[usize::from(facing)], at.x, at.y);
        let shelf = if self.places.contains(&at) { "Shelves can be put down here." } else { "This is a lane." };
        format!(
            "{}\nYou are in column {x}, row {y}, and face {name}. {load} {shelf} The stations are in columns {} and {}, row {}.",
            rows.join("\n"),
            station.x,
            station.x + 1,
            station.y
        )
    }
}

impl Environment for Warehouse {
    const NAME: &'static str = "rware";
    const SUMMARY: &'static str = "Robots bring shelves to stations through the narrow lanes of a warehouse";
    type Params = Params;
    type State = Floor;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=10, "shelf-rows", params.shelf_rows)?;
        Invalid::within(1..=15, "shelf-columns", params.shelf_columns)?;
        Invalid::unless(params.shelf_columns % 2 == 1, "shelf-columns", "must be odd")?;
        Invalid::within(1..=20, "column-height", params.column_height)?;
        Invalid::within(1..=19, "robots", params.robots)?;
        Invalid::within(1..=50, "requests", params.requests)?;
        Invalid::within(1..=5, "sight", params.sight)?;
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        let block = params.column_height + 1;
        let size = Size { width: 3 * params.shelf_columns + 1, height: block * params.shelf_rows + 2 };
        let is_place = |cell: &Cell| {
            let queue = cell.y + params.column_height + 3 > size.height
                && [size.width / 2 - 1, size.width / 2].contains(&cell.x);
            !cell.x.is_multiple_of(3) && !cell.y.is_multiple_of(block) && cell.y != size.height - 1 && !queue
        };
        let places: Vec<Cell> = size.all().filter(is_place).collect();
        let enough = places.len() > params.requests as usize;
        Invalid::unless(enough, "requests", format!("there are only {} shelves", places.len()))?;
        Invalid::unless(params.robots as usize <= size.cells(), "robots", "they do not fit into the warehouse")?;
        let mut slot = |name: String, doc: &'static str| declare.number_slot(name, doc);
        let mut own = vec![
            slot("x".into(), "the robot's column"),
            slot("y".into(), "the robot's row"),
            slot("carries".into(), "1 if it carries a shelf"),
        ];
        own.extend(NAMES.map(|name| slot(format!("faces-{name}"), "1 if it faces there")));
        own.push(slot("on-lane".into(), "1 where it cannot put down a shelf"));
        let side = 2 * params.sight + 1;
        let cells = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
        let cells = cells
            .map(|(x, y)| {
                let [up, down, left, right] = NAMES.map(|name| {
                    let doc = "1 if the robot in this cell in sight faces there; up without a robot";
                    slot(format!("robot-{name}-{x}-{y}"), doc)
                });
                let robot = slot(format!("robot-{x}-{y}"), "1 if a robot is in this cell in sight, by column and row");
                let shelf = slot(format!("shelf-{x}-{y}"), "1 if a shelf is in this cell in sight");
                let asked = slot(format!("asked-{x}-{y}"), "1 if that shelf is asked for");
                [robot, up, down, left, right, shelf, asked]
            })
            .collect();
        let lanes = declare.text_slot("lanes", "what the robot sees, drawn");
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, size, "robot", |floor: &Floor, seat| floor.robots[seat as usize].at);
        declare.scalar("carried", "share of robots that carry a shelf", |_, floor: &Floor| {
            floor.robots.iter().filter(|robot| robot.carries.is_some()).count() as f64 / floor.robots.len() as f64
        });
        Ok(Warehouse { params, size, places, own, cells, lanes })
    }

    fn seats(&self) -> u32 {
        self.params.robots
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Floor {
        let mut cells: Vec<Cell> = self.size.all().collect();
        draws.shuffle(&mut cells);
        let robot = |at| Robot { at, facing: draws.below(4) as u8, carries: None, delivered: false };
        let robots = cells.into_iter().take(self.params.robots as usize).map(robot).collect();
        let mut requests: Vec<u16> = (0..self.places.len() as u16).collect();
        draws.shuffle(&mut requests);
        requests.truncate(self.params.requests as usize);
        Floor { robots, shelves: self.places.clone(), requests, luck: self.luck(draws), steps: 0 }
    }

    fn accepts(&self, floor: &Floor) -> Result<(), String> {
        let (robots, shelves) = (self.params.robots as usize, self.places.len());
        let (r, s) = (floor.robots.len(), floor.shelves.len());
        if (r, s) != (robots, shelves) {
            return Err(format!("there are {robots} robots and {shelves} shelves, not {r} and {s}"));
        }
        let requests = self.params.requests as usize;
        let known = |shelf: &u16| usize::from(*shelf) < shelves;
        let mut asked = floor.requests.clone();
        asked.sort_unstable();
        asked.dedup();
        let left = shelves - requests;
        if asked.len() != requests || floor.requests.len() != requests || !asked.iter().all(known) {
            return Err(format!("{requests} different shelves are asked for, by numbers less than {shelves}"));
        }
        if floor.luck.iter().any(|next| usize::from(*next) >= left) {
            return Err(format!("the numbers of luck are less than {left}"));
        }
        let alone = |i: usize| floor.robots[..i].iter().all(|other| other.at != floor.robots[i].at);
        let carries = |robot: &Robot| {
            robot.carries.is_none_or(|shelf| known(&shelf) && floor.shelves[usize::from(shelf)] == robot.at)
        };
        let stands =
            |(i, robot): (usize, &Robot)| self.size.has(robot.at) && robot.facing < 4 && carries(robot) && alone(i);
        match floor.robots.iter().enumerate().all(stands) && floor.shelves.iter().all(|at| self.size.has(*at)) {
            true => Ok(()),
            false => {
                Err("robots are in cells of their own, below what they carry, and face one of 4 directions".into())
            }
        }
    }

    fn cut(&self, _: &Floor) -> bool {
        true
    }

    fn observe(&self, floor: &Floor, seat: Seat, observation: &mut ObservationRow<'_>) {
        let one = |is: bool| f64::from(u8::from(is));
        let Robot { at, facing, carries, .. } = floor.robots[seat as usize];
        let faces = |facing: u8| (0..4).map(move |way| one(way == facing));
        let own = [f64::from(at.x), f64::from(at.y), one(carries.is_some())].into_iter().chain(faces(facing));
        let own = own.chain([one(!self.places.contains(&at))]);
        self.own.iter().zip(own).for_each(|(slot, value)| observation.number(*slot, value));
        for (slots, cell) in self.cells.iter().zip(self.in_sight(at)) {
            let robot = cell.and_then(|cell| floor.robot_at(cell));
            let shelf = cell.and_then(|cell| floor.shelf_at(cell));
            let asked = shelf.is_some_and(|shelf| floor.requests.contains(&shelf));
            let shown = std::iter::once(one(robot.is_some()))
                .chain(faces(robot.map_or(0, |robot| floor.robots[robot].facing)))
                .chain([one(shelf.is_some()), one(asked)]);
            slots.iter().zip(shown).for_each(|(slot, value)| observation.number(*slot, value));
        }
        observation.text(self.lanes, self.told(floor, seat as usize));
    }

    /// A robot without a move waits.
    fn step(&self, floor: &mut Floor, moves: &[Move], draws: &mut Draws) -> StepResult {
        let robots = floor.robots.len();
        let mut actions = vec![0; robots];
        moves.iter().for_each(|made| actions[made.seat as usize] = made.action);
        let at: Vec<Cell> = floor.robots.iter().map(|robot| robot.at).collect();
        let wanted: Vec<Cell> = (0..robots).map(|robot| self.wanted(floor, robot, actions[robot])).collect();
        // What lies where before anybody moves.
        let lies: Vec<Option<u16>> = at.iter().map(|cell| floor.shelf_at(*cell)).collect();
        let goes = traffic::who_goes(&at, &wanted);
        let mut rewards = vec![0.0; robots];
        for robot in 0..robots {
            let Robot { facing, carries, .. } = floor.robots[robot];
            let turn = TURNS.iter().position(|way| *way == facing).unwrap_or_default();
            match actions[robot] {
                1 if goes[robot] => {
                    floor.robots[robot].at = wanted[robot];
                    if let Some(shelf) = carries {
                        floor.shelves[usize::from(shelf)] = wanted[robot];
                    }
                }
                2 => floor.robots[robot].facing = TURNS[(turn + 3) % 4],
                3 => floor.robots[robot].facing = TURNS[(turn + 1) % 4],
                4 => rewards[robot] += self.toggle(floor, robot, lies[robot]),
                _ => {}
            }
        }
        self.deliver(floor, &mut rewards);
        floor.luck = self.luck(draws);
        floor.steps += 1;
        StepResult { rewards, results: vec![String::new(); moves.len()], done: floor.steps >= self.params.steps }
    }
}
