//! Round robins: every strategy plays every other one.

use super::matches::{Conditions, Length, Outcome, play};
use super::strategy::{Move, Strategy};
use rayon::prelude::*;
use serde::Serialize;

/// A round robin of strategies.
///
/// ```
/// use polity_games::iterated::{Conditions, Tournament, strategy};
///
/// let conditions = Conditions::default();
/// let strategies = ["defector", "grudger", "win-stay-lose-shift"].map(|name| strategy(name, &[], &conditions.payoffs));
/// let strategies = strategies.into_iter().collect::<Result<_, _>>()?;
/// let tournament = Tournament { strategies, conditions, repetitions: 1, self_play: true, seed: 1 };
/// let results = tournament.run(true);
/// assert_eq!(results.pairs.len(), 6);
/// assert_eq!(results.ranking[0].name, "grudger");
/// # Ok::<(), polity_games::iterated::StrategyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tournament {
    /// The strategies, at least one. Two of the same label are two entries that play alike.
    pub strategies: Vec<Strategy>,
    /// The conditions of every match.
    pub conditions: Conditions,
    /// Matches of each pair, at least 1.
    pub repetitions: u32,
    /// Whether each strategy also plays a copy of itself. Its payoff there is the mean of both sides, and counts like any other.
    pub self_play: bool,
    /// The seed of all draws.
    pub seed: u64,
}

/// The matches of a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The places of the two strategies in the tournament.
    pub players: [usize; 2],
    /// Their labels.
    pub names: [String; 2],
    /// The sum of payoffs of each over all repetitions.
    pub scores: [f64; 2],
    /// Turns in all repetitions.
    pub turns: u64,
    /// How often each outcome occurred, from the first one's point of view.
    pub outcome: Outcome,
    /// Repetitions that each has won by getting more than the other.
    pub wins: [u32; 2],
    /// The moves of each in the first repetition, as letters `C` and `D`; empty if they were not asked for.
    #[serde(skip_serializing_if = "no_moves")]
    pub moves: [String; 2],
}

fn no_moves(moves: &[String; 2]) -> bool {
    moves.iter().all(String::is_empty)
}

/// A strategy's place in the ranking.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rank {
    /// Its place in the tournament's list.
    pub player: usize,
    /// Its label.
    pub name: String,
    /// The mean over its opponents of its mean payoff per turn.
    pub score: f64,
    /// The share of its moves that were cooperations.
    pub cooperation: f64,
    /// Matches against other strategies that it has won.
    pub wins: u32,
}

/// The results of a tournament.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// All pairs; the first strategy with each from itself on, then the second, and so on.
    pub pairs: Vec<Pair>,
    /// The mean payoff per turn of each strategy (row) against each (column); the diagonal is 0 without self-play.
    #[serde(skip)]
    pub payoffs: Vec<Vec<f64>>,
    /// The strategies, the best first; equal scores in the order of the tournament.
    pub ranking: Vec<Rank>,
}

impl Tournament {
    /// Plays all matches, on as many threads as there are: neither their number nor the order of strategies affects any match. `moves`
    /// says whether the moves of first repetitions are kept.
    ///
    /// The conditions must have passed [`Conditions::check`].
    #[must_use]
    pub fn run(&self, moves: bool) -> Results {
        let n = self.strategies.len();
        let from = |i: usize| if self.self_play { i } else { i + 1 };
        let pairs: Vec<[usize; 2]> = (0..n).flat_map(|i| (from(i)..n).map(move |j| [i, j])).collect();
        let pairs: Vec<Pair> = pairs.into_par_iter().map(|players| self.pair(players, moves)).collect();
        let mut payoffs = vec![vec![0.0; n]; n];
        for Pair { players: [i, j], scores: [first, second], turns, .. } in &pairs {
            let turns = *turns as f64;
            (payoffs[*i][*j], payoffs[*j][*i]) = (first / turns, second / turns);
            if i == j {
                payoffs[*i][*i] = (first + second) / (2.0 * turns);
            }
        }
        let ranking = self.ranking(&pairs, &payoffs);
        Results { pairs, payoffs, ranking }
    }

    fn pair(&self, players: [usize; 2], wanted: bool) -> Pair {
        let strategies = players.map(|player| &self.strategies[player]);
        let mut moves = [Vec::new(), Vec::new()];
        let (mut outcome, mut wins, mut last) = (Outcome::default(), [0; 2], None);
        let Conditions { length, noise, .. } = self.conditions;
        let by_chance = noise > 0.0
            || !matches!(length, Length::Turns(_))
            || strategies.iter().any(|strategy| strategy.is_random());
        for repetition in 0..self.repetitions {
            let wanted = (wanted && repetition == 0).then_some(&mut moves);
            let played = match last {
                // Without chance every repetition is the same.
                Some(last) if !by_chance => last,
                _ => play(strategies, &self.conditions, self.seed, repetition, wanted),
            };
            last = Some(played);
            let [first, second] = played.scores(&self.conditions.payoffs);
            wins[0] += u32::from(first > second);
            wins[1] += u32::from(second > first);
            outcome.add(&played);
        }
        Pair {
            players,
            names: strategies.map(|strategy| strategy.label().to_owned()),
            scores: outcome.scores(&self.conditions.payoffs),
            turns: outcome.turns(),
            outcome,
            wins,
            moves: moves.map(|own| own.into_iter().map(Move::letter).collect()),
        }
    }

    fn ranking(&self, pairs: &[Pair], payoffs: &[Vec<f64>]) -> Vec<Rank> {
        let n = self.strategies.len();
        let opponents = n.saturating_sub(usize::from(!self.self_play)).max(1) as f64;
        let mut ranking: Vec<Rank> = self
            .strategies
            .iter()
            .enumerate()
            .map(|(player, strategy)| Rank {
                player,
                name: strategy.label().to_owned(),
                // Summed in ascending order, so that the order of strategies does not affect rounding.
                score: sorted_sum(&payoffs[player]) / opponents,
                cooperation: 0.0,
                wins: 0,
            })
            .collect();
        let mut made = vec![[0u64; 2]; n];
        for pair in pairs {
            for (side, player) in pair.players.into_iter().enumerate() {
                made[player][0] += pair.outcome.cooperations()[side];
                made[player][1] += pair.turns;
                if pair.players[0] != pair.players[1] {
                    ranking[player].wins += pair.wins[side];
                }
            }
        }
        for (rank, [cooperations, turns]) in ranking.iter_mut().zip(made) {
            rank.cooperation = cooperations as f64 / turns.max(1) as f64;
        }
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranking
    }
}

/// Returns the sum of numbers, the same for every order of them.
fn sorted_sum(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers.into_iter().sum()
}
