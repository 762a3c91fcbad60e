//! Public goods to which players contribute one after the other, with rewards that make all contribute or none, solved by backward
//! induction (Liang, Qu, Yang, Lin and Shen 2025, "MAC-SPGG").

use crate::backward::subgame_perfect;
use crate::extensive::{Builder, Node, Tree};
use std::collections::BTreeMap;

/// The most ways in which a game can end.
const MOST_ENDS: usize = 100_000;

/// A sequential public goods game. Each player in turn sees what those before it have contributed, and contributes a share of its
/// endowment of 1. With contributions `c` of the sum `S`, player `i` of `n` gets
///
/// `factor · S / n − cost · c_i + bonus · c_i · (sum of those before) − penalty · [S < threshold]`.
///
/// ```
/// use polity_games::public_goods::PublicGoods;
///
/// // Each unit is worth 2/3 to its giver and costs 1: nobody gives, and nothing else is subgame-perfect.
/// let old = PublicGoods { players: 3, levels: 2, factor: 2.0, cost: 1.0, bonus: 0.0, threshold: 3.0, penalty: 0.0 };
/// let solved = old.solve()?;
/// assert_eq!((solved.path.as_slice(), solved.is_unique), (&[0, 0, 0][..], true));
/// // A bonus for following, and a penalty if not all give: everybody gives.
/// let solved = PublicGoods { bonus: 0.8, penalty: 1.0, ..old }.solve()?;
/// assert_eq!((solved.path.as_slice(), solved.is_unique), (&[1, 1, 1][..], true));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublicGoods {
    /// Players, in the order of their turns.
    pub players: usize,
    /// Contributions that each can choose from: 0, 1, and as many in between.
    pub levels: usize,
    /// All contributions are multiplied by this and shared out.
    pub factor: f64,
    /// What a contribution of 1 costs.
    pub cost: f64,
    /// What a contribution of 1 gains for each unit that was contributed before.
    pub bonus: f64,
    /// The sum of contributions below which all are punished.
    pub threshold: f64,
    /// What each loses then.
    pub penalty: f64,
}

/// What backward induction finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The best level after each history of levels.
    pub advice: BTreeMap<Vec<usize>, usize>,
    /// The level of each player if all follow it.
    pub path: Vec<usize>,
    /// What each gets then.
    pub payoffs: Vec<f64>,
    /// Whether no player is indifferent anywhere, so that this is the only subgame-perfect equilibrium.
    pub is_unique: bool,
}

impl PublicGoods {
    /// Returns the contribution at a level.
    #[must_use]
    pub fn contribution(&self, level: usize) -> f64 {
        level as f64 / (self.levels.max(2) - 1) as f64
    }

    /// Returns what each player gets, by all players' levels.
    #[must_use]
    pub fn payoffs(&self, levels: &[usize]) -> Vec<f64> {
        let given: Vec<f64> = levels.iter().map(|level| self.contribution(*level)).collect();
        let sum: f64 = given.iter().sum();
        let missed = if sum < self.threshold - 1e-9 { self.penalty } else { 0.0 };
        let mut before = 0.0;
        let of = |own: &f64| {
            let payoff = self.factor * sum / self.players as f64 - self.cost * own + self.bonus * own * before - missed;
            before += own;
            payoff
        };
        given.iter().map(of).collect()
    }

    /// Returns the game as a tree.
    ///
    /// # Errors
    /// Fewer than 2 or more than 20 players, fewer than 2 levels, more than 100,000 ways to end, or numbers that are not finite.
    pub fn tree(&self) -> Result<Tree, String> {
        if !(2..=20).contains(&self.players) || self.levels < 2 {
            return Err(format!(
                "a sequential public goods game has 2 to 20 players and at least 2 levels; this one has {} and {}",
                self.players, self.levels
            ));
        }
        let ends = (0..self.players).try_fold(1usize, |ends, _| ends.checked_mul(self.levels));
        if ends.is_none_or(|ends| ends > MOST_ENDS) {
            return Err(format!(
                "{} players with {} levels each have more than {MOST_ENDS} ways to end; take fewer",
                self.players, self.levels
            ));
        }
        let players: Vec<String> = (1..=self.players).map(|player| format!("player {player}")).collect();
        let moves: Vec<String> = (0..self.levels).map(|level| level.to_string()).collect();
        let mut builder = Builder::new("Sequential public goods", &players);
        self.grow(&mut builder, &mut Vec::new(), &moves);
        builder.finish()
    }

    fn grow(&self, builder: &mut Builder, history: &mut Vec<usize>, moves: &[String]) {
        if history.len() == self.players {
            return builder.terminal(&self.payoffs(history));
        }
        let name: Vec<String> = history.iter().map(ToString::to_string).collect();
        builder.decision(history.len(), &format!("after {}", name.join(" ")), moves);
        for level in 0..self.levels {
            history.push(level);
            self.grow(builder, history, moves);
            history.pop();
        }
    }

