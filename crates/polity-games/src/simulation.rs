//! Games in which the first player may pay to simulate the second: it learns what the second player would do, and replies to that.
//!
//! After Kovařík, Oesterheld and Conitzer, "Game theory with simulation of other players" (IJCAI 2023), where the pure strategy becomes
//! known, and Kovařík, Sauerberg, Hammond and Conitzer, "Game theory with simulation in the presence of unpredictable randomisation"
//! (2024), where the mixed strategy becomes known, but not what it will draw. The second player may choose its mixed strategy by lot; a
//! simulation shows which it has chosen.

use crate::equilibrium::{Equilibrium, two_players};
use crate::linear;
use crate::nash::{self, Solved};
use crate::normal::Game;
use serde::{Deserialize, Serialize};

/// The most sets of constraints that are tried for the second player's commitments.
const MOST_SETS: u64 = 50_000;
/// What counts as zero, as a part of a player's range of payoffs.
const TINY: f64 = 1e-9;

/// What a simulation shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// The second player's mixed strategy.
    #[default]
    Mixed,
    /// The pure strategy that it will play.
    Pure,
    /// A pure strategy that is drawn uniformly, whatever it plays: a placebo.
    Random,
}

/// Makes the game in which the first player has one more strategy, the last: pay `cost`, simulate, and play a best reply. Of several best
/// replies it plays the one that the second player likes best.
///
/// With [`Sight::Mixed`] the second player's strategies are the corners of the regions in which the first player's best reply stays the
/// same. Its payoff from any other mixed strategy is a mean of theirs, whether it is simulated or not, so no equilibrium payoff is lost.
///
/// # Errors
/// The game does not have two players; the cost is negative or not finite; or there are too many corners.
pub fn simulated(game: &Game, cost: f64, sight: Sight) -> Result<Game, String> {
    two_players(game, "a simulation")?;
    if !(cost >= 0.0 && cost.is_finite()) {
        return Err(format!("a simulation costs 0 or more; {cost} is not such a number"));
    }
    let sizes = game.sizes();
    let mixtures = match sight {
        Sight::Mixed => corners(game)?,
        Sight::Pure | Sight::Random => (0..sizes[1]).map(|b| pure(b, sizes[1])).collect(),
    };
    let replies: Vec<usize> = mixtures.iter().map(|mixture| reply(game, mixture)).collect();
    let mut strategies = game.strategies.clone();
    strategies[0].push("simulate".into());
    if sight == Sight::Mixed {
        strategies[1] = (1..=mixtures.len()).map(|number| format!("mixture {number}")).collect();
    }
    Game::from_fn(format!("{} with simulation", game.title), game.players.clone(), strategies, |profile| {
        let mixture = &mixtures[profile[1]];
        let of = |player: usize| match (profile[0] < sizes[0], sight) {
            (true, _) => mean(game, profile[0], mixture, player),
            (false, Sight::Random) => {
                replies.iter().map(|reply| mean(game, *reply, mixture, player)).sum::<f64>() / replies.len() as f64
            }
            (false, _) => mean(game, replies[profile[1]], mixture, player),
        };
        let paid = if profile[0] < sizes[0] { 0.0 } else { cost };
        vec![of(0) - paid, of(1)]
    })
}

/// A player's payoff when the first plays a pure strategy and the second a mixture.
fn mean(game: &Game, first: usize, mixture: &[f64], player: usize) -> f64 {
    mixture.iter().enumerate().map(|(b, p)| p * game.payoff(&[first, b], player)).sum()
}

fn pure(strategy: usize, size: usize) -> Vec<f64> {
    (0..size).map(|b| f64::from(u8::from(b == strategy))).collect()
}

/// The first player's best reply to a mixture; of several, the one that is best for the second.
fn reply(game: &Game, mixture: &[f64]) -> usize {
    let (low, high) = game.range(0);
    let near = TINY * (high - low).max(f64::MIN_POSITIVE);
    let values: Vec<f64> = (0..game.sizes()[0]).map(|a| mean(game, a, mixture, 0)).collect();
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let among = (0..values.len()).filter(|a| values[*a] >= best - near);
    let liked = |best: Option<(usize, f64)>, a: usize| {
        let worth = mean(game, a, mixture, 1);
        if best.is_some_and(|(_, most)| worth <= most) { best } else { Some((a, worth)) }
    };
    among.fold(None, liked).map_or(0, |(a, _)| a)
}

