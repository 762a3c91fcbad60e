//! Measures of a graph: degrees, clustering, components, distances, and how ties follow attributes.
//!
//! Clustering, components and distances do not look at the direction of ties: two agents are tied if one hears the other.

use super::Csr;
use crate::rng::{Draws, Stream};

/// The number of (agent, arc) pairs up to which the distances from all agents are measured.
const ALL_DISTANCES: u64 = 5_000_000;
/// The number of agents from which distances are measured in a larger graph.
const SOURCES: usize = 100;

/// Measures of a graph that need no attributes. Variances divide by the number of agents.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// The number of agents.
    pub agents: u32,
    /// The number of ties; in a directed graph, of arcs.
    pub ties: u64,
    /// Whether some agent hears one that does not hear it.
    pub directed: bool,
    /// The mean number of agents that an agent hears.
    pub mean_degree: f64,
    /// The variance of that number.
    pub degree_variance: f64,
    /// Its maximum.
    pub max_degree: u32,
    /// Measures of the agents that hear an agent, in a directed graph.
    pub incoming: Option<Incoming>,
    /// Three times the triangles, divided by the pairs of ties that share an agent; `None` if there is no such pair.
    pub transitivity: Option<f64>,
    /// The mean over agents of the share of pairs of their neighbours that are tied; 0 for an agent with fewer than two (Watts and
    /// Strogatz 1998).
    pub mean_clustering: f64,
    /// The number of components.
    pub components: u32,
    /// The share of agents in the largest.
    pub largest_component: f64,
    /// The mean distance in ties between agents of one component; `None` if nobody is tied.
    pub mean_distance: Option<f64>,
    /// The number of agents from which distances are measured: all, or a sample of 100.
    pub distance_sources: u32,
}

/// Measures of the agents that hear an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incoming {
    /// The variance of their number.
    pub degree_variance: f64,
    /// Its maximum.
    pub max_degree: u32,
    /// The share of arcs whose reverse is an arc, too.
    pub reciprocity: f64,
}

impl Structure {
    /// Measures a graph. In a large graph the seed decides from which agents distances are measured.
    #[must_use]
    pub fn of(graph: &Csr, seed: u64) -> Self {
        let n = graph.n();
        let mutual = arcs(graph).filter(|(a, b)| graph.neighbours(*b).binary_search(a).is_ok()).count() as u64;
        let directed = mutual < graph.arcs();
        let (reversed, both) = match directed {
            true => (Some(graph.reversed()), Some(undirected(graph))),
            false => (None, None),
        };
        let plain = both.as_ref().unwrap_or(graph);
        let (mean_degree, degree_variance, max_degree) = degrees(graph);
        let incoming = reversed.map(|reversed| {
            let (_, degree_variance, max_degree) = degrees(&reversed);
            Incoming { degree_variance, max_degree, reciprocity: mutual as f64 / graph.arcs().max(1) as f64 }
        });
        let (transitivity, mean_clustering) = clustering(plain);
        let (components, largest) = components(plain);
        let (mean_distance, distance_sources) = distances(plain, seed);
        Structure {
            agents: n,
            ties: if directed { graph.arcs() } else { graph.arcs() / 2 },
            directed,
            mean_degree,
            degree_variance,
            max_degree,
            incoming,
            transitivity,
            mean_clustering,
            components,
            largest_component: f64::from(largest) / f64::from(n.max(1)),
            mean_distance,
            distance_sources,
        }
    }
}

fn arcs(graph: &Csr) -> impl Iterator<Item = (u32, u32)> + '_ {
    (0..graph.n()).flat_map(|i| graph.neighbours(i).iter().map(move |j| (i, *j)))
}

fn undirected(graph: &Csr) -> Csr {
    Csr::undirected(graph.n(), |edge| arcs(graph).for_each(|(a, b)| edge(a, b)))
}

/// Mean, variance and maximum of the lengths of all lists.
fn degrees(graph: &Csr) -> (f64, f64, u32) {
    let n = f64::from(graph.n().max(1));
    let degree = |i: u32| graph.neighbours(i).len() as u32;
    let mean = graph.arcs() as f64 / n;
    let squares: f64 = (0..graph.n()).map(|i| (f64::from(degree(i)) - mean).powi(2)).sum();
    (mean, squares / n, (0..graph.n()).map(degree).max().unwrap_or(0))
}

