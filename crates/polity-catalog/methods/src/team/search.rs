//! A tree of answers, grown where marks are promising: upper confidence bounds for trees (Kocsis and Szepesvari 2006).

use super::Stand;
use serde::{Deserialize, Serialize};

/// A node: an answer, its parent, and its rewards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    /// The answer.
    pub stand: Stand,
    /// Its parent; the root has none.
    pub parent: Option<usize>,
    /// Its depth; 0 at the root.
    pub depth: u32,
    /// Sum of the rewards of the node and its descendants.
    pub total: f64,
    /// Number of these rewards.
    pub visits: u32,
    /// Its own reward, 0 to 1.
    pub reward: f64,
    /// Its children.
    pub children: Vec<usize>,
}

/// A tree of answers; node 0 is a root without an answer of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tree {
    /// The nodes, in order of creation.
    pub nodes: Vec<Node>,
    /// Nodes without a parent.
    pub roots: Vec<usize>,
}

impl Tree {
    /// Adds an answer with its reward, and adds the reward to all ancestors. `weight` scales the ancestors' part.
    pub fn add(&mut self, parent: Option<usize>, stand: Stand, reward: f64) -> usize {
        let new = self.nodes.len();
        let depth = parent.and_then(|p| self.nodes.get(p)).map_or(0, |node| node.depth + 1);
        self.nodes.push(Node { stand, parent, depth, total: 0.0, visits: 0, reward, children: Vec::new() });
        match parent.and_then(|p| self.nodes.get_mut(p)) {
            Some(node) => node.children.push(new),
            None => self.roots.push(new),
        }
        let mut at = Some(new);
        while let Some(node) = at.and_then(|i| self.nodes.get_mut(i)) {
            node.total += reward;
            node.visits += 1;
            at = node.parent;
        }
        new
    }

    /// Returns the mean reward of a node and its descendants.
    #[must_use]
    pub fn value(&self, i: usize) -> f64 {
        self.nodes.get(i).map_or(0.0, |node| if node.visits > 0 { node.total / f64::from(node.visits) } else { 0.0 })
    }

    /// Returns the node to expand: from the top, always the child with the highest upper bound (value + `c` * sqrt(ln(visits of the
    /// parent) / visits)), down to one with fewer than `width` children. Ties go to the first. `None`: all are full to `depth`, or there
    /// are none.
    #[must_use]
    pub fn promising(&self, c: f64, width: usize, depth: u32) -> Option<usize> {
        let all: u32 = self.roots.iter().map(|i| self.nodes[*i].visits).sum();
        let (mut among, mut visits) = (&self.roots, all);
        loop {
            let bound = |i: usize| {
                let own = f64::from(self.nodes[i].visits.max(1));
                self.value(i) + c * libm::sqrt(libm::log(f64::from(visits.max(1))) / own)
            };
            let open = among.iter().copied().filter(|i| self.has_room(*i, width, depth));
            let best = open.rev_max(bound)?;
            let node = &self.nodes[best];
            if node.children.len() < width && node.depth < depth {
                return Some(best);
            }
            (among, visits) = (&node.children, node.visits);
        }
    }

    /// Returns whether a node or one of its descendants can be expanded.
    fn has_room(&self, i: usize, width: usize, depth: u32) -> bool {
        let node = &self.nodes[i];
        node.depth < depth
            && (node.children.len() < width || node.children.iter().any(|child| self.has_room(*child, width, depth)))
    }

    /// Returns the node with the highest own reward; ties go to the first.
    #[must_use]
    pub fn best(&self) -> Option<usize> {
        (0..self.nodes.len()).rev_max(|i| self.nodes[i].reward)
    }
}

/// Returns the item with the highest value; ties go to the first.
trait RevMax: Iterator<Item = usize> + Sized {
    fn rev_max(self, of: impl Fn(usize) -> f64) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for i in self {
            let x = of(i);
            if best.is_none_or(|(_, y)| x > y) {
                best = Some((i, x));
            }
        }
        best.map(|(i, _)| i)
    }
}

impl<I: Iterator<Item = usize>> RevMax for I {}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(answer: &str) -> Stand {
        Stand { by: "x".into(), answer: answer.into(), reasons: String::new() }
    }

    #[test]
    fn rewards_count_for_all_above_and_bounds_lead_the_way() {
        let mut tree = Tree::default();
        let a = tree.add(None, stand("a"), 0.9);
        let b = tree.add(None, stand("b"), 0.1);
        assert_eq!(tree.promising(0.0, 2, 2), Some(a), "without curiosity the best");
        let c = tree.add(Some(a), stand("c"), 0.1);
        assert!((tree.value(a) - 0.5).abs() < 1e-12 && tree.nodes[a].visits == 2 && tree.nodes[c].depth == 1);
        assert_eq!(tree.promising(0.0, 2, 2), Some(a));
        assert_eq!(tree.promising(10.0, 2, 2), Some(b), "with much of it the one seen less");
        assert_eq!(tree.best(), Some(a));
        tree.add(Some(a), stand("d"), 0.0);
        assert_eq!(tree.promising(0.0, 2, 1), Some(b), "a is full at this depth");
        tree.add(Some(b), stand("e"), 0.0);
        tree.add(Some(b), stand("f"), 0.0);
        assert_eq!(tree.promising(0.0, 2, 1), None);
        assert_eq!(Tree::default().promising(1.0, 2, 2), None);
    }
}