/// The corners of the regions of the second player's mixtures in which a best reply of the first stays the same.
fn corners(game: &Game) -> Result<Vec<Vec<f64>>, String> {
    let sizes = game.sizes();
    let (m, n) = (sizes[0], sizes[1]);
    let total = n + m - 1;
    let sets = (1..n as u64).fold(1u64, |sets, k| sets.saturating_mul(total as u64 + 1 - k) / k);
    if sets > MOST_SETS {
        return Err(format!(
            "{m} by {n} strategies are too many for mixed simulation: the corners of each region are sought in {sets} sets of constraints, \
             and at most {MOST_SETS} are tried"
        ));
    }
    let (low, high) = game.range(0);
    let range = if high > low { high - low } else { 1.0 };
    let mut found: Vec<Vec<f64>> = Vec::new();
    for a in 0..m {
        // All of these must be at least 0; in a corner n - 1 of them are 0.
        let others = (0..m).filter(|other| *other != a);
        let better = |other| (0..n).map(|b| (game.payoff(&[a, b], 0) - game.payoff(&[other, b], 0)) / range).collect();
        let constraints: Vec<Vec<f64>> = (0..n).map(|b| pure(b, n)).chain(others.map(better)).collect();
        let mut active: Vec<usize> = (0..n - 1).collect();
        loop {
            let mut matrix: Vec<Vec<f64>> = active.iter().map(|i| constraints[*i].clone()).collect();
            matrix.push(vec![1.0; n]);
            let mut right = vec![0.0; n];
            right[n - 1] = 1.0;
            if let Some(point) = linear::solve(matrix, right, 1e-11) {
                let slack = |row: &Vec<f64>| row.iter().zip(&point).map(|(c, p)| c * p).sum::<f64>();
                let same = |known: &Vec<f64>| known.iter().zip(&point).all(|(p, q)| (p - q).abs() < 1e-9);
                if constraints.iter().all(|row| slack(row) >= -TINY) && !found.iter().any(same) {
                    found.push(point.into_iter().map(|p| if p < TINY { 0.0 } else { p }).collect());
                }
            }
            if !nash::next_subset(&mut active, total) {
                break;
            }
        }
    }
    Ok(found)
}

/// What simulation changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The equilibria of the game itself.
    pub without: Solved,
    /// Those of the game with simulation ([`simulated`]).
    pub with: Solved,
    /// What an equilibrium with simulation gives the player who gains less, above the best that any equilibrium without gives it; the most
    /// over all equilibria with simulation. Simulation helps both players if this is positive.
    pub gain: f64,
    /// The probability with which the first player simulates in that equilibrium.
    pub simulates: f64,
}

