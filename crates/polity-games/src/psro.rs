//! Policy-space response oracles: two populations of policies grow by best replies to a solution of the game between them.
//!
//! Lanctot, Zambaldi, Gruslys, Lazaridou, Tuyls, Pérolat, Silver and Graepel (NIPS 2017); with the risk-averse solutions of
//! [`crate::risk`] as in Slumbers, Mguni, McAleer, Blumberg, Yang and Wang (ICML 2023). The oracle here is exact: it tries every policy of a
//! list. Without aversion and tremble the solution is a Nash equilibrium of the whole game.

use crate::equilibrium::Equilibrium;
use crate::normal::Game;
use crate::risk::{self, Attitude};
use serde::{Deserialize, Serialize};

/// What two populations ended with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Populations {
    /// The policies of both players, in the order in which they were added.
    pub policies: [Vec<usize>; 2],
    /// How each player mixes them.
    pub mixtures: [Vec<f64>; 2],
    /// The number of solved games between populations.
    pub solved: usize,
    /// The most that the objective of a player could still rise by any policy of the list (an upper bound), against the other's mixture
    /// with its tremble.
    pub gap: f64,
}

/// Grows two populations from their first policies until no policy of the list improves a player's objective (mean less weighted variance
/// of its payoff over the other's play). `payoffs` gives both players' payoffs of two policies; both lists have `size` policies.
///
/// # Errors
/// An empty list or a first policy that is not in it; or a game between populations that [`risk::equilibrium`] could not solve.
///
/// ```
/// use polity_games::psro;
/// use polity_games::risk::Attitude;
///
/// // Rock, paper, scissors, from rock alone.
/// let payoffs = |a: usize, b: usize| { let won = [0.0, 1.0, -1.0][(a + 3 - b) % 3]; [won, -won] };
/// let found = psro::grow(3, [0, 0], Attitude { aversion: 0.0, tremble: 0.0 }, payoffs)?;
/// assert!(found.mixtures[0].iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-6) && found.mixtures[0].len() == 3);
/// # Ok::<(), String>(())
/// ```
pub fn grow(
    size: usize,
    first: [usize; 2],
    attitude: Attitude,
    payoffs: impl Fn(usize, usize) -> [f64; 2],
) -> Result<Populations, String> {
    if first.iter().any(|policy| *policy >= size) {
        return Err(format!("the first policies {first:?} are not in a list of {size}"));
    }
    let mut policies = first.map(|policy| vec![policy]);
    for solved in 1..=2 * size {
        let mixtures = solution(&policies, attitude, &payoffs)?;
        let (mut gap, mut grown) = (0.0f64, false);
        for player in 0..2 {
            let gains = gains(player, size, &policies, &mixtures, attitude, &payoffs);
            let best = (0..size).fold(0, |best, policy| if gains[policy] > gains[best] { policy } else { best });
            gap = gap.max(gains[best]);
            if gains[best] > 1e-7 && !policies[player].contains(&best) {
                policies[player].push(best);
                grown = true;
            }
        }
        if !grown {
            return Ok(Populations { policies, mixtures, solved, gap });
        }
    }
    Err(format!("populations from a list of {size} policies still grew after {} games", 2 * size))
}

/// The solution of the game between two populations.
fn solution(
    policies: &[Vec<usize>; 2],
    attitude: Attitude,
    payoffs: &impl Fn(usize, usize) -> [f64; 2],
) -> Result<[Vec<f64>; 2], String> {
    let names = policies.clone().map(|own| own.iter().map(|policy| format!("policy {policy}")).collect());
    let players = vec!["the first".to_owned(), "the second".to_owned()];
    let game = Game::from_fn("populations", players, names.into(), |profile| {
        payoffs(policies[0][profile[0]], policies[1][profile[1]]).to_vec()
    })?;
    let solved: Equilibrium = risk::equilibrium(&game, attitude)?.equilibrium;
    match solved.strategies() {
        [one, other] => Ok([one.clone(), other.clone()]),
        _ => Err("a solution without strategies".into()),
    }
}

