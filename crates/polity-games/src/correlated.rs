//! Correlated and coarse-correlated equilibria, by linear programming.

use crate::equilibrium::{Equilibrium, Outcome, Play, normalised};
use crate::normal::Game;
use crate::simplex::{self, MOST_NUMBERS};

/// What is maximised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// The sum of the players' payoffs.
    #[default]
    Welfare,
    /// The payoff of a player, by index.
    Player(usize),
}

/// Finds the correlated equilibrium that is best for `aim` (Aumann 1974): a joint distribution from which a mediator draws a
/// combination and recommends to each player its strategy there; no player gains by departing from a recommendation. The regret is the
/// most that a player gains by replacing each recommendation with its best one.
///
/// # Errors
/// The linear program would have more than 1,000,000 numbers; there is no such player; or rounding kept the solver from ending.
///
/// ```
/// use polity_games::{correlated, library};
///
/// // Aumann's example: never both hawks, and more for both together than any Nash equilibrium gives.
/// let best = correlated::correlated(&library::named("chicken").unwrap(), correlated::Aim::Welfare).unwrap();
/// assert_eq!(best.probability(&[1, 1]), 0.0);
/// ```
pub fn correlated(game: &Game, aim: Aim) -> Result<Equilibrium, String> {
    solve(game, aim, false)
}

/// Finds the coarse-correlated equilibrium that is best for `aim` (Moulin and Vial 1978): no player gains by a fixed strategy that
/// it chooses before the draw. The regret is the most that a player gains by such a strategy.
///
/// # Errors
/// As [`correlated`].
pub fn coarse(game: &Game, aim: Aim) -> Result<Equilibrium, String> {
    solve(game, aim, true)
}

fn solve(game: &Game, aim: Aim, coarse: bool) -> Result<Equilibrium, String> {
    let (players, size, sizes) = (game.players.len(), game.size(), game.sizes());
    if let Aim::Player(player) = aim
        && player >= players
    {
        return Err(format!("there is no player {}; the game has {players}", player + 1));
    }
    let deviations: usize = sizes.iter().map(|own| if coarse { *own } else { own * (own - 1) }).sum();
    let numbers = simplex::numbers(size, deviations);
    if numbers > MOST_NUMBERS {
        return Err(format!(
            "the game is too large for a correlated equilibrium: {size} combinations and {deviations} deviations need a linear \
             program of {numbers} numbers, and at most {MOST_NUMBERS} are allowed"
        ));
    }
    let objective = scaled_objective(game, aim);
    let solution = simplex::mixture(&objective, &gains(game, coarse)).map_err(|trouble| trouble.to_string())?;
    let weights = normalised(solution);
    let expected = |player: usize| weights.iter().enumerate().map(|(place, p)| p * game.payoff_at(place, player)).sum();
    let payoffs = (0..players).map(expected).collect();
    let outcomes = game.profiles().zip(&weights).filter(|(_, p)| **p > 0.0);
    let outcomes = outcomes.map(|(profile, p)| Outcome { profile, probability: *p }).collect();
    Ok(Equilibrium { play: Play::Joint(outcomes), payoffs, regret: regret(game, &weights, coarse) })
}

/// The objective, brought to numbers between 0 and 1.
fn scaled_objective(game: &Game, aim: Aim) -> Vec<f64> {
    let players = game.players.len();
    let worth = |place: usize| match aim {
        Aim::Welfare => (0..players).map(|player| game.payoff_at(place, player)).sum(),
        Aim::Player(player) => game.payoff_at(place, player),
    };
    let all: Vec<f64> = (0..game.size()).map(worth).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let range = all.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
    all.into_iter().map(|worth| if range > 0.0 { (worth - low) / range } else { 0.0 }).collect()
}

/// What each deviation of a player gains in each combination, as a part of the range of the player's payoffs.
fn gains(game: &Game, coarse: bool) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    let mut stride = 1;
    for (player, own) in game.sizes().into_iter().enumerate() {
        let (low, high) = game.range(player);
        let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
        // `recommended` is the strategy that the deviation replaces; `None` for all.
        let of = |recommended: Option<usize>, instead: usize| -> Vec<f64> {
            let gain = |place: usize| {
                let now = place / stride % own;
                if recommended.is_some_and(|recommended| recommended != now) {
                    return 0.0;
                }
                scale
                    * (game.payoff_at(place - now * stride + instead * stride, player) - game.payoff_at(place, player))
            };
            (0..game.size()).map(gain).collect()
        };
        for instead in 0..own {
            match coarse {
                true => all.push(of(None, instead)),
                false => all.extend(
                    (0..own)
                        .filter(|recommended| *recommended != instead)
                        .map(|recommended| of(Some(recommended), instead)),
                ),
            }
        }
        stride *= own;
    }
    all
}

/// Returns the most that a player gains when combinations are drawn with these probabilities (in the order of [`Game::profiles`]): by the
/// best fixed strategy (`coarse`), or by the best replacement of each of its strategies.
pub(crate) fn regret(game: &Game, weights: &[f64], coarse: bool) -> f64 {
    let mut most = 0.0f64;
    for (player, own) in game.sizes().into_iter().enumerate() {
        // Row by row: what the second strategy gains where the first is recommended.
        let mut gains = vec![0.0; own * own];
        for (profile, p) in game.profiles().zip(weights) {
            let (recommended, kept) = (profile[player], game.payoff(&profile, player));
            let mut other = profile;
            for instead in 0..own {
                other[player] = instead;
                gains[recommended * own + instead] += p * (game.payoff(&other, player) - kept);
            }
        }
        let regret = if coarse {
            let fixed = |to: usize| gains.iter().skip(to).step_by(own).sum::<f64>();
            (0..own).map(fixed).fold(0.0, f64::max)
        } else {
            gains.chunks(own).map(|row| row.iter().copied().fold(0.0, f64::max)).sum()
        };
        most = most.max(regret);
    }
    most
}
