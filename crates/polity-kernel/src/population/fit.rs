//! People that meet stated shares: weights of the rows of microdata, and whole numbers of agents made of them.
//!
//! [`weights`] fits the rows to the shares of several columns at once (iterative proportional fitting). [`agents`] makes
//! whole numbers of them. [`quotas`] meets the shares of the cells of a classification exactly.

use super::level::{self, LevelError};
use super::{Share, Table};
use crate::rng::Draws;

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
    /// (column, level), the same columns in every cell.
    pub levels: Vec<(String, String)>,
    /// Its share of all agents.
    pub share: f64,
}

/// A request that can not be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FitError {
    /// Which of the marginals, or of the cells.
    pub entry: Option<usize>,
    /// Which of its levels.
    pub level: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl FitError {
    fn of(entry: usize, error: LevelError) -> Self {
        FitError { entry: Some(entry), level: error.level, message: error.message }
    }

    fn general(message: impl Into<String>) -> Self {
        FitError { entry: None, level: None, message: message.into() }
    }
}

/// Shares are often published in rounded digits: a sum this near to 1 is taken as 1.
pub const ROUNDED: f64 = 0.001;
/// The fit ends when every share is met to within this.
const CLOSE: f64 = 1e-10;
/// A share further off than this after the last sweep is not met.
const MET: f64 = 1e-4;
/// The most sweeps over all marginals.
const SWEEPS: u32 = 2000;
/// After every so many sweeps the largest error must have fallen by a thousandth: marginals that contradict each other end soon.
const PATIENCE: u32 = 50;

/// Shares that are no shares: which of them, if one is, and why.
pub(super) fn check(shares: impl Iterator<Item = f64> + Clone) -> Result<(), LevelError> {
    if let Some(i) = shares.clone().position(|share| !(0.0..=1.0).contains(&share)) {
        let share = shares.clone().nth(i).unwrap_or(f64::NAN);
        return Err(LevelError::at(i, format!("a share lies between 0 and 1, and this is {share}")));
    }
    let sum: f64 = shares.sum();
    if (sum - 1.0).abs() > ROUNDED {
        let sum = (sum * 1e6).round() / 1e6;
        return Err(LevelError::general(format!("the shares add up to {sum}, not to 1")));
    }
    Ok(())
}

/// Splits `n` in proportion to the shares (not negative, not all 0) by the method of the largest remainder: each part is
/// rounded down, and those that lost most get what is left (the first of equals).
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

/// Weights of the rows that meet all marginals and are as near as possible, in the Kullback–Leibler sense, to the weights
/// that the rows begin with (`base`, one a row, not negative; even weights where there are none).
///
/// Iterative proportional fitting (Deming and Stephan, "On a least squares adjustment of a sampled frequency table when the
/// expected marginal totals are known", Annals of Mathematical Statistics 11, 1940; that it minimises the divergence: Ireland
/// and Kullback, "Contingency tables with given marginals", Biometrika 55, 1968): the weights of each level are multiplied by
/// asked / obtained, marginal after marginal, until all are met. Odds ratios of the data are kept. Rows with the same levels
/// have the same factor, so a sweep costs time in proportion to the different rows.
///
/// # Errors
/// Shares that are no shares, levels that do not fit the table (see [`level::codes`]), weights that are negative or all 0, a
/// level asked for whose rows have no weight, and marginals that no weights of these rows meet: the error names the level that
/// is furthest off.
pub fn weights(table: &Table, base: Option<&[f64]>, marginals: &[Marginal]) -> Result<Fit, FitError> {
    let even = vec![1.0; table.rows()];
    let base = base.unwrap_or(&even);
    if let Some(row) = base.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite())) {
        return Err(FitError::general(format!("row {row} has the weight {}; a weight is 0 or more", base[row])));
    }
    let total: f64 = base.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return Err(FitError::general(format!("the weights add up to {total}; some must be greater than 0")));
    }
    let mut codes = Vec::with_capacity(marginals.len());
    for (i, marginal) in marginals.iter().enumerate() {
        let levels: Vec<&str> = marginal.shares.iter().map(|(level, _)| level.as_str()).collect();
        check(marginal.shares.iter().map(|(_, share)| *share)).map_err(|error| FitError::of(i, error))?;
        codes.push(level::codes(table, &marginal.column, &levels).map_err(|error| FitError::of(i, error))?);
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
                "level `{level}` of column `{}` has the share {asked}, but its rows have no weight: they weigh nothing, or other \
                 shares of 0 leave them out",
                marginal.column
            ),
            false => format!(
                "the marginals contradict each other in these data: after {} sweeps level `{level}` of column `{}` has \
                 the share {obtained:.4}, and {asked:.4} is asked; take a marginal out, or join levels",
                off.sweeps, marginal.column
            ),
        };
        FitError { entry: Some(off.marginal), level: Some(off.level), message }
    })?;
    let mut weights = vec![0.0; table.rows()];
    for ((rows, before), after) in cells.iter().zip(&before).zip(&after) {
        // A cell that weighs nothing at first never weighs anything.
        let factor = if *before > 0.0 { after / before / total } else { 0.0 };
        rows.iter().for_each(|row| weights[*row as usize] = base[*row as usize] * factor);
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
    /// Whether nothing at all is of the level.
    empty: bool,
}

