//! Compass search: one rate is changed at a time, and what is better stays. Steps become smaller when nothing is.

use serde::{Deserialize, Serialize};

/// What a planner has learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The best rates so far, and their welfare; no rates before the first year.
    base: Vec<f64>,
    worth: f64,
    axis: u32,
    down: bool,
    /// What was proposed last.
    tried: Vec<f64>,
    /// Tries in a row that were no better.
    failures: u32,
    step: f64,
}

impl Search {
    /// Begins at a rate, with a step.
    pub(super) fn new(axis: u32, step: f64) -> Self {
        Search { axis, step, ..Search::default() }
    }

    /// Learns what the law of the last year was worth.
    pub(super) fn learn(&mut self, law: &[f64], welfare: f64, least: f64) {
        if self.base.is_empty() || welfare > self.worth {
            (self.base, self.worth, self.failures) = (law.to_vec(), welfare, 0);
        } else if self.step >= least {
            // What did not become law has not been tried.
            self.failures += u32::from(law == self.tried);
            self.turn();
            if self.failures as usize >= 2 * self.base.len() {
                (self.step, self.failures) = (self.step / 2.0, 0);
            }
        }
    }

    /// Goes on to the other direction, then to the next rate.
    fn turn(&mut self) {
        self.down = !self.down;
        if !self.down {
            self.axis = (self.axis + 1) % self.base.len().max(1) as u32;
        }
    }

    /// Returns the next rates to try; once the step is below `least`, the best ones.
    pub(super) fn propose(&mut self, least: f64) -> Vec<f64> {
        self.tried = self.next(least);
        self.tried.clone()
    }

    fn next(&mut self, least: f64) -> Vec<f64> {
        if self.step < least {
            return self.base.clone();
        }
        let mut rates = self.base.clone();
        // At a bound there is nothing to try.
        for _ in 0..2 * rates.len() {
            let axis = self.axis as usize % rates.len();
            let by = if self.down { -self.step } else { self.step };
            let tried = (rates[axis] + by).clamp(0.0, 1.0);
            if tried != rates[axis] {
                rates[axis] = tried;
                break;
            }
            self.failures += 1;
            self.turn();
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_top_of_a_smooth_hill_and_stays_there() {
        let top = [0.83, 0.0, 0.41];
        // Not a sum over rates: they interact.
        let height = |x: &[f64]| {
            let d: Vec<f64> = x.iter().zip(top).map(|(x, top)| x - top).collect();
            -d.iter().map(|d| d * d).sum::<f64>() - 0.5 * d[0] * d[2]
        };
        let mut search = Search::new(2, 0.2);
        let mut law = vec![0.5, 0.5, 0.9];
        for _ in 0..300 {
            search.learn(&law, height(&law), 1e-3);
            law = search.propose(1e-3);
        }
        assert!(law.iter().zip(top).all(|(x, top)| (x - top).abs() < 3e-3), "{law:?}");
        assert_eq!(search.propose(1e-3), law);
    }
}
