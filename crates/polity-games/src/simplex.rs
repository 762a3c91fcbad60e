//! Linear programs by dense simplex methods. Ties of the primal ratio test are broken lexicographically, so that degenerate
//! programs end (Dantzig, Orden and Wolfe 1955).

use crate::linear;
use thiserror::Error;

/// What counts as zero, for entries of order 1.
const TINY: f64 = 1e-10;
/// The least entry on which a pivot is made.
const PIVOT: f64 = 1e-8;
/// The most pivots.
const PIVOTS: usize = 50_000;
/// The most numbers in a tableau.
pub(crate) const MOST_NUMBERS: usize = 1_000_000;

/// A tableau: rows of coefficients with the right side last, and the variable that is basic in each row.
pub(crate) struct Tableau {
    pub(crate) rows: Vec<Vec<f64>>,
    pub(crate) basis: Vec<usize>,
    /// The first basis, by row.
    first: Vec<usize>,
}

impl Tableau {
    pub(crate) fn new(rows: Vec<Vec<f64>>, basis: Vec<usize>) -> Self {
        Tableau { rows, first: basis.clone(), basis }
    }

    /// Returns the row whose variable leaves when a column enters: the least ratio, ties broken lexicographically.
    pub(crate) fn leaving(&self, column: usize) -> Option<usize> {
        let mut best: Option<usize> = None;
        for row in 0..self.rows.len() {
            if self.rows[row][column] > PIVOT && best.is_none_or(|best| self.less(row, best, column)) {
                best = Some(row);
            }
        }
        best
    }

    fn less(&self, row: usize, other: usize, column: usize) -> bool {
        let (row, other) = (&self.rows[row], &self.rows[other]);
        let last = row.len() - 1;
        for place in std::iter::once(last).chain(self.first.iter().copied()) {
            let (a, b) = (row[place] / row[column], other[place] / other[column]);
            if (a - b).abs() > 1e-11 * (1.0 + a.abs().max(b.abs())) {
                return a < b;
            }
        }
        false
    }

    /// Makes a column's variable basic in a row, and returns the variable that was.
    pub(crate) fn pivot(&mut self, row: usize, column: usize) -> usize {
        let by = self.rows[row][column];
        self.rows[row].iter_mut().for_each(|a| *a /= by);
        let pivot = std::mem::take(&mut self.rows[row]);
        for other in &mut self.rows {
            if !other.is_empty() {
                subtract(other, &pivot, column);
            }
        }
        self.rows[row] = pivot;
        std::mem::replace(&mut self.basis[row], column)
    }
}

/// Subtracts a multiple of the pivot's row, so that the entry in its column is 0.
fn subtract(row: &mut [f64], pivot: &[f64], column: usize) {
    let factor = row[column];
    if factor != 0.0 {
        for (a, b) in row.iter_mut().zip(pivot) {
            *a -= factor * b;
        }
        row[column] = 0.0;
    }
}

/// Why a program was not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Trouble {
    #[error("no point of a linear program fulfils all of its rows")]
    Infeasible,
    #[error("the objective of a linear program has no bound")]
    Unbounded,
    #[error("a linear program was not solved within {PIVOTS} pivots")]
    Unfinished,
}

/// Returns the numbers that the tableau of a program has.
pub(crate) fn numbers(variables: usize, rows: usize) -> usize {
    (rows + 1).saturating_mul(variables.saturating_add(rows).saturating_add(2))
}

/// The rows of a tableau with a slack for each row of `rows`, and nothing on the right side.
fn with_slacks(rows: &[Vec<f64>], variables: usize) -> Vec<Vec<f64>> {
    let width = variables + rows.len();
    let row = |(place, given): (usize, &Vec<f64>)| {
        let mut row = given.clone();
        row.resize(width + 1, 0.0);
        row[variables + place] = 1.0;
        row
    };
    rows.iter().enumerate().map(row).collect()
}

/// Returns the greatest `objective · x` of all x ≥ 0 with `rows · x` ≤ 1, by the primal simplex method.
pub(crate) fn packing(objective: &[f64], rows: &[Vec<f64>]) -> Result<Vec<f64>, Trouble> {
    let variables = objective.len();
    let width = variables + rows.len();
    let mut given = with_slacks(rows, variables);
    given.iter_mut().for_each(|row| row[width] = 1.0);
    let mut tableau = Tableau::new(given.clone(), (variables..width).collect());
    let mut costs = objective.to_vec();
    costs.resize(width + 1, 0.0);
    optimise(&mut tableau, &mut costs, width)?;
    Ok(point(&tableau, &given, variables))
}

/// Returns the greatest `objective · x` of all x ≥ 0 with sum 1 and `rows · x` ≤ 0.
pub(crate) fn mixture(objective: &[f64], rows: &[Vec<f64>]) -> Result<Vec<f64>, Trouble> {
    normalised(objective, rows, &vec![1.0; objective.len()])
}