/// Transitivity and mean local clustering. Each triangle is found once, from its agent of lowest degree (Chiba and Nishizeki 1985),
/// in time proportional to the number of ties times its root.
fn clustering(graph: &Csr) -> (Option<f64>, f64) {
    let n = graph.n();
    let rank = |i: u32| (graph.neighbours(i).len(), i);
    let upward = Csr::directed(n, |arc| arcs(graph).filter(|(a, b)| rank(*a) < rank(*b)).for_each(|(a, b)| arc(a, b)));
    let mut triangles = vec![0u64; n as usize];
    // marked_by[w] == u: u is tied to w, which ranks higher.
    let mut marked_by = vec![u32::MAX; n as usize];
    for u in 0..n {
        upward.neighbours(u).iter().for_each(|v| marked_by[*v as usize] = u);
        for v in upward.neighbours(u) {
            for w in upward.neighbours(*v).iter().filter(|w| marked_by[**w as usize] == u) {
                [u, *v, *w].into_iter().for_each(|corner| triangles[corner as usize] += 1);
            }
        }
    }
    let pairs = |i: u32| {
        let degree = graph.neighbours(i).len() as u64;
        degree * degree.saturating_sub(1) / 2
    };
    let all_pairs: u64 = (0..n).map(pairs).sum();
    let closed: u64 = triangles.iter().sum();
    let local = |(i, triangles): (u32, &u64)| match pairs(i) {
        0 => 0.0,
        pairs => *triangles as f64 / pairs as f64,
    };
    let mean = (0..n).zip(&triangles).map(local).sum::<f64>() / f64::from(n.max(1));
    ((all_pairs > 0).then(|| closed as f64 / all_pairs as f64), mean)
}

/// The number of components, and the agents in the largest.
fn components(graph: &Csr) -> (u32, u32) {
    let mut search = Search::new(graph);
    let (mut count, mut largest) = (0, 0);
    for i in 0..graph.n() {
        // No search has found it yet.
        if search.found_in[i as usize] == 0 {
            count += 1;
            largest = largest.max(search.from(i).len() as u32);
        }
    }
    (count, largest)
}

/// The mean distance between agents that are connected, and the number of agents from which it is measured.
fn distances(graph: &Csr, seed: u64) -> (Option<f64>, u32) {
    let n = graph.n();
    let mut sources: Vec<u32> = (0..n).collect();
    if u64::from(n) * (u64::from(n) + graph.arcs()) > ALL_DISTANCES && sources.len() > SOURCES {
        Draws::new(seed, Stream::Measures, 0, 0).shuffle(&mut sources);
        sources.truncate(SOURCES);
    }
    let mut search = Search::new(graph);
    let (mut sum, mut pairs) = (0u64, 0u64);
    for source in &sources {
        let found = search.from(*source).len() as u64;
        pairs += found - 1;
        sum += search.distances;
    }
    ((pairs > 0).then(|| sum as f64 / pairs as f64), sources.len() as u32)
}

/// Breadth-first search, again and again in the same memory.
struct Search<'a> {
    graph: &'a Csr,
    /// The number of the search that has found an agent last.
    found_in: Vec<u32>,
    search: u32,
    queue: Vec<u32>,
    /// The sum of the distances of all agents that the last search has found.
    distances: u64,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Csr) -> Self {
        Search { graph, found_in: vec![0; graph.n() as usize], search: 0, queue: Vec::new(), distances: 0 }
    }

    /// All agents that are connected with `source`, itself included, the nearest first.
    fn from(&mut self, source: u32) -> &[u32] {
        self.search += 1;
        self.distances = 0;
        self.queue.clear();
        self.queue.push(source);
        self.found_in[source as usize] = self.search;
        let (mut begin, mut distance) = (0, 0);
        while begin < self.queue.len() {
            let end = self.queue.len();
            self.distances += distance * (end - begin) as u64;
            distance += 1;
            for at in begin..end {
                for j in self.graph.neighbours(self.queue[at]) {
                    let found_in = &mut self.found_in[*j as usize];
                    if *found_in != self.search {
                        *found_in = self.search;
                        self.queue.push(*j);
                    }
                }
            }
            begin = end;
        }
        &self.queue
    }
}

