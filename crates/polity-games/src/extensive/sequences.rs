//! A tree by sequences (von Stengel 1996): what a player has done so far is one number, and a player's payoff is a sum over the ends of
//! the tree of what chance and each player's sequence contribute. Passes over information sets and ends replace walks over nodes.

use super::{Node, Profile, Tree};
use std::ops::Range;

/// One player's part.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// The player's information sets.
    pub sets: Range<usize>,
    /// The player's moves.
    pub moves: Range<usize>,
    /// Where the ends after each own move begin in `weights`; the last row holds the ends before which the player never moves.
    rows: Vec<u32>,
    /// The probability of chance, times the player's payoff.
    weights: Vec<f64>,
    /// The last move of each other player, end by end.
    others: Vec<u32>,
}

/// A tree of perfect recall by sequences. A sequence has the number of its last move; the empty sequence has the number of all moves.
#[derive(Clone, Debug)]
pub(crate) struct Sequences {
    /// Where each set's moves begin; the last one is the number of all moves, and the empty sequence.
    pub offsets: Vec<u32>,
    /// The own sequence that leads to each set.
    pub parents: Vec<u32>,
    pub sides: Vec<Side>,
}

/// Checks that each information set is reached by only one sequence of its player's own.
///
/// # Errors
/// Names a set whose nodes are reached by different ones.
pub(super) fn perfect_recall(tree: &Tree) -> Result<(), String> {
    parents(tree, &walk(tree).0).map(|_| ())
}

/// Finds the own sequence that leads to each information set, from each player's last move before each node.
fn parents(tree: &Tree, last: &[u32]) -> Result<Vec<u32>, String> {
    let players = tree.players.len();
    let mut parents = Vec::with_capacity(tree.sets().len());
    for (place, set) in tree.sets().iter().enumerate() {
        let mut own = set.nodes().map(|node| last[node * players + set.player]);
        let first = own.next().unwrap_or_default();
        if own.any(|other| other != first) {
            return Err(format!(
                "{} is reached by different moves of the player's own: the game has imperfect recall, which this solver cannot handle",
                tree.describe(place)
            ));
        }
        parents.push(first);
    }
    Ok(parents)
}

/// Finds each player's last move before each node, and the probability that chance allows the node.
fn walk(tree: &Tree) -> (Vec<u32>, Vec<f64>) {
    let players = tree.players.len();
    let mut last = vec![tree.moves() as u32; tree.len() * players];
    let mut chance = vec![1.0; tree.len()];
    for at in 0..tree.len() {
        let node = tree.node(at);
        let (Node::Chance { children, .. } | Node::Decision { children, .. }) = node else { continue };
        for (i, child) in children.iter().enumerate() {
            let child = *child as usize;
            last.copy_within(at * players..(at + 1) * players, child * players);
            chance[child] = chance[at];
            match node {
                Node::Chance { probabilities, .. } => chance[child] *= probabilities[i],
                Node::Decision { set, .. } => {
                    last[child * players + tree.sets()[set].player] = (tree.offset(set) + i) as u32;
                }
                Node::Terminal { .. } => {}
            }
        }
    }
    (last, chance)
}

impl Sequences {
    /// # Errors
    /// A tree of imperfect recall.
    pub fn new(tree: &Tree) -> Result<Self, String> {
        let (last, chance) = walk(tree);
        let parents = parents(tree, &last)?;
        let sides = (0..tree.players.len()).map(|player| Side::new(tree, player, &last, &chance)).collect();
        Ok(Sequences { offsets: tree.offsets.clone(), parents, sides })
    }

    /// Returns the number of moves, which is the number of the empty sequence.
    pub fn moves(&self) -> usize {
        self.offsets.last().map_or(0, |moves| *moves as usize)
    }

    /// Returns the places of a set's moves.
    #[inline(always)]
    pub fn of(&self, set: usize) -> Range<usize> {
        self.offsets[set] as usize..self.offsets[set + 1] as usize
    }

