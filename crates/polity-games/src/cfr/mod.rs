//! Counterfactual regret minimisation: equilibria of games in extensive form by self-play.
//!
//! In two-player games whose payoffs add up to a constant, the average strategies approach a Nash equilibrium. In other games they need
//! not; the exploitability that comes with every solution tells how far they are. The players update in turn, each against the
//! others' newest strategies. An update by CFR or CFR+ visits each end of the tree and each of the player's information sets once, and
//! allocates nothing.

mod external;
#[cfg(test)]
mod tests;

use crate::best_response::{Exploitability, measure};
use crate::extensive::sequences::Sequences;
use crate::extensive::{Profile, Tree};
use crate::learn::match_regrets;
use external::External;
use serde::Serialize;

/// How regrets and averages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// CFR (Zinkevich, Johanson, Bowling and Piccione 2007): sums of regrets, plain averages.
    Plain,
    /// CFR+ (Tammelin 2014): regrets never below 0, the strategy of iteration t counts t times in the average.
    Plus,
    /// Monte Carlo CFR with external sampling (Lanctot, Waugh, Zinkevich and Bowling 2009): chance and the other players draw one move a
    /// node. An iteration is cheap and noisy.
    External {
        /// The seed of the draws.
        seed: u64,
    },
}

/// What [`solve`] returns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// The average strategies.
    pub profile: Profile,
    /// The number of iterations; in each, every player updates once.
    pub iterations: u32,
    /// The payoffs of the average strategies, and how far they are from equilibrium.
    pub distance: Exploitability,
}

/// Plays a game against itself for a number of iterations.
///
/// ```
/// use polity_games::{cfr::{Variant, solve}, extensive::kuhn};
///
/// let solution = solve(&kuhn(), 1_000, Variant::Plus)?;
/// assert!((solution.distance.payoffs[0] + 1.0 / 18.0).abs() < 1e-4);
/// assert!(solution.distance.exploitability < 1e-4);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A tree of imperfect recall; no iterations.
pub fn solve(tree: &Tree, iterations: u32, variant: Variant) -> Result<Solution, String> {
    if iterations == 0 {
        return Err("at least one iteration is needed".into());
    }
    let mut solver = Solver::new(tree, variant)?;
    solver.run(iterations);
    let profile = solver.average();
    let distance = measure(&solver.sequences, &profile);
    Ok(Solution { profile, iterations, distance })
}

/// A solver that can be stopped and looked at between iterations.
#[derive(Clone, Debug)]
pub struct Solver<'a> {
    tree: &'a Tree,
    sequences: Sequences,
    variant: Variant,
    iterations: u32,
    /// By move: the regret so far, the present strategy, the weighted sum of strategies.
    regrets: Vec<f64>,
    strategy: Vec<f64>,
    sums: Vec<f64>,
    /// By move, and of the empty sequence: the probability of the player's own moves up to it, and its counterfactual value.
    reach: Vec<f64>,
    values: Vec<f64>,
    external: External,
}

impl<'a> Solver<'a> {
    /// Prepares a game: every move of a set is equally probable.
    ///
    /// # Errors
    /// A tree of imperfect recall.
    pub fn new(tree: &'a Tree, variant: Variant) -> Result<Self, String> {
        let sequences = Sequences::new(tree)?;
        let uniform = Profile::uniform(tree);
        let reach = sequences.all_reach(&uniform);
        let strategy = uniform.probabilities().to_vec();
        let moves = strategy.len();
        Ok(Solver {
            tree,
            sequences,
            variant,
            iterations: 0,
            regrets: vec![0.0; moves],
            strategy,
            sums: vec![0.0; moves],
            reach,
            values: vec![0.0; moves + 1],
            external: External::new(tree, variant),
        })
    }

    /// Runs further iterations.
    pub fn run(&mut self, iterations: u32) {
        for _ in 0..iterations {
            self.iterations += 1;
            for player in 0..self.tree.players.len() {
                match self.variant {
                    Variant::Plain => self.update::<false>(player),
                    Variant::Plus => self.update::<true>(player),
                    Variant::External { .. } => {
                        self.external.update(self.tree, player, &mut self.regrets, &mut self.strategy, &mut self.sums);
                    }
                }
            }
        }
    }

    /// Updates one player's average, regrets and strategy.
    fn update<const PLUS: bool>(&mut self, player: usize) {
        let side = &self.sequences.sides[player];
        let weight = if PLUS { f64::from(self.iterations) } else { 1.0 };
        let own = side.moves.clone();
        let sums = self.sums[own.clone()].iter_mut();
        sums.zip(&self.reach[own]).for_each(|(sum, reach)| *sum += weight * reach);
        self.sequences.values(player, &self.reach, &mut self.values);
        // A set comes after those on the way to it.
        for set in side.sets.clone().rev() {
            let own = self.sequences.of(set);
            let strategy = &mut self.strategy[own.clone()];
            let values = &self.values[own.clone()];
            let value: f64 = strategy.iter().zip(values).map(|(p, value)| p * value).sum();
            let regrets = &mut self.regrets[own];
            let mut positive = 0.0;
            for (regret, worth) in regrets.iter_mut().zip(values) {
                *regret += worth - value;
                if PLUS {
                    *regret = regret.max(0.0);
                }
                positive += regret.max(0.0);
            }
            match_regrets(regrets, positive, strategy);
            self.values[self.sequences.parents[set] as usize] += value;
        }
        self.sequences.reach(player, &self.strategy, &mut self.reach);
    }

    /// Returns the number of iterations so far.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Returns the average strategies; every move is equally probable at sets that were never reached.
    #[must_use]
    pub fn average(&self) -> Profile {
        let mut average = vec![0.0; self.sums.len()];
        for set in 0..self.tree.sets().len() {
            let own = self.sequences.of(set);
            let sums = &self.sums[own.clone()];
            match_regrets(sums, sums.iter().sum(), &mut average[own]);
        }
        Profile::raw(self.tree, average)
    }

    /// Returns the present strategies.
    #[must_use]
    pub fn current(&self) -> Profile {
        Profile::raw(self.tree, self.strategy.clone())
    }

    /// Measures the average strategies.
    #[must_use]
    pub fn distance(&self) -> Exploitability {
        measure(&self.sequences, &self.average())
    }
}
