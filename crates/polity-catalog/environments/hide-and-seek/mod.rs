//! Hide and seek among walls and boxes that can be pushed and locked. See README.md.

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
    registry.environment::<HideAndSeek>(files);
}

/// The ways, in the order of the actions.
const WAYS: [Way; 4] = [NORTH, SOUTH, WEST, EAST];
const ACTIONS: [(&str, &str); 6] = [
    ("up", "go up, and push the box that is there"),
    ("down", "go down, and push the box that is there"),
    ("left", "go to the left, and push the box that is there"),
    ("right", "go to the right, and push the box that is there"),
    ("stay", "stay"),
    ("lock", "lock the box beside you, or unlock it if your own team has locked it"),
];
const STAY: u16 = 4;
const LOCK: u16 = 5;

/// Parameters of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Rows and columns; 7 to 30. The small room has half of them, less those of its walls.
    size: u8,
    /// Hiders of an episode; 1 to 20. They have the first seats.
    hiders: u32,
    /// Seekers of an episode; 1 to 20.
    seekers: u32,
    /// Boxes of an episode; 0 to 20. They begin in the small room, not beside its walls, and fill half of it with the hiders at most.
    boxes: u8,
    /// Steps of an episode; 2 to 1,000,000.
    steps: u32,
    /// Steps at the beginning in which seekers cannot move and nothing counts; fewer than `steps`.
    preparation: u32,
    /// How many cells away an agent sees others and boxes; 1 to 60.
    range: u8,
}

impl Default for Params {
    fn default() -> Self {
        Params { size: 7, hiders: 2, seekers: 2, boxes: 1, steps: 50, preparation: 20, range: 10 }
    }
}

/// Rooms to hide in.
pub struct HideAndSeek {
    params: Params,
    size: Size,
    /// Whether each other agent is in sight and where, and the same of each box with its lock.
    others: Vec<[NumberSlot; 3]>,
    boxes: Vec<[NumberSlot; 4]>,
    map: TextSlot,
}

/// A team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Team {
    /// Those who hide.
    Hiders,
    /// Those who look for them.
    Seekers,
}

/// A box.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crate {
    at: Cell,
    /// The team that has locked it.
    lock: Option<Team>,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// The gap in the walls of the small room.
    door: Cell,
    /// Where the agents are, hiders first.
    agents: Vec<Cell>,
    boxes: Vec<Crate>,
    /// Steps that counted and in which no hider was seen.
    hidden: u32,
    /// How often a box was pushed.
    pushes: u32,
    steps: u32,
}

impl Room {
    fn box_at(&self, cell: Cell) -> Option<usize> {
        self.boxes.iter().position(|one| one.at == cell)
    }
}

/// Returns whether nothing hides one cell from another. The line between their centres crosses columns, or rows if they are more; in each of
/// those, the cell in which it is must hide nothing. Where it is on the border of two, one of them is enough.
fn is_clear(size: Size, from: Cell, to: Cell, hides: impl Fn(Cell) -> bool) -> bool {
    let way = from.offset(to);
    let n = way[0].abs().max(way[1].abs());
    // What is a half beyond a cell is rounded down, and up.
    let at = |i: i32, half: i32| size.beyond(from, way.map(|along| (2 * i * along + half).div_euclid(2 * n)));
    (1..n).all(|i| [n - 1, n].into_iter().any(|half| at(i, half).is_some_and(|cell| !hides(cell))))
}

impl HideAndSeek {
    /// Returns the column and the row of the small room's walls. The room is to the right of them and below.
    fn walls(&self) -> u8 {
        self.params.size / 2
    }

    fn is_wall(&self, door: Cell, cell: Cell) -> bool {
        cell.x.min(cell.y) == self.walls() && cell != door
    }

    fn is_inside(&self, cell: Cell) -> bool {
        cell.x.min(cell.y) > self.walls()
    }

    /// Returns whether a cell hides what is behind it.
    fn hides(&self, room: &Room, cell: Cell) -> bool {
        self.is_wall(room.door, cell) || room.box_at(cell).is_some()
    }

    fn is_free(&self, room: &Room, cell: Cell) -> bool {
        !self.hides(room, cell) && !room.agents.contains(&cell)
    }

    fn team(&self, seat: Seat) -> Team {
        if seat < self.params.hiders { Team::Hiders } else { Team::Seekers }
    }

    fn sees(&self, room: &Room, from: Cell, to: Cell) -> bool {
        let [x, y] = from.offset(to);
        let range = i32::from(self.params.range);
        x * x + y * y <= range * range && is_clear(self.size, from, to, |cell| self.hides(room, cell))
    }