/// The sweeps. `levels[m][cell]` is a position in `asked[m]`.
fn proportional(mut cells: Vec<f64>, levels: &[Vec<u32>], asked: &[Vec<f64>]) -> Result<Vec<f64>, Off> {
    let obtained = |cells: &[f64], m: usize| {
        let mut sums = vec![0.0; asked[m].len()];
        cells.iter().zip(&levels[m]).for_each(|(weight, level)| sums[*level as usize] += weight);
        sums
    };
    let mut before = f64::INFINITY;
    for sweeps in 0.. {
        let mut worst = Off { marginal: 0, level: 0, obtained: 0.0, sweeps, empty: false };
        let mut error = 0.0;
        for (m, shares) in asked.iter().enumerate() {
            for (l, (sum, share)) in obtained(&cells, m).into_iter().zip(shares).enumerate() {
                if (sum - share).abs() > error {
                    error = (sum - share).abs();
                    worst = Off { marginal: m, level: l, obtained: sum, ..worst };
                }
            }
        }
        let stalled = sweeps % PATIENCE == 0 && error > 0.999 * before;
        if error <= CLOSE || stalled || sweeps == SWEEPS {
            return if error <= MET { Ok(cells) } else { Err(worst) };
        }
        if sweeps % PATIENCE == 0 {
            before = error;
        }
        for (m, shares) in asked.iter().enumerate() {
            let sums = obtained(&cells, m);
            if let Some(level) = (0..shares.len()).find(|l| shares[*l] > 0.0 && sums[*l] <= 0.0) {
                return Err(Off { marginal: m, level, obtained: 0.0, sweeps, empty: true });
            }
            let factors: Vec<f64> =
                sums.iter().zip(shares).map(|(sum, share)| if *sum > 0.0 { share / sum } else { 0.0 }).collect();
            cells.iter_mut().zip(&levels[m]).for_each(|(weight, level)| *weight *= factors[*level as usize]);
        }
    }
    Ok(cells)
}

/// Whole numbers of agents for weights that add up to 1: `n` in all, and each row gets its `weight * n` rounded down or up.
///
/// Truncate, replicate, sample (Lovelace and Ballas, "Truncate, replicate, sample", Computers, Environment and Urban Systems
/// 41, 2013). Every row has its whole part; who is rounded up is drawn with a probability equal to the fraction. The draw is
/// systematic along `order` (Madow 1949), so that any run of rows in that order has its own sum rounded down or up: rows of
/// one level of the first column, and of one level of the second within it, lie together there.
fn whole(weights: &[f64], order: &[u32], n: u32, draws: &mut Draws) -> Vec<u32> {
    let exact = |row: u32| weights[row as usize] * f64::from(n);
    let mut counts: Vec<u32> = weights.iter().map(|weight| (weight * f64::from(n)) as u32).collect();
    let mut left = n.saturating_sub(counts.iter().sum());
    let fractions: f64 = order.iter().map(|row| exact(*row).fract()).sum();
    // The fractions add up to `left` but for rounding.
    let step = if left > 0 { fractions / f64::from(left) } else { return counts };
    let mut next = draws.unit() * step;
    let mut sum = 0.0;
    let mut last = None;
    for row in order {
        let fraction = exact(*row).fract();
        sum += fraction;
        if fraction > 0.0 {
            last = Some(*row as usize);
        }
        if sum > next && left > 0 && fraction > 0.0 {
            counts[*row as usize] += 1;
            left -= 1;
            next += step;
        }
    }
    if let Some(last) = last {
        counts[last] += left;
    }
    counts
}