/// How ties follow groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    /// Share of ties inside groups.
    pub same: f64,
    /// Newman's coefficient ("Mixing patterns in networks", Physical Review E 67, 2003): 1 if all ties are inside groups, 0 if they are
    /// as at random. `None` if all ties are inside one group.
    pub assortativity: Option<f64>,
    /// Modularity: the share of ties inside groups, less that expected of ties at random with the same degrees (Newman and Girvan 2004;
    /// Leicht and Newman 2008 for directed graphs).
    pub modularity: f64,
}

/// Measures how the ties of a graph follow groups: `group[i]` is that of agent `i`, below `groups`. `None`: there are no ties.
#[must_use]
pub fn mixing(graph: &Csr, group: &[u32], groups: usize) -> Option<Mixing> {
    let all = graph.arcs() as f64;
    let (mut inside, mut from, mut to) = (0u64, vec![0u64; groups], vec![0u64; groups]);
    for (a, b) in arcs(graph) {
        let (a, b) = (group[a as usize], group[b as usize]);
        from[a as usize] += 1;
        to[b as usize] += 1;
        inside += u64::from(a == b);
    }
    if graph.arcs() == 0 {
        return None;
    }
    let expected: f64 = from.iter().zip(&to).map(|(a, b)| (*a as f64 / all) * (*b as f64 / all)).sum();
    let same = inside as f64 / all;
    let modularity = same - expected;
    Some(Mixing { same, assortativity: (expected < 1.0).then(|| modularity / (1.0 - expected)), modularity })
}

