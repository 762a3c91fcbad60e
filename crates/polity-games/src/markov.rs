//! General-sum Markov games of two players in a few steps, and a learner that solves them from what it sees.
//!
//! The learner is the one of Xiong, Liu, Wang and Yang, "Sample-efficient multi-agent RL: an optimization perspective" (ICLR 2024), for tables:
//! in every episode it computes the regularised payoff of each pair of pure policies, the greatest value of any table of action values
//! less a weight of the squared errors of that table on the data so far; an oracle solves the game of these payoffs; and the pair that is
//! drawn from the solution is played.

use crate::drifting::{Concept, equilibrium, gap};
use crate::normal::Game;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// The most pure policies of a player.
const MOST_POLICIES: usize = 64;

/// A Markov game: play begins in state 0 and lasts `horizon` steps. Rewards are 0 or 1.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkovGame {
    states: usize,
    horizon: usize,
    actions: usize,
    /// By step, state and pair of actions: the probabilities of both rewards.
    rewards: Vec<[f64; 2]>,
    /// By step, state and pair of actions: the probabilities of the next states.
    moves: Vec<Vec<f64>>,
}

impl MarkovGame {
    /// Draws a game: rewards uniformly, next states by normalised uniform weights.
    ///
    /// # Errors
    /// A size of 0, or more than 64 pure policies of a player.
    pub fn random(states: usize, horizon: usize, actions: usize, draws: &mut Draws) -> Result<Self, String> {
        if states == 0 || horizon == 0 || actions == 0 {
            return Err("a Markov game needs at least one state, step and action".into());
        }
        let places = 1 + states * (horizon - 1);
        let policies =
            (0..places).try_fold(1usize, |all, _| all.checked_mul(actions).filter(|all| *all <= MOST_POLICIES));
        if policies.is_none() {
            return Err(format!(
                "{states} states, {horizon} steps and {actions} actions give a player more than {MOST_POLICIES} pure policies"
            ));
        }
        let cells = horizon * states * actions * actions;
        let rewards = (0..cells).map(|_| [draws.unit(), draws.unit()]).collect();
        let mut next = || {
            let weights: Vec<f64> = (0..states).map(|_| draws.open_unit()).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|w| w / sum).collect()
        };
        let moves = (0..cells).map(|_| next()).collect();
        Ok(MarkovGame { states, horizon, actions, rewards, moves })
    }

    /// Returns the number of pure policies of a player: an action in state 0 of the first step, and in each state of each later one.
    #[must_use]
    pub fn policies(&self) -> usize {
        (0..1 + self.states * (self.horizon - 1)).map(|_| self.actions).product()
    }

    /// A policy's action.
    fn action(&self, policy: usize, step: usize, state: usize) -> usize {
        let place = if step == 0 { 0 } else { 1 + (step - 1) * self.states + state };
        (0..place).fold(policy, |rest, _| rest / self.actions) % self.actions
    }

    fn cell(&self, step: usize, state: usize, pair: [usize; 2]) -> usize {
        ((step * self.states + state) * self.actions + pair[0]) * self.actions + pair[1]
    }

    fn pair(&self, policies: [usize; 2], step: usize, state: usize) -> [usize; 2] {
        policies.map(|policy| self.action(policy, step, state))
    }

    /// Returns both players' expected sums of rewards when they play pure policies.
    #[must_use]
    pub fn values(&self, policies: [usize; 2]) -> [f64; 2] {
        let mut reach = vec![0.0; self.states];
        reach[0] = 1.0;
        let mut values = [0.0; 2];
        for step in 0..self.horizon {
            let mut next = vec![0.0; self.states];
            for (state, p) in reach.iter().enumerate() {
                let cell = self.cell(step, state, self.pair(policies, step, state));
                [0, 1].iter().for_each(|i| values[*i] += p * self.rewards[cell][*i]);
                next.iter_mut().zip(&self.moves[cell]).for_each(|(sum, q)| *sum += p * q);
            }
            reach = next;
        }
        values
    }

    /// Returns the game between pure policies.
    ///
    /// # Errors
    /// As [`Game::new`].
    pub fn normal_form(&self) -> Result<Game, String> {
        game_of(self.policies(), |policies| self.values(policies))
    }
}

fn game_of(policies: usize, payoffs: impl Fn([usize; 2]) -> [f64; 2]) -> Result<Game, String> {
    let names = |count: usize| (0..count).map(|i| format!("policy {i}")).collect::<Vec<_>>();
    let players = vec!["the first".to_owned(), "the second".to_owned()];
    Game::from_fn("policies", players, vec![names(policies); 2], |profile| payoffs([profile[0], profile[1]]).to_vec())
}

