//! The grid, what stands on it, and how it moves.

use super::shape;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// What the agents have to do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Surround a prey that flees.
    Pursuit,
    /// Switch all lights on, then all off, and so on.
    Synchronize,
    /// Carry food to a nest.
    Forage,
    /// Stand in a given shape.
    Flock,
    /// Push a box out of a gap in the wall, and leave through the gap.
    Transport,
}

/// What a cell holds.
pub const FREE: u8 = 0;
/// A wall.
pub const WALL: u8 = 1;
/// Food.
pub const FOOD: u8 = 2;
/// The nest.
pub const NEST: u8 = 3;
/// A box that fills a gap of the wall.
pub const BOX: u8 = 4;
/// The open gap: who steps on it has left.
pub const OUT: u8 = 5;
/// The prey.
pub const PREY: u8 = 6;
/// An agent whose light is on, or that carries food.
pub const AGENT: u8 = 7;
/// An agent whose light is off, or that carries none.
pub const AGENT_OFF: u8 = 8;

/// The place of an agent that has left, and of a missing prey.
pub const GONE: u32 = u32::MAX;

/// Agents that it takes to push the box, and the cells of the box.
pub const PUSHERS: u32 = 5;

/// Moves: stay, up, down, left, right, switch the light.
pub const MOVES: [&str; 6] = ["stay", "up", "down", "left", "right", "switch"];
/// The steps of the first five.
const STEPS: [(i64, i64); 5] = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)];
/// The number of the last.
pub const SWITCH: u8 = 5;

/// The size of the grid, walls included, and the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Cells per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// What the agents have to do.
    pub goal: Goal,
    /// Rounds of a run.
    pub rounds: u32,
}

/// All that changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arena {
    /// By cell, row by row; agents and prey are not in it.
    pub cells: Vec<u8>,
    /// The cell of each agent, or [`GONE`].
    pub at: Vec<u32>,
    /// By agent: the light is on, or it carries food.
    pub lit: Vec<bool>,
    /// The cell of the prey, or [`GONE`].
    pub prey: u32,
    /// The sum that the task counts.
    pub score: f64,
    /// The task is done.
    pub done: bool,
    /// Synchronize: the light of all for which the last point was won: 0 off, 1 on, 2 none yet.
    last: u8,
    /// Flock: the distance from the shape at the start.
    begun: u32,
    /// Agents by what they did in the last round: stayed, went up, down, left, right, or switched.
    pub did: [u32; 6],
    /// By cell, whether an agent has been there.
    pub visited: Vec<bool>,
}

impl Ground {
    /// The place at a step from another; `None` beyond the grid.
    pub fn step(&self, cell: u32, (dx, dy): (i64, i64)) -> Option<u32> {
        let (x, y) = (i64::from(cell % self.width) + dx, i64::from(cell / self.width) + dy);
        let inside = (0..i64::from(self.width)).contains(&x) && (0..i64::from(self.height)).contains(&y);
        inside.then(|| (y * i64::from(self.width) + x) as u32)
    }