/// The correlation of a number over the two ends of all arcs (numeric assortativity; Newman 2003). Arcs are left out where the number
/// is missing (NaN). `None`: there are no arcs, or all ends are equal.
#[must_use]
pub fn correlation(graph: &Csr, number: &[f64]) -> Option<f64> {
    let ends = || arcs(graph).map(|(a, b)| (number[a as usize], number[b as usize]));
    let finite = || ends().filter(|(x, y)| x.is_finite() && y.is_finite());
    // Counted from the first pair, equal ends differ by exactly 0.
    let (first_x, first_y) = finite().next()?;
    let known = || finite().map(|(x, y)| (x - first_x, y - first_y));
    let (sum_x, sum_y, n) = known().fold((0.0, 0.0, 0.0), |(xs, ys, n), (x, y)| (xs + x, ys + y, n + 1.0));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in known() {
        let (x, y) = (x - mean_x, y - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_range_loop, reason = "matrices read like their formulas")]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The karate club of Zachary (1977), as NetworkX has it: neighbours with a higher number, of each of 34 members.
    const CLUB: &[&[u32]] = &[
        &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
        &[2, 3, 7, 13, 17, 19, 21, 30],
        &[3, 7, 8, 9, 13, 27, 28, 32],
        &[7, 12, 13],
        &[6, 10],
        &[6, 10, 16],
        &[16],
        &[],
        &[30, 32, 33],
        &[33],
        &[],
        &[],
        &[],
        &[33],
        &[32, 33],
        &[32, 33],
        &[],
        &[],
        &[32, 33],
        &[33],
        &[32, 33],
        &[],
        &[32, 33],
        &[25, 27, 29, 32, 33],
        &[25, 27, 31],
        &[31],
        &[29, 33],
        &[33],
        &[31, 33],
        &[32, 33],
        &[32, 33],
        &[32, 33],
        &[33],
        &[],
    ];

    /// Members of the officer's faction.
    const OFFICERS: [u32; 17] = [9, 14, 15, 18, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33];

    fn club() -> Csr {
        Csr::undirected(34, |edge| {
            (0..34).for_each(|i| CLUB[i as usize].iter().for_each(|j| edge(i, *j)));
        })
    }

    fn close(a: Option<f64>, b: f64) {
        assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} {b}");
    }

    /// The numbers of NetworkX 3.6.1.
    #[test]
    fn the_karate_club_is_measured_as_by_networkx() {
        let graph = club();
        let found = Structure::of(&graph, 1);
        assert_eq!((found.agents, found.ties, found.directed, found.max_degree), (34, 78, false, 17));
        assert_eq!((found.components, found.largest_component, found.distance_sources), (1, 1.0, 34));
        assert_eq!(found.incoming, None);
        close(Some(found.mean_degree), 4.588_235_294_117_647);
        close(Some(found.degree_variance), 14.595_155_709_342_562);
        close(found.transitivity, 0.255_681_818_181_818_2);
        close(Some(found.mean_clustering), 0.570_638_478_207_682_3);
        close(found.mean_distance, 2.408_199_643_493_761);
        let faction: Vec<u32> = (0..34).map(|i| u32::from(OFFICERS.contains(&i))).collect();
        let found = mixing(&graph, &faction, 2).unwrap();
        close(found.assortativity, 0.717_530_864_197_531);
        close(Some(found.modularity), 0.358_234_714_003_944_8);
        let number: Vec<f64> = (0..34).map(f64::from).collect();
        close(correlation(&graph, &number), 0.448_048_788_063_904_86);
        let degree: Vec<f64> = (0..34).map(|i| graph.neighbours(i).len() as f64).collect();
        close(correlation(&graph, &degree), -0.475_613_097_684_614_13);
    }

    /// A directed graph of nine agents, one of them alone, against NetworkX 3.6.1.
    #[test]
    fn a_directed_graph_is_measured_as_by_networkx() {
        let edges = [(0, 1), (1, 0), (1, 2), (2, 0), (3, 1), (3, 2), (0, 4), (5, 0), (6, 7)];
        let graph = Csr::from_edges(9, &edges, true).unwrap();
        let found = Structure::of(&graph, 1);
        assert_eq!((found.ties, found.directed, found.components, found.max_degree), (9, true, 3, 2));
        let incoming = found.incoming.unwrap();
        close(Some(found.degree_variance), 0.666_666_666_666_666_6);
        close(Some(incoming.degree_variance), 1.111_111_111_111_111_2);
        assert_eq!(incoming.max_degree, 3);
        close(Some(incoming.reciprocity), 0.222_222_222_222_222_2);
        close(Some(found.largest_component), 6.0 / 9.0);
        close(found.transitivity, 0.461_538_461_538_461_56);
        close(Some(found.mean_clustering), 0.277_777_777_777_777_8);
        close(found.mean_distance, 1.625);
        let group: Vec<u32> = (0..9).map(|i| i % 3).collect();
        let found = mixing(&graph, &group, 3).unwrap();
        close(found.assortativity, -0.5);
        close(Some(found.modularity), -0.333_333_333_333_333_3);
        let number: Vec<f64> = (0..9).map(|i| f64::from(i * i)).collect();
        close(correlation(&graph, &number), 0.674_514_936_783_899_4);
    }

    #[test]
    fn what_has_no_value_has_none() {
        let alone = Csr::from_edges(3, &[], false).unwrap();
        let found = Structure::of(&alone, 1);
        assert_eq!((found.transitivity, found.mean_distance, found.components), (None, None, 3));
        assert_eq!((mixing(&alone, &[0, 1, 0], 2), correlation(&alone, &[1.0, 2.0, 3.0])), (None, None));
        let pair = Csr::from_edges(3, &[(0, 1)], false).unwrap();
        assert_eq!(mixing(&pair, &[1, 1, 0], 2), Some(Mixing { same: 1.0, assortativity: None, modularity: 0.0 }));
        assert_eq!(correlation(&pair, &[1.0, 1.0, 5.0]), None);
        // The mean of three times 0.1 is not exactly 0.1.
        let ring = Csr::from_edges(3, &[(0, 1), (1, 2), (2, 0)], true).unwrap();
        assert_eq!(correlation(&ring, &[0.1; 3]), None);
        // An agent without the number counts as if it had no ties.
        let four = Csr::from_edges(4, &[(0, 1), (1, 2), (2, 3)], false).unwrap();
        let three = Csr::from_edges(3, &[(0, 1), (1, 2)], false).unwrap();
        let expected = correlation(&three, &[1.0, 2.0, 4.0]);
        assert!(expected.is_some());
        assert_eq!(correlation(&four, &[1.0, 2.0, 4.0, f64::NAN]), expected);
        assert_eq!(Structure::of(&Csr::from_edges(0, &[], false).unwrap(), 1).components, 0);
    }

    #[test]
    fn distances_of_a_large_graph_are_sampled_by_the_seed() {
        let n = 3000;
        let edges: Vec<(u32, u32)> =
            (0..n).map(|i| (i, (i + 1) % n)).chain((0..n / 2).map(|i| (i, n - 1 - i))).collect();
        let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
        let graph = Csr::from_edges(n, &edges, false).unwrap();
        let [a, again, b] = [1, 1, 2].map(|seed| Structure::of(&graph, seed));
        assert_eq!(a, again);
        assert_eq!((a.distance_sources, b.distance_sources), (100, 100));
        assert_ne!(a.mean_distance, b.mean_distance);
        let (a, b) = (a.mean_distance.unwrap(), b.mean_distance.unwrap());
        assert!((a / b - 1.0).abs() < 0.1, "{a} {b}");
    }

    /// All measures by their definitions, from a matrix.
    fn plainly(n: usize, tied: &BTreeSet<(usize, usize)>) -> (Option<f64>, f64, Vec<usize>, Option<f64>) {
        let has = |a: usize, b: usize| tied.contains(&(a, b)) || tied.contains(&(b, a));
        let neighbours = |i: usize| (0..n).filter(|j| *j != i && has(i, *j)).collect::<Vec<_>>();
        let (mut open, mut closed, mut local) = (0.0, 0.0, 0.0);
        for i in 0..n {
            let around = neighbours(i);
            let pairs: Vec<_> =
                around.iter().flat_map(|a| around.iter().filter(move |b| a < b).map(move |b| (*a, *b))).collect();
            let linked = pairs.iter().filter(|(a, b)| has(*a, *b)).count() as f64;
            open += pairs.len() as f64;
            closed += linked;
            local += if pairs.is_empty() { 0.0 } else { linked / pairs.len() as f64 };
        }
        // Floyd and Warshall.
        let mut distance = vec![vec![usize::MAX / 4; n]; n];
        for i in 0..n {
            distance[i][i] = 0;
            neighbours(i).into_iter().for_each(|j| distance[i][j] = 1);
        }
        for via in 0..n {
            for a in 0..n {
                for b in 0..n {
                    distance[a][b] = distance[a][b].min(distance[a][via] + distance[via][b]);
                }
            }
        }
        let reach = |a: usize| (0..n).filter(|b| distance[a][*b] < n).count();
        // Each component has its lowest agent.
        let lowest = |a: &usize| (0..*a).all(|b| distance[*a][b] >= n);
        let sizes = (0..n).filter(lowest).map(reach).collect();
        let lengths: Vec<usize> =
            (0..n).flat_map(|a| distance[a].iter().copied()).filter(|d| *d > 0 && *d < n).collect();
        let mean = (!lengths.is_empty()).then(|| lengths.iter().sum::<usize>() as f64 / lengths.len() as f64);
        ((open > 0.0).then(|| closed / open), local / n as f64, sizes, mean)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definitions(edges in prop::collection::vec((0u32..14, 0u32..14), 0..60), directed: bool) {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            let graph = Csr::from_edges(14, &edges, directed).unwrap();
            let found = Structure::of(&graph, 1);
            let set = arcs(&graph).map(|(a, b)| (a as usize, b as usize)).collect();
            let (transitivity, local, sizes, distance) = plainly(14, &set);
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                (a, b) => a.is_none() && b.is_none(),
            };
            prop_assert!(near(found.transitivity, transitivity));
            prop_assert!(near(Some(found.mean_clustering), Some(local)));
            prop_assert!(near(found.mean_distance, distance));
            prop_assert_eq!(found.components as usize, sizes.len());
            prop_assert_eq!(found.largest_component, *sizes.iter().max().unwrap() as f64 / 14.0);
            prop_assert_eq!(found.directed, set.iter().any(|(a, b)| !set.contains(&(*b, *a))));
            // Groups: the sum over pairs of agents instead of that over groups.
            let group: Vec<u32> = (0..14).map(|i| i % 3).collect();
            let m = set.len() as f64;
            let out = |i: usize| set.iter().filter(|(a, _)| *a == i).count() as f64;
            let into = |i: usize| set.iter().filter(|(_, b)| *b == i).count() as f64;
            let mut modularity = 0.0;
            for a in 0..14 {
                for b in (0..14).filter(|b| group[a] == group[*b]) {
                    modularity += f64::from(u8::from(set.contains(&(a, b)))) / m - out(a) * into(b) / m / m;
                }
            }
            let mixed = mixing(&graph, &group, 3);
            prop_assert_eq!(mixed.is_some(), m > 0.0);
            prop_assert!(mixed.is_none_or(|mixed| (mixed.modularity - modularity).abs() < 1e-12));
        }
    }
}
