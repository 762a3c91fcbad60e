//! People that meet stated shares: weights of the rows of microdata, and whole numbers of agents made of them.
//!
//! [`weights`] fits the rows to the shares of several columns at once (iterative proportional fitting). [`apportion`] makes
//! whole numbers of them. [`quotas`] meets the shares of the cells of a classification exactly.

mod quotas;
#[cfg(test)]
mod tests;
mod whole;

pub use quotas::{Filled, quotas};

use super::level::{self, About, LevelError};
use super::{Share, Table};

/// The shares of the levels of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginal {
    /// The column.
    pub column: String,
    /// Levels as written (see [`level::Level`]), each with its share of all agents. The shares add up to 1.
    pub shares: Vec<(String, f64)>,
}

/// The share of a cell: one level of each of several columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// (column, level), the same columns in every cell, in any order.
    pub levels: Vec<(String, String)>,
    /// Its share of all agents.
    pub share: f64,
}

/// A request that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FitError {
    /// Which of the marginals or cells.
    pub entry: Option<usize>,
    /// The part of it.
    pub about: About,
    /// What is wrong and what to do.
    pub message: String,
}

impl FitError {
    pub(super) fn of(entry: usize, error: LevelError) -> Self {
        FitError { entry: Some(entry), about: error.about, message: error.message }
    }

    fn at(entry: usize, message: impl Into<String>) -> Self {
        FitError::of(entry, LevelError::general(message))
    }

    fn general(message: impl Into<String>) -> Self {
        FitError { entry: None, about: About::Levels, message: message.into() }
    }
}

/// Shares are often published in rounded digits: a sum this near to 1 is taken as 1.
pub const ROUNDED: f64 = 0.001;
/// The fit ends when every share is met to within this.
const CLOSE: f64 = 1e-10;
/// A share further off than this after the last sweep counts as not met.
const MET: f64 = 1e-4;
/// After this many sweeps, slow convergence is helped (see [`Sweeps::vanishing`]), at most this many times.
const SWEEPS: u32 = 2000;
const HELPED: u32 = 4;
/// A cell with less than this of each of its levels that still falls, below this part in half of the sweeps, goes to 0.
const LITTLE: f64 = 1e-3;
const FALLING: f64 = 0.75;
/// After this many sweeps the largest error must have fallen by a thousandth, so that contradictory marginals end soon.
const PATIENCE: u32 = 50;

/// Checks shares; returns which of them is wrong, if one is, and why.
pub(super) fn check(shares: impl Iterator<Item = f64> + Clone) -> Result<(), LevelError> {
    if let Some(i) = shares.clone().position(|share| !(0.0..=1.0).contains(&share)) {
        let share = shares.clone().nth(i).unwrap_or(f64::NAN);
        return Err(LevelError::at(i, format!("a share must be between 0 and 1, but this one is {share}")));
    }
    let sum: f64 = shares.sum();
    if (sum - 1.0).abs() > ROUNDED {
        let sum = (sum * 1e6).round() / 1e6;
        return Err(LevelError::general(format!("the shares add up to {sum}, not to 1")));
    }
    Ok(())
}

/// Splits `n` in proportion to the shares (not negative, not all 0) by the method of the largest remainder: each part is rounded
/// down, and the largest remainders get what is left (ties go to the first).
#[must_use]
pub fn apportion(shares: &[f64], n: u32) -> Vec<u32> {
    let total: f64 = shares.iter().sum();
    let exact: Vec<f64> = shares.iter().map(|share| share / total * f64::from(n)).collect();
    let mut parts: Vec<u32> = exact.iter().map(|part| *part as u32).collect();
    let left = n - parts.iter().sum::<u32>().min(n);
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    order.iter().take(left as usize).for_each(|part| parts[*part] += 1);
    parts
}

