//! Games in extensive form: trees with chance and hidden information, Gambit's format `.efg` for them, and well-known games by name.
//!
//! A [`Tree`] is flat: its nodes stand in depth-first order, node 0 is the root. Decisions that a player cannot tell apart share an
//! information set. A [`Profile`] gives each information set a probability for each of its moves (a behaviour strategy).
//!
//! ```
//! use polity_games::extensive::{Profile, kuhn};
//!
//! let tree = kuhn();
//! assert_eq!((tree.len(), tree.sets().len()), (58, 12));
//! // When both players choose at random, the first one gains 1/8 of a chip a hand.
//! let payoffs = tree.payoffs(&Profile::uniform(&tree));
//! assert!((payoffs[0] - 0.125).abs() < 1e-12);
//! ```

mod builder;
mod efg;
pub(crate) mod library;
mod poker;
mod profile;
pub(crate) mod sequences;
#[cfg(test)]
mod tests;

pub use builder::Builder;
pub use efg::{read, write};
pub use library::{GAMES, entry, game};
pub use poker::{kuhn, leduc};
pub use profile::Profile;

use std::ops::Range;

/// Decisions that their player cannot tell apart.
#[derive(Clone, Debug, PartialEq)]
pub struct InformationSet {
    /// Who decides: a place in [`Tree::players`].
    pub player: usize,
    /// Its name, different from those of the player's other information sets.
    pub name: String,
    /// The names of the moves, all different.
    pub moves: Vec<String>,
    /// Its nodes, in order.
    nodes: Vec<u32>,
}

impl InformationSet {
    /// Returns the nodes that belong to it, in depth-first order.
    pub fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().map(|node| *node as usize)
    }
}

/// What happens by chance at one node.
#[derive(Clone, Debug, PartialEq)]
struct Chance {
    moves: Vec<String>,
    probabilities: Vec<f64>,
}

/// What a node is; the number is its place in the list of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Chance(u32),
    Decision(u32),
    Terminal(u32),
}

/// A node: its kind, and where its children stand.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    kind: Kind,
    first: u32,
    count: u32,
}

/// One node of a [`Tree`], seen from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node<'a> {
    /// Chance moves.
    Chance {
        /// The names of what can happen.
        moves: &'a [String],
        /// The probability of each, in the same order.
        probabilities: &'a [f64],
        /// The node that each leads to.
        children: &'a [u32],
    },
    /// A player moves.
    Decision {
        /// The information set: a place in [`Tree::sets`].
        set: usize,
        /// The node that each of the set's moves leads to.
        children: &'a [u32],
    },
    /// The game is over.
    Terminal {
        /// What each player gets.
        payoffs: &'a [f64],
    },
}

/// A game in extensive form. Make one with a [`Builder`] or [`read`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Its title.
    pub title: String,
    /// The names of the players.
    pub players: Vec<String>,
    /// Ordered by player, then by first node.
    sets: Vec<InformationSet>,
    slots: Vec<Slot>,
    children: Vec<u32>,
    chances: Vec<Chance>,
    /// Terminal by terminal, player by player.
    payoffs: Vec<f64>,
    /// Where the moves of each set begin in a profile, and the number of all moves.
    offsets: Vec<u32>,
}

impl Tree {
    /// Returns the number of nodes (histories).
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a tree has a root")]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the information sets: those of the first player first, in the order of their first nodes.
    #[must_use]
    pub fn sets(&self) -> &[InformationSet] {
        &self.sets
    }

    /// Returns the place of a player's information set by its name.
    #[must_use]
    pub fn set(&self, player: usize, name: &str) -> Option<usize> {
        self.sets.iter().position(|set| set.player == player && set.name == name)
    }

    /// Returns the places of a player's information sets.
    pub(crate) fn sets_of(&self, player: usize) -> Range<usize> {
        self.sets.partition_point(|set| set.player < player)..self.sets.partition_point(|set| set.player <= player)
    }

    /// Returns the number of nodes where the game is over.
    #[must_use]
    pub fn terminals(&self) -> usize {
        self.payoffs.len() / self.players.len()
    }

    /// Returns a node; the root is 0, and every child has a higher number than its parent.
    ///
    /// # Panics
    /// Where `at` is not below [`Tree::len`].
    #[must_use]
    pub fn node(&self, at: usize) -> Node<'_> {
        let Slot { kind, first, count } = self.slots[at];
        let children = &self.children[first as usize..(first + count) as usize];
        match kind {
            Kind::Chance(chance) => {
                let Chance { moves, probabilities } = &self.chances[chance as usize];
                Node::Chance { moves, probabilities, children }
            }
            Kind::Decision(set) => Node::Decision { set: set as usize, children },
            Kind::Terminal(place) => {
                let (first, players) = (place as usize * self.players.len(), self.players.len());
                Node::Terminal { payoffs: &self.payoffs[first..first + players] }
            }
        }
    }

    /// Returns the place of a set's first move among all moves of all sets, the layout of a [`Profile`].
    pub(crate) fn offset(&self, set: usize) -> usize {
        self.offsets[set] as usize
    }

    /// Returns the number of moves of all sets.
    pub(crate) fn moves(&self) -> usize {
        self.offsets[self.sets.len()] as usize
    }

    /// Returns each player's expected payoff. Sets may be of imperfect recall.
    #[must_use]
    pub fn payoffs(&self, profile: &Profile) -> Vec<f64> {
        let mut reach = vec![0.0; self.len()];
        reach[0] = 1.0;
        let mut expected = vec![0.0; self.players.len()];
        for at in 0..self.len() {
            let (weights, children) = match self.node(at) {
                Node::Chance { probabilities, children, .. } => (probabilities, children),
                Node::Decision { set, children } => (profile.at(set), children),
                Node::Terminal { payoffs } => {
                    expected.iter_mut().zip(payoffs).for_each(|(sum, payoff)| *sum += reach[at] * payoff);
                    continue;
                }
            };
            children.iter().zip(weights).for_each(|(child, weight)| reach[*child as usize] = reach[at] * weight);
        }
        expected
    }

    /// Returns whether every player knows all earlier moves: each information set holds one node.
    #[must_use]
    pub fn perfect_information(&self) -> bool {
        self.sets.iter().all(|set| set.nodes.len() == 1)
    }

    /// Checks perfect recall: no player forgets what they knew or did. Counterfactual regret and best responses need it.
    ///
    /// # Errors
    /// Names an information set whose nodes the player reaches by different moves of their own.
    pub fn perfect_recall(&self) -> Result<(), String> {
        sequences::perfect_recall(self)
    }

    /// Returns whether the players' payoffs add up to the same sum at every end (to 1e-9 of the largest payoff).
    #[must_use]
    pub fn constant_sum(&self) -> bool {
        let scale = self.payoffs.iter().fold(1.0f64, |most, payoff| most.max(payoff.abs()));
        let mut sums = self.payoffs.chunks(self.players.len()).map(|payoffs| payoffs.iter().sum::<f64>());
        let first = sums.next().unwrap_or_default();
        sums.all(|sum| (sum - first).abs() <= 1e-9 * scale)
    }

    /// Describes an information set in messages.
    pub(crate) fn describe(&self, set: usize) -> String {
        let set = &self.sets[set];
        format!("information set `{}` of {}", set.name, self.players[set.player])
    }
}
