//! Small worlds (Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998).

use super::ring::{one_side, onward};
use super::{Csr, Plan, TopologyError, within};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ring whose ties are each, with some probability, led from their first agent to a random other one. The number of ties
/// stays, and each agent keeps at least the half of its neighbours that its own ties lead to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WattsStrogatz {
    /// How many neighbours each agent has before rewiring: an even number, half of them on each side.
    pub neighbours: u32,
    /// The probability that a tie is rewired.
    pub rewire: f64,
}

const NOBODY: u32 = u32::MAX;

impl WattsStrogatz {
    pub(super) fn plan(&self, n: u32, seed: u64, left: f64) -> Result<Plan<'_>, TopologyError> {
        let side = one_side(self.neighbours, n, left)?;
        within("rewire", self.rewire, 1.0, "")?;
        Ok(Plan::of(n, f64::from(n) * f64::from(self.neighbours), move || self.rewired(n, side, seed)))
    }

    /// Agent by agent rather than, as in the paper, lap by lap: so the neighbours of one agent can be marked once, which
    /// makes the search for a stranger a look at one mark, at any density.
    fn rewired(&self, n: u32, side: u32, seed: u64) -> Csr {
        let mut draws = Draws::new(seed, Stream::Topology, 0, 0);
        // Tie `i * side + step - 1` leads from agent i to `target`; the rewired ones that came to an agent are a linked list.
        let tie = |i: u32, step: u32| i as usize * side as usize + step as usize - 1;
        let mut target: Vec<u32> = (0..n).flat_map(|i| (1..=side).map(move |step| onward(i, step, n))).collect();
        let mut last_come = vec![NOBODY; n as usize];
        let mut come_before = vec![NOBODY; target.len()];
        // mark[j] == i: agent j is i itself or a neighbour of i.
        let mut mark = vec![NOBODY; n as usize];
        for i in 0..n {
            mark[i as usize] = i;
            let mut degree = side;
            for step in 1..=side {
                mark[target[tie(i, step)] as usize] = i;
                let behind = onward(i, n - step, n);
                if target[tie(behind, step)] == i {
                    mark[behind as usize] = i;
                    degree += 1;
                }
            }
            let mut come = last_come[i as usize];
            while come != NOBODY {
                mark[(come / side) as usize] = i;
                degree += 1;
                come = come_before[come as usize];
            }
            // An agent tied to most others chooses from a list of strangers: by trial it could take long to meet one.
            let crowded = degree > n / 2;
            let mut strangers: Vec<u32> =
                if crowded { (0..n).filter(|j| mark[*j as usize] != i).collect() } else { vec![] };
            if crowded && strangers.is_empty() {
                continue;
            }
            for step in 1..=side {
                if !draws.chance(self.rewire) {
                    continue;
                }
                let old = target[tie(i, step)];
                let new = if crowded {
                    let at = draws.below(strangers.len() as u64) as usize;
                    std::mem::replace(&mut strangers[at], old)
                } else {
                    loop {
                        let j = draws.below(u64::from(n)) as u32;
                        if mark[j as usize] != i {
                            break j;
                        }
                    }
                };
                mark[old as usize] = NOBODY;
                mark[new as usize] = i;
                target[tie(i, step)] = new;
                come_before[tie(i, step)] = std::mem::replace(&mut last_come[new as usize], tie(i, step) as u32);
            }
        }
        Csr::undirected(n, |edge| (0..n).for_each(|i| (1..=side).for_each(|step| edge(i, target[tie(i, step)]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Ring;
    use std::collections::BTreeSet;

    fn generate(n: u32, neighbours: u32, rewire: f64, seed: u64) -> Csr {
        WattsStrogatz { neighbours, rewire }.plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap()
    }

    /// Ties of the ring that are still there, as a share.
    fn kept(csr: &Csr, neighbours: u32) -> f64 {
        let ring = Ring { neighbours }.plan(csr.n(), f64::INFINITY).and_then(Plan::csr).unwrap();
        let kept = (0..csr.n())
            .map(|i| ring.neighbours(i).iter().filter(|j| csr.neighbours(i).contains(j)).count())
            .sum::<usize>();
        kept as f64 / ring.arcs() as f64
    }

    /// The mean share of an agent's pairs of neighbours that are tied.
    fn clustering(csr: &Csr) -> f64 {
        let of = |i: u32| {
            let list = csr.neighbours(i);
            let tied: usize = list.iter().map(|j| csr.neighbours(*j).iter().filter(|k| list.contains(k)).count()).sum();
            tied as f64 / (list.len() * (list.len() - 1)) as f64
        };
        (0..csr.n()).map(of).sum::<f64>() / f64::from(csr.n())
    }

    /// The same process on a set of ties, with the same draws; for agents with few neighbours.
    fn plain(n: u32, neighbours: u32, rewire: f64, seed: u64) -> Csr {
        let mut draws = Draws::new(seed, Stream::Topology, 0, 0);
        let tie = |a: u32, b: u32| (a.min(b), a.max(b));
        let mut ties: BTreeSet<_> =
            (0..n).flat_map(|i| (1..=neighbours / 2).map(move |step| tie(i, (i + step) % n))).collect();
        for i in 0..n {
            for step in 1..=neighbours / 2 {
                if draws.chance(rewire) {
                    let mut to = i;
                    while to == i || ties.contains(&tie(i, to)) {
                        to = draws.below(u64::from(n)) as u32;
                    }
                    ties.remove(&tie(i, (i + step) % n));
                    ties.insert(tie(i, to));
                }
            }
        }
        Csr::from_edges(n, &ties.into_iter().collect::<Vec<_>>(), false).unwrap()
    }

    #[test]
    fn agrees_with_the_plain_process() {
        for seed in 0..50 {
            for rewire in [0.1, 0.6, 1.0] {
                assert_eq!(generate(40, 6, rewire, seed), plain(40, 6, rewire, seed), "{rewire} {seed}");
            }
        }
    }

    #[test]
    fn ties_are_neither_lost_nor_doubled() {
        // Sparse, crowded (the list of strangers) and nearly full.
        for (n, neighbours) in [(500, 6), (40, 30), (41, 38), (9, 8), (5, 2), (3, 2)] {
            for rewire in [0.0, 0.1, 0.5, 1.0] {
                for seed in 0..20 {
                    let csr = generate(n, neighbours, rewire, seed);
                    assert_eq!(csr.arcs(), u64::from(n) * u64::from(neighbours), "{n} {neighbours} {rewire} {seed}");
                    assert!((0..n).all(|i| csr.neighbours(i).len() as u32 >= neighbours / 2));
                    assert!((0..n).all(|i| !csr.neighbours(i).contains(&i)));
                }
            }
        }
    }

    #[test]
    fn no_rewiring_is_the_ring() {
        assert_eq!(
            generate(100, 8, 0.0, 1),
            Ring { neighbours: 8 }.plan(100, f64::INFINITY).and_then(Plan::csr).unwrap()
        );
    }

    #[test]
    fn the_asked_share_is_rewired() {
        // 20,000 ties: 4 sigma is at most 0.015; a tie led away seldom comes back.
        for rewire in [0.05, 0.3, 0.7] {
            let share = kept(&generate(4000, 10, rewire, 7), 10);
            assert!((share - (1.0 - rewire)).abs() < 0.016, "{rewire}: {share}");
        }
    }

    #[test]
    fn clustering_falls_as_published() {
        // Barrat and Weigt 2000: C(p) is about C(0) (1 - p)^3, with C(0) = 3 (k - 2) / (4 (k - 1)).
        for rewire in [0.0, 0.1, 0.4] {
            let expected = 3.0 * 8.0 / (4.0 * 9.0) * (1.0f64 - rewire).powi(3);
            let found = clustering(&generate(3000, 10, rewire, 2));
            assert!((found - expected).abs() < 0.03, "{rewire}: {found} for {expected}");
        }
    }

    #[test]
    fn out_of_range() {
        let error =
            WattsStrogatz { neighbours: 4, rewire: 1.5 }.plan(10, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err();
        assert_eq!(error.to_string(), "rewire: 1.5 is not possible; allowed: 0 to 1");
        let error =
            WattsStrogatz { neighbours: 5, rewire: 0.5 }.plan(10, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("neighbours"));
    }
}