    /// Computes the probability that a player's own moves allow each of their sequences. `reach` has one place more than there are
    /// moves; the last one, of the empty sequence, must be 1.
    pub fn reach(&self, player: usize, probabilities: &[f64], reach: &mut [f64]) {
        for set in self.sides[player].sets.clone() {
            let before = reach[self.parents[set] as usize];
            for place in self.of(set) {
                reach[place] = before * probabilities[place];
            }
        }
    }

    /// Computes all players' reach.
    pub fn all_reach(&self, profile: &Profile) -> Vec<f64> {
        let mut reach = vec![1.0; self.moves() + 1];
        (0..self.sides.len()).for_each(|player| self.reach(player, profile.probabilities(), &mut reach));
        reach
    }

    /// Computes what each sequence of a player is worth through the ends that follow without another own move, given the others'
    /// reach. The player's places of `values`, and the last one, are overwritten.
    #[inline]
    pub fn values(&self, player: usize, reach: &[f64], values: &mut [f64]) {
        let side = &self.sides[player];
        let places = side.moves.clone().chain([self.moves()]);
        if self.sides.len() == 2 {
            for (row, place) in side.rows.windows(2).zip(places) {
                let row = row[0] as usize..row[1] as usize;
                let ends = side.weights[row.clone()].iter().zip(&side.others[row]);
                values[place] = ends.map(|(weight, other)| weight * reach[*other as usize]).sum();
            }
            return;
        }
        let width = self.sides.len() - 1;
        for (row, place) in side.rows.windows(2).zip(places) {
            let ends = row[0] as usize..row[1] as usize;
            let worth = |end: usize| {
                let others = side.others[end * width..(end + 1) * width].iter();
                side.weights[end] * others.map(|other| reach[*other as usize]).product::<f64>()
            };
            values[place] = ends.map(worth).sum();
        }
    }

    /// Computes a player's payoff, and their best reply to the others' reach.
    pub fn reply(&self, player: usize, reach: &[f64]) -> Reply {
        let mut values = vec![0.0; self.moves() + 1];
        self.values(player, reach, &mut values);
        let places = self.sides[player].moves.clone().chain([self.moves()]);
        let payoff = places.map(|place| values[place] * reach[place]).sum();
        let mut moves = Vec::with_capacity(self.sides[player].sets.len());
        for set in self.sides[player].sets.clone().rev() {
            let own = &values[self.of(set)];
            let best = own.iter().enumerate().fold(0, |best, (i, value)| if *value > own[best] { i } else { best });
            let value = own[best];
            values[self.parents[set] as usize] += value;
            moves.push(best);
        }
        moves.reverse();
        Reply { payoff, best: values[self.moves()], moves }
    }
}

/// A player's payoff, and what they could get instead.
pub(crate) struct Reply {
    /// The player's payoff.
    pub payoff: f64,
    /// The payoff of their best reply.
    pub best: f64,
    /// The best reply: the move at each of the player's sets (the first of several best ones).
    pub moves: Vec<usize>,
}

impl Side {
    fn new(tree: &Tree, player: usize, last: &[u32], chance: &[f64]) -> Self {
        let players = tree.players.len();
        let sets = tree.sets_of(player);
        let moves = tree.offset(sets.start)..tree.offset(sets.end);
        // One entry for each end: own sequence, the others', and the weight. Ends that differ only by chance become one.
        let mut ends: Vec<(Vec<u32>, f64)> = Vec::with_capacity(tree.terminals());
        for at in 0..tree.len() {
            let Node::Terminal { payoffs } = tree.node(at) else { continue };
            let all = &last[at * players..(at + 1) * players];
            let mut key = vec![all[player]];
            key.extend(all.iter().enumerate().filter(|(other, _)| *other != player).map(|(_, last)| *last));
            ends.push((key, chance[at] * payoffs[player]));
        }
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        ends.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 += later.1;
            }
            same
        });
        let places = moves.clone().chain([tree.moves()]);
        let mut rows = vec![0];
        rows.extend(places.map(|place| ends.partition_point(|(key, _)| key[0] as usize <= place) as u32));
        let weights = ends.iter().map(|(_, weight)| *weight).collect();
        let others = ends.iter().flat_map(|(key, _)| key[1..].iter().copied()).collect();
        Side { sets, moves, rows, weights, others }
    }
}
