//! The spread of posts from outside: the trees of their shares and quotes.

use polity_kernel::digest::DigestMap;
use serde::{Deserialize, Serialize};

/// A seed, or a share or quote of one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Node {
    /// The post that it shares or quotes; none for a seed.
    of: u32,
    /// Number of posts in its subtree, including itself.
    below: u64,
    /// Sum of the distances from it to each of these.
    steps: u64,
    /// Nodes in memory that share or quote it.
    branches: u32,
}

/// The spread of all seeds together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cascade {
    /// The pairs of a seed and a user who shared it.
    users: DigestMap<(u32, u32), ()>,
    /// Users by depth; each counts once.
    at: Vec<u32>,
    /// Likes minus dislikes of the seeds, without their initial scores.
    pub score: i64,
    /// By post: posts that may still be shared, and those between them and their seed.
    nodes: DigestMap<u32, Node>,
    /// Pairs of posts of the same tree, and the sum of their distances.
    pairs: u64,
    steps: u64,
}

impl Cascade {
    /// Adds a post that is, shares or quotes a seed: its number, the seed, its author, the post that it shares or quotes, and its depth.
    pub fn add(&mut self, post: u32, (seed, author): (u32, u32), (of, depth): (u32, u16)) {
        self.grow(post, of);
        if self.users.insert((seed, author), ()).is_none() {
            let depth = usize::from(depth);
            self.at.resize(self.at.len().max(depth + 1), 0);
            self.at[depth] += 1;
        }
    }

    /// Adds a post to its tree, and its distances to all posts there, computed along the path to the seed.
    fn grow(&mut self, post: u32, of: u32) {
        let mut above = of;
        let (mut distance, mut child) = (0, (0, 0));
        let (pairs, all_steps) = (&mut self.pairs, &mut self.steps);
        let mut pass = |node: &mut Node| {
            node.branches += u32::from(distance == 0);
            distance += 1;
            // Posts reached through this node, without the branch that the path came from.
            let (others, steps) = (node.below - child.0, node.steps - child.0 - child.1);
            *pairs += others;
            *all_steps += steps + others * distance;
            child = (node.below, node.steps);
            node.below += 1;
            node.steps += distance;
            node.of
        };
        while let Some(of) = self.nodes.change(&above, &mut pass) {
            above = of;
        }
        self.nodes.insert(post, Node { of, below: 1, steps: 0, branches: 0 });
    }

    /// Drops posts before this one that can get no more shares. Their ancestors still count them.
    pub fn forget(&mut self, before: u32) {
        let bare = |(post, node): (&u32, &Node)| (node.branches == 0).then_some((*post, node.of));
        // A share is newer than what it shares, so one pass from the newest down finds all.
        let mut next = before;
        while let Some((post, of)) = self.nodes.range(..next).rev().find_map(bare) {
            self.nodes.remove(&post);
            self.nodes.change(&of, |above| above.branches -= 1);
            next = post;
        }
    }

    /// Returns the number of users that have shared a seed, including the authors.
    pub fn scale(&self) -> usize {
        self.users.len()
    }

    /// Returns the longest chain of shares from a seed.
    pub fn depth(&self) -> usize {
        self.at.len().saturating_sub(1)
    }

    /// Returns the largest number of users at one depth.
    pub fn breadth(&self) -> u32 {
        self.at.get(1..).unwrap_or_default().iter().copied().max().unwrap_or(0)
    }

    /// Returns the structural virality: the mean distance between two posts of the same tree of shares (Goel et al., "The structural
    /// virality of online diffusion", 2016, equation 1), over all trees; 0 if no tree has two.
    pub fn virality(&self) -> f64 {
        if self.pairs == 0 { 0.0 } else { self.steps as f64 / self.pairs as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::posts::NOWHERE;
    use super::*;
    use polity_kernel::rng::{Draws, Stream};
    use std::collections::BTreeSet;

    impl Cascade {
        /// Returns the number of its posts in memory.
        pub fn held(&self) -> usize {
            self.nodes.len()
        }
    }

    /// Computes the mean distance between two posts of the same tree by walking all paths.
    fn by_walking(parents: &[u32]) -> f64 {
        let line = |post: usize| -> Vec<u32> {
            let mut line = vec![post as u32];
            while let Some(of) = parents.get(*line.last().unwrap() as usize).filter(|of| **of != NOWHERE) {
                line.push(*of);
            }
            line.reverse();
            line
        };
        let lines: Vec<Vec<u32>> = (0..parents.len()).map(line).collect();
        let (mut steps, mut pairs) = (0, 0);
        for (i, a) in lines.iter().enumerate() {
            for b in lines[..i].iter().filter(|b| b[0] == a[0]) {
                let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                steps += a.len() + b.len() - 2 * common;
                pairs += 1;
            }
        }
        if pairs == 0 { 0.0 } else { steps as f64 / f64::from(pairs) }
    }

    #[test]
    fn virality_is_the_mean_way_between_two_posts() {
        let mut cascade = Cascade::default();
        assert_eq!(cascade.virality(), 0.0);
        // A star of four: three pairs at one step, three at two.
        cascade.grow(0, NOWHERE);
        (1..4).for_each(|post| cascade.grow(post, 0));
        assert!((cascade.virality() - 1.5).abs() < 1e-12, "{cascade:?}");
        // A second tree, a chain of three: two pairs at one step, one at two.
        [(4, NOWHERE), (5, 4), (6, 5)].into_iter().for_each(|(post, of)| cascade.grow(post, of));
        assert!((cascade.virality() - (3.0 + 6.0 + 2.0 + 2.0) / 9.0).abs() < 1e-12, "{cascade:?}");
    }

    #[test]
    fn trees_are_counted_whole_though_only_what_can_grow_is_kept() {
        const WINDOW: usize = 25;
        let mut draws = Draws::new(6, Stream::Driver, 0, 0);
        let (mut cascade, mut parents, mut most) = (Cascade::default(), Vec::new(), 0);
        for post in 0..600usize {
            // Three seeds; later posts share one that is not too old, and sometimes an ancestor of it.
            let of = match post {
                0 | 5 | 40 => NOWHERE,
                _ => {
                    let age = draws.below(post.min(WINDOW) as u64) as usize;
                    let newer = (post - 1 - age) as u32;
                    let above: u32 = parents[newer as usize];
                    if above != NOWHERE && draws.chance(0.2) { above } else { newer }
                }
            };
            cascade.grow(post as u32, of);
            parents.push(of);
            cascade.forget((post + 1).saturating_sub(WINDOW) as u32);
            most = most.max(cascade.held());
            let expected = by_walking(&parents);
            assert!((cascade.virality() - expected).abs() < 1e-9 * expected.max(1.0), "{post}");
            // Only new posts and their ancestors are in memory.
            let needed: BTreeSet<u32> = ((post + 1).saturating_sub(WINDOW)..=post)
                .flat_map(|post| std::iter::successors(Some(post as u32), |post| parents.get(*post as usize).copied()))
                .filter(|post| *post != NOWHERE)
                .collect();
            assert!(cascade.nodes.keys().eq(&needed), "{post}");
        }
        assert!(most < 200, "{most}");
    }
}
