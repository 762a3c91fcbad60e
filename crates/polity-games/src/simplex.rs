//! Linear programs by a dense simplex method in two phases. Ties of the ratio test are broken lexicographically, so that
//! degenerate programs end (Dantzig, Orden and Wolfe 1955).

use crate::linear;

/// What counts as zero, for entries of order 1.
const TINY: f64 = 1e-10;
/// The least entry on which a pivot is made.
const PIVOT: f64 = 1e-8;
/// The most pivots.
const PIVOTS: usize = 50_000;
/// The most numbers in a tableau.
pub(crate) const MOST: usize = 4_000_000;

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

/// A linear program: the variables are at least 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// What is to be as great as possible.
    pub(crate) objective: Vec<f64>,
    /// Rows that are at most a number.
    pub(crate) at_most: Vec<(Vec<f64>, f64)>,
    /// Rows that equal a number.
    pub(crate) equal: Vec<(Vec<f64>, f64)>,
}

/// Why a program has no solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No point fulfils all rows.
    Infeasible,
    /// The objective has no bound.
    Unbounded,
    /// More pivots than allowed.
    Unfinished,
}

impl Program {
    /// Returns the numbers that the tableau of a program has.
    pub(crate) fn numbers(variables: usize, at_most: usize, equal: usize) -> usize {
        let rows = at_most + equal;
        rows.saturating_mul(variables.saturating_add(rows).saturating_add(1))
    }

    /// Returns an optimal point, one number for each variable.
    pub(crate) fn solve(&self) -> Result<Vec<f64>, Trouble> {
        let (variables, at_most) = (self.objective.len(), self.at_most.len());
        let all: Vec<(&Vec<f64>, f64, Option<usize>)> = self
            .at_most
            .iter()
            .enumerate()
            .map(|(i, (row, b))| (row, *b, Some(variables + i)))
            .chain(self.equal.iter().map(|(row, b)| (row, *b, None)))
            .collect();
        // Rows with a negative right side are negated, and need an artificial variable, as equations do.
        let artificial = variables + at_most;
        let needy = all.iter().filter(|(_, b, slack)| slack.is_none() || *b < 0.0).count();
        let width = artificial + needy;
        let (mut rows, mut basis, mut next) = (Vec::new(), Vec::new(), artificial);
        for (given, b, slack) in all {
            let sign = if b < 0.0 { -1.0 } else { 1.0 };
            let mut row = vec![0.0; width + 1];
            for (a, given) in row.iter_mut().zip(given) {
                *a = sign * given;
            }
            row[width] = sign * b;
            if let Some(slack) = slack {
                row[slack] = sign;
            }
            match slack {
                Some(slack) if b >= 0.0 => basis.push(slack),
                _ => {
                    row[next] = 1.0;
                    basis.push(next);
                    next += 1;
                }
            }
            rows.push(row);
        }
        let given = rows.clone();
        let mut tableau = Tableau::new(rows, basis);
        if needy > 0 {
            feasible(&mut tableau, artificial)?;
        }
        let mut costs = self.objective.clone();
        costs.resize(width + 1, 0.0);
        for (row, basic) in tableau.rows.iter().zip(&tableau.basis) {
            subtract(&mut costs, row, *basic);
        }
        optimise(&mut tableau, &mut costs, artificial)?;
        Ok(point(&tableau, &given, variables))
    }
}

/// The first phase: brings all artificial variables to 0 and, where it can, out of the basis.
fn feasible(tableau: &mut Tableau, artificial: usize) -> Result<(), Trouble> {
    let width = tableau.rows.first().map_or(0, Vec::len) - 1;
    let mut costs = vec![0.0; width + 1];
    for (row, basic) in tableau.rows.iter().zip(&tableau.basis) {
        if *basic >= artificial {
            for (cost, a) in costs.iter_mut().zip(row) {
                *cost += a;
            }
        }
    }
    let scale = costs[width].max(1.0);
    optimise(tableau, &mut costs, artificial)?;
    if costs[width] > 1e-9 * scale {
        return Err(Trouble::Infeasible);
    }
    for row in 0..tableau.rows.len() {
        if tableau.basis[row] >= artificial
            && let Some(column) = (0..artificial).find(|column| tableau.rows[row][*column].abs() > 1e-7)
        {
            tableau.pivot(row, column);
        }
    }
    Ok(())
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
    use super::{Program, Trouble};

    #[test]
    fn textbook_programs() {
        // Dantzig's: max 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: (2, 6).
        let at_most = vec![(vec![1.0, 0.0], 4.0), (vec![0.0, 2.0], 12.0), (vec![3.0, 2.0], 18.0)];
        let program = Program { objective: vec![3.0, 5.0], at_most, equal: vec![] };
        assert_eq!(program.solve().unwrap(), [2.0, 6.0]);
        // x + y = 2, x >= 0.5 (negative right side): min x is 0.5.
        let program = Program {
            objective: vec![-1.0, 0.0],
            at_most: vec![(vec![-1.0, 0.0], -0.5)],
            equal: vec![(vec![1.0, 1.0], 2.0), (vec![2.0, 2.0], 4.0)],
        };
        assert_eq!(program.solve().unwrap(), [0.5, 1.5]);
        let program = Program { objective: vec![1.0], at_most: vec![(vec![1.0], -1.0)], equal: vec![] };
        assert_eq!(program.solve(), Err(Trouble::Infeasible));
        let program = Program { objective: vec![1.0, 0.0], at_most: vec![(vec![0.0, 1.0], 1.0)], equal: vec![] };
        assert_eq!(program.solve(), Err(Trouble::Unbounded));
    }

    #[test]
    fn beales_program_does_not_cycle() {
        // Beale 1955: the simplex method with the least index as tie-break cycles on it; its optimum is 1/20.
        let at_most = vec![
            (vec![0.25, -60.0, -0.04, 9.0], 0.0),
            (vec![0.5, -90.0, -0.02, 3.0], 0.0),
            (vec![0.0, 0.0, 1.0, 0.0], 1.0),
        ];
        let program = Program { objective: vec![0.75, -150.0, 0.02, -6.0], at_most, equal: vec![] };
        let x = program.solve().unwrap();
        let value: f64 = x.iter().zip(&program.objective).map(|(x, c)| x * c).sum();
        assert!((value - 0.05).abs() < 1e-12, "{x:?}");
    }
}
