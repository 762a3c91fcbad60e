//! Cells of a grid, and ways to the next one.

use polity_kernel::environment::{DeclareEnvironment, Environment, Seat};
use polity_kernel::interface::Axis;
use serde::{Deserialize, Serialize};

/// A way from a cell to one beside it: columns to the right, rows down.
pub type Way = [i8; 2];
/// Up.
pub const NORTH: Way = [0, -1];
/// Down.
pub const SOUTH: Way = [0, 1];
/// To the left.
pub const WEST: Way = [-1, 0];
/// To the right.
pub const EAST: Way = [1, 0];

/// A cell: its column and its row, from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Its column.
    pub x: u8,
    /// Its row.
    pub y: u8,
}

/// The size of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its columns.
    pub width: u8,
    /// Its rows.
    pub height: u8,
}

impl Cell {
    /// Returns the number of rows and columns between two cells.
    #[must_use]
    pub fn steps_to(self, other: Cell) -> u32 {
        u32::from(self.x.abs_diff(other.x)) + u32::from(self.y.abs_diff(other.y))
    }

    /// Returns where another cell is, as seen from this one.
    #[must_use]
    pub fn offset(self, other: Cell) -> [i32; 2] {
        [i32::from(other.x) - i32::from(self.x), i32::from(other.y) - i32::from(self.y)]
    }
}

impl Size {
    /// Makes a square.
    #[must_use]
    pub fn square(side: u8) -> Size {
        Size { width: side, height: side }
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn cells(self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Returns all cells, row by row.
    pub fn all(self) -> impl Iterator<Item = Cell> {
        (0..self.height).flat_map(move |y| (0..self.width).map(move |x| Cell { x, y }))
    }

    /// Returns the place of a cell in that order.
    #[must_use]
    pub fn index(self, cell: Cell) -> usize {
        usize::from(cell.y) * usize::from(self.width) + usize::from(cell.x)
    }

    /// Returns the cell at a place in that order.
    #[must_use]
    pub fn cell(self, index: usize) -> Cell {
        let width = usize::from(self.width);
        Cell { x: (index % width) as u8, y: (index / width) as u8 }
    }

    /// Returns whether a cell is on the grid.
    #[must_use]
    pub fn has(self, cell: Cell) -> bool {
        cell.x < self.width && cell.y < self.height
    }

    /// Returns the cell that is so many columns to the right and rows down, if it is on the grid.
    #[must_use]
    pub fn beyond(self, cell: Cell, [columns, rows]: [i32; 2]) -> Option<Cell> {
        let x = u8::try_from(i32::from(cell.x) + columns).ok()?;
        let y = u8::try_from(i32::from(cell.y) + rows).ok()?;
        Some(Cell { x, y }).filter(|cell| self.has(*cell))
    }

    /// Returns the cell beside one, if it is on the grid.
    #[must_use]
    pub fn beside(self, cell: Cell, way: Way) -> Option<Cell> {
        self.beyond(cell, way.map(i32::from))
    }

    /// Returns the cells beside one, in the order of some ways.
    pub fn around(self, cell: Cell, ways: &[Way]) -> impl Iterator<Item = Cell> {
        ways.iter().filter_map(move |way| self.beside(cell, *way))
    }
}

/// Declares the columns `at-x` and `at-y`: the cell of each agent. `who`: what it is called in the documentation.
pub fn declare_cells<E: Environment>(
    declare: &mut DeclareEnvironment<E>,
    size: Size,
    who: &str,
    cell: impl Fn(&E::State, Seat) -> Cell + Copy + Send + Sync + 'static,
) {
    let (right, bottom) = (f64::from(size.width - 1), f64::from(size.height - 1));
    declare.coordinate(Axis::CellX, "at-x", format!("the {who}'s column"), (0.0, right), move |_, state, seat| {
        f64::from(cell(state, *seat).x)
    });
    declare.coordinate(Axis::CellY, "at-y", format!("the {who}'s row"), (0.0, bottom), move |_, state, seat| {
        f64::from(cell(state, *seat).y)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_end_at_the_edges() {
        let size = Size { width: 3, height: 2 };
        let corner = Cell { x: 2, y: 1 };
        assert_eq!((size.beside(corner, EAST), size.beside(corner, SOUTH)), (None, None));
        assert_eq!(size.beside(corner, WEST), Some(Cell { x: 1, y: 1 }));
        assert_eq!(size.around(corner, &[NORTH, EAST, WEST]).count(), 2);
        let all: Vec<usize> = size.all().map(|cell| size.index(cell)).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
        assert!(size.all().all(|cell| size.cell(size.index(cell)) == cell));
        assert_eq!(size.beyond(corner, [-3, 0]), None);
        assert_eq!(corner.steps_to(Cell { x: 0, y: 0 }), 3);
        assert_eq!(corner.offset(Cell { x: 0, y: 1 }), [-2, 0]);
    }
}