/// How fast a player's objective rises with the weight of each policy of the list; at most 0 for all where it is greatest.
fn gains(
    player: usize,
    size: usize,
    policies: &[Vec<usize>; 2],
    mixtures: &[Vec<f64>; 2],
    attitude: Attitude,
    payoffs: &impl Fn(usize, usize) -> [f64; 2],
) -> Vec<f64> {
    let others = &policies[1 - player];
    let uniform = attitude.tremble / others.len() as f64;
    let weights: Vec<f64> = mixtures[1 - player].iter().map(|p| (1.0 - attitude.tremble) * p + uniform).collect();
    let payoff = |policy: usize, other: usize| match player {
        0 => payoffs(policy, other)[0],
        _ => payoffs(other, policy)[1],
    };
    let row = |policy: usize| others.iter().map(|other| payoff(policy, *other)).collect::<Vec<f64>>();
    let mean = |row: &[f64]| row.iter().zip(&weights).map(|(payoff, w)| payoff * w).sum::<f64>();
    let mut mix = vec![0.0; others.len()];
    for (policy, p) in policies[player].iter().zip(&mixtures[player]) {
        mix.iter_mut().zip(row(*policy)).for_each(|(sum, payoff)| *sum += p * payoff);
    }
    let mean_mix = mean(&mix);
    let slope = |row: &[f64]| {
        let both: Vec<f64> = row.iter().zip(&mix).map(|(payoff, mix)| payoff * mix).collect();
        mean(row) - 2.0 * attitude.aversion * (mean(&both) - mean(row) * mean_mix)
    };
    let now = slope(&mix);
    (0..size).map(|policy| slope(&row(policy)) - now).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::grow;
    use crate::normal::Game;
    use crate::risk::Attitude;
    use polity_base::rng::{Draws, Stream};

    const NEUTRAL: Attitude = Attitude { aversion: 0.0, tremble: 0.0 };

    /// In random games the populations end in a Nash equilibrium of the whole game.
    #[test]
    fn neutral_populations_end_in_an_equilibrium_of_the_whole_game() {
        for seed in 0..30 {
            let mut draws = Draws::new(seed, Stream::World, 0, 0);
            let size = 6;
            let table: Vec<[f64; 2]> =
                (0..size * size).map(|_| [draws.range(-1.0, 1.0), draws.range(-1.0, 1.0)]).collect();
            let found = grow(size, [0, 0], NEUTRAL, |a, b| table[a * size + b]).unwrap();
            let names = |_: usize| (0..size).map(|i| format!("s{i}")).collect::<Vec<_>>();
            let game = Game::from_fn("whole", names(0)[..2].to_vec(), vec![names(0), names(1)], |profile| {
                table[profile[0] * size + profile[1]].to_vec()
            })
            .unwrap();
            let full = [0, 1].map(|player: usize| {
                let mut mixture = vec![0.0; size];
                found.policies[player].iter().zip(&found.mixtures[player]).for_each(|(i, p)| mixture[*i] += p);
                mixture
            });
            assert!(game.regret(&full) < 1e-5, "{seed}: {} {found:?}", game.regret(&full));
            assert!(found.gap < 1e-5);
        }
    }

    #[test]
    fn averse_populations_leave_no_policy_that_would_help() {
        let mut draws = Draws::new(9, Stream::World, 0, 0);
        let size = 5;
        let table: Vec<f64> = (0..size * size).map(|_| draws.range(-1.0, 1.0)).collect();
        let found = grow(size, [0, 0], Attitude { aversion: 1.0, tremble: 0.1 }, |a, b| {
            [table[a * size + b], table[b * size + a]]
        });
        assert!(found.unwrap().gap < 1e-5);
        assert!(grow(3, [3, 0], NEUTRAL, |_, _| [0.0; 2]).unwrap_err().contains("not in a list of 3"));
    }
}