    /// Solves the game by backward induction.
    ///
    /// # Errors
    /// As [`PublicGoods::tree`].
    pub fn solve(&self) -> Result<Solved, String> {
        let tree = self.tree()?;
        let found = subgame_perfect(&tree)?;
        let mut advice = BTreeMap::new();
        let mut open = vec![(0usize, Vec::new())];
        while let Some((at, history)) = open.pop() {
            let Node::Decision { set, children } = tree.node(at) else { continue };
            for (level, child) in children.iter().enumerate() {
                let mut next: Vec<usize> = history.clone();
                next.push(level);
                open.push((*child as usize, next));
            }
            advice.insert(history, found.moves[set]);
        }
        let mut path = Vec::new();
        while let Some(level) = advice.get(&path) {
            path.push(*level);
        }
        Ok(Solved { advice, path, is_unique: found.is_unique(), payoffs: found.payoffs })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::PublicGoods;
    use std::collections::BTreeMap;

    const OLD: PublicGoods =
        PublicGoods { players: 3, levels: 2, factor: 2.0, cost: 1.0, bonus: 0.0, threshold: 3.0, penalty: 0.0 };

    /// Counts the subgame-perfect equilibria by trying every pure profile at every history, and returns the path of the last one.
    fn plainly(game: &PublicGoods) -> (usize, Vec<usize>) {
        let mut histories: Vec<Vec<usize>> = vec![Vec::new()];
        let mut i = 0;
        while i < histories.len() {
            if histories[i].len() + 1 < game.players {
                for level in 0..game.levels {
                    let mut next = histories[i].clone();
                    next.push(level);
                    histories.push(next);
                }
            }
            i += 1;
        }
        let (mut count, mut found) = (0, Vec::new());
        for number in 0..game.levels.pow(histories.len() as u32) {
            let mut rest = number;
            let profile: BTreeMap<&Vec<usize>, usize> = histories
                .iter()
                .map(|history| {
                    let level = rest % game.levels;
                    rest /= game.levels;
                    (history, level)
                })
                .collect();
            let ends = |mut history: Vec<usize>| {
                while let Some(level) = profile.get(&history) {
                    history.push(*level);
                }
                history
            };
            let is_best = |history: &Vec<usize>| {
                let gets = |level: usize| {
                    let mut next = history.clone();
                    next.push(level);
                    game.payoffs(&ends(next))[history.len()]
                };
                (0..game.levels).all(|other| gets(other) <= gets(profile[history]) + 1e-12)
            };
            if histories.iter().all(is_best) {
                (count, found) = (count + 1, ends(Vec::new()));
            }
        }
        (count, found)
    }

    #[test]
    fn enumeration_of_all_profiles_agrees() {
        let mut several = 0;
        for bonus in [0.0, 0.2, 0.8] {
            for penalty in [0.0, 0.2, 1.0] {
                for threshold in [1.0, 2.0, 3.0] {
                    for factor in [1.5, 2.0] {
                        let game = PublicGoods { factor, bonus, threshold, penalty, ..OLD };
                        let (solved, (count, path)) = (game.solve().unwrap(), plainly(&game));
                        assert_eq!(solved.is_unique, count == 1, "{game:?}");
                        assert!(!solved.is_unique || solved.path == path, "{game:?}");
                        several += usize::from(count > 1);
                    }
                }
            }
        }
        assert!(several > 0, "some game has several equilibria");
        let three = PublicGoods { players: 2, levels: 3, bonus: 0.8, threshold: 2.0, penalty: 1.0, factor: 1.5, ..OLD };
        assert_eq!(plainly(&three), (1, three.solve().unwrap().path));
    }

    #[test]
    fn payoffs_are_those_of_a_calculation_by_hand() {
        let game = PublicGoods { levels: 3, bonus: 0.8, penalty: 1.0, ..OLD };
        // Contributions 1, 1/2, 0: the sum is 3/2, below 3.
        let expected = [1.0 - 1.0 - 1.0, 1.0 - 0.5 + 0.8 * 0.5 - 1.0, 1.0 - 1.0];
        for (found, expected) in game.payoffs(&[2, 1, 0]).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn games_that_are_too_large_are_refused() {
        let error = PublicGoods { players: 17, ..OLD }.solve().unwrap_err();
        assert!(error.contains("17 players with 2 levels"), "{error}");
        assert!(
            PublicGoods { players: 1, ..OLD }.solve().is_err() && PublicGoods { levels: 1, ..OLD }.solve().is_err()
        );
    }
}
