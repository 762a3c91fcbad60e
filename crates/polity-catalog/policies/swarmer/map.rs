//! What an agent knows of the grid, and ways through it.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a cell holds, as the world shows it.
pub const FREE: u8 = 0;
pub const FOOD: u8 = 2;
pub const NEST: u8 = 3;
pub const BOX: u8 = 4;
pub const OUT: u8 = 5;
pub const PREY: u8 = 6;
pub const AGENT: u8 = 7;
/// Not seen yet.
pub const UNKNOWN: u8 = 255;

/// Steps up, down, left and right, in the order of the moves.
const STEPS: [(i64, i64); 4] = [(0, -1), (0, 1), (-1, 0), (1, 0)];

/// The part of the grid that has been seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Map {
    pub width: u32,
    /// By cell, row by row.
    pub cells: Vec<u8>,
}

impl Map {
    pub fn new(width: u32, height: u32) -> Self {
        Map { width, cells: vec![UNKNOWN; (width * height) as usize] }
    }

    /// Returns the cell at a step from another; `None` beyond the grid.
    pub fn step(&self, cell: u32, (dx, dy): (i64, i64)) -> Option<u32> {
        let (width, height) = (i64::from(self.width), self.cells.len() as i64 / i64::from(self.width.max(1)));
        let (x, y) = (i64::from(cell) % width + dx, i64::from(cell) / width + dy);
        ((0..width).contains(&x) && (0..height).contains(&y)).then_some((y * width + x) as u32)
    }

    /// Returns the four cells beside another, each with the move that leads there.
    pub fn beside(&self, cell: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        (1..).zip(STEPS).filter_map(move |(act, step)| self.step(cell, step).map(|cell| (act, cell)))
    }

    /// Returns the cells that hold something.
    pub fn with(&self, what: u8) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.cells).filter(move |(_, held)| **held == what).map(|(cell, _)| cell)
    }

    /// Returns whether a cell is beside one that holds something.
    pub fn near(&self, cell: u32, what: u8) -> Option<u8> {
        self.beside(cell).find(|(_, other)| self.cells[*other as usize] == what).map(|(act, _)| act)
    }

    /// Returns the first move of a shortest way from a cell to one that fits; 0 if it fits itself; `None` without a way. Ways lead through
    /// cells that are free or not seen yet, and around those that are taken.
    pub fn way(&self, from: u32, taken: &[u32], fits: impl Fn(u32) -> bool) -> Option<u8> {
        if fits(from) {
            return Some(0);
        }
        let mut first = vec![0; self.cells.len()];
        let mut queue = VecDeque::from([from]);
        first[from as usize] = u8::MAX;
        while let Some(cell) = queue.pop_front() {
            for (act, next) in self.beside(cell) {
                let open = matches!(self.cells[next as usize], FREE | OUT | UNKNOWN) && !taken.contains(&next);
                if first[next as usize] != 0 || !open {
                    continue;
                }
                let begun = if cell == from { act } else { first[cell as usize] };
                if fits(next) {
                    return Some(begun);
                }
                first[next as usize] = begun;
                queue.push_back(next);
            }
        }
        None
    }
}
