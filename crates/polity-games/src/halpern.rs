//! Halpern's iteration for matrix games that are means of many games: plain, and with variance reduction.
//!
//! After Cai, Alacaoglu and Diakonikolas, "Variance reduced Halpern iteration for finite-sum monotone inclusions" (ICLR 2024), for
//! cocoercive operators. Both players' payoffs have a quadratic term, so that the operator of the game is cocoercive.

use crate::learn::project;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// The mean of n zero-sum games on two simplices: the first player mixes x and loses x' A y + |x|²/2 - |y|²/2, which the second wins.
#[derive(Clone, Debug, PartialEq)]
pub struct FiniteSum {
    size: usize,
    /// The matrix of each game, by rows.
    parts: Vec<Vec<f64>>,
    mean: Vec<f64>,
}

/// How the operator is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// All games in every step.
    Full,
    /// All games at times, ever more seldom; else the last estimate, corrected by what a sample of √n games says of the step (PAGE).
    #[default]
    Reduced,
    /// All games as often, to test the residual; else 2 √n games anew, which costs as much as the correction but is never exact.
    Fresh,
}

/// What an iteration came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// The last iterate: the first player's mixture, then the second's.
    pub last: Vec<f64>,
    /// Its residual: the length of the step of projected descent from it, per unit of step size. 0 only in the equilibrium.
    pub residual: f64,
    /// Evaluations of single games.
    pub evaluations: u64,
    /// Steps.
    pub steps: u32,
    /// Whether the residual is at most the tolerance; otherwise the evaluations were spent.
    pub reached: bool,
}

impl FiniteSum {
    /// Makes the mean of games, each given by its square matrix of `size` rows.
    ///
    /// # Errors
    /// No games, or a matrix of another size.
    pub fn new(size: usize, parts: Vec<Vec<f64>>) -> Result<Self, String> {
        if parts.is_empty() || size == 0 || parts.iter().any(|part| part.len() != size * size) {
            return Err(format!("a finite sum needs at least one matrix, and all of {size} by {size} numbers"));
        }
        let mut mean = vec![0.0; size * size];
        for part in &parts {
            mean.iter_mut().zip(part).for_each(|(sum, a)| *sum += a / parts.len() as f64);
        }
        Ok(FiniteSum { size, parts, mean })
    }

    /// Returns the number of games.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns whether there are no games, which cannot be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds `weight` times the operator of a matrix at `u`: (A y + x, y - A' x).
    fn add(&self, matrix: &[f64], u: &[f64], weight: f64, sum: &mut [f64]) {
        let (x, y) = u.split_at(self.size);
        for (i, row) in matrix.chunks(self.size).enumerate() {
            let mut value = x[i];
            for (j, a) in row.iter().enumerate() {
                value += a * y[j];
                sum[self.size + j] -= weight * a * x[i];
            }
            sum[i] += weight * value;
        }
        for (j, y) in y.iter().enumerate() {
            sum[self.size + j] += weight * y;
        }
    }