/// Compares the equilibria of a game without and with simulation.
///
/// # Errors
/// As [`simulated`] and [`nash::all`].
///
/// ```
/// use polity_games::normal::read;
/// use polity_games::simulation::{Sight, compare};
///
/// // Trust pays if it is honoured; betrayal pays more.
/// let text = r#"NFG 1 R "trust" { "A" "B" } { { "trust" "leave" } { "honour" "betray" } } 1 1 0 0 -2 2 0 0"#;
/// let game = read(text)?;
/// assert!(compare(&game, 0.1, Sight::Pure)?.gain > 0.5);
/// assert!(compare(&game, 0.1, Sight::Mixed)?.gain < 1e-9);
/// # Ok::<(), String>(())
/// ```
pub fn compare(game: &Game, cost: f64, sight: Sight) -> Result<Comparison, String> {
    let without = nash::all(game)?;
    let with = nash::all(&simulated(game, cost, sight)?)?;
    let missed = || "rounding hid the equilibria".to_owned();
    if without.equilibria.is_empty() {
        return Err(missed());
    }
    let best = |player: usize| {
        let payoffs = without.equilibria.iter().map(|one| one.payoffs[player]);
        payoffs.fold(f64::NEG_INFINITY, f64::max)
    };
    let bests = [best(0), best(1)];
    let gain = |one: &Equilibrium| (one.payoffs[0] - bests[0]).min(one.payoffs[1] - bests[1]);
    let top = with.equilibria.iter().max_by(|one, other| gain(one).total_cmp(&gain(other))).ok_or_else(missed)?;
    let simulates = top.strategies().first().and_then(|first| first.last()).copied().unwrap_or_default();
    let gain = gain(top);
    Ok(Comparison { without, with, gain, simulates })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Sight, compare, corners, mean, reply, simulated};
    use crate::normal::{Game, read};
    use polity_base::rng::{Draws, Stream};

    fn trust(betrayed: f64, tempted: f64) -> Game {
        let text = format!(
            "NFG 1 R \"trust\" {{ \"A\" \"B\" }} {{ {{ \"trust\" \"leave\" }} {{ \"honour\" \"betray\" }} }} 1 1 0 0 {betrayed} {tempted} 0 0"
        );
        read(&text).unwrap()
    }

    fn random(draws: &mut Draws, m: usize, n: usize) -> Game {
        let names = |count: usize| (0..count).map(|i| format!("s{i}")).collect::<Vec<_>>();
        let payoffs = (0..2 * m * n).map(|_| draws.range(-1.0, 1.0)).collect();
        Game::new("random", names(2), vec![names(m), names(n)], payoffs).unwrap()
    }

    /// In the trust game with pure simulation the second player honours with probability 1 - cost / loss, so that trust pays as much as
    /// simulating, and the first simulates just often enough: by hand.
    #[test]
    fn pure_simulation_of_the_trust_game_is_the_closed_form() {
        for (loss, temptation, cost) in [(2.0, 2.0, 0.1), (5.0, 3.0, 0.2), (1.0, 1.5, 0.05)] {
            let found = compare(&trust(-loss, temptation), cost, Sight::Pure).unwrap();
            // Simulates with probability q: honouring gives 1, betraying q * 0 + (1 - q) * temptation.
            assert!((found.simulates - (1.0 - 1.0 / temptation)).abs() < 1e-9, "{found:?}");
            let first = 1.0 - cost - cost / loss;
            assert!((found.gain - first.min(1.0)).abs() < 1e-9, "{} {first}", found.gain);
        }
    }

    #[test]
    fn mixed_simulation_does_not_help_in_the_trust_game() {
        for cost in [0.001, 0.1, 1.0] {
            assert!(compare(&trust(-2.0, 2.0), cost, Sight::Mixed).unwrap().gain < 1e-9);
            assert!(compare(&trust(-2.0, 2.0), cost, Sight::Random).unwrap().gain < 1e-9);
        }
    }

    #[test]
    fn the_corners_of_the_trust_game_are_the_pure_strategies_and_the_point_of_indifference() {
        let mut found: Vec<f64> = corners(&trust(-2.0, 2.0)).unwrap().into_iter().map(|point| point[0]).collect();
        found.sort_by(f64::total_cmp);
        assert!(found.iter().zip([0.0, 2.0 / 3.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-12) && found.len() == 3);
    }

    /// On a grid of all mixed strategies none is better for the second player than what it has in an equilibrium of the reduced game.
    #[test]
    fn no_mixed_strategy_off_the_corners_is_better() {
        let mut draws = Draws::new(5, Stream::World, 0, 0);
        for _ in 0..20 {
            let game = random(&mut draws, 3, 3);
            let found = compare(&game, 0.05, Sight::Mixed).unwrap();
            assert!(!found.with.equilibria.is_empty());
            for one in &found.with.equilibria {
                let first = &one.strategies()[0];
                for i in 0..=40 {
                    for j in 0..=40 - i {
                        let mixture = [f64::from(i) / 40.0, f64::from(j) / 40.0, f64::from(40 - i - j) / 40.0];
                        let unseen: f64 = (0..3).map(|a| first[a] * mean(&game, a, &mixture, 1)).sum();
                        let seen = mean(&game, reply(&game, &mixture), &mixture, 1);
                        assert!(unseen + first[3] * seen <= one.payoffs[1] + 1e-7);
                    }
                }
            }
        }
    }

    #[test]
    fn a_free_look_is_worth_what_it_shows() {
        let mut draws = Draws::new(6, Stream::World, 0, 0);
        let game = random(&mut draws, 2, 3);
        let seen = simulated(&game, 0.0, Sight::Pure).unwrap();
        for b in 0..3 {
            let best = (0..2).map(|a| game.payoff(&[a, b], 0)).fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(seen.payoff(&[2, b], 0), best);
        }
        assert!(simulated(&game, -1.0, Sight::Pure).unwrap_err().contains("0 or more"));
    }
}
