//! External sampling: a walk through the tree in which only the updating player tries all moves.

use super::Variant;
use crate::extensive::{Node, Tree};
use crate::learn::match_regrets;
use polity_base::rng::{Draws, Stream};

/// The draws, and space for the values of a walk.
#[derive(Clone, Debug)]
pub(super) struct External {
    draws: Draws,
    /// By move: what it was worth in this walk.
    worth: Vec<f64>,
}

/// One walk.
struct Walk<'a> {
    tree: &'a Tree,
    player: usize,
    /// The player whose average this walk updates.
    averaged: usize,
    regrets: &'a mut [f64],
    strategy: &'a mut [f64],
    sums: &'a mut [f64],
    external: &'a mut External,
}

impl External {
    /// Prepares nothing for other variants.
    pub(super) fn new(tree: &Tree, variant: Variant) -> Self {
        let (seed, moves) = match variant {
            Variant::External { seed } => (seed, tree.moves()),
            _ => (0, 0),
        };
        External { draws: Draws::new(seed, Stream::Method, 0, 0), worth: vec![0.0; moves] }
    }

    /// Updates one player's regrets, and the next player's average.
    pub(super) fn update(
        &mut self,
        tree: &Tree,
        player: usize,
        regrets: &mut [f64],
        strategy: &mut [f64],
        sums: &mut [f64],
    ) {
        let averaged = (player + 1) % tree.players.len();
        Walk { tree, player, averaged, regrets, strategy, sums, external: self }.value(0);
    }
}

impl Walk<'_> {
    /// Returns what the updating player gets from here on. By perfect recall, a set of theirs is met at most once in a walk.
    fn value(&mut self, at: usize) -> f64 {
        let tree = self.tree;
        match tree.node(at) {
            Node::Terminal { payoffs } => payoffs[self.player],
            Node::Chance { probabilities, children, .. } => {
                let drawn = self.external.draws.weighted(probabilities).unwrap_or_default();
                self.value(children[drawn] as usize)
            }
            Node::Decision { set, children } => {
                let first = tree.offset(set);
                let own = first..first + children.len();
                let positive = self.regrets[own.clone()].iter().map(|regret| regret.max(0.0)).sum();
                match_regrets(&self.regrets[own.clone()], positive, &mut self.strategy[own.clone()]);
                let decider = tree.sets()[set].player;
                if decider != self.player {
                    if decider == self.averaged {
                        let sums = self.sums[own.clone()].iter_mut();
                        sums.zip(&self.strategy[own.clone()]).for_each(|(sum, p)| *sum += p);
                    }
                    let drawn = self.external.draws.weighted(&self.strategy[own]).unwrap_or_default();
                    return self.value(children[drawn] as usize);
                }
                for (place, child) in own.clone().zip(children) {
                    self.external.worth[place] = self.value(*child as usize);
                }
                let worth = &self.external.worth[own.clone()];
                let value: f64 = worth.iter().zip(&self.strategy[own.clone()]).map(|(worth, p)| worth * p).sum();
                self.regrets[own].iter_mut().zip(worth).for_each(|(regret, worth)| *regret += worth - value);
                value
            }
        }
    }
}