/// What the learner knows of a game: for each step, state and pair of actions how often it was seen, and sums.
#[derive(Clone, Debug)]
struct Seen {
    counts: Vec<f64>,
    rewards: Vec<[f64; 2]>,
    moves: Vec<Vec<f64>>,
}

impl Seen {
    /// The regularised payoffs of a pair of policies: by data the value is that of the estimated game, and an error e of the table in a
    /// cell that is reached with probability d and was seen n times raises it by d e at a price of `weight` n e². The best error is
    /// d / (2 weight n), at most the rewards that can be had from there on.
    fn payoffs(&self, game: &MarkovGame, policies: [usize; 2], weight: Option<f64>) -> [f64; 2] {
        let mut reach = vec![0.0; game.states];
        reach[0] = 1.0;
        let mut values = [0.0; 2];
        for step in 0..game.horizon {
            let mut next = vec![0.0; game.states];
            let left = (game.horizon - step) as f64;
            for (state, d) in reach.iter().enumerate().filter(|(_, d)| **d > 0.0) {
                let cell = game.cell(step, state, game.pair(policies, step, state));
                let n = self.counts[cell];
                if let Some(weight) = weight {
                    let error = if n > 0.0 { (d / (2.0 * weight * n)).min(left) } else { left };
                    let bonus = d * error - weight * n * error * error;
                    values.iter_mut().for_each(|value| *value += bonus);
                }
                if n > 0.0 {
                    [0, 1].iter().for_each(|i| values[*i] += d * self.rewards[cell][*i] / n);
                    next.iter_mut().zip(&self.moves[cell]).for_each(|(sum, m)| *sum += d * m / n);
                }
            }
            reach = next;
        }
        values
    }
}

/// What the learner sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// The rewards that were paid.
    #[default]
    Own,
    /// A placebo: rewards of the same step, state and number that are drawn from a pair of actions drawn at random.
    Random,
}

/// How a learner did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The sum of gaps of the solutions that were played, after each quarter of the episodes.
    pub regret: [f64; 4],
    /// The gap of the last solution.
    pub last: f64,
    /// The number of solved games.
    pub solved: u32,
}