/// What [`Fit::mend`] may cost: cells and pairs of cells looked at. A second, at most.
const EFFORT: usize = 30_000_000;

/// Rows with the same levels, as far as they can be exchanged.
#[derive(Default)]
struct Exchange {
    /// A row of the cell.
    row: u32,
    /// Rows that were rounded up, and rows that were rounded down.
    up: Vec<u32>,
    down: Vec<u32>,
}

impl Fit {
    /// How many agents of `n` each row becomes: its weight times `n`, rounded down or up. First by truncate, replicate, sample
    /// (Lovelace and Ballas 2013); then a row rounded up and one rounded down change places as long as that brings the
    /// marginals nearer to what was asked (their sum of squared errors falls). In small societies it matters, for there most
    /// rows are rounded to one agent or none.
    #[must_use]
    pub fn agents(&self, n: u32, draws: &mut Draws) -> Vec<u32> {
        let mut counts = whole(&self.weights, &self.order, n, draws);
        self.mend(n, &mut counts);
        counts
    }

    fn mend(&self, n: u32, counts: &mut [u32]) {
        let levels_of = |row: u32| self.codes.iter().map(move |codes| codes[row as usize] as usize);
        // By marginal and level: agents too many.
        let mut excess: Vec<Vec<f64>> =
            self.codes.iter().map(|codes| vec![0.0; codes.iter().max().map_or(0, |most| *most as usize + 1)]).collect();
        let mut cells: Vec<Exchange> = Vec::new();
        for rows in self.order.chunk_by(|a, b| levels_of(*a).eq(levels_of(*b))) {
            let mut cell = Exchange { row: rows[0], ..Exchange::default() };
            for row in rows {
                let exact = self.weights[*row as usize] * f64::from(n);
                let count = counts[*row as usize];
                levels_of(*row).zip(&mut excess).for_each(|(level, excess)| excess[level] += f64::from(count) - exact);
                if f64::from(count) > exact {
                    cell.up.push(*row);
                } else if f64::from(count) < exact {
                    cell.down.push(*row);
                }
            }
            cells.push(cell);
        }
        let mut effort = 0;
        while effort < EFFORT {
            effort += cells.len();
            let score =
                |cell: &Exchange| levels_of(cell.row).zip(&excess).map(|(level, excess)| excess[level]).sum::<f64>();
            let scored = |wanted: fn(&Exchange) -> bool| -> Vec<(f64, usize)> {
                let places = (0..cells.len()).filter(|i| wanted(&cells[*i]));
                places.map(|i| (score(&cells[i]), i)).collect()
            };
            let (mut ups, mut downs) = (scored(|cell| !cell.up.is_empty()), scored(|cell| !cell.down.is_empty()));
            ups.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            downs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            // Half of what the sum of squares changes by is score(down) - score(up) + the number of marginals that differ.
            let mut best = (-1e-6, None);
            for (of_up, up) in &ups {
                for (of_down, down) in &downs {
                    if of_down - of_up + 1.0 >= best.0 || effort >= EFFORT {
                        break;
                    }
                    effort += 1;
                    let differ = levels_of(cells[*up].row).zip(levels_of(cells[*down].row)).filter(|(a, b)| a != b);
                    let change = of_down - of_up + differ.count() as f64;
                    if up != down && change < best.0 {
                        best = (change, Some((*up, *down)));
                    }
                }
            }
            let (_, Some((up, down))) = best else { return };
            let (Some(less), Some(more)) = (cells[up].up.pop(), cells[down].down.pop()) else { return };
            for (row, sign) in [(less, -1.0), (more, 1.0)] {
                levels_of(row).zip(&mut excess).for_each(|(level, excess)| excess[level] += sign);
            }
            counts[less as usize] -= 1;
            counts[more as usize] += 1;
            cells[up].down.push(less);
            cells[down].up.push(more);
        }
    }

