//! Behaviour strategies.

use super::Tree;
use serde::Serialize;

/// A behaviour strategy of every player: for each information set, the probability of each move.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Where each set's moves begin, and the number of all moves.
    #[serde(skip)]
    offsets: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Profile {
    /// Every move of a set is equally probable.
    #[must_use]
    pub fn uniform(tree: &Tree) -> Self {
        let of = |set: usize| {
            let moves = tree.sets()[set].moves.len();
            std::iter::repeat_n(1.0 / moves as f64, moves)
        };
        Self::raw(tree, (0..tree.sets().len()).flat_map(of).collect())
    }

    /// Takes the probabilities set by set, in the order of [`Tree::sets`].
    ///
    /// ```
    /// use polity_games::extensive::{Profile, entry};
    ///
    /// let tree = entry();
    /// let profile = Profile::new(&tree, &[vec![0.0, 1.0], vec![0.25, 0.75]])?;
    /// // The entrant enters; the incumbent fights in a quarter of the cases.
    /// assert_eq!(tree.payoffs(&profile), [0.5, 0.5]);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A number of sets or moves that is not the tree's; a probability below 0; a sum that differs from 1 by more than 1e-9.
    pub fn new(tree: &Tree, strategies: &[Vec<f64>]) -> Result<Self, String> {
        if strategies.len() != tree.sets().len() {
            return Err(format!(
                "the game has {} information sets; {} strategies are given",
                tree.sets().len(),
                strategies.len()
            ));
        }
        for (set, own) in strategies.iter().enumerate() {
            let (moves, sum) = (tree.sets()[set].moves.len(), own.iter().sum::<f64>());
            if own.len() != moves {
                return Err(format!("{} has {moves} moves; {} probabilities are given", tree.describe(set), own.len()));
            }
            if own.iter().any(|p| *p < 0.0) || sum.is_nan() || (sum - 1.0).abs() > 1e-9 {
                let told = "probabilities must not be negative, and add up to 1";
                return Err(format!("{}: {told}; given are {own:?}", tree.describe(set)));
            }
        }
        Ok(Self::raw(tree, strategies.concat()))
    }

    /// Takes the probabilities of all moves of all sets.
    pub(crate) fn raw(tree: &Tree, probabilities: Vec<f64>) -> Self {
        Profile { offsets: tree.offsets.clone(), probabilities }
    }

    /// Returns the probability of each move of a set.
    ///
    /// # Panics
    /// Where the tree of this profile has no such set.
    #[must_use]
    pub fn at(&self, set: usize) -> &[f64] {
        &self.probabilities[self.offsets[set] as usize..self.offsets[set + 1] as usize]
    }

    /// Returns the probabilities of all moves, set by set.
    #[must_use]
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }
}
