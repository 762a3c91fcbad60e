//! Searches over the unit cube, for designs that look for parameters: optimisers and approximate Bayesian computation.
//!
//! A search is a function of the points evaluated so far: it is run again from its start with their losses, until it asks for points that have
//! none yet. It therefore has no state to save, and continues after an interruption as if there had been none.

mod abc;
mod cma_es;
mod nelder_mead;

use polity_kernel::points::random;
use polity_kernel::scenario::{By, Search};

/// What a search wants, given the losses of the points so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The points to be evaluated next; none if it has ended.
    pub next: Vec<Vec<f64>>,
    /// The weights of the points so far in the posterior distribution, with the sum 1; missing for a point outside of it. All are missing for
    /// an optimiser.
    pub weights: Vec<Option<f64>>,
}

/// The points evaluated so far, handed out in order.
struct Replay<'a> {
    losses: &'a [Option<f64>],
    used: usize,
    most: usize,
    wanted: Vec<Vec<f64>>,
}

impl Replay<'_> {
    /// Returns the losses of these points; `None` if some have none yet, or if no more evaluations are allowed. A point that has no loss is
    /// as far from the target as can be.
    fn ask(&mut self, points: &[Vec<f64>]) -> Option<Vec<f64>> {
        let known = self.losses.get(self.used..).unwrap_or_default();
        if known.len() < points.len() {
            let room = self.most.saturating_sub(self.losses.len());
            self.wanted = points[known.len()..].iter().take(room).cloned().collect();
            return None;
        }
        self.used += points.len();
        Some(known[..points.len()].iter().map(|loss| loss.unwrap_or(f64::INFINITY)).collect())
    }
}

/// Returns what a search over so many dimensions wants next. `losses`: those of all points so far, in the order in which it asked for them;
/// missing for a point without a value.
#[must_use]
pub fn step(search: &Search, dimensions: usize, losses: &[Option<f64>]) -> Step {
    let most = search.evaluations as usize;
    let mut replay = Replay { losses, used: 0, most, wanted: Vec::new() };
    let mut posterior = Vec::new();
    // A search that is over, or waits for losses, returns `None`.
    let _ = match search.by {
        By::Random => replay.ask(&random(most, dimensions, search.seed)).map(|_| ()),
        By::NelderMead => nelder_mead::search(&mut replay, dimensions),
        By::CmaEs => cma_es::search(&mut replay, dimensions, search.seed),
        By::Abc => abc::rejection(&mut replay, search, dimensions, &mut posterior),
        By::AbcSmc => abc::sequential(&mut replay, search, dimensions, &mut posterior),
    };
    let mut weights = vec![None; losses.len()];
    let all: f64 = posterior.iter().map(|(_, weight)| weight).sum();
    for (at, weight) in posterior {
        weights[at] = Some(weight / all);
    }
    Step { next: replay.wanted, weights }
}

#[cfg(test)]
mod tests;
