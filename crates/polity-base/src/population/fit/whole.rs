//! From weights to whole agents: rounding, and exchanges that bring the marginals nearer.

use super::Fit;
use crate::rng::Draws;

/// Whole numbers of agents for weights that add up to 1: `n` in all, and each row gets its `weight * n` rounded down or up.
///
/// Truncate, replicate, sample (Lovelace and Ballas, "Truncate, replicate, sample", Computers, Environment and Urban Systems
/// 41, 2013). Every row has its whole part; who is rounded up is drawn with a probability equal to the fraction. The draw is
/// systematic along `order` (Madow 1949), so that any run of rows in that order has its own sum rounded down or up: rows of
/// one level of the first column, and of one level of the second within it, lie together there.
pub(super) fn whole(weights: &[f64], order: &[u32], n: u32, draws: &mut Draws) -> Vec<u32> {
    let exact = |row: u32| weights[row as usize] * f64::from(n);
    let mut counts: Vec<u32> = weights.iter().map(|weight| (weight * f64::from(n)) as u32).collect();
    let made: u64 = counts.iter().copied().map(u64::from).sum();
    let mut left = u64::from(n).saturating_sub(made) as u32;
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

/// What [`Fit::agents`] may spend on exchanges, in levels looked at: a second, at most.
const EFFORT: usize = 400_000_000;

/// So many pairs of cells are few.
const FEW: usize = 1 << 18;
/// Where there are more, a walk looks for exchanges with so many cells that are most in need of agents, and for each cell with so
/// many of them, before all are sorted anew.
const CANDIDATES: usize = 1 << 16;
const LOOKED_AT: usize = 1 << 11;
/// An exchange changes half the sum of squares by less than this.
const GAIN: f64 = -1e-6;
/// Fractions of an agent that count in an exchange, where there are as many agents as rows; less where there are fewer.
const LEAST_PART: f64 = 0.01;

/// Rows with the same levels, as far as they can be exchanged.
struct Exchange {
    /// The level in each marginal.
    levels: Vec<u32>,
    /// Rows that were rounded up, and rows that were rounded down.
    up: Vec<u32>,
    down: Vec<u32>,
}

/// By marginal and level: agents too many.
struct Excess(Vec<Vec<f64>>);

impl Excess {
    fn score(&self, levels: &[u32]) -> f64 {
        levels.iter().zip(&self.0).map(|(level, excess)| excess[*level as usize]).sum()
    }

    /// Half of what the sum of squares changes by when one agent gives its place to another.
    fn change(&self, less: &[u32], more: &[u32]) -> f64 {
        let differ = less.iter().zip(more).filter(|(a, b)| a != b).count();
        self.score(more) - self.score(less) + differ as f64
    }

    fn add(&mut self, levels: &[u32], agents: f64) {
        levels.iter().zip(&mut self.0).for_each(|(level, excess)| excess[*level as usize] += agents);
    }
}

impl Fit {
    /// How many agents of `n` each row becomes: its weight times `n`, rounded down or up. First by truncate, replicate, sample
    /// (Lovelace and Ballas 2013); then a row rounded up and one rounded down change places as long as that brings the
    /// marginals nearer to what was asked (their sum of squared errors falls). In small societies it matters, for there most
    /// rows are rounded to one agent or none.
    ///
    /// The exchanges end when none is left, or after about a second of work (counted, not timed: the result is always the
    /// same). So much is reached by many columns of many different rows only; what is left then is seen in the shares obtained.
    #[must_use]
    pub fn agents(&self, n: u32, draws: &mut Draws) -> Vec<u32> {
        let mut counts = whole(&self.weights, &self.order, n, draws);
        self.mend(n, &mut counts);
        counts
    }

    fn mend(&self, n: u32, counts: &mut [u32]) {
        let levels_of = |row: u32| self.codes.iter().map(move |codes| codes[row as usize]);
        let most = |codes: &Vec<u32>| codes.iter().max().map_or(0, |most| *most as usize + 1);
        let mut excess = Excess(self.codes.iter().map(|codes| vec![0.0; most(codes)]).collect());
        // A row whose part is next to nothing is not rounded up for others' sake.
        let least = LEAST_PART * (f64::from(n) / self.weights.len() as f64).min(1.0);
        let mut cells: Vec<Exchange> = Vec::new();
        for rows in self.order.chunk_by(|a, b| levels_of(*a).eq(levels_of(*b))) {
            let mut cell = Exchange { levels: levels_of(rows[0]).collect(), up: Vec::new(), down: Vec::new() };
            for row in rows {
                let exact = self.weights[*row as usize] * f64::from(n);
                let over = f64::from(counts[*row as usize]) - exact;
                excess.add(&cell.levels, over);
                if over > least {
                    cell.up.push(*row);
                } else if -over > least {
                    cell.down.push(*row);
                }
            }
            if !(cell.up.is_empty() && cell.down.is_empty()) {
                cells.push(cell);
            }
        }
        let mut effort = 0;
        while let Some(exchanges) = pass(&mut cells, &mut excess, &mut effort) {
            for (less, more) in exchanges {
                counts[less as usize] -= 1;
                counts[more as usize] += 1;
            }
        }
    }
}

/// Sorts the cells by how much is gained at most, and makes exchanges found on one walk along them: the best one where there are
/// few pairs of cells, which comes nearest in the end, or else the first one found of each cell. (The row that gives an agent
/// away, the row that gets it.) `None` when there is none left, or the effort is spent.
fn pass(cells: &mut [Exchange], excess: &mut Excess, effort: &mut usize) -> Option<Vec<(u32, u32)>> {
    let a_cell = excess.0.len().max(1);
    *effort += cells.len() * (a_cell + 5);
    let scored = |wanted: fn(&Exchange) -> bool| -> Vec<(f64, usize)> {
        let places = (0..cells.len()).filter(|i| wanted(&cells[*i]));
        places.map(|i| (excess.score(&cells[i].levels), i)).collect()
    };
    let (mut ups, mut downs) = (scored(|cell| !cell.up.is_empty()), scored(|cell| !cell.down.is_empty()));
    let alone = ups.len() * downs.len() <= FEW;
    let by_need = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if !alone && downs.len() > CANDIDATES {
        downs.select_nth_unstable_by(CANDIDATES, by_need);
        downs.truncate(CANDIDATES);
    }
    ups.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    downs.sort_by(by_need);
    let looked_at = if alone { downs.len() } else { LOOKED_AT };
    let mut made = Vec::new();
    let mut make = |cells: &mut [Exchange], excess: &mut Excess, (up, down): (usize, usize)| {
        let (Some(less), Some(more)) = (cells[up].up.pop(), cells[down].down.pop()) else { return };
        excess.add(&cells[up].levels, -1.0);
        excess.add(&cells[down].levels, 1.0);
        cells[up].down.push(less);
        cells[down].up.push(more);
        made.push((less, more));
    };
    let mut best = (GAIN, None);
    for (of_up, up) in ups {
        for (of_down, down) in downs.iter().take(looked_at) {
            // By the scores as sorted no cell from here on is worth it; what has changed since is seen in the next pass.
            if of_down - of_up + 1.0 >= best.0 || *effort >= EFFORT {
                break;
            }
            *effort += a_cell;
            let change = excess.change(&cells[up].levels, &cells[*down].levels);
            if up != *down && change < best.0 && !cells[*down].down.is_empty() {
                best = (change, Some((up, *down)));
                if !alone {
                    break;
                }
            }
        }
        if let (false, (_, Some(pair))) = (alone, best) {
            make(cells, excess, pair);
            best = (GAIN, None);
        }
    }
    if let (_, Some(pair)) = best {
        make(cells, excess, pair);
    }
    (!made.is_empty()).then_some(made)
}
