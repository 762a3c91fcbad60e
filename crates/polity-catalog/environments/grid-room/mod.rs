//! A room with a goal, and perhaps a wall with a locked door, as in MiniGrid. See README.md.

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
    registry.environment::<GridRoom>(files);
}

/// The directions that the agent can face, by number.
const FACING: [Way; 4] = [EAST, SOUTH, WEST, NORTH];
const ACTIONS: [(&str, &str); 7] = [
    ("left", "turn to the left"),
    ("right", "turn to the right"),
    ("forward", "go forward"),
    ("pickup", "pick up the key before you"),
    ("drop", "put down the key before you"),
    ("toggle", "open or close the door before you"),
    ("done", "do nothing"),
];
/// Rows and columns of what the agent sees: it stands in the middle of the last row and looks at the first.
const VIEW: usize = 7;
/// What is shown of each cell.
const CHANNELS: [(&str, &str); 3] = [
    ("object", "what a cell in sight holds: 0 not seen, 1 nothing, 2 a wall, 4 a door, 5 a key, 8 the goal"),
    ("colour", "its colour: 1 green, 4 yellow, 5 grey; 0 without one"),
    ("state", "of a door: 0 open, 1 closed, 2 locked"),
];

/// Objects in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The goal is behind a wall with a locked door, and the key lies on the agent's side (DoorKey).
    DoorKey,
    /// The agent begins in the corner opposite to the goal (Empty).
    Empty,
    /// The agent begins anywhere (Empty-Random).
    EmptyRandom,
}

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Objects in the room.
    task: Task,
    /// Rows and columns with the walls; 5 to 50.
    size: u8,
    /// Steps after which an episode is cut; at most 1,000,000. 0: 10 for each cell with a door, and 4 without.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { task: Task::DoorKey, size: 8, steps: 0 }
    }
}

/// A room.
pub struct GridRoom {
    params: Params,
    size: Size,
    /// By channel, and by cell column by column.
    view: Vec<NumberSlot>,
    room: TextSlot,
}

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tile {
    /// Nothing.
    Nothing,
    /// A wall.
    Wall,
    /// The goal.
    Goal,
    /// The key.
    Key,
    /// The door, open, closed or locked.
    Open,
    /// It is closed.
    Closed,
    /// It is locked.
    Locked,
}

impl Tile {
    /// Returns its object, colour and state, as MiniGrid numbers them.
    fn shown(self) -> [u8; 3] {
        match self {
            Tile::Nothing => [1, 0, 0],
            Tile::Wall => [2, 5, 0],
            Tile::Goal => [8, 1, 0],
            Tile::Key => [5, 4, 0],
            Tile::Open => [4, 4, 0],
            Tile::Closed => [4, 4, 1],
            Tile::Locked => [4, 4, 2],
        }
    }

    fn can_be_entered(self) -> bool {
        matches!(self, Tile::Nothing | Tile::Goal | Tile::Open)
    }

    fn hides(self) -> bool {
        matches!(self, Tile::Wall | Tile::Closed | Tile::Locked)
    }

    fn mark(self) -> char {
        match self {
            Tile::Nothing => '.',
            Tile::Wall => '#',
            Tile::Goal => 'G',
            Tile::Key => 'K',
            Tile::Open => '_',
            Tile::Closed => 'D',
            Tile::Locked => 'L',
        }
    }
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// What each cell holds, row by row.
    tiles: Vec<Tile>,
    at: Cell,
    facing: u8,
    /// Whether the agent carries the key.
    carries: bool,
    steps: u32,
}

impl GridRoom {
    fn steps(&self) -> u32 {
        let side = u32::from(self.params.size);
        match (self.params.steps, self.params.task) {
            (0, Task::DoorKey) => 10 * side * side,
            (0, _) => 4 * side * side,
            (steps, _) => steps,
        }
    }

    fn tile(&self, room: &Room, cell: Option<Cell>) -> Tile {
        cell.map_or(Tile::Wall, |cell| room.tiles[self.size.index(cell)])
    }

    fn front(&self, room: &Room) -> Option<Cell> {
        self.size.beside(room.at, FACING[usize::from(room.facing)])
    }

    fn is_at_goal(&self, room: &Room) -> bool {
        self.tile(room, Some(room.at)) == Tile::Goal
    }