    /// Returns whether an agent and one of the other team see each other.
    fn is_seen(&self, room: &Room, seat: Seat) -> bool {
        let own = room.agents[seat as usize];
        let mut others = (0..).zip(&room.agents).filter(|(other, _)| self.team(*other) != self.team(seat));
        others.any(|(_, at)| self.sees(room, own, *at))
    }

    /// Returns the number of cells without walls and boxes from a cell on.
    fn free(&self, room: &Room, from: Cell, way: Way) -> usize {
        let cells = std::iter::successors(self.size.beside(from, way), |cell| self.size.beside(*cell, way));
        cells.take_while(|cell| !self.hides(room, *cell)).count()
    }

    /// Returns where an agent can go, and which box goes where.
    fn goes(&self, room: &Room, seat: Seat, way: Way) -> Option<(Cell, Option<(usize, Cell)>)> {
        let to = self.size.beside(room.agents[seat as usize], way)?;
        match room.box_at(to) {
            None => self.is_free(room, to).then_some((to, None)),
            Some(i) => {
                let beyond = self.size.beside(to, way).filter(|cell| self.is_free(room, *cell))?;
                room.boxes[i].lock.is_none().then_some((to, Some((i, beyond))))
            }
        }
    }

    /// Returns the box beside an agent that it can lock or unlock.
    fn within_reach(&self, room: &Room, seat: Seat) -> Option<usize> {
        let own = self.team(seat);
        let mut beside = self.size.around(room.agents[seat as usize], &WAYS).filter_map(|cell| room.box_at(cell));
        beside.find(|i| room.boxes[*i].lock.is_none_or(|team| team == own))
    }

    /// Returns a length as a part of the side.
    fn part(&self, cells: i32) -> f64 {
        f64::from(cells) / f64::from(self.params.size - 1)
    }

    /// Returns what an agent sees, drawn.
    fn map(&self, room: &Room, seat: Seat) -> String {
        let own = room.agents[seat as usize];
        let mark = |cell: Cell| {
            let seen = self.sees(room, own, cell);
            let agent = room.agents.iter().position(|at| *at == cell).filter(|_| seen);
            let found = room.box_at(cell).filter(|_| seen);
            match (agent, found.map(|i| room.boxes[i].lock)) {
                _ if cell == own => '@',
                (Some(agent), _) if self.team(agent as Seat) == Team::Hiders => 'H',
                (Some(_), _) => 'S',
                (None, Some(None)) => 'o',
                (None, Some(Some(team))) if team == self.team(seat) => 'L',
                (None, Some(Some(_))) => 'X',
                (None, None) if self.is_wall(room.door, cell) => '#',
                (None, None) => '.',
            }
        };
        let side = self.params.size;
        let row = |y: u8| (0..side).map(|x| mark(Cell { x, y })).collect::<String>();
        (0..side).map(row).collect::<Vec<_>>().join("\n")
    }

    fn declare(declare: &mut DeclareEnvironment<Self>, params: &Params) {
        let own = |room: &Room, seat: &Seat| room.agents[*seat as usize];
        declare.number("x", "the agent's column, from 0 to 1", move |game: &HideAndSeek, room: &Room, seat| {
            game.part(i32::from(own(room, seat).x))
        });
        declare.number("y", "the agent's row, from 0 to 1", move |game, room, seat| {
            game.part(i32::from(own(room, seat).y))
        });
        declare.number("hides", "1 if the agent hides, 0 if it seeks", |game, _, seat| {
            f64::from(u8::from(game.team(*seat) == Team::Hiders))
        });
        declare.shared_number("preparing", "share of the preparation that is left", |game, room| {
            let Params { preparation, .. } = game.params;
            f64::from(preparation.saturating_sub(room.steps)) / f64::from(preparation.max(1))
        });
        declare.shared_number("time-left", "share of the episode that is left", |game, room| {
            f64::from(game.params.steps - room.steps) / f64::from(game.params.steps)
        });
        for (axis, name) in ["door-x", "door-y"].into_iter().enumerate() {
            let doc = "how far the door is to the right of the agent, or below it, as a part of the side";
            declare.number(name, doc, move |game, room, seat| game.part(own(room, seat).offset(room.door)[axis]));
        }
        for ((name, _), way) in ACTIONS.into_iter().zip(WAYS) {
            let doc = "cells without walls and boxes in this direction, as a part of the side";
            declare.number(format!("free-{name}"), doc, move |game, room, seat| {
                game.part(game.free(room, own(room, seat), way) as i32)
            });
        }
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, Size::square(params.size), "agent", |room: &Room, seat| room.agents[seat as usize]);
        let doc = "1 if the agent and one of the other team see each other";
        declare
            .column("seen", doc, Some((0.0, 1.0)), |game, room, seat| f64::from(u8::from(game.is_seen(room, *seat))));
        let doc = "share of the steps after the preparation so far in which no hider was seen";
        declare.scalar("hidden", doc, |game: &HideAndSeek, room: &Room| {
            f64::from(room.hidden) / f64::from(room.steps.saturating_sub(game.params.preparation).max(1))
        });
        declare.scalar("pushes", "how often a box was pushed in the episode so far", |_, room| f64::from(room.pushes));
        declare.scalar("locked", "boxes that are locked", |_, room| {
            room.boxes.iter().filter(|one| one.lock.is_some()).count() as f64
        });
        declare.scalar("closed", "1 if a box that the hiders have locked is in the door", |_, room| {
            let closes = |one: &Crate| one.at == room.door && one.lock == Some(Team::Hiders);
            f64::from(u8::from(room.boxes.iter().any(closes)))
        });
    }
}

