//! Evolution on a lattice: every cell plays its neighbours and may take over the strategy of one of them.

use super::evolution::check;
use polity_base::rng::{Draws, Stream};

/// The neighbours that a cell plays against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbourhood {
    /// The four cells that share an edge (von Neumann).
    Four,
    /// The eight cells that share an edge or a corner (Moore).
    Eight,
}

impl Neighbourhood {
    fn offsets(self) -> &'static [(isize, isize)] {
        const ALL: [(isize, isize); 8] = [(-1, 0), (0, -1), (0, 1), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)];
        match self {
            Neighbourhood::Four => &ALL[..4],
            Neighbourhood::Eight => &ALL,
        }
    }
}

/// A torus of cells, each with a type of a game: `payoffs[i][j]` is what type `i` gets from type `j`.
///
/// ```
/// use polity_games::iterated::lattice::{Lattice, Neighbourhood};
///
/// // A defector among cooperators (Nowak and May 1992): b = 1.9.
/// let payoffs = vec![vec![1.0, 0.0], vec![1.9, 0.0]];
/// let mut cells = vec![0; 21 * 21];
/// cells[10 * 21 + 10] = 1;
/// let mut lattice = Lattice::new(21, cells, payoffs, Neighbourhood::Eight, true)?;
/// lattice.imitate_best();
/// assert_eq!(lattice.shares()[1], 9.0 / 441.0);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    width: usize,
    cells: Vec<u16>,
    payoffs: Vec<Vec<f64>>,
    neighbourhood: Neighbourhood,
    with_itself: bool,
}

impl Lattice {
    /// Makes a lattice from its cells, row by row. `with_itself`: whether each cell also plays against its own type, as in Nowak and May
    /// 1992.
    ///
    /// # Errors
    /// The cells do not fill rows of `width`, there are fewer than 3 rows or columns (neighbours would coincide), a cell has an unknown
    /// type, or the matrix is not square.
    pub fn new(
        width: usize,
        cells: Vec<u16>,
        payoffs: Vec<Vec<f64>>,
        neighbourhood: Neighbourhood,
        with_itself: bool,
    ) -> Result<Self, String> {
        check(&payoffs, payoffs.len())?;
        if width < 3 || !cells.len().is_multiple_of(width) || cells.len() / width < 3 {
            return Err(format!(
                "a lattice has at least 3 rows and columns; {} cells do not fill rows of {width}",
                cells.len()
            ));
        }
        if let Some(cell) = cells.iter().find(|cell| usize::from(**cell) >= payoffs.len()) {
            return Err(format!("a cell has type {cell}; the matrix has types 0 to {}", payoffs.len() - 1));
        }
        Ok(Lattice { width, cells, payoffs, neighbourhood, with_itself })
    }

    /// Makes a lattice whose cells are drawn with the given weights of types.
    ///
    /// # Errors
    /// As for [`Lattice::new`]; also weights that are all 0.
    pub fn random(
        [width, height]: [usize; 2],
        weights: &[f64],
        payoffs: Vec<Vec<f64>>,
        neighbourhood: Neighbourhood,
        with_itself: bool,
        seed: u64,
    ) -> Result<Self, String> {
        check(&payoffs, weights.len())?;
        let mut draws = Draws::new(seed, Stream::Birth, 0, 0);
        let cells: Option<Vec<u16>> =
            (0..width * height).map(|_| draws.weighted(weights).map(|kind| kind as u16)).collect();
        let cells = cells.ok_or("at least one type needs a weight above 0")?;
        Lattice::new(width, cells, payoffs, neighbourhood, with_itself)
    }

    /// Returns the type of each cell, row by row.
    #[must_use]
    pub fn cells(&self) -> &[u16] {
        &self.cells
    }