/// Rows fitted to marginals.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Share of all agents by row of the table; they add up to 1.
    pub weights: Vec<f64>,
    /// The rows sorted by their levels in the columns of the marginals, then by number.
    order: Vec<u32>,
    /// By marginal: the level of each row.
    codes: Vec<Vec<u32>>,
}

/// The sum of the weights that rows begin with.
///
/// # Errors
/// Not one weight per row; a weight that is negative or not finite; none above 0; a sum too small or too large to divide by.
pub fn check_base(base: &[f64], rows: usize) -> Result<f64, FitError> {
    if base.len() != rows {
        return Err(FitError::general(format!("there are {} weights for {rows} rows", base.len())));
    }
    if let Some(row) = base.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite())) {
        let message = format!("row {row}, counted from 0, has the weight {}; a weight must be 0 or more", base[row]);
        return Err(FitError::general(message));
    }
    let total: f64 = base.iter().sum();
    match total {
        0.0 => Err(FitError::general("the weights add up to 0; some must be greater than 0")),
        total if (1e-200..1e200).contains(&total) => Ok(total),
        total => Err(FitError::general(format!(
            "the weights add up to {total:e}, which is too small or too large to calculate with; divide or multiply \
             all of them by the same number"
        ))),
    }
}

/// Weights of the rows that meet all marginals and are as near as possible, in the Kullback–Leibler sense, to the weights
/// that the rows begin with (`base`, one a row, not negative; even weights where there are none).
///
/// Iterative proportional fitting (Deming and Stephan, "On a least squares adjustment of a sampled frequency table when the
/// expected marginal totals are known", Annals of Mathematical Statistics 11, 1940; that it minimises the divergence: Ireland
/// and Kullback, "Contingency tables with given marginals", Biometrika 55, 1968): the weights of each level are multiplied by
/// asked / obtained, marginal after marginal, until all are met. Odds ratios of the data are kept. Rows with the same levels
/// have the same factor, so a sweep costs time in proportion to the different rows. Where the marginals leave nothing for some of
/// the rows, sweeps alone come near forever and never arrive; rows that dwindle are then given the weight 0.
///
/// # Errors
/// Shares that are no shares, levels that do not fit the table (see [`level::codes`]), weights that are none ([`check_base`]), a
/// level asked for whose rows have no weight, and marginals that no weights of these rows meet: the error names the level that
/// is furthest off.
pub fn weights(table: &Table, base: Option<&[f64]>, marginals: &[Marginal]) -> Result<Fit, FitError> {
    let even = vec![1.0; table.rows()];
    let base = base.unwrap_or(&even);
    let total = check_base(base, table.rows())?;
    let mut codes = Vec::with_capacity(marginals.len());
    for (i, marginal) in marginals.iter().enumerate() {
        let levels: Vec<&str> = marginal.shares.iter().map(|(level, _)| level.as_str()).collect();
        check(marginal.shares.iter().map(|(_, share)| *share)).map_err(|error| FitError::of(i, error))?;
        let needed: Vec<bool> = marginal.shares.iter().map(|(_, share)| *share > 0.0).collect();
        let of_rows = level::codes(table, &marginal.column, &levels, &needed);
        codes.push(of_rows.map_err(|error| FitError::of(i, error))?);
    }
    let cell_of = |row: u32| codes.iter().map(move |codes| codes[row as usize]);
    let mut order: Vec<u32> = (0..table.rows() as u32).collect();
    order.sort_by(|a, b| cell_of(*a).cmp(cell_of(*b)));
    let cells: Vec<&[u32]> = order.chunk_by(|a, b| cell_of(*a).eq(cell_of(*b))).collect();
    let before: Vec<f64> =
        cells.iter().map(|rows| rows.iter().map(|row| base[*row as usize]).sum::<f64>() / total).collect();
    let levels: Vec<Vec<u32>> =
        codes.iter().map(|codes| cells.iter().map(|rows| codes[rows[0] as usize]).collect()).collect();
    let asked: Vec<Vec<f64>> = marginals
        .iter()
        .map(|marginal| {
            let sum: f64 = marginal.shares.iter().map(|(_, share)| share).sum();
            marginal.shares.iter().map(|(_, share)| share / sum).collect()
        })
        .collect();
    let after = proportional(before.clone(), &levels, &asked).map_err(|off| {
        let (marginal, (level, _)) = (&marginals[off.marginal], &marginals[off.marginal].shares[off.level]);
        let (asked, obtained) = (asked[off.marginal][off.level], off.obtained);
        let message = match off.empty {
            true => format!(
                "level `{level}` of column `{}` has the share {asked}, but its rows have no weight: their own weights \
                 are 0, or other shares of 0 exclude them",
                marginal.column
            ),
            false => format!(
                "the marginals contradict each other in these data: after {} sweeps, level `{level}` of column `{}` \
                 has the share {obtained:.4} instead of {asked:.4}; remove a marginal, or merge levels",
                off.sweeps, marginal.column
            ),
        };
        FitError::of(off.marginal, LevelError::at(off.level, message))
    })?;
    let mut weights = vec![0.0; table.rows()];
    for ((rows, before), after) in cells.iter().zip(&before).zip(&after) {
        // A cell whose initial weight is 0 keeps it.
        let factor = if *before > 0.0 { after / before / total } else { 0.0 };
        rows.iter().for_each(|row| weights[*row as usize] = base[*row as usize] * factor);
    }
    if !weights.iter().sum::<f64>().is_finite() {
        return Err(FitError::general(
            "some weights are close to 0 compared with the others, but their rows are needed for the shares; set these \
             weights to 0",
        ));
    }
    Ok(Fit { weights, order, codes })
}

