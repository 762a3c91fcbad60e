//! Logit quantal-response equilibria: players choose better strategies more often, not always (McKelvey and Palfrey 1995).

use crate::equilibrium::Equilibrium;
use crate::normal::Game;
use crate::path::Responses;
use serde::{Deserialize, Serialize};

/// A logit quantal-response equilibrium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantal {
    /// The precision, per unit of payoff: 0 is equal probabilities, infinity full rationality.
    pub lambda: f64,
    /// Strategies and payoffs; the regret is that of [`Game::regret`], which noise keeps above 0.
    #[serde(flatten)]
    pub equilibrium: Equilibrium,
    /// The greatest difference between a probability and the logit response to the strategies of the others.
    pub residual: f64,
}

/// Finds the logit quantal-response equilibrium at a precision, on the principal branch: the one that starts at equal probabilities.
/// Each strategy's probability is in proportion to exp(lambda · its expected payoff).
///
/// # Errors
/// `lambda` is negative or not finite; the game has more than 5,000 combinations of strategies, or 150 strategies of all players
/// together; or the branch could not be followed to there.
///
/// ```
/// use polity_games::{library, quantal};
///
/// let game = library::named("prisoners-dilemma").unwrap();
/// let noisy = quantal::logit(&game, 0.5).unwrap();
/// let defects = noisy.equilibrium.strategies()[0][1];
/// assert!(defects > 0.5 && defects < 0.8 && noisy.residual < 1e-9);
/// ```
pub fn logit(game: &Game, lambda: f64) -> Result<Quantal, String> {
    if !(lambda >= 0.0 && lambda.is_finite()) {
        return Err(format!("lambda must be 0 or more, and finite; it is {lambda}"));
    }
    let strategies = Responses::new(game, 0.0, 0.0)?.at(lambda)?;
    let off = |player: usize| {
        let response = logit_response(&game.values(&strategies, player), lambda);
        response.iter().zip(&strategies[player]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let residual = (0..strategies.len()).map(off).fold(0.0, f64::max);
    Ok(Quantal { lambda, equilibrium: Equilibrium::of(game, strategies), residual })
}

/// Returns probabilities in proportion to exp(lambda · value).
fn logit_response(values: &[f64], lambda: f64) -> Vec<f64> {
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = values.iter().map(|value| libm::exp(lambda * (value - best))).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}