/// Lets the learner play `episodes` episodes. `regularised`: whether payoffs are those above, with the weight 1/√episodes; otherwise they are
/// those of the estimated game, so that nothing is explored for its own sake. The game of payoffs is solved again when the number of
/// episodes has grown by 5 %.
///
/// # Errors
/// Fewer than four episodes, or a solver that did not end.
pub fn learn(
    game: &MarkovGame,
    concept: Concept,
    episodes: u32,
    regularised: bool,
    sight: Sight,
    draws: &mut Draws,
) -> Result<Curve, String> {
    if episodes < 4 {
        return Err(format!("a learner needs at least 4 episodes; there are {episodes}"));
    }
    let exact = game.normal_form()?;
    let cells = game.rewards.len();
    let mut seen =
        Seen { counts: vec![0.0; cells], rewards: vec![[0.0; 2]; cells], moves: vec![vec![0.0; game.states]; cells] };
    let weight = regularised.then(|| 1.0 / f64::from(episodes).sqrt());
    let policies = game.policies();
    let mut curve = Curve { regret: [0.0; 4], last: 0.0, solved: 0 };
    let (mut joint, mut again) = (Vec::new(), 0);
    for episode in 0..episodes {
        if episode >= again {
            joint = equilibrium(&game_of(policies, |pair| seen.payoffs(game, pair, weight))?, concept)?;
            curve.last = gap(&exact, &joint, concept);
            curve.solved += 1;
            again = episode + 1 + episode / 20;
        }
        let quarter = (u64::from(episode) * 4 / u64::from(episodes)) as usize;
        curve.regret[quarter..].iter_mut().for_each(|sum| *sum += curve.last);
        let place = draws.weighted(&joint).unwrap_or_default();
        let pair = [place % policies, place / policies];
        let mut state = 0;
        for step in 0..game.horizon {
            let cell = game.cell(step, state, game.pair(pair, step, state));
            let shown = match sight {
                Sight::Own => cell,
                Sight::Random => {
                    let mut any = || draws.below(game.actions as u64) as usize;
                    game.cell(step, state, [any(), any()])
                }
            };
            for player in 0..2 {
                seen.rewards[cell][player] += f64::from(u8::from(draws.chance(game.rewards[shown][player])));
            }
            state = draws.weighted(&game.moves[cell]).unwrap_or_default();
            seen.counts[cell] += 1.0;
            seen.moves[cell][state] += 1.0;
        }
    }
    Ok(curve)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{MarkovGame, Seen, Sight, learn};
    use crate::drifting::{Concept, gap};
    use polity_base::rng::{Draws, Stream};

    fn random(seed: u64) -> MarkovGame {
        MarkovGame::random(2, 2, 2, &mut Draws::new(seed, Stream::World, 0, 0)).unwrap()
    }

    /// Values by another way: a walk over all sequences of states.
    #[test]
    fn values_are_sums_over_all_paths() {
        let game = MarkovGame::random(2, 3, 2, &mut Draws::new(1, Stream::World, 0, 0)).unwrap();
        for pair in [[0, 0], [3, 17], [31, 5]] {
            let mut values = [0.0; 2];
            for path in 0..4usize {
                let states = [0, path & 1, path >> 1];
                let mut p = 1.0;
                let mut sums = [0.0; 2];
                for step in 0..3 {
                    let cell = game.cell(step, states[step], game.pair(pair, step, states[step]));
                    [0, 1].iter().for_each(|i| sums[*i] += game.rewards[cell][*i]);
                    if step < 2 {
                        p *= game.moves[cell][states[step + 1]];
                    }
                }
                [0, 1].iter().for_each(|i| values[*i] += p * sums[*i]);
            }
            let found = game.values(pair);
            assert!((found[0] - values[0]).abs() < 1e-12 && (found[1] - values[1]).abs() < 1e-12);
        }
        assert_eq!(game.policies(), 32);
    }

    /// The closed form of the regularised payoff is the greatest one on a grid of errors, for a cell that is reached for sure.
    #[test]
    fn the_regularised_payoff_is_the_greatest_on_a_grid() {
        let game = MarkovGame::random(1, 1, 1, &mut Draws::new(1, Stream::World, 0, 0)).unwrap();
        for (n, weight) in [(0.0, 0.1), (1.0, 0.1), (5.0, 0.2), (100.0, 0.05)] {
            let seen = Seen { counts: vec![n], rewards: vec![[0.3 * n, 0.5 * n]], moves: vec![vec![n]] };
            let grid = (0..=10_000).map(|i| f64::from(i) / 10_000.0).map(|e| e - weight * n * e * e);
            let best = grid.fold(0.0, f64::max);
            let mean = if n > 0.0 { 0.3 } else { 0.0 };
            assert!((seen.payoffs(&game, [0, 0], Some(weight))[0] - mean - best).abs() < 1e-4, "{n} {weight}");
        }
    }

    #[test]
    fn with_enough_data_the_payoffs_are_exact_up_to_a_small_bonus() {
        let game = random(4);
        let n = 1e9;
        let seen = Seen {
            counts: vec![n; game.rewards.len()],
            rewards: game.rewards.iter().map(|r| r.map(|r| r * n)).collect(),
            moves: game.moves.iter().map(|all| all.iter().map(|q| q * n).collect()).collect(),
        };
        for pair in [[0, 0], [3, 6], [7, 1]] {
            let (found, exact) = (seen.payoffs(&game, pair, Some(1.0)), game.values(pair));
            assert!((found[0] - exact[0]).abs() < 1e-6 && (found[1] - exact[1]).abs() < 1e-6);
        }
    }

    #[test]
    fn all_kinds_of_equilibria_are_learned() {
        for concept in [Concept::Nash, Concept::Correlated, Concept::Coarse] {
            let mut growth = 0.0;
            for seed in 0..6 {
                let mut draws = Draws::new(seed, Stream::World, 1, 0);
                let curve = learn(&random(seed), concept, 2_000, true, Sight::Own, &mut draws).unwrap();
                growth += curve.regret[3] / curve.regret[0].max(1.0) / 6.0;
            }
            assert!(growth < 3.0, "{concept:?} {growth}");
        }
    }

    #[test]
    fn a_uniform_draw_has_a_gap_and_sizes_are_checked() {
        let game = random(2).normal_form().unwrap();
        assert!(gap(&game, &vec![1.0 / 64.0; 64], Concept::Nash) > 0.01);
        let mut draws = Draws::new(1, Stream::World, 0, 0);
        assert!(MarkovGame::random(3, 3, 3, &mut draws).unwrap_err().contains("more than 64"));
    }
}
