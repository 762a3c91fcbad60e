//! What solvers return.

use crate::normal::Game;
use serde::{Deserialize, Serialize};

/// A point that a solver found, with the payoffs there and how far it is from an equilibrium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equilibrium {
    /// How the players play.
    #[serde(flatten)]
    pub play: Play,
    /// Each player's expected payoff.
    pub payoffs: Vec<f64>,
    /// The most that one player could gain by deviating, in units of payoff: 0 in an exact equilibrium. Each solver says which
    /// deviations it counts.
    pub regret: f64,
}

/// How the players of a game play.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Play {
    /// Independently: for each player, the probability of each of its strategies.
    Strategies(Vec<Vec<f64>>),
    /// By a joint distribution: the combinations that have a positive probability.
    Joint(Vec<Outcome>),
}

/// A combination of strategies and its probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// One index for each player.
    pub profile: Vec<usize>,
    /// Its probability.
    pub probability: f64,
}

impl Equilibrium {
    /// Evaluates a mixed profile of a game; the regret is that of [`Game::regret`].
    ///
    /// # Panics
    /// As [`Game::values`].
    #[must_use]
    pub fn of(game: &Game, strategies: Vec<Vec<f64>>) -> Self {
        let (payoffs, gains) = game.payoffs_and_gains(&strategies);
        Equilibrium { payoffs, regret: gains.into_iter().fold(0.0, f64::max), play: Play::Strategies(strategies) }
    }

    /// Returns each player's mixed strategy; nothing for a joint distribution.
    #[must_use]
    pub fn strategies(&self) -> &[Vec<f64>] {
        match &self.play {
            Play::Strategies(strategies) => strategies,
            Play::Joint(_) => &[],
        }
    }

    /// Returns the probability of a combination of strategies.
    #[must_use]
    pub fn probability(&self, profile: &[usize]) -> f64 {
        match &self.play {
            Play::Strategies(all) => {
                all.iter().zip(profile).map(|(own, i)| own.get(*i).copied().unwrap_or_default()).product()
            }
            Play::Joint(outcomes) => {
                outcomes.iter().filter(|one| one.profile == profile).map(|one| one.probability).sum()
            }
        }
    }

    /// Returns the sum of the players' payoffs.
    #[must_use]
    pub fn welfare(&self) -> f64 {
        self.payoffs.iter().sum()
    }
}

/// Sets tiny and negative probabilities to 0, and scales the others to a sum of 1.
pub(crate) fn normalised(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().map(|w| w.max(0.0)).sum();
    weights.iter_mut().for_each(|w| *w = if *w < 1e-12 * sum { 0.0 } else { *w });
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

/// The matrix of a player's payoffs in a game of two players, brought to the range from 1 to 2: by the first player's strategies,
/// then by the second's. Adding a number and scaling change no equilibrium.
pub(crate) fn scaled(game: &Game, player: usize) -> Vec<Vec<f64>> {
    let (low, high) = game.range(player);
    let range = if high > low { high - low } else { 1.0 };
    let sizes = game.sizes();
    let cell = |i: usize, j: usize| 1.0 + (game.payoff(&[i, j], player) - low) / range;
    (0..sizes[0]).map(|i| (0..sizes[1]).map(|j| cell(i, j)).collect()).collect()
}

/// Swaps rows and columns of a matrix that has at least one row.
pub(crate) fn transposed(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..matrix[0].len()).map(|j| matrix.iter().map(|row| row[j]).collect()).collect()
}

/// Refuses games that do not have two players.
pub(crate) fn two_players(game: &Game, what: &str) -> Result<(), String> {
    match game.players.len() {
        2 => Ok(()),
        n => Err(format!("{what} is for games of two players; this one has {n}")),
    }
}