    /// Returns what the agent sees, column by column; `None` where it cannot see.
    fn view(&self, room: &Room) -> [[Option<Tile>; VIEW]; VIEW] {
        let [dx, dy] = FACING[usize::from(room.facing)].map(i32::from);
        // To the right of the agent.
        let [rx, ry] = [-dy, dx];
        let mut tiles = [[Tile::Wall; VIEW]; VIEW];
        for (i, column) in (-(VIEW as i32 / 2)..).zip(&mut tiles) {
            for (ahead, tile) in (0..VIEW as i32).rev().zip(column) {
                *tile = self.tile(room, self.size.beyond(room.at, [dx * ahead + rx * i, dy * ahead + ry * i]));
            }
        }
        let lit = match self.params.task {
            Task::DoorKey => lit(&tiles),
            Task::Empty | Task::EmptyRandom => [[true; VIEW]; VIEW],
        };
        tiles[VIEW / 2][VIEW - 1] = if room.carries { Tile::Key } else { Tile::Nothing };
        let mut seen = [[None; VIEW]; VIEW];
        for (seen, (tiles, lit)) in seen.iter_mut().zip(tiles.iter().zip(&lit)) {
            for (seen, (tile, lit)) in seen.iter_mut().zip(tiles.iter().zip(lit)) {
                *seen = lit.then_some(*tile);
            }
        }
        seen
    }

    fn told(&self, view: &[[Option<Tile>; VIEW]; VIEW], room: &Room) -> String {
        let row = |y: usize| {
            let mark = |x: usize| match (x, y) {
                (x, y) if x == VIEW / 2 && y == VIEW - 1 => '^',
                _ => view[x][y].map_or('?', Tile::mark),
            };
            (0..VIEW).map(mark).collect::<String>()
        };
        let rows: Vec<String> = (0..VIEW).map(row).collect();
        let facing = ["right", "down", "left", "up"][usize::from(room.facing)];
        let carries = if room.carries { "You carry the key." } else { "You carry nothing." };
        format!("{}\nOn the map of the room you face {facing}. {carries}", rows.join("\n"))
    }
}

/// Returns which cells of a view light reaches from the agent: it goes on from cells that hide nothing, to both sides in a row and to the
/// three cells ahead.
fn lit(tiles: &[[Tile; VIEW]; VIEW]) -> [[bool; VIEW]; VIEW] {
    let mut lit = [[false; VIEW]; VIEW];
    lit[VIEW / 2][VIEW - 1] = true;
    for y in (0..VIEW).rev() {
        let mut spread = |x: usize, side: usize| {
            if lit[x][y] && !tiles[x][y].hides() {
                lit[side][y] = true;
                if y > 0 {
                    lit[side][y - 1] = true;
                    lit[x][y - 1] = true;
                }
            }
        };
        (0..VIEW - 1).for_each(|x| spread(x, x + 1));
        (1..VIEW).rev().for_each(|x| spread(x, x - 1));
    }
    lit
}

