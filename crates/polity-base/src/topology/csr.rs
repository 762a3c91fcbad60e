//! Graphs in compressed rows.

use super::{MAX_ARCS, TopologyError};

/// A graph: for each agent the ascending list of agents that it hears, without itself and without repetition. It takes 4 bytes per
/// agent and 4 per arc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    /// `n + 1` positions in `targets`; they fit, for [`MAX_ARCS`] is below 2^32.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Csr {
    /// The graph of a list of edges. An edge `(a, b)` lets `a` hear `b` (the follower first, then the one followed), and
    /// also `b` hear `a` unless `directed`. Repeated edges count once.
    ///
    /// # Errors
    /// An agent not below `n`, an edge of an agent with itself, more than [`MAX_ARCS`] arcs.
    pub fn from_edges(n: u32, edges: &[(u32, u32)], directed: bool) -> Result<Self, TopologyError> {
        let arcs = edges.len() as u64 * if directed { 1 } else { 2 };
        if arcs > MAX_ARCS {
            return Err(TopologyError::general(format!("{arcs} arcs are too many; at most {MAX_ARCS} are allowed")));
        }
        for (a, b) in edges {
            let highest = a.max(b);
            if *highest >= n {
                return Err(TopologyError::general(format!(
                    "agent {highest} does not exist; the society has {n} agents, numbered from 0"
                )));
            }
            if a == b {
                return Err(TopologyError::general(format!("agent {a} is tied to itself; remove that edge")));
            }
        }
        Ok(Csr::assemble(n, directed, |edge| edges.iter().for_each(|(a, b)| edge(*a, *b))))
    }

    /// The undirected graph of the edges that `each_edge` visits. It is called twice, to count and to fill, and must visit
    /// the same edges both times: that is cheaper than to store them.
    pub(super) fn undirected(n: u32, each_edge: impl Fn(&mut dyn FnMut(u32, u32))) -> Self {
        Csr::assemble(n, false, each_edge)
    }

    /// The same of arcs `(a, b)`, which let `a` hear `b`.
    pub(super) fn directed(n: u32, each_arc: impl Fn(&mut dyn FnMut(u32, u32))) -> Self {
        Csr::assemble(n, true, each_arc)
    }

    fn assemble(n: u32, directed: bool, each_edge: impl Fn(&mut dyn FnMut(u32, u32))) -> Self {
        let n = n as usize;
        let mut offsets = vec![0u32; n + 1];
        each_edge(&mut |a, b| {
            offsets[a as usize] += 1;
            offsets[b as usize] += u32::from(!directed);
        });
        // From counts to the end of each list; filling then moves each end back to the list's begin.
        let mut end = 0;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        let mut targets = vec![0u32; end as usize];
        let mut put = |a: u32, b: u32| {
            let slot = &mut offsets[a as usize];
            *slot -= 1;
            targets[*slot as usize] = b;
        };
        each_edge(&mut |a, b| {
            put(a, b);
            if !directed {
                put(b, a);
            }
        });
        let mut csr = Csr { offsets, targets };
        csr.sort_lists();
        csr
    }

    /// Sorts each list and removes repetitions, in place.
    fn sort_lists(&mut self) {
        let mut kept = 0;
        for i in 0..self.offsets.len() - 1 {
            let list = self.offsets[i] as usize..self.offsets[i + 1] as usize;
            self.targets[list.clone()].sort_unstable();
            let begin = kept;
            for read in list {
                let target = self.targets[read];
                if kept == begin || self.targets[kept - 1] != target {
                    self.targets[kept] = target;
                    kept += 1;
                }
            }
            self.offsets[i] = begin as u32;
        }
        if let Some(end) = self.offsets.last_mut() {
            *end = kept as u32;
        }
        self.targets.truncate(kept);
    }

    /// Returns the graph with every arc reversed: for each agent, the agents that hear it.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Csr::assemble(self.n(), true, |edge| {
            for i in 0..self.n() {
                self.neighbours(i).iter().for_each(|j| edge(*j, i));
            }
        })
    }

    /// The number of agents.
    #[must_use]
    pub fn n(&self) -> u32 {
        (self.offsets.len() - 1) as u32
    }

    /// The number of arcs.
    #[must_use]
    pub fn arcs(&self) -> u64 {
        self.targets.len() as u64
    }

    /// Returns the agents that `i` hears, ascending; empty for an agent not below `n`.
    #[inline]
    #[must_use]
    pub fn neighbours(&self, i: u32) -> &[u32] {
        match self.offsets.get(i as usize..i as usize + 2) {
            Some(&[begin, end]) => &self.targets[begin as usize..end as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn lists(csr: &Csr) -> Vec<Vec<u32>> {
        (0..csr.n()).map(|i| csr.neighbours(i).to_vec()).collect()
    }

    #[test]
    fn a_follower_hears_the_one_followed() {
        let csr = Csr::from_edges(4, &[(2, 0), (0, 1), (2, 1), (2, 0)], true).unwrap();
        assert_eq!(lists(&csr), [vec![1], vec![], vec![0, 1], vec![]]);
        assert_eq!(lists(&csr.reversed()), [vec![2], vec![0, 2], vec![], vec![]]);
        assert_eq!(csr.arcs(), 3);
        assert_eq!(csr.neighbours(9), [0; 0]);
    }

    #[test]
    fn bad_edges_are_refused() {
        let error = |edges: &[(u32, u32)]| Csr::from_edges(3, edges, false).unwrap_err().to_string();
        assert_eq!(error(&[(0, 1), (3, 1)]), "agent 3 does not exist; the society has 3 agents, numbered from 0");
        assert_eq!(error(&[(2, 2)]), "agent 2 is tied to itself; remove that edge");
    }

    proptest! {
        /// A set of pairs is the plain second implementation.
        #[test]
        fn agrees_with_a_set(edges in prop::collection::vec((0u32..20, 0u32..20), 0..120), directed: bool) {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            let mut set: BTreeSet<(u32, u32)> = edges.iter().copied().collect();
            if !directed {
                set.extend(edges.iter().map(|(a, b)| (*b, *a)));
            }
            let csr = Csr::from_edges(20, &edges, directed).unwrap();
            let arcs: Vec<_> = (0..20).flat_map(|i| csr.neighbours(i).iter().map(move |j| (i, *j))).collect();
            prop_assert_eq!(arcs, set.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(csr.reversed().reversed(), csr);
        }
    }
}