/// The level that is furthest from its share.
struct Off {
    marginal: usize,
    level: usize,
    obtained: f64,
    /// Sweeps made.
    sweeps: u32,
    /// Whether no row has the level.
    empty: bool,
}

/// Cells on their way to their marginals. `levels[m][cell]` is a position in `asked[m]`.
struct Sweeps<'a> {
    cells: Vec<f64>,
    /// The cells as they were after half of the sweeps.
    halfway: Vec<f64>,
    levels: &'a [Vec<u32>],
    asked: &'a [Vec<f64>],
    made: u32,
}

/// Returns the cells when all marginals are met.
fn proportional(cells: Vec<f64>, levels: &[Vec<u32>], asked: &[Vec<f64>]) -> Result<Vec<f64>, Off> {
    let mut sweeps = Sweeps { halfway: cells.clone(), cells, levels, asked, made: 0 };
    let mut off = sweeps.run()?;
    for _ in 0..HELPED {
        if off.is_none() {
            break;
        }
        sweeps.vanishing().into_iter().for_each(|cell| sweeps.cells[cell] = 0.0);
        // A level that is emptied now was not empty as asked: its marginal cannot be met.
        off = sweeps.run().map_err(|off| Off { empty: false, ..off })?;
    }
    off.map_or(Ok(sweeps.cells), Err)
}

