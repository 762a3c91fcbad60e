//! Preferential attachment (Barabási and Albert, "Emergence of scaling in random networks", Science 286, 1999).

use super::{Csr, Plan, TopologyError, affordable};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Agents come one by one and tie themselves to `links` different earlier ones, each chosen with probability proportional to
/// the ties it has. The first `links + 1` agents are all tied to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BarabasiAlbert {
    /// How many ties a newcomer makes.
    pub links: u32,
}

impl BarabasiAlbert {
    pub(super) fn plan(&self, n: u32, seed: u64, left: f64) -> Result<Plan<'_>, TopologyError> {
        let links = self.links;
        if links < 1 || links >= n {
            let allowed = match n {
                0 | 1 => format!("none with {n} agents; at least 2 agents are needed"),
                _ => format!("1 to {} with {n} agents", n - 1),
            };
            return Err(TopologyError::range("links", links, allowed));
        }
        let first = links + 1;
        let ties = f64::from(first) * f64::from(links) / 2.0 + f64::from(n - first) * f64::from(links);
        affordable("links", ties, left, "use fewer `links`")?;
        Ok(Plan::of(n, 2.0 * ties, move || self.attached(n, seed)))
    }

    /// A random end of a random tie is an agent with probability proportional to its ties (Batagelj and Brandes 2005). Only
    /// the newcomers' targets are stored: each first agent has `links` ends of the first ties, and the other end of a later
    /// tie follows from its number.
    fn attached(&self, n: u32, seed: u64) -> Csr {
        let (links, first) = (self.links, self.links + 1);
        let mut draws = Draws::new(seed, Stream::Topology, 0, 0);
        let mut targets: Vec<u32> = Vec::with_capacity((n - first) as usize * links as usize);
        let first_ends = first * links;
        // chosen_by[j] == i: newcomer i has already chosen j.
        let mut chosen_by = vec![u32::MAX; n as usize];
        for i in first..n {
            let ends = u64::from(first_ends) + 2 * targets.len() as u64;
            for _ in 0..links {
                let j = loop {
                    let end = draws.below(ends) as u32;
                    let j = match end.checked_sub(first_ends) {
                        None => end % first,
                        Some(later) if later % 2 == 0 => targets[later as usize / 2],
                        Some(later) => first + later / 2 / links,
                    };
                    if chosen_by[j as usize] != i {
                        break j;
                    }
                };
                chosen_by[j as usize] = i;
                targets.push(j);
            }
        }
        Csr::undirected(n, |edge| {
            (1..first).for_each(|i| (0..i).for_each(|j| edge(i, j)));
            (first..n)
                .zip(targets.chunks_exact(links as usize))
                .for_each(|(i, chosen)| chosen.iter().for_each(|j| edge(i, *j)));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate(n: u32, links: u32, seed: u64) -> Csr {
        BarabasiAlbert { links }.plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap()
    }

    /// The same process with every end of every tie in a list.
    fn plain(n: u32, links: u32, seed: u64) -> Csr {
        let mut draws = Draws::new(seed, Stream::Topology, 0, 0);
        let mut edges: Vec<(u32, u32)> = (0..=links).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        for i in links + 1..n {
            let mut ends: Vec<u32> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
            ends.sort_unstable();
            let mut chosen = vec![];
            while chosen.len() < links as usize {
                let j = ends[draws.below(ends.len() as u64) as usize];
                if !chosen.contains(&j) {
                    chosen.push(j);
                }
            }
            edges.extend(chosen.iter().map(|j| (i, *j)));
        }
        Csr::from_edges(n, &edges, false).unwrap()
    }

    #[test]
    fn ties_are_exact() {
        for (n, links) in [(2, 1), (5, 4), (100, 1), (300, 7), (300, 200)] {
            let csr = generate(n, links, 4);
            assert_eq!(csr.arcs(), u64::from((links + 1) * links + 2 * (n - links - 1) * links), "{n} {links}");
            assert!((0..n).all(|i| csr.neighbours(i).len() as u32 >= links));
            // A newcomer chooses among the earlier only.
            assert!((links + 1..n).all(|i| csr.neighbours(i).iter().filter(|j| **j < i).count() as u32 == links));
        }
    }

    #[test]
    fn first_agents_have_the_degrees_of_the_plain_process() {
        // The draws are not used alike, so the means over seeds are compared: of the first agent, and of a later one.
        let (seeds, n, links) = (400, 30, 2);
        for agent in [0, 10] {
            let mean = |make: fn(u32, u32, u64) -> Csr| {
                (0..seeds).map(|seed| make(n, links, seed).neighbours(agent).len() as f64).sum::<f64>() / seeds as f64
            };
            let (fast, slow) = (mean(generate), mean(plain));
            assert!((fast - slow).abs() < 0.08 * slow, "agent {agent}: {fast} {slow}");
        }
    }

    #[test]
    fn the_tail_is_the_published_power_law() {
        // The share of agents with k ties tends to 2 m (m + 1) / (k (k + 1) (k + 2)) (Bollobas et al. 2001), so that of
        // those with at least k to m (m + 1) / (k (k + 1)).
        let (n, links) = (50_000, 3);
        let csr = generate(n, links, 11);
        for k in [4, 8, 16, 32] {
            let found = (0..n).filter(|i| csr.neighbours(*i).len() >= k).count() as f64 / f64::from(n);
            let expected = 12.0 / (k * (k + 1)) as f64;
            assert!((found / expected - 1.0).abs() < 0.15, "{k}: {found} for {expected}");
        }
        // The largest degree grows as the root of n.
        let largest = (0..n).map(|i| csr.neighbours(i).len()).max().unwrap() as f64;
        assert!((0.5..10.0).contains(&(largest / (f64::from(links) * f64::from(n).sqrt()))), "{largest}");
    }

    #[test]
    fn out_of_range() {
        let error =
            |links, n| BarabasiAlbert { links }.plan(n, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(error(0, 10), "links: 0 is not possible; allowed: 1 to 9 with 10 agents");
        assert_eq!(error(10, 10), "links: 10 is not possible; allowed: 1 to 9 with 10 agents");
        assert_eq!(error(1, 1), "links: 1 is not possible; allowed: none with 1 agents; at least 2 agents are needed");
        assert!(error(5_000, 1_000_000).starts_with("links: this would make about 4.987e9 ties"));
    }

    /// `cargo test --release -p polity-kernel a_million -- --ignored --nocapture` prints the time.
    #[test]
    #[ignore = "a measurement"]
    fn a_million_agents() {
        let start = std::time::Instant::now();
        let csr = generate(1_000_000, 5, 1);
        println!("{} arcs in {:?}", csr.arcs(), start.elapsed());
        assert_eq!(csr.arcs(), 2 * (15 + 999_994 * 5));
    }
}
