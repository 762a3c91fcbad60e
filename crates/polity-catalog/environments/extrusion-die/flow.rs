//! Slow flow through a narrow gap of varying height: the lubrication (Hele-Shaw) equation div (h³ grad p) = 0, in finite volumes.

/// Square cells from inlet to outlet, and from side to side. The die has the width 1 and the length `ALONG` / `ACROSS`.
pub const ALONG: usize = 8;
pub const ACROSS: usize = 20;

/// Returns which part of the edge of a row of cells the inlet covers.
fn covered([from, to]: [f64; 2], row: usize) -> f64 {
    let [low, high] = [row, row + 1].map(|at| at as f64);
    ((to * ACROSS as f64).min(high) - (from * ACROSS as f64).max(low)).max(0.0)
}

/// Returns the conductance of an edge at a place from 0 to 1, along and across.
fn conductance(gap: &impl Fn(f64, f64) -> f64, along: f64, across: f64) -> f64 {
    let height = gap(along / ALONG as f64, across / ACROSS as f64);
    height * height * height
}

/// Adds the edge between a cell and a later one to a matrix, of which `solve` tells the form.
fn couple(band: &mut [[f64; ALONG + 1]], cell: usize, distance: usize, conductance: f64) {
    band[cell][0] += conductance;
    band[cell + distance][0] += conductance;
    band[cell + distance][distance] -= conductance;
}

/// Returns the pressure in each cell, row by row from the side at 0. It is 1 at the inlet and 0 at the outlet, both half a cell from the
/// nearest middle. `gap`: the height at a place, from 0 to 1 along and across; `inlet`: where it begins and ends.
pub fn pressures(gap: &impl Fn(f64, f64) -> f64, inlet: [f64; 2]) -> Vec<f64> {
    let mut band = vec![[0.0; ALONG + 1]; ALONG * ACROSS];
    let mut inflow = vec![0.0; ALONG * ACROSS];
    for row in 0..ACROSS {
        let middle = row as f64 + 0.5;
        let first = row * ALONG;
        for (cell, along) in (first..).zip(0..ALONG) {
            if along + 1 < ALONG {
                couple(&mut band, cell, 1, conductance(gap, (along + 1) as f64, middle));
            }
            if row + 1 < ACROSS {
                couple(&mut band, cell, ALONG, conductance(gap, along as f64 + 0.5, (row + 1) as f64));
            }
        }
        inflow[first] = 2.0 * conductance(gap, 0.0, middle) * covered(inlet, row);
        band[first][0] += inflow[first];
        band[first + ALONG - 1][0] += 2.0 * conductance(gap, ALONG as f64, middle);
    }
    solve(band, inflow)
}

/// Returns the mean speed over the gap at the outlet of each row of cells. It is 1 everywhere if the gap has the height 1 and the inlet is
/// as wide as the die.
pub fn outflow(gap: impl Fn(f64, f64) -> f64, inlet: [f64; 2]) -> Vec<f64> {
    let pressures = pressures(&gap, inlet);
    let last = pressures.iter().skip(ALONG - 1).step_by(ALONG);
    let speed = |(row, pressure): (usize, &f64)| {
        let height = gap(1.0, (row as f64 + 0.5) / ACROSS as f64);
        2.0 * height * height * pressure * ALONG as f64
    };
    last.enumerate().map(speed).collect()
}

/// Solves A x = b by Cholesky's method. A is positive definite; `band[r][w]` is its entry in row r, w columns left of the diagonal, and
/// there are no others on the left.
fn solve(mut band: Vec<[f64; ALONG + 1]>, mut x: Vec<f64>) -> Vec<f64> {
    for row in 0..x.len() {
        let first = row.saturating_sub(ALONG);
        for column in first..=row {
            let known: f64 = (first..column).map(|k| band[row][row - k] * band[column][column - k]).sum();
            let rest = band[row][row - column] - known;
            band[row][row - column] = if column == row { libm::sqrt(rest) } else { rest / band[column][0] };
        }
        let known: f64 = (first..row).map(|k| band[row][row - k] * x[k]).sum();
        x[row] = (x[row] - known) / band[row][0];
    }
    for row in (0..x.len()).rev() {
        let known: f64 = (row + 1..x.len().min(row + ALONG + 1)).map(|k| band[k][k - row] * x[k]).sum();
        x[row] = (x[row] - known) / band[row][0];
    }
    x
}