impl Environment for GridRoom {
    const NAME: &'static str = "grid-room";
    const SUMMARY: &'static str =
        "A room with a goal, and perhaps a locked door and its key, as MiniGrid's DoorKey and Empty";
    type Params = Params;
    type State = Room;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(5..=50, "size", params.size)?;
        Invalid::within(0..=1_000_000, "steps", params.steps)?;
        let size = Size::square(params.size);
        let mut view = Vec::new();
        for (channel, doc) in CHANNELS {
            let cells = (0..VIEW).flat_map(|x| (0..VIEW).map(move |y| (x, y)));
            view.extend(cells.map(|(x, y)| declare.number_slot(format!("{channel}-{x}-{y}"), doc)));
        }
        let doc = "where the agent faces on the map: 0 right, 1 down, 2 left, 3 up";
        declare.number("direction", doc, |_, room: &Room, _| f64::from(room.facing));
        let room = declare.text_slot("view", "what the agent sees, drawn");
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, Size::square(params.size), "agent", |room: &Room, _| room.at);
        let doc = "1 if the agent is at the goal";
        declare.column("reached", doc, Some((0.0, 1.0)), |of: &GridRoom, room, _| {
            f64::from(u8::from(of.is_at_goal(room)))
        });
        Ok(GridRoom { params, size, view, room })
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Room {
        let last = self.params.size - 1;
        let is_wall = |cell: &Cell| cell.x == 0 || cell.y == 0 || cell.x == last || cell.y == last;
        let tiles = self.size.all().map(|cell| if is_wall(&cell) { Tile::Wall } else { Tile::Nothing }).collect();
        let mut room = Room { tiles, at: Cell { x: 1, y: 1 }, facing: 0, carries: false, steps: 0 };
        room.tiles[self.size.index(Cell { x: last - 1, y: last - 1 })] = Tile::Goal;
        let mut wall = last;
        if self.params.task == Task::DoorKey {
            wall = 2 + draws.below(u64::from(last - 3)) as u8;
            (0..=last).for_each(|y| room.tiles[self.size.index(Cell { x: wall, y })] = Tile::Wall);
        }
        let free = |room: &Room, at: Option<Cell>| -> Vec<Cell> {
            let is_free =
                |cell: &Cell| cell.x < wall && Some(*cell) != at && self.tile(room, Some(*cell)) == Tile::Nothing;
            self.size.all().filter(is_free).collect()
        };
        if self.params.task != Task::Empty {
            let cells = free(&room, None);
            room.at = cells[draws.below(cells.len() as u64) as usize];
            room.facing = draws.below(4) as u8;
        }
        if self.params.task == Task::DoorKey {
            let y = 1 + draws.below(u64::from(last - 2)) as u8;
            room.tiles[self.size.index(Cell { x: wall, y })] = Tile::Locked;
            let cells = free(&room, Some(room.at));
            let key = cells[draws.below(cells.len() as u64) as usize];
            room.tiles[self.size.index(key)] = Tile::Key;
        }
        room
    }

    fn accepts(&self, room: &Room) -> Result<(), String> {
        let (cells, size) = (room.tiles.len(), self.params.size);
        if cells != self.size.cells() || room.facing > 3 || !self.size.has(room.at) {
            return Err(format!(
                "there are {size} times {size} cells, and the agent is on one and faces one of 4 directions"
            ));
        }
        let last = size - 1;
        let edge = self.size.all().filter(|cell| cell.x == 0 || cell.y == 0 || cell.x == last || cell.y == last);
        let walled = edge.map(|cell| self.tile(room, Some(cell))).all(|tile| tile == Tile::Wall);
        match walled && self.tile(room, Some(room.at)).can_be_entered() {
            true => Ok(()),
            false => Err("there are walls around the room, and the agent is where it can walk".into()),
        }
    }

    fn cut(&self, room: &Room) -> bool {
        !self.is_at_goal(room)
    }

    fn observe(&self, room: &Room, _: Seat, observation: &mut ObservationRow<'_>) {
        let view = self.view(room);
        for (i, tile) in view.iter().flatten().enumerate() {
            let shown = tile.map_or([0; 3], Tile::shown);
            for (channel, value) in shown.into_iter().enumerate() {
                observation.number(self.view[channel * VIEW * VIEW + i], f64::from(value));
            }
        }
        observation.text(self.room, self.told(&view, room));
    }

    /// Without a move time passes.
    fn step(&self, room: &mut Room, moves: &[Move], _: &mut Draws) -> StepResult {
        room.steps += 1;
        let front = self.front(room);
        let tile = self.tile(room, front);
        let mut put = |tile: Tile| {
            if let Some(cell) = front {
                room.tiles[self.size.index(cell)] = tile;
            }
        };
        match (moves.first().map(|made| made.action), tile) {
            (Some(0), _) => room.facing = (room.facing + 3) % 4,
            (Some(1), _) => room.facing = (room.facing + 1) % 4,
            (Some(2), tile) if tile.can_be_entered() => room.at = front.unwrap_or(room.at),
            (Some(3), Tile::Key) if !room.carries => {
                put(Tile::Nothing);
                room.carries = true;
            }
            (Some(4), Tile::Nothing) if room.carries => {
                put(Tile::Key);
                room.carries = false;
            }
            (Some(5), Tile::Locked) if room.carries => put(Tile::Open),
            (Some(5), Tile::Closed) => put(Tile::Open),
            (Some(5), Tile::Open) => put(Tile::Closed),
            _ => {}
        }
        let (reached, most) = (self.is_at_goal(room), self.steps());
        let reward = if reached { 1.0 - 0.9 * (f64::from(room.steps) / f64::from(most)) } else { 0.0 };
        let done = reached || room.steps >= most;
        StepResult { rewards: vec![reward], results: vec![String::new(); moves.len()], done }
    }

    fn solved(&self, room: &Room, _: Option<&str>) -> Option<bool> {
        Some(self.is_at_goal(room))
    }
}