    /// The shares that so many agents of each row have.
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

/// How many agents of `n` each row becomes when the cells have exactly their quotas: `n` split by largest remainder. Within a
/// cell rows come up as often as their weights say (`base`, one a row; evenly where there are none), rounded like [`Fit::agents`].
///
/// # Errors
/// Shares that are no shares, levels that do not fit the table, a cell given twice, a cell with agents and without rows or
/// weight, rows that are in no cell.
pub fn quotas(
    table: &Table,
    base: Option<&[f64]>,
    cells: &[Cell],
    n: u32,
    draws: &mut Draws,
) -> Result<(Vec<u32>, Vec<Share>), FitError> {
    let Some(first) = cells.first() else { return Err(FitError::general("there are no quotas")) };
    let check = check(cells.iter().map(|cell| cell.share));
    check.map_err(|error| FitError { entry: error.level, level: None, message: error.message })?;
    // The levels of each column, in order of appearance, and each cell as their positions.
    let mut keys: Vec<Vec<u32>> = vec![Vec::new(); cells.len()];
    let mut row_keys: Vec<Vec<u32>> = Vec::new();
    for (c, (column, _)) in first.levels.iter().enumerate() {
        let mut levels: Vec<&str> = Vec::new();
        let mut first_of: Vec<usize> = Vec::new();
        for (i, cell) in cells.iter().enumerate() {
            let level = match cell.levels.get(c) {
                Some((name, level)) if name == column && cell.levels.len() == first.levels.len() => level.as_str(),
                _ => return Err(FitError { entry: Some(i), level: None, message: not_alike(first) }),
            };
            let known = levels.iter().position(|known| *known == level);
            keys[i].push(known.unwrap_or(levels.len()) as u32);
            if known.is_none() {
                levels.push(level);
                first_of.push(i);
            }
        }
        let codes = level::codes(table, column, &levels).map_err(|error| FitError {
            entry: error.level.map(|level| first_of[level]),
            level: None,
            message: error.message,
        })?;
        row_keys.push(codes);
    }
    let mut sorted: Vec<usize> = (0..cells.len()).collect();
    sorted.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
    if let Some([_, twice]) = sorted.array_windows().find(|[a, b]| keys[*a] == keys[*b]) {
        return Err(FitError { entry: Some(*twice), level: None, message: "the same cell was given before".into() });
    }
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); cells.len()];
    for row in 0..table.rows() {
        let found = sorted.binary_search_by(|cell| keys[*cell].iter().cmp(row_keys.iter().map(|codes| &codes[row])));
        let Ok(place) = found else {
            let names: Vec<&str> = first.levels.iter().map(|(column, _)| column.as_str()).collect();
            return Err(FitError::general(format!(
                "row {row} of the data, counted from 0, is in no cell of the quotas by {}; give its cell a share, 0 leaves its \
                 rows out",
                names.join(", ")
            )));
        };
        rows[sorted[place]].push(row as u32);
    }
    let asked: Vec<f64> = cells.iter().map(|cell| cell.share).collect();
    let sizes = apportion(&asked, n);
    let mut counts = vec![0; table.rows()];
    for (i, (rows, size)) in rows.iter().zip(&sizes).enumerate() {
        let weight = |row: &u32| base.map_or(1.0, |base| base[*row as usize]);
        let total: f64 = rows.iter().map(weight).sum();
        if total > 0.0 {
            let weights: Vec<f64> = rows.iter().map(|row| weight(row) / total).collect();
            let order: Vec<u32> = (0..rows.len() as u32).collect();
            let of_rows = whole(&weights, &order, *size, draws);
            rows.iter().zip(of_rows).for_each(|(row, count)| counts[*row as usize] = count);
        } else if *size > 0 {
            let message = format!("{size} agents are asked for, but no row with a weight is in this cell");
            return Err(FitError { entry: Some(i), level: None, message });
        }
    }
    let join =
        |part: fn(&(String, String)) -> &str, cell: &Cell| cell.levels.iter().map(part).collect::<Vec<_>>().join(" × ");
    let column = join(|(column, _)| column, first);
    let levels = cells.iter().map(|cell| (join(|(_, level)| level, cell), cell.share));
    let shares = shares(&column, levels, &sizes).collect();
    Ok((counts, shares))
}

