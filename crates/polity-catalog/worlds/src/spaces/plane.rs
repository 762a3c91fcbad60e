//! A continuous torus with a cell list: who is near is found without looking at everybody.

use std::ops::Range;

/// A square torus, cut into square cells for looking up neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// The length of a side.
    pub side: f64,
    /// Cells per row. A cell is at least half as wide as agents see.
    pub cells: usize,
}

impl Plane {
    /// A torus of which agents see at most `vision`, at most half the side. Small cells cost memory: there are at most about four per agent.
    #[must_use]
    pub fn new(side: f64, vision: f64, agents: u32) -> Self {
        let most = (2.0 * f64::from(agents).sqrt()).ceil();
        Plane { side, cells: (2.0 * side / vision).floor().clamp(1.0, most) as usize }
    }

    /// The cell of a place.
    #[must_use]
    pub fn cell(&self, x: f64, y: f64) -> usize {
        let index = |x: f64| ((x / self.side * self.cells as f64) as usize).min(self.cells - 1);
        index(y) * self.cells + index(x)
    }

    /// A place along one axis after a way, back on the torus.
    #[must_use]
    pub fn along(&self, x: f64, way: f64) -> f64 {
        let to = (x + way).rem_euclid(self.side);
        // The remainder of a tiny negative number is rounded up to the side itself.
        if to >= self.side { 0.0 } else { to }
    }

    /// The cells at most two away from `i` along one axis, as runs of neighbouring cells. Each run has the shift by which places in it are
    /// seen from here. Fewer than five cells are one run, seen from three sides.
    #[must_use]
    pub fn runs(&self, i: usize) -> [(Range<usize>, f64); 3] {
        let (n, side) = (self.cells, self.side);
        if n < 5 {
            return [(0..n, -side), (0..n, 0.0), (0..n, side)];
        }
        [
            (if i < 2 { n + i - 2..n } else { 0..0 }, -side),
            (i.saturating_sub(2)..(i + 3).min(n), 0.0),
            (if i + 2 >= n { 0..i + 3 - n } else { 0..0 }, side),
        ]
    }

    /// Sorts agents by cell, and within a cell by id: where each cell begins in that order (one more than there are cells), and the place of
    /// each agent.
    pub fn sort(&self, starts: &mut Vec<u32>, places: &mut Vec<u32>, at: impl Iterator<Item = (f64, f64)> + Clone) {
        starts.clear();
        starts.resize(self.cells * self.cells + 1, 0);
        at.clone().for_each(|(x, y)| starts[self.cell(x, y) + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        places.clear();
        places.extend(at.map(|(x, y)| {
            let place = &mut next[self.cell(x, y)];
            *place += 1;
            *place - 1
        }));
    }
}
