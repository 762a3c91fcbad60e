//! Regret, exactly, and curves of it.

use super::Learner;
use serde::Serialize;

/// A learner's regret, added up round by round from the probabilities that it played and the losses of all moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    suffered: f64,
    /// By move: its loss so far.
    losses: Vec<f64>,
    /// Row by row: the sum of probability of the first move, times what the second one would have saved.
    swaps: Vec<f64>,
}

impl Regret {
    /// Begins for this many moves.
    #[must_use]
    pub fn new(moves: usize) -> Self {
        Regret { suffered: 0.0, losses: vec![0.0; moves], swaps: vec![0.0; moves * moves] }
    }

    /// Adds a round: the probabilities of the moves, and their losses. For the regret of a drawn move, give it probability 1.
    pub fn add(&mut self, probabilities: &[f64], losses: &[f64]) {
        self.suffered += probabilities.iter().zip(losses).map(|(p, loss)| p * loss).sum::<f64>();
        self.losses.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        let rows = self.swaps.chunks_mut(self.losses.len().max(1));
        for ((row, p), suffered) in rows.zip(probabilities).zip(losses) {
            row.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += p * (suffered - loss));
        }
    }

    /// Returns the loss so far.
    #[must_use]
    pub fn suffered(&self) -> f64 {
        self.suffered
    }

    /// Returns how much less the best single move would have lost; negative where the play beat every single move.
    #[must_use]
    pub fn external(&self) -> f64 {
        self.losses.iter().copied().reduce(f64::min).map_or(0.0, |least| self.suffered - least)
    }

    /// Returns how much less would have been lost by the best replacement of one move by one other, wherever it was played; 0 or more.
    #[must_use]
    pub fn internal(&self) -> f64 {
        self.swaps.iter().copied().fold(0.0, f64::max)
    }

    /// Returns how much less would have been lost by replacing every move by its own best one; 0 or more, and not less than the
    /// external regret.
    #[must_use]
    pub fn swap(&self) -> f64 {
        let rows = self.swaps.chunks(self.losses.len().max(1));
        rows.map(|row| row.iter().copied().fold(0.0, f64::max)).sum()
    }
}

/// A point of a regret curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The number of rounds so far.
    pub round: u32,
    /// The regret so far.
    pub regret: f64,
    /// The theory's bound.
    pub bound: f64,
}

/// Plays a learner against a stream of losses, and returns its external regret beside a bound, at every `every` rounds and at the end.
/// The stream gets the round (from 0) and the learner's probabilities, and fills in the losses of this many moves.
///
/// ```
/// use polity_games::learn::{RegretMatching, curve, matching_bound};
///
/// // An adversary who always hurts the most probable move.
/// let adversary = |_: u32, played: &[f64], losses: &mut [f64]| {
///     let most = if played[0] >= played[1] { 0 } else { 1 };
///     (losses[most], losses[1 - most]) = (1.0, 0.0);
/// };
/// let points = curve(&mut RegretMatching::new(2, false), 2, 500, 100, adversary, |rounds| matching_bound(2, rounds));
/// assert_eq!(points.len(), 5);
/// assert!(points.iter().all(|point| point.regret <= point.bound));
/// ```
pub fn curve(
    learner: &mut dyn Learner,
    moves: usize,
    rounds: u32,
    every: u32,
    mut stream: impl FnMut(u32, &[f64], &mut [f64]),
    bound: impl Fn(u32) -> f64,
) -> Vec<Point> {
    let mut regret = Regret::new(moves);
    let mut losses = vec![0.0; moves];
    let mut points = Vec::new();
    for round in 0..rounds {
        stream(round, learner.probabilities(), &mut losses);
        regret.add(learner.probabilities(), &losses);
        learner.update(&losses);
        let done = round + 1;
        if done.is_multiple_of(every.max(1)) || done == rounds {
            points.push(Point { round: done, regret: regret.external(), bound: bound(done) });
        }
    }
    points
}