fn not_alike(first: &Cell) -> String {
    let names: Vec<&str> = first.levels.iter().map(|(column, _)| column.as_str()).collect();
    format!("every cell names the same columns in the same order as the first one, {}, and a share", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::{Column, TextBuilder};
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    fn draws(seed: u64) -> Draws {
        Draws::new(seed, Stream::Population, 1, 0)
    }

    fn marginal(column: &str, shares: &[(&str, f64)]) -> Marginal {
        Marginal { column: column.into(), shares: shares.iter().map(|(l, s)| ((*l).to_owned(), *s)).collect() }
    }

    /// A 2x2 table with these counts as weights.
    fn two_by_two(counts: [f64; 4]) -> (Table, Vec<f64>) {
        let mut sex = TextBuilder::default();
        ["f", "f", "m", "m"].iter().for_each(|w| sex.push(w));
        let party = Column::Number(vec![0.0, 1.0, 0.0, 1.0]);
        (Table::new(vec![("sex".into(), sex.finish()), ("party".into(), party)]).unwrap(), counts.to_vec())
    }

    fn odds(w: &[f64]) -> f64 {
        w[0] * w[3] / (w[1] * w[2])
    }

    #[test]
    fn the_odds_ratio_of_a_two_by_two_table_is_kept() {
        let (table, counts) = two_by_two([30.0, 10.0, 20.0, 40.0]);
        let marginals = [marginal("sex", &[("f", 0.52), ("m", 0.48)]), marginal("party", &[("0", 0.3), ("1", 0.7)])];
        let w = weights(&table, Some(&counts), &marginals).unwrap().weights;
        assert!((odds(&w) - 6.0).abs() < 1e-6, "{}", odds(&w));
        assert!((w[0] + w[1] - 0.52).abs() < 1e-9 && (w[0] + w[2] - 0.3).abs() < 1e-9);
        // In closed form: x solves x (0.18 + x) = 6 (0.52 - x) (0.3 - x).
        let (a, b, c) = (5.0f64, -6.0 * 0.82 - 0.18, 6.0 * 0.52 * 0.3);
        let x = (-b - (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
        assert!((w[0] - x).abs() < 1e-8, "{} {x}", w[0]);
    }

    #[test]
    fn even_weights_give_the_product_of_the_marginals() {
        let (table, _) = two_by_two([0.0; 4]);
        let marginals = [marginal("sex", &[("m", 0.4), ("f", 0.6)]), marginal("party", &[("1", 0.9), ("0", 0.1)])];
        let w = weights(&table, None, &marginals).unwrap().weights;
        for (found, expected) in w.iter().zip([0.06, 0.54, 0.04, 0.36]) {
            assert!((found - expected).abs() < 1e-12, "{w:?}");
        }
    }

    #[test]
    fn what_can_not_be_met_is_named() {
        let (table, counts) = two_by_two([1.0, 0.0, 0.0, 1.0]);
        let error = |base: Option<&[f64]>, marginals: &[Marginal]| {
            let error = weights(&table, base, marginals).unwrap_err();
            (error.entry, error.level, error.message)
        };
        let sex = marginal("sex", &[("f", 0.5), ("m", 0.5)]);
        // Only f0 and m1 weigh something, so that the two marginals are the same.
        let (entry, level, message) =
            error(Some(&counts), &[sex.clone(), marginal("party", &[("0", 0.3), ("1", 0.7)])]);
        assert!(entry.is_some() && level.is_some() && message.contains("contradict each other"), "{message}");
        let half = marginal("party", &[("0", 0.5), ("1", 0.6)]);
        assert_eq!(error(None, &[sex.clone(), half]), (Some(1), None, "the shares add up to 1.1, not to 1".into()));
        let minus = marginal("sex", &[("f", -0.5), ("m", 1.5)]);
        let expected = "a share lies between 0 and 1, and this is -0.5";
        assert_eq!(error(None, &[minus]), (Some(0), Some(0), expected.into()));
        let nobody = marginal("party", &[("0", 0.5), ("1", 0.3), ("2", 0.2)]);
        let expected = "no row has the level `2` of column `party` (it has 0, 1)";
        assert_eq!(error(None, &[sex.clone(), nobody]), (Some(1), Some(2), expected.into()));
        let all = marginal("party", &[("0", 1.0), ("1", 0.0)]);
        let message = error(Some(&counts), &[all, sex.clone()]).2;
        assert!(message.starts_with("level `m` of column `sex` has the share 0.5, but its rows have no weight"));
        let message = error(Some(&[1.0, -1.0, 0.0, 0.0]), &[]).2;
        assert_eq!(message, "row 1 has the weight -1; a weight is 0 or more");
        assert_eq!(error(Some(&[0.0; 4]), &[sex]).2, "the weights add up to 0; some must be greater than 0");
    }

    #[test]
    fn rounding_in_small_societies_is_mended() {
        // 300 rows with eight columns of three levels: nearly every row is a cell of its own.
        let mut random = draws(2);
        let columns: Vec<(String, Column)> = (0..8)
            .map(|c| (format!("c{c}"), Column::Number((0..300).map(|_| random.below(3) as f64).collect())))
            .collect();
        let table = Table::new(columns).unwrap();
        let marginals: Vec<Marginal> =
            (0..8).map(|c| marginal(&format!("c{c}"), &[("0", 0.25), ("1", 0.35), ("2", 0.4)])).collect();
        let fit = weights(&table, None, &marginals).unwrap();
        for n in [60, 100, 137, 1000] {
            let most = |counts: &[u32]| {
                let shares = fit.obtained(&marginals, counts);
                shares.iter().map(|share| (share.obtained - share.asked).abs() * f64::from(n)).fold(0.0, f64::max)
            };
            let drawn = whole(&fit.weights, &fit.order, n, &mut draws(n.into()));
            let mended = fit.agents(n, &mut draws(n.into()));
            assert!(most(&drawn) > 2.0, "{n}: {}", most(&drawn));
            assert!(most(&mended) <= 1.01, "{n}: {} from {}", most(&mended), most(&drawn));
            assert_eq!(mended.iter().sum::<u32>(), n);
        }
    }

    #[test]
    fn quotas_are_exact() {
        let (table, _) = two_by_two([0.0; 4]);
        let cell = |sex: &str, party: &str, share| Cell {
            levels: vec![("sex".into(), sex.into()), ("party".into(), party.into())],
            share,
        };
        let cells = [cell("m", "1", 0.1), cell("f", "0", 0.25), cell("f", "1", 0.6), cell("m", "0", 0.05)];
        for (n, expected) in [(1000, [250, 600, 50, 100]), (7, [2, 4, 0, 1])] {
            let (counts, shares) = quotas(&table, None, &cells, n, &mut draws(3)).unwrap();
            assert_eq!(counts, expected);
            assert_eq!((shares[1].column.as_str(), shares[1].level.as_str()), ("sex × party", "f × 0"));
            assert_eq!(shares[1].agents, expected[0]);
        }
        let error = |cells: &[Cell]| quotas(&table, None, cells, 10, &mut draws(3)).unwrap_err();
        let twice = [cells[0].clone(), cells[1].clone(), cell("f", "0", 0.65)];
        assert_eq!((error(&twice).entry, error(&twice).message.as_str()), (Some(2), "the same cell was given before"));
        let few = [cell("m", "1", 0.4), cell("f", "0", 0.6)];
        assert!(
            error(&few).message.starts_with("row 1 of the data, counted from 0, is in no cell of the quotas by sex")
        );
        let other = Cell { levels: vec![("sex".into(), "f".into())], share: 0.9 };
        assert_eq!(error(&[cells[0].clone(), other]).entry, Some(1));
        let weightless = quotas(&table, Some(&[1.0, 1.0, 1.0, 0.0]), &cells, 10, &mut draws(3)).unwrap_err();
        assert_eq!((weightless.entry, weightless.message.contains("no row with a weight")), (Some(0), true));
    }

    #[test]
    fn parts_by_largest_remainder() {
        assert_eq!(apportion(&[0.5, 0.3, 0.2], 11), [6, 3, 2]);
        assert_eq!(apportion(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
    }

    /// The sweeps on a full table of rows, each row with its own weight: no cells, no sorting.
    fn plain(codes: &[Vec<usize>], base: &[f64], asked: &[Vec<f64>]) -> Vec<f64> {
        let mut w = base.to_vec();
        for _ in 0..5000 {
            for (codes, asked) in codes.iter().zip(asked) {
                for (level, share) in asked.iter().enumerate() {
                    let sum: f64 = (0..w.len()).filter(|r| codes[*r] == level).map(|r| w[r]).sum();
                    (0..w.len()).filter(|r| codes[*r] == level).for_each(|r| w[r] *= share / sum);
                }
            }
        }
        w
    }

    /// Rows with three columns of 2, 3 and 4 levels, each combination at least once, so that every marginal can be met.
    fn people(extra: &[(usize, usize, usize)]) -> (Table, Vec<Vec<usize>>) {
        let mut codes = vec![vec![], vec![], vec![]];
        let all = (0..24).map(|i| (i % 2, i / 2 % 3, i / 6)).chain(extra.iter().copied());
        all.for_each(|(a, b, c)| [a, b, c].into_iter().zip(&mut codes).for_each(|(v, codes)| codes.push(v)));
        let column = |codes: &Vec<usize>| Column::Number(codes.iter().map(|c| *c as f64).collect());
        let named = ["a", "b", "c"].iter().zip(&codes).map(|(n, codes)| ((*n).to_owned(), column(codes)));
        (Table::new(named.collect()).unwrap(), codes)
    }

    fn some_shares(levels: usize) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.05f64..1.0, levels).prop_map(|s| {
            let sum: f64 = s.iter().sum();
            s.iter().map(|x| x / sum).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn agrees_with_a_plain_fit_and_keeps_margins_near(
            extra in prop::collection::vec((0usize..2, 0usize..3, 0usize..4), 0..60),
            base_seed: u64,
            asked in (some_shares(2), some_shares(3), some_shares(4)),
            n in 1u32..5000,
        ) {
            let (table, codes) = people(&extra);
            let mut random = draws(base_seed);
            let base: Vec<f64> = (0..table.rows()).map(|_| 0.1 + random.unit()).collect();
            let asked = [asked.0, asked.1, asked.2];
            let marginals: Vec<Marginal> = ["a", "b", "c"].iter().zip(&asked).map(|(name, shares)| Marginal {
                column: (*name).into(),
                shares: shares.iter().enumerate().map(|(l, s)| (l.to_string(), *s)).collect(),
            }).collect();
            let fit = weights(&table, Some(&base), &marginals).unwrap();
            for (found, expected) in fit.weights.iter().zip(plain(&codes, &base, &asked)) {
                prop_assert!((found - expected).abs() < 1e-8, "{} {}", found, expected);
            }
            let mut again = random.clone();
            let counts = fit.agents(n, &mut random);
            prop_assert_eq!(counts.iter().sum::<u32>(), n);
            for (count, weight) in counts.iter().zip(&fit.weights) {
                prop_assert!((f64::from(*count) - weight * f64::from(n)).abs() < 1.0 + 1e-6);
            }
            // Runs in the order of the cells are rounded once: the first column has one run a level, the second two, the last six.
            // Mending makes the sum of squares smaller still.
            let drawn = whole(&fit.weights, &fit.order, n, &mut again);
            let off = |counts: &[u32]| -> Vec<f64> {
                let shares = fit.obtained(&marginals, counts);
                shares.iter().map(|share| (share.obtained - share.asked).abs() * f64::from(n)).collect()
            };
            for (off, runs) in off(&drawn).iter().zip([1, 1, 2, 2, 2, 6, 6, 6, 6]) {
                prop_assert!(*off < f64::from(runs) + 1e-3, "a share is off by {} agents of {}", off, n);
            }
            let squares = |counts: &[u32]| off(counts).iter().map(|off| off * off).sum::<f64>();
            prop_assert!(squares(&counts) <= squares(&drawn) + 1e-6);
        }

        #[test]
        fn parts_add_up(shares in prop::collection::vec(0.0f64..1.0, 1..20), n in 0u32..100_000) {
            prop_assume!(shares.iter().sum::<f64>() > 0.0);
            let parts = apportion(&shares, n);
            prop_assert_eq!(parts.iter().sum::<u32>(), n);
            let total: f64 = shares.iter().sum();
            for (part, share) in parts.iter().zip(&shares) {
                prop_assert!((f64::from(*part) - share / total * f64::from(n)).abs() < 1.0 + 1e-6);
            }
        }
    }
}