impl Environment for HideAndSeek {
    const NAME: &'static str = "hide-and-seek";
    const SUMMARY: &'static str = "Hiders close a door with a box before seekers may move";
    type Params = Params;
    type State = Room;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(7..=30, "size", params.size)?;
        Invalid::within(1..=20, "hiders", params.hiders)?;
        Invalid::within(1..=20, "seekers", params.seekers)?;
        Invalid::within(0..=20, "boxes", params.boxes)?;
        Invalid::within(2..=1_000_000, "steps", params.steps)?;
        Invalid::within(0..=params.steps - 1, "preparation", params.preparation)?;
        Invalid::within(1..=60, "range", params.range)?;
        let (inner, boxes) = (u32::from(params.size - params.size / 2 - 1), u32::from(params.boxes));
        let room = boxes <= (inner - 2) * (inner - 2) && 2 * (boxes + params.hiders) <= inner * inner;
        let message = format!(
            "the small room has {inner} times {inner} cells; boxes are not beside its walls, and fill half of it with the hiders at most"
        );
        Invalid::unless(room, "size", message)?;
        let where_to =
            ["columns to the right of the agent, as a part of the side; 0 if it is out of sight", "rows below it"];
        let others = (0..params.hiders + params.seekers - 1).map(|i| {
            let seen = "1 if this other agent is in sight; hiders come first";
            [("seen", seen), ("x", where_to[0]), ("y", where_to[1])]
                .map(|(what, doc)| declare.number_slot(format!("other-{i}-{what}"), doc))
        });
        let others = others.collect();
        let boxes = (0..params.boxes).map(|i| {
            let lock = "1 if the agent's team has locked the box, -1 if the other team has; 0 if it is out of sight";
            [("seen", "1 if this box is in sight"), ("x", where_to[0]), ("y", where_to[1]), ("lock", lock)]
                .map(|(what, doc)| declare.number_slot(format!("box-{i}-{what}"), doc))
        });
        let boxes = boxes.collect();
        let map = declare.text_slot("map", "the rooms with all that the agent sees, drawn");
        HideAndSeek::declare(declare, &params);
        Ok(HideAndSeek { params, size: Size::square(params.size), others, boxes, map })
    }

    fn seats(&self) -> u32 {
        self.params.hiders + self.params.seekers
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Room {
        let Params { size, hiders, seekers, boxes, .. } = self.params;
        let walls = self.walls();
        let inner = size - walls - 1;
        let along = walls + 1 + draws.below(u64::from(inner)) as u8;
        let door = if draws.below(2) == 0 { Cell { x: walls, y: along } } else { Cell { x: along, y: walls } };
        let mut some = |n: usize, fits: &dyn Fn(Cell) -> bool| -> Vec<Cell> {
            let mut cells: Vec<Cell> = self.size.all().filter(|cell| fits(*cell)).collect();
            draws.shuffle(&mut cells);
            cells.truncate(n);
            cells
        };
        let amid = walls + 2..size - 1;
        let boxes = some(usize::from(boxes), &|cell| amid.contains(&cell.x) && amid.contains(&cell.y));
        let mut agents = some(hiders as usize, &|cell| self.is_inside(cell) && !boxes.contains(&cell));
        agents.extend(some(seekers as usize, &|cell| cell.x.min(cell.y) < walls));
        let boxes = boxes.into_iter().map(|at| Crate { at, lock: None }).collect();
        Room { door, agents, boxes, hidden: 0, pushes: 0, steps: 0 }
    }

    fn accepts(&self, room: &Room) -> Result<(), String> {
        let Params { hiders, seekers, boxes, steps, preparation, .. } = self.params;
        let (agents, found) = (room.agents.len(), room.boxes.len());
        if agents != self.seats() as usize || found != usize::from(boxes) {
            return Err(format!(
                "there are {hiders} hiders, {seekers} seekers and {boxes} boxes, not {agents} agents and {found} boxes"
            ));
        }
        let walls = self.walls();
        let Cell { x, y } = room.door;
        if !self.size.has(room.door) || x.min(y) != walls || x == y {
            return Err("the door is in a wall of the small room, and not in its corner".into());
        }
        let mut taken: Vec<Cell> = room.agents.iter().copied().chain(room.boxes.iter().map(|one| one.at)).collect();
        let stand = taken.iter().all(|cell| self.size.has(*cell) && !self.is_wall(room.door, *cell));
        taken.sort_unstable();
        taken.dedup();
        if !stand || taken.len() != agents + found {
            return Err("agents and boxes are in different cells without walls".into());
        }
        let counted = room.steps.saturating_sub(preparation);
        let pushed = u64::from(room.pushes) <= u64::from(room.steps) * u64::from(self.seats());
        match room.steps < steps && room.hidden <= counted && pushed {
            true => Ok(()),
            false => {
                Err(format!("an episode ends after {steps} steps; hiders are not hidden longer, and push once in each"))
            }
        }
    }

    fn observe(&self, room: &Room, seat: Seat, observation: &mut ObservationRow<'_>) {
        let own = room.agents[seat as usize];
        let spot = |at: Cell| {
            let [x, y] = own.offset(at).map(|cells| self.part(cells));
            self.sees(room, own, at).then_some([1.0, x, y])
        };
        let others = (0..).zip(&room.agents).filter(|(other, _)| *other != seat);
        for (slots, (_, at)) in self.others.iter().zip(others) {
            let values = spot(*at).unwrap_or_default();
            slots.iter().zip(values).for_each(|(slot, value)| observation.number(*slot, value));
        }
        for (slots, one) in self.boxes.iter().zip(&room.boxes) {
            let lock = one.lock.map_or(0.0, |team| if team == self.team(seat) { 1.0 } else { -1.0 });
            let values = spot(one.at).map(|[seen, x, y]| [seen, x, y, lock]).unwrap_or_default();
            slots.iter().zip(values).for_each(|(slot, value)| observation.number(*slot, value));
        }
        observation.text(self.map, self.map(room, seat));
    }

    /// During the preparation seekers can only stay. No agent can enter a cell with a wall, another agent, or a box that cannot be pushed.
    fn offers(&self, room: &Room, seat: Seat, action: u16) -> bool {
        let waits = self.team(seat) == Team::Seekers && room.steps < self.params.preparation;
        match WAYS.get(usize::from(action)) {
            _ if action == STAY => true,
            _ if waits => false,
            Some(way) => self.goes(room, seat, *way).is_some(),
            None => self.within_reach(room, seat).is_some(),
        }
    }

    /// Agents move one after another. One without a move stays.
    fn step(&self, room: &mut Room, moves: &[Move], _: &mut Draws) -> StepResult {
        for Move { seat, action, .. } in moves {
            let way = WAYS.get(usize::from(*action));
            if let Some((to, pushed)) = way.and_then(|way| self.goes(room, *seat, *way)) {
                room.agents[*seat as usize] = to;
                if let Some((i, beyond)) = pushed {
                    room.boxes[i].at = beyond;
                    room.pushes += 1;
                }
            }
            if let Some(i) = self.within_reach(room, *seat).filter(|_| *action == LOCK) {
                let lock = &mut room.boxes[i].lock;
                *lock = if lock.is_some() { None } else { Some(self.team(*seat)) };
            }
        }
        room.steps += 1;
        let seen = (0..self.params.hiders).any(|seat| self.is_seen(room, seat));
        let hiders = match room.steps > self.params.preparation {
            false => 0.0,
            true if seen => -1.0,
            true => 1.0,
        };
        room.hidden += u32::from(hiders > 0.0);
        let reward = |seat| if self.team(seat) == Team::Hiders { hiders } else { 0.0 - hiders };
        StepResult {
            rewards: (0..self.seats()).map(reward).collect(),
            results: vec![String::new(); moves.len()],
            done: room.steps >= self.params.steps,
        }
    }
}