    /// The four places beside another.
    pub fn beside(&self, cell: u32) -> impl Iterator<Item = u32> + '_ {
        STEPS[1..].iter().filter_map(move |step| self.step(cell, *step))
    }

    fn cell(&self, x: u32, y: u32) -> u32 {
        y * self.width + x
    }

    /// Puts everything in its place.
    pub fn set_up(&self, agents: u32, draws: &mut Draws) -> Arena {
        let (width, height) = (self.width, self.height);
        let border = |cell: u32| {
            let (x, y) = (cell % width, cell / width);
            x == 0 || y == 0 || x == width - 1 || y == height - 1
        };
        let cells = (0..width * height).map(|cell| if border(cell) { WALL } else { FREE }).collect();
        let mut arena = Arena { cells, prey: GONE, last: 2, ..Arena::default() };
        match self.goal {
            Goal::Forage => self.maze(&mut arena, draws),
            Goal::Transport => self.gap(&mut arena, draws),
            Goal::Pursuit | Goal::Synchronize | Goal::Flock => {}
        }
        let mut free: Vec<u32> = (0..width * height).filter(|cell| arena.cells[*cell as usize] == FREE).collect();
        draws.shuffle(&mut free);
        // Hunters begin in one half, the prey in the other.
        let (hunters, prey): (Vec<u32>, Vec<u32>) = free.iter().partition(|cell| *cell / width <= height / 2);
        if self.goal == Goal::Pursuit {
            arena.prey = prey.first().copied().unwrap_or(GONE);
            free = hunters;
        }
        arena.at = free.into_iter().take(agents as usize).collect();
        let lights = self.goal == Goal::Synchronize;
        arena.lit = (0..agents).map(|_| lights && draws.chance(0.5)).collect();
        arena.begun = self.distance(&arena);
        arena.visited = (0..width * height).map(|cell| arena.at.contains(&cell)).collect();
        arena
    }

    /// Walls across every fourth row, with a gap at one end in turn; food at one end of the way, the nest at the other.
    fn maze(&self, arena: &mut Arena, draws: &mut Draws) {
        let (width, height) = (self.width, self.height);
        let rows: Vec<u32> = (4..height.saturating_sub(4)).step_by(4).collect();
        for (n, y) in rows.iter().enumerate() {
            let gap = if n % 2 == 0 { width - 1 - width / 3..width - 1 } else { 1..1 + width / 3 };
            (1..width - 1).filter(|x| !gap.contains(x)).for_each(|x| arena.cells[self.cell(x, *y) as usize] = WALL);
        }
        let ends = [(1, 1), (if rows.len().is_multiple_of(2) { width - 3 } else { 1 }, height - 3)];
        let swapped = draws.chance(0.5);
        for (what, (x, y)) in [(FOOD, ends[usize::from(swapped)]), (NEST, ends[usize::from(!swapped)])] {
            for cell in [self.cell(x, y), self.cell(x + 1, y), self.cell(x, y + 1), self.cell(x + 1, y + 1)] {
                arena.cells[cell as usize] = what;
            }
        }
    }

    /// A gap in one of the four walls, filled by the box.
    fn gap(&self, arena: &mut Arena, draws: &mut Draws) {
        let side = draws.below(4);
        let length = if side < 2 { self.width } else { self.height };
        let start = 1 + draws.below(u64::from(length - 1 - PUSHERS).max(1)) as u32;
        for i in start..start + PUSHERS {
            let cell = match side {
                0 => self.cell(i, 0),
                1 => self.cell(i, self.height - 1),
                2 => self.cell(0, i),
                _ => self.cell(self.width - 1, i),
            };
            arena.cells[cell as usize] = BOX;
        }
    }

    /// What stands on a cell.
    pub fn seen(&self, arena: &Arena, cell: u32) -> u8 {
        if cell == arena.prey {
            return PREY;
        }
        match arena.at.iter().position(|at| *at == cell) {
            Some(agent) if arena.lit[agent] => AGENT,
            Some(_) => AGENT_OFF,
            None => arena.cells[cell as usize],
        }
    }

    fn free(&self, arena: &Arena, cell: u32) -> bool {
        matches!(self.seen(arena, cell), FREE | OUT)
    }

    /// Moves agents one after the other, in an order drawn by lot, and then does what the task does.
    pub fn play(&self, arena: &mut Arena, moves: &[u8], round: u32, draws: &mut Draws) {
        if self.goal == Goal::Transport {
            self.push(arena, moves);
        }
        let mut order: Vec<usize> = (0..arena.at.len()).collect();
        draws.shuffle(&mut order);
        arena.did = [0; 6];
        for agent in order {
            if arena.at[agent] == GONE {
                continue;
            }
            let switches = moves[agent] == SWITCH && self.goal == Goal::Synchronize;
            arena.lit[agent] ^= switches;
            let step = STEPS.get(usize::from(moves[agent])).copied().unwrap_or_default();
            let to = self.step(arena.at[agent], step).filter(|cell| self.free(arena, *cell));
            if let Some(cell) = to {
                arena.at[agent] = cell;
                arena.visited[cell as usize] = true;
            }
            let went = if switches || to.is_some() { moves[agent] } else { 0 };
            arena.did[usize::from(went).min(5)] += 1;
        }
        match self.goal {
            Goal::Pursuit => self.flee(arena, draws),
            Goal::Synchronize => synchronized(arena),
            Goal::Forage => self.carry(arena),
            Goal::Flock => {
                let distance = self.distance(arena);
                arena.score = arena.score.max(f64::from(arena.begun) - f64::from(distance));
                arena.done = distance == 0;
            }
            Goal::Transport => self.leave(arena, round),
        }
    }

    /// Takes the box away if enough agents push it outwards.
    fn push(&self, arena: &mut Arena, moves: &[u8]) {
        let pushes = |(at, step): (&u32, &u8)| {
            let step = STEPS.get(usize::from(*step)).copied().unwrap_or_default();
            *at != GONE && self.step(*at, step).is_some_and(|cell| arena.cells[cell as usize] == BOX)
        };
        if arena.at.iter().zip(moves).filter(|both| pushes(*both)).count() as u32 >= PUSHERS {
            arena.cells.iter_mut().filter(|cell| **cell == BOX).for_each(|cell| *cell = OUT);
        }
    }

    /// Agents in the gap have left; each counts the share of the rounds that is left.
    fn leave(&self, arena: &mut Arena, round: u32) {
        for at in &mut arena.at {
            if *at != GONE && arena.cells[*at as usize] == OUT {
                *at = GONE;
                arena.score += f64::from(self.rounds - round) / f64::from(self.rounds);
            }
        }
        arena.done = arena.at.iter().all(|at| *at == GONE);
    }

    fn carry(&self, arena: &mut Arena) {
        for agent in 0..arena.at.len() {
            let near = |what: u8| self.beside(arena.at[agent]).any(|cell| arena.cells[cell as usize] == what);
            if near(FOOD) {
                arena.lit[agent] = true;
            } else if near(NEST) && arena.lit[agent] {
                arena.lit[agent] = false;
                arena.score += 1.0;
            }
        }
    }

    /// How threatened a prey would feel on a cell: by every agent, as the inverse square of its distance.
    fn danger(&self, arena: &Arena, cell: u32) -> f64 {
        let felt = |at: &u32| {
            let across = (cell % self.width).abs_diff(at % self.width);
            let along = (cell / self.width).abs_diff(at / self.width);
            1.0 / f64::from((across + along).max(1)).powi(2)
        };
        arena.at.iter().map(felt).sum()
    }

    /// The prey is caught if it cannot move, and another appears where it is least threatened. Else it flees.
    fn flee(&self, arena: &mut Arena, draws: &mut Draws) {
        if arena.prey == GONE {
            return;
        }
        if !self.beside(arena.prey).any(|cell| self.free(arena, cell)) {
            arena.score += 1.0;
            let mut free: Vec<u32> = (0..self.width * self.height).filter(|cell| self.free(arena, *cell)).collect();
            draws.shuffle(&mut free);
            let safest = free.into_iter().min_by(|a, b| self.danger(arena, *a).total_cmp(&self.danger(arena, *b)));
            arena.prey = safest.unwrap_or(GONE);
            return;
        }
        // Up to two steps, to the least threatened place that they reach; it stays where none is better.
        let here = arena.prey;
        let open = |from: u32| self.beside(from).filter(|cell| self.free(arena, *cell)).collect::<Vec<u32>>();
        let near = open(here);
        let far = near.iter().flat_map(|cell| open(*cell));
        let reached = near.iter().copied().chain(far).map(|cell| (self.danger(arena, cell), cell));
        let best = reached.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((danger, cell)) = best
            && danger < self.danger(arena, here)
        {
            arena.prey = cell;
        }
    }

    /// Flock: the least total way of the agents to the shape, wherever it stands; 0 for other tasks.
    pub fn distance(&self, arena: &Arena) -> u32 {
        if self.goal != Goal::Flock {
            return 0;
        }
        let places = arena.at.iter().map(|at| ((at % self.width) as i32, (at / self.width) as i32));
        shape::distance(&places.collect::<Vec<_>>(), &shape::ring(arena.at.len() as u32))
    }
}

/// A point whenever all lights are the same, and not the same as at the last point.
fn synchronized(arena: &mut Arena) {
    let on = arena.lit.iter().filter(|lit| **lit).count();
    let same = on == 0 || on == arena.lit.len();
    let now = u8::from(on > 0);
    if same && now != arena.last {
        arena.last = now;
        arena.score += 1.0;
    }
}