impl Sweeps<'_> {
    fn sums(&self, weights: &[f64], m: usize) -> Vec<f64> {
        let mut sums = vec![0.0; self.asked[m].len()];
        weights.iter().zip(&self.levels[m]).for_each(|(weight, level)| sums[*level as usize] += weight);
        sums
    }

    /// How far the worst level is off.
    fn worst(&self) -> (f64, Off) {
        let mut worst = Off { marginal: 0, level: 0, obtained: 0.0, sweeps: self.made, empty: false };
        let mut error = 0.0;
        for (m, shares) in self.asked.iter().enumerate() {
            for (l, (sum, share)) in self.sums(&self.cells, m).into_iter().zip(shares).enumerate() {
                if (sum - share).abs() > error {
                    error = (sum - share).abs();
                    worst = Off { marginal: m, level: l, obtained: sum, ..worst };
                }
            }
        }
        (error, worst)
    }

    /// Sweeps until all marginals are met. Returns `Some` level that is off if one is not met yet, but still converging.
    fn run(&mut self) -> Result<Option<Off>, Off> {
        let mut before = f64::INFINITY;
        // Cells that have just gone to 0 leave a gap, which the first sweeps close.
        let judged_from = if self.made == 0 { 0 } else { PATIENCE };
        for sweep in 0.. {
            let (error, worst) = self.worst();
            let stalled = sweep % PATIENCE == 0 && error > 0.999 * before;
            if error <= CLOSE || (stalled || sweep == SWEEPS) && error <= MET {
                return Ok(None);
            } else if stalled {
                return Err(worst);
            } else if sweep == SWEEPS {
                return Ok(Some(worst));
            }
            if sweep % PATIENCE == 0 && sweep >= judged_from {
                before = error;
            }
            if sweep == SWEEPS / 2 {
                self.halfway.clone_from(&self.cells);
            }
            self.sweep()?;
        }
        Ok(None)
    }

    fn sweep(&mut self) -> Result<(), Off> {
        for (m, shares) in self.asked.iter().enumerate() {
            let sums = self.sums(&self.cells, m);
            if let Some(level) = (0..shares.len()).find(|l| shares[*l] > 0.0 && sums[*l] < f64::MIN_POSITIVE) {
                return Err(Off { marginal: m, level, obtained: 0.0, sweeps: self.made, empty: true });
            }
            let factors: Vec<f64> = sums
                .iter()
                .zip(shares)
                .map(|(sum, share)| if *sum >= f64::MIN_POSITIVE { share / sum } else { 0.0 })
                .collect();
            self.cells.iter_mut().zip(&self.levels[m]).for_each(|(weight, level)| *weight *= factors[*level as usize]);
        }
        self.made += 1;
        Ok(())
    }

    /// Returns the cells on their way to 0. If only weights with zeros meet the marginals, these cells fall inversely to the number
    /// of sweeps, while any other cell has long converged.
    fn vanishing(&self) -> Vec<usize> {
        let sums: Vec<Vec<f64>> = (0..self.asked.len()).map(|m| self.sums(&self.cells, m)).collect();
        let little = |cell: usize| {
            let of_level =
                |(levels, sums): (&Vec<u32>, &Vec<f64>)| self.cells[cell] < LITTLE * sums[levels[cell] as usize];
            self.levels.iter().zip(&sums).all(of_level)
        };
        let falling = |cell: &usize| self.cells[*cell] < FALLING * self.halfway[*cell] && little(*cell);
        (0..self.cells.len()).filter(falling).collect()
    }
}

impl Fit {
    /// Returns the shares of `counts[row]` agents of each row.
    #[must_use]
    pub fn obtained(&self, marginals: &[Marginal], counts: &[u32]) -> Vec<Share> {
        let mut out = Vec::new();
        for (marginal, codes) in marginals.iter().zip(&self.codes) {
            let mut agents = vec![0u32; marginal.shares.len()];
            codes.iter().zip(counts).for_each(|(level, count)| agents[*level as usize] += count);
            let levels = marginal.shares.iter().map(|(level, share)| (level.clone(), *share));
            out.extend(shares(&marginal.column, levels, &agents));
        }
        out
    }
}

/// The shares of one column.
pub(super) fn shares<'a>(
    column: &'a str,
    levels: impl Iterator<Item = (String, f64)> + 'a,
    agents: &'a [u32],
) -> impl Iterator<Item = Share> + 'a {
    let n: u32 = agents.iter().sum();
    levels.zip(agents).map(move |((level, asked), agents)| Share {
        column: column.to_owned(),
        level,
        asked,
        agents: *agents,
        obtained: f64::from(*agents) / f64::from(n),
    })
}