    fn full(&self, u: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; 2 * self.size];
        self.add(&self.mean, u, 1.0, &mut sum);
        sum
    }

    /// The cocoercivity of one over this number: 1 + |A|², with the root of the mean square of the games' Frobenius norms for |A|.
    fn smoothness(&self) -> f64 {
        let squares: f64 = self.parts.iter().flatten().map(|a| a * a).sum();
        1.0 + squares / self.parts.len() as f64
    }

    /// A step of projected descent.
    fn descend(&self, u: &[f64], operator: &[f64], step: f64) -> Vec<f64> {
        let mut next: Vec<f64> = u.iter().zip(operator).map(|(u, f)| u - step * f).collect();
        let mut scratch = vec![0.0; self.size];
        let (x, y) = next.split_at_mut(self.size);
        project(x, &mut scratch);
        project(y, &mut scratch);
        next
    }

    fn residual_of(&self, u: &[f64], operator: &[f64], step: f64) -> f64 {
        let next = self.descend(u, operator, step);
        u.iter().zip(&next).map(|(u, next)| (u - next) * (u - next)).sum::<f64>().sqrt() / step
    }

    /// Returns the residual of a point, from all games.
    #[must_use]
    pub fn residual(&self, u: &[f64]) -> f64 {
        self.residual_of(u, &self.full(u), 1.0 / self.smoothness())
    }

    /// Returns the equilibrium, found by projected descent on the mean game, which converges at a geometric rate.
    #[must_use]
    pub fn equilibrium(&self) -> Vec<f64> {
        let step = 1.0 / self.smoothness();
        let mut u = vec![1.0 / self.size as f64; 2 * self.size];
        for _ in 0..100_000 {
            let next = self.descend(&u, &self.full(&u), step);
            let moved = u.iter().zip(&next).map(|(u, next)| (u - next).abs()).fold(0.0, f64::max);
            u = next;
            if moved < 1e-15 {
                break;
            }
        }
        u
    }

    /// Iterates from the first pure strategies until the residual is at most `tolerance`, or about `most` evaluations are spent.
    ///
    /// Step k goes from the iterate u to u₀/(k + 2) + (1 - 1/(k + 2)) P(u - F/L), with the projection P and the estimate F of the
    /// operator. The residual is tested whenever all games are evaluated.
    #[must_use]
    pub fn iterate(&self, estimator: Estimator, tolerance: f64, most: u64, draws: &mut Draws) -> Stopped {
        let n = self.parts.len() as u64;
        let batch = (n as f64).sqrt().ceil() as u64;
        let step = 1.0 / self.smoothness();
        let mut start = vec![0.0; 2 * self.size];
        (start[0], start[self.size]) = (1.0, 1.0);
        let (mut u, mut before) = (start.clone(), start.clone());
        let mut estimate = vec![0.0; 2 * self.size];
        let (mut evaluations, mut steps) = (0u64, 0u32);
        loop {
            let all = steps == 0 || estimator == Estimator::Full || draws.chance(4.0 / (f64::from(steps) + 5.0));
            let spent = evaluations >= most;
            if all || spent {
                estimate = self.full(&u);
                evaluations += n;
                let residual = self.residual_of(&u, &estimate, step);
                if residual <= tolerance || spent {
                    return Stopped { last: u, residual, evaluations, steps, reached: residual <= tolerance };
                }
            } else if estimator == Estimator::Fresh {
                estimate.fill(0.0);
                for _ in 0..2 * batch {
                    let part = &self.parts[draws.below(n) as usize];
                    self.add(part, &u, 0.5 / batch as f64, &mut estimate);
                }
                evaluations += 2 * batch;
            } else {
                for _ in 0..batch {
                    let part = &self.parts[draws.below(n) as usize];
                    self.add(part, &u, 1.0 / batch as f64, &mut estimate);
                    self.add(part, &before, -1.0 / batch as f64, &mut estimate);
                }
                evaluations += 2 * batch;
            }
            let anchor = 1.0 / (f64::from(steps) + 2.0);
            let mut next = self.descend(&u, &estimate, step);
            next.iter_mut().zip(&start).for_each(|(next, start)| *next = anchor * start + (1.0 - anchor) * *next);
            before = std::mem::replace(&mut u, next);
            steps += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Estimator, FiniteSum};
    use polity_base::rng::{Draws, Stream};

    fn random(n: usize, seed: u64) -> FiniteSum {
        let mut draws = Draws::new(seed, Stream::World, 0, 0);
        let mean: Vec<f64> = (0..9).map(|_| draws.range(-0.5, 0.5)).collect();
        let parts = (0..n).map(|_| mean.iter().map(|a| a + 0.2 * draws.normal()).collect()).collect();
        FiniteSum::new(3, parts).unwrap()
    }

    #[test]
    fn both_stop_near_the_equilibrium_of_the_mean_game() {
        for seed in 0..5 {
            let game = random(32, seed);
            let exact = game.equilibrium();
            assert!(game.residual(&exact) < 1e-12);
            for estimator in [Estimator::Full, Estimator::Reduced] {
                let mut draws = Draws::new(seed, Stream::World, 1, 0);
                let stopped = game.iterate(estimator, 1e-3, 100_000_000, &mut draws);
                assert!(stopped.reached && (game.residual(&stopped.last) - stopped.residual).abs() < 1e-15);
                let far = stopped.last.iter().zip(&exact).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                // The operator is 1-strongly monotone: a residual r leaves a distance of at most 2 r.
                assert!(far <= 2.0 * stopped.residual, "{estimator:?} {far} {}", stopped.residual);
            }
        }
    }

    /// Two steps of the plain iteration by hand: one game of one strategy has the operator (a + 1, 1 - a), and both players stay.
    #[test]
    fn a_game_without_choice_is_solved_at_once() {
        let game = FiniteSum::new(1, vec![vec![0.3]]).unwrap();
        let stopped = game.iterate(Estimator::Full, 1e-12, 1000, &mut Draws::new(1, Stream::World, 0, 0));
        assert_eq!((stopped.steps, stopped.evaluations, stopped.reached), (0, 1, true));
        assert!(FiniteSum::new(2, vec![vec![1.0]]).is_err());
    }

    /// The plain iteration evaluates n games a step, and as many steps whatever n: a slope of 1.
    #[test]
    fn plain_evaluations_are_counted() {
        let game = random(10, 3);
        let stopped = game.iterate(Estimator::Full, 1e-2, 1_000_000, &mut Draws::new(1, Stream::World, 0, 0));
        assert_eq!(stopped.evaluations, 10 * (u64::from(stopped.steps) + 1));
    }

    #[test]
    fn samples_without_correction_do_not_reach_a_small_residual() {
        let game = random(64, 4);
        let mut draws = Draws::new(2, Stream::World, 0, 0);
        let reduced = game.iterate(Estimator::Reduced, 1e-3, 10_000_000, &mut draws);
        let fresh = game.iterate(Estimator::Fresh, 1e-3, 4 * reduced.evaluations, &mut draws);
        assert!(reduced.reached && !fresh.reached, "{reduced:?} {fresh:?}");
    }
}
