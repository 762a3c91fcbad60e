//! Risk-averse equilibria: players weigh their mean payoff against the variance that the others' play causes.
//!
//! After the Risk-Averse Equilibrium of Slumbers, Mguni, McAleer, Blumberg, Yang and Wang (ICML 2023). A player's objective is
//! E(x) - aversion · x' C x, with the covariances C of its strategies' payoffs over the others' play, which trembles: with a small
//! probability the others choose uniformly. The objective is concave in the player's own strategy, so an equilibrium exists.

use crate::equilibrium::Equilibrium;
use crate::normal::Game;
use crate::path::{self, Responses};
use serde::{Deserialize, Serialize};

/// How much the players avoid risk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attitude {
    /// The weight of the variance, per unit of payoff; 0 is risk-neutral.
    pub aversion: f64,
    /// The probability, from 0 to 1, with which the others are expected to choose uniformly. At 0, pure strategies carry no risk.
    pub tremble: f64,
}

impl Attitude {
    fn check(self) -> Result<(), String> {
        let Attitude { aversion, tremble } = self;
        if !(aversion >= 0.0 && aversion.is_finite()) {
            return Err(format!("the aversion must be 0 or more, and finite; it is {aversion}"));
        }
        if !(0.0..=1.0).contains(&tremble) {
            return Err(format!("the tremble must be from 0 to 1; it is {tremble}"));
        }
        Ok(())
    }
}

/// A risk-averse equilibrium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RiskAverse {
    /// Strategies and expected payoffs, without tremble. The regret is an upper bound of what a player could gain in its own
    /// objective (mean less weighted variance, with tremble).
    #[serde(flatten)]
    pub equilibrium: Equilibrium,
    /// The variance of each player's payoff that the others' play causes, with tremble.
    pub variances: Vec<f64>,
    /// The regret of risk-neutral players, [`Game::regret`].
    pub neutral_regret: f64,
}

/// Finds a risk-averse equilibrium: the limit of the logit responses to the objectives, followed from equal probabilities. Without
/// aversion and tremble it is the Nash equilibrium of [`crate::nash::traced`].
///
/// # Errors
/// A negative aversion, a tremble outside of 0 to 1; a game that is too large (see [`crate::quantal::logit`]); or the branch could
/// not be followed.
///
/// ```
/// use polity_games::{library, risk};
///
/// // Hares are safe, stags need trust.
/// let game = library::named("stag-hunt").unwrap();
/// let averse = risk::equilibrium(&game, risk::Attitude { aversion: 1.0, tremble: 0.1 }).unwrap();
/// assert!(averse.equilibrium.strategies()[0][1] > 0.99);
/// ```
pub fn equilibrium(game: &Game, attitude: Attitude) -> Result<RiskAverse, String> {
    attitude.check()?;
    let Attitude { aversion, tremble } = attitude;
    let responses = Responses::new(game, aversion, tremble)?;
    let strategies = path::limit(&responses)?;
    let variances = (0..strategies.len()).map(|player| variance(game, &strategies, tremble, player)).collect();
    let regret = responses.gap(&strategies) * responses.scale;
    let neutral = Equilibrium::of(game, strategies);
    Ok(RiskAverse { neutral_regret: neutral.regret, equilibrium: Equilibrium { regret, ..neutral }, variances })
}

/// Finds all risk-averse equilibria in pure strategies, as combinations: one index for each player. None may exist.
///
/// # Errors
/// As [`equilibrium`].
///
/// ```
/// use polity_games::{library, risk};
///
/// // Both equilibria of the stag hunt are pure. To those who avoid risk only the safe one is left.
/// let game = library::named("stag-hunt").unwrap();
/// assert_eq!(risk::pure(&game, risk::Attitude { aversion: 0.0, tremble: 0.1 }).unwrap().len(), 2);
/// assert_eq!(risk::pure(&game, risk::Attitude { aversion: 2.0, tremble: 0.1 }).unwrap(), [[1, 1]]);
/// ```
pub fn pure(game: &Game, attitude: Attitude) -> Result<Vec<Vec<usize>>, String> {
    attitude.check()?;
    let responses = Responses::new(game, attitude.aversion, attitude.tremble)?;
    let sizes = game.sizes();
    let certain = |(own, size): (&usize, &usize)| (0..*size).map(|i| f64::from(u8::from(i == *own))).collect();
    let stable = |profile: &Vec<usize>| {
        let strategies: Vec<Vec<f64>> = profile.iter().zip(&sizes).map(certain).collect();
        responses.gap(&strategies) < 1e-9
    };
    Ok(game.profiles().filter(stable).collect())
}

/// Returns the variance of a player's payoff that the others' play causes: of the mean over the player's own mixture. The others
/// play `mixed`, and with probability `tremble`, each for itself, uniformly.
fn variance(game: &Game, mixed: &[Vec<f64>], tremble: f64, player: usize) -> f64 {
    let sizes = game.sizes();
    let stride: usize = sizes[..player].iter().product();
    let (mut mean, mut square) = (0.0, 0.0);
    game.each(|profile, place| {
        if profile[player] != 0 {
            return;
        }
        let mut weight = 1.0;
        for (j, strategy) in profile.iter().enumerate().filter(|(j, _)| *j != player) {
            weight *= (1.0 - tremble) * mixed[j][*strategy] + tremble / sizes[j] as f64;
        }
        let own = mixed[player].iter().enumerate();
        let payoff: f64 = own.map(|(a, p)| p * game.payoff_at(place + a * stride, player)).sum();
        mean += weight * payoff;
        square += weight * payoff * payoff;
    });
    (square - mean * mean).max(0.0)
}