/// Returns the greatest `objective · x` of all x ≥ 0 with `parts · x` = 1 and `rows · x` ≤ 0. Parts are 0 or more; where one is 0, the objective must not be
/// above 0.
///
/// The dual simplex method starts where the objective alone is greatest: the right sides of such programs are nearly all 0, on
/// which the primal method stalls.
pub(crate) fn normalised(objective: &[f64], rows: &[Vec<f64>], parts: &[f64]) -> Result<Vec<f64>, Trouble> {
    let variables = objective.len();
    let width = variables + rows.len();
    let whole = (0..variables).filter(|i| parts[*i] > 0.0);
    let better = |best: usize, i: usize| if objective[i] / parts[i] > objective[best] / parts[best] { i } else { best };
    let best = whole.reduce(better).ok_or(Trouble::Infeasible)?;
    let mut given = with_slacks(rows, variables);
    let mut sum = vec![0.0; width + 1];
    sum[..variables].copy_from_slice(parts);
    sum[width] = 1.0;
    given.push(sum);
    let basis = (variables..width).chain([best]).collect();
    let mut tableau = Tableau::new(given.clone(), basis);
    tableau.pivot(rows.len(), best);
    let mut costs = objective.to_vec();
    costs.resize(width + 1, 0.0);
    subtract(&mut costs, &tableau.rows[rows.len()], best);
    for _ in 0..PIVOTS {
        let lowest =
            |best: usize, row: usize| if tableau.rows[row][width] < tableau.rows[best][width] { row } else { best };
        let row = (0..=rows.len()).fold(0, lowest);
        if tableau.rows[row][width] >= -TINY {
            optimise(&mut tableau, &mut costs, width)?;
            return Ok(point(&tableau, &given, variables));
        }
        let column = entering(&tableau.rows[row], &costs).ok_or(Trouble::Infeasible)?;
        tableau.pivot(row, column);
        subtract(&mut costs, &tableau.rows[row], column);
    }
    Err(Trouble::Unfinished)
}

/// The column that enters when a row with a negative right side leaves: the least ratio, and of equal ones the greatest entry.
fn entering(row: &[f64], costs: &[f64]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for column in 0..row.len() - 1 {
        if row[column] >= -PIVOT {
            continue;
        }
        let ratio = (costs[column] / row[column]).max(0.0);
        let better = best
            .is_none_or(|(other, least)| ratio < least - 1e-12 || ratio <= least + 1e-12 && row[column] < row[other]);
        if better {
            best = Some((column, ratio));
        }
    }
    best.map(|(column, _)| column)
}

/// Pivots while a column below `columns` would raise the objective. The column is that of the greatest cost; after many pivots,
/// the first one.
fn optimise(tableau: &mut Tableau, costs: &mut [f64], columns: usize) -> Result<(), Trouble> {
    for n in 0..PIVOTS {
        let mut rising = (0..columns).filter(|column| costs[*column] > TINY);
        let column = if n < PIVOTS / 2 {
            rising.fold(None, |best: Option<usize>, column| match best {
                Some(best) if costs[best] >= costs[column] => Some(best),
                _ => Some(column),
            })
        } else {
            rising.next()
        };
        let Some(column) = column else { return Ok(()) };
        let row = tableau.leaving(column).ok_or(Trouble::Unbounded)?;
        tableau.pivot(row, column);
        subtract(costs, &tableau.rows[row], column);
    }
    Err(Trouble::Unfinished)
}

/// The point of a basis. It is solved for anew from the given rows, which removes the rounding of the pivots.
pub(crate) fn point(tableau: &Tableau, given: &[Vec<f64>], variables: usize) -> Vec<f64> {
    let last = given.first().map_or(0, |row| row.len() - 1);
    let matrix = given.iter().map(|row| tableau.basis.iter().map(|column| row[*column]).collect()).collect();
    let anew = linear::solve(matrix, given.iter().map(|row| row[last]).collect(), 1e-13);
    let values = anew.unwrap_or_else(|| tableau.rows.iter().map(|row| row[last]).collect());
    let mut point = vec![0.0; variables];
    for (column, value) in tableau.basis.iter().zip(values) {
        if *column < variables {
            point[*column] = value.max(0.0);
        }
    }
    point
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Trouble, mixture, normalised, packing};

    #[test]
    fn textbook_programs() {
        // Dantzig's, each row divided by its right side: max 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: (2, 6).
        let rows = [vec![0.25, 0.0], vec![0.0, 1.0 / 6.0], vec![1.0 / 6.0, 1.0 / 9.0]];
        let found = packing(&[3.0, 5.0], &rows).unwrap();
        assert!((found[0] - 2.0).abs() < 1e-12 && (found[1] - 6.0).abs() < 1e-12);
        assert_eq!(packing(&[1.0, 0.0], &[vec![0.0, 1.0]]), Err(Trouble::Unbounded));
        // x <= y: half of each at most.
        assert_eq!(mixture(&[1.0, 0.0], &[vec![1.0, -1.0]]).unwrap(), [0.5, 0.5]);
        assert_eq!(mixture(&[1.0, 0.0], &[vec![1.0, 1.0]]), Err(Trouble::Infeasible));
        // max x - 3y, 2x = 1, x <= 4y.
        assert_eq!(normalised(&[1.0, -3.0], &[vec![1.0, -4.0]], &[2.0, 0.0]).unwrap(), [0.5, 0.125]);
    }

    #[test]
    fn degenerate_programs_end() {
        // Beale (1955): with the least index as tie-break the primal method cycles on these rows, all of which are 0 at the start.
        let rows = [vec![0.25, -60.0, -0.04, 9.0], vec![0.5, -90.0, -0.02, 3.0]];
        let objective = [0.75, -150.0, 0.02, -6.0];
        let found = mixture(&objective, &rows).unwrap();
        assert!(rows.iter().all(|row| row.iter().zip(&found).map(|(a, x)| a * x).sum::<f64>() < 1e-12));
        // His optimum (1/25, 0, 1, 0) has the value 1/20; scaled to a sum of 1 it is the best mixture.
        let value: f64 = found.iter().zip(&objective).map(|(x, c)| x * c).sum();
        assert!((value - 0.05 / 1.04).abs() < 1e-12, "{found:?} {value}");
    }
}
