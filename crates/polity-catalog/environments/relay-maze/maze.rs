//! Mazes: drawn so that there is a path, measured, walked.

use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The moves, by number.
pub const WAYS: [&str; MOVES] = ["up", "right", "down", "left"];
/// The number of moves.
pub const MOVES: usize = 4;
/// Mazes that are drawn before one without walls is taken.
const TRIES: u32 = 1_000;

/// A maze; its cells are numbered row by row from the top left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maze {
    /// Cells on a side.
    pub size: u32,
    /// Whether each cell is a wall.
    pub walls: Vec<bool>,
    pub start: u32,
    pub goal: u32,
    /// Moves of the shortest path.
    pub distance: u32,
}

impl Maze {
    /// Draws a maze with a path of at least so many moves from the start to the goal. Mazes without one are drawn again; after many
    /// tries it is one without walls, from corner to corner.
    pub fn drawn(size: u32, walls: f64, least: u32, draws: &mut Draws) -> Maze {
        let cells = size * size;
        for _ in 0..TRIES {
            let mut maze = Maze {
                size,
                walls: (0..cells).map(|_| draws.chance(walls)).collect(),
                start: draws.below(u64::from(cells)) as u32,
                goal: draws.below(u64::from(cells)) as u32,
                distance: 0,
            };
            for end in [maze.start, maze.goal] {
                maze.walls[end as usize] = false;
            }
            if let Some(distance) = maze.distances(maze.goal)[maze.start as usize].filter(|moves| *moves >= least) {
                maze.distance = distance;
                return maze;
            }
        }
        Maze { size, walls: vec![false; cells as usize], start: 0, goal: cells - 1, distance: 2 * (size - 1) }
    }

    /// Returns the cell that a move leads to, walls or not; `None` outside the maze.
    pub fn step(&self, at: u32, way: u8) -> Option<u32> {
        let (row, column) = (at / self.size, at % self.size);
        match way {
            0 => row.checked_sub(1).map(|_| at - self.size),
            1 => (column + 1 < self.size).then_some(at + 1),
            2 => (row + 1 < self.size).then_some(at + self.size),
            _ => column.checked_sub(1).map(|_| at - 1),
        }
    }

    /// Returns the number of moves from every cell to the goal; `None` for walls and where no path leads.
    pub fn distances(&self, goal: u32) -> Vec<Option<u32>> {
        let mut found = vec![None; self.walls.len()];
        found[goal as usize] = Some(0);
        let mut next = VecDeque::from([(goal, 0)]);
        while let Some((at, moves)) = next.pop_front() {
            for to in (0..MOVES as u8).filter_map(|way| self.step(at, way)) {
                if !self.walls[to as usize] && found[to as usize].is_none() {
                    found[to as usize] = Some(moves + 1);
                    next.push_back((to, moves + 1));
                }
            }
        }
        found
    }
}

/// Walks a path from the start. `None`: it leads into a wall or out of the maze.
pub fn walk(maze: &Maze, path: &[u8]) -> Option<u32> {
    let on = |at: u32, way: &u8| maze.step(at, *way).filter(|to| !maze.walls[*to as usize]);
    path.iter().try_fold(maze.start, on)
}