    /// Returns the share of each type.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let mut counts = vec![0u64; self.payoffs.len()];
        self.cells.iter().for_each(|cell| counts[usize::from(*cell)] += 1);
        counts.into_iter().map(|count| count as f64 / self.cells.len() as f64).collect()
    }

    /// Returns the cells around a cell.
    fn around(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        let (width, height) = (self.width, self.cells.len() / self.width);
        let (row, column) = (cell / width, cell % width);
        self.neighbourhood.offsets().iter().map(move |(down, right)| {
            let row = (row + height).wrapping_add_signed(*down) % height;
            row * width + (column + width).wrapping_add_signed(*right) % width
        })
    }

    /// Returns the sum of a cell's payoffs. Neighbours are counted by type first, so that their order does not affect rounding.
    fn score(&self, cell: usize, counts: &mut [u32]) -> f64 {
        counts.fill(0);
        self.around(cell).for_each(|other| counts[usize::from(self.cells[other])] += 1);
        let own = usize::from(self.cells[cell]);
        counts[own] += u32::from(self.with_itself);
        self.payoffs[own].iter().zip(counts.iter()).map(|(payoff, count)| payoff * f64::from(*count)).sum()
    }

    /// Makes a generation in which all cells at once take over the type with the highest score among themselves and their neighbours
    /// (Nowak and May 1992, "Evolutionary games and spatial chaos"). A cell keeps its type if it is among the best; of several others it
    /// takes the first type of the matrix.
    pub fn imitate_best(&mut self) {
        let mut counts = vec![0; self.payoffs.len()];
        let scores: Vec<f64> = (0..self.cells.len()).map(|cell| self.score(cell, &mut counts)).collect();
        let next = |cell: usize| {
            let (mut best, mut kind) = (scores[cell], self.cells[cell]);
            for other in self.around(cell) {
                let better = scores[other] > best;
                let first = scores[other] == best && kind != self.cells[cell] && self.cells[other] < kind;
                let own = scores[other] == best && self.cells[other] == self.cells[cell];
                if better || first || own {
                    (best, kind) = (scores[other], self.cells[other]);
                }
            }
            kind
        };
        self.cells = (0..self.cells.len()).map(next).collect();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The prisoner's dilemma of Nowak and May 1992: type 0 cooperates.
    fn weak(b: f64) -> Vec<Vec<f64>> {
        vec![vec![1.0, 0.0], vec![b, 0.0]]
    }

    #[test]
    fn a_symmetric_start_stays_symmetric() {
        let n = 49;
        let mut cells = vec![0; n * n];
        cells[n / 2 * n + n / 2] = 1;
        let mut lattice = Lattice::new(n, cells, weak(1.85), Neighbourhood::Eight, true).unwrap();
        let mut defectors = Vec::new();
        for _ in 0..40 {
            lattice.imitate_best();
            let at = |row: usize, column: usize| lattice.cells()[row * n + column];
            for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                assert_eq!(at(row, column), at(column, row));
                assert_eq!(at(row, column), at(n - 1 - row, column));
            }
            defectors.push((lattice.shares()[1] * (n * n) as f64).round() as u32);
        }
        // Squares of 3 and 5; then the corners grow, and the middles of the sides are lost.
        assert_eq!(defectors[..3], [9, 25, 41]);
        assert!(defectors[39] > 400, "{defectors:?}");
    }

    #[test]
    fn ties_go_to_the_own_type_then_to_the_first() {
        // Small whole payoffs, so that there are many ties.
        let game = vec![vec![1.0, 0.0, 1.0], vec![0.0, 1.0, 1.0], vec![1.0, 1.0, 0.0]];
        for seed in 0..20 {
            let mut lattice =
                Lattice::random([9, 7], &[1.0; 3], game.clone(), Neighbourhood::Four, false, seed).unwrap();
            let cells = lattice.cells().to_vec();
            let around = |cell: usize| {
                let (row, column) = (cell / 9, cell % 9);
                [(row + 1, column), (row + 6, column), (row, column + 1), (row, column + 8)]
                    .map(|(row, column)| row % 7 * 9 + column % 9)
            };
            let score = |cell: usize| {
                around(cell).iter().map(|other| game[usize::from(cells[cell])][usize::from(cells[*other])]).sum::<f64>()
            };
            let next = |cell: usize| {
                let group = || around(cell).into_iter().chain([cell]);
                let best = group().map(score).fold(0.0, f64::max);
                let kinds: Vec<u16> = group().filter(|other| score(*other) == best).map(|other| cells[other]).collect();
                if kinds.contains(&cells[cell]) { cells[cell] } else { *kinds.iter().min().unwrap() }
            };
            let expected: Vec<u16> = (0..63).map(next).collect();
            lattice.imitate_best();
            assert_eq!(lattice.cells(), expected);
        }
    }

    #[test]
    fn cooperators_keep_their_known_share() {
        // 12 ln 2 - 8 for 1.8 < b < 2 (Nowak and May 1992), from a random start.
        let size = [100, 100];
        let mut lattice = Lattice::random(size, &[0.9, 0.1], weak(1.9), Neighbourhood::Eight, true, 5).unwrap();
        let mut sum = 0.0;
        for generation in 0..200 {
            lattice.imitate_best();
            sum += if generation < 100 { 0.0 } else { lattice.shares()[0] };
        }
        let known = 12.0 * 2.0f64.ln() - 8.0;
        assert!((sum / 100.0 - known).abs() < 0.015, "{} {known}", sum / 100.0);
        // Below 1.8 cooperators keep most of the lattice.
        let mut lattice = Lattice::random(size, &[0.9, 0.1], weak(1.7), Neighbourhood::Eight, true, 5).unwrap();
        (0..100).for_each(|_| lattice.imitate_best());
        assert!(lattice.shares()[0] > 0.6, "{:?}", lattice.shares());
    }

    #[test]
    fn wrong_lattices_are_refused() {
        let make = |width, cells, payoffs| Lattice::new(width, cells, payoffs, Neighbourhood::Four, false).unwrap_err();
        assert!(make(3, vec![0; 8], weak(1.0)).contains("8 cells do not fill rows of 3"));
        assert!(make(2, vec![0; 8], weak(1.0)).contains("at least 3 rows"));
        assert!(make(3, vec![2; 9], weak(1.0)).contains("type 2"));
        assert!(make(3, vec![0; 9], vec![vec![1.0]; 2]).contains("square"));
        let random = Lattice::random([3, 3], &[0.0, 0.0], weak(1.0), Neighbourhood::Four, false, 1);
        assert!(random.unwrap_err().contains("weight above 0"));
    }
}
