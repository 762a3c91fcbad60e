//! Topologies: who can hear whom, as data.
//!
//! A scenario names a *kind* and its parameters ([`TopologySpec`]); [`generate`] makes the graph from them, the number of
//! agents and a seed, and from nothing else. Every generator works in time and memory proportional to agents and ties, and
//! refuses a request for more than [`MAX_ARCS`] before it allocates. One file a generator.

mod barabasi_albert;
mod configuration;
mod core_ordinary;
mod csr;
mod erdos_renyi;
mod file;
mod grid;
mod homophily;
mod matching;
pub mod measures;
mod plan;
mod ring;
mod skips;
mod stochastic_block;
mod watts_strogatz;

pub use barabasi_albert::BarabasiAlbert;
pub use configuration::Configuration;
pub use core_ordinary::CoreOrdinary;
pub use csr::Csr;
pub use erdos_renyi::ErdosRenyi;
pub use file::{EdgeList, File, Surplus, Unwanted};
pub use grid::{Grid, Neighbourhood};
pub use homophily::Homophily;
pub use matching::Matching;
pub use plan::Plan;
pub use ring::Ring;
pub use stochastic_block::StochasticBlock;
pub use watts_strogatz::WattsStrogatz;

use crate::outline::Guesses;
use crate::population::Population;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::sync::Arc;

/// The most arcs a topology may have (a tie between two agents is two arcs): sixteen gigabytes of them, numbered by `u32`.
pub const MAX_ARCS: u64 = 4_000_000_000;

/// Who can hear whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Nobody hears anybody.
    None {
        /// The number of agents.
        n: u32,
    },
    /// Everybody hears everybody else; takes no memory.
    Complete {
        /// The number of agents.
        n: u32,
    },
    /// Agents hear their neighbours. Shared: keeping a topology does not copy its arcs.
    Graph(Arc<Csr>),
    /// Ties have not been made: for checks that do not need them. No run uses it.
    Outline {
        /// The number of agents.
        n: u32,
        /// The number of arcs that is expected.
        arcs: u64,
        /// Whether an agent's neighbours were requested. The answer is none.
        guesses: Guesses,
    },
}

impl Topology {
    /// The number of agents.
    #[must_use]
    pub fn n(&self) -> u32 {
        match self {
            Topology::None { n } | Topology::Complete { n } | Topology::Outline { n, .. } => *n,
            Topology::Graph(csr) => csr.n(),
        }
    }

    /// The number of arcs, twice the number of ties when the graph is undirected.
    #[must_use]
    pub fn arcs(&self) -> u64 {
        match self {
            Topology::None { .. } => 0,
            Topology::Complete { n } => u64::from(*n) * u64::from(n.saturating_sub(1)),
            Topology::Graph(csr) => csr.arcs(),
            Topology::Outline { arcs, .. } => *arcs,
        }
    }

    /// Returns how many agents `i` hears; 0 for an unknown agent (one born later).
    #[inline]
    #[must_use]
    pub fn degree(&self, i: u32) -> u32 {
        match self {
            Topology::Complete { n } if i < *n => n - 1,
            Topology::None { .. } | Topology::Complete { .. } => 0,
            Topology::Graph(csr) => csr.neighbours(i).len() as u32,
            Topology::Outline { guesses, .. } => {
                guesses.note();
                0
            }
        }
    }

    /// Returns the agents that `i` hears, ascending; none for an unknown agent. In a hot loop prefer `for_each` or `fold` on it to
    /// `for`: they run over the list itself.
    #[inline]
    pub fn neighbours(&self, i: u32) -> impl Iterator<Item = u32> + '_ {
        let (listed, below, above): (&[u32], _, _) = match self {
            Topology::Complete { n } if i < *n => (&[], 0..i, i + 1..*n),
            Topology::None { .. } | Topology::Complete { .. } => (&[], 0..0, 0..0),
            Topology::Graph(csr) => (csr.neighbours(i), 0..0, 0..0),
            Topology::Outline { guesses, .. } => {
                guesses.note();
                (&[], 0..0, 0..0)
            }
        };
        listed.iter().copied().chain(below).chain(above)
    }

    /// Iterates over those of `i`'s neighbours whose ids are in a range, in the order of [`Topology::neighbours`]: (place among all of
    /// them, id). In a hot loop prefer `for_each` or `fold` on it to `for`.
    #[inline]
    pub fn neighbours_in(&self, i: u32, ids: std::ops::Range<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        let within = |range: std::ops::Range<u32>| range.start.max(ids.start)..range.end.min(ids.end);
        let (listed, first, below, above): (&[u32], usize, _, _) = match self {
            Topology::Complete { n } if i < *n => (&[], 0, within(0..i), within(i + 1..*n)),
            Topology::None { .. } | Topology::Complete { .. } | Topology::Outline { .. } => (&[], 0, 0..0, 0..0),
            Topology::Graph(csr) => {
                let all = csr.neighbours(i);
                // Mostly all of them are in the range. The first and the last show it without a search.
                let first = match all.first() {
                    Some(id) if *id < ids.start => all.partition_point(|id| *id < ids.start),
                    _ => 0,
                };
                let end = match all.last() {
                    Some(id) if *id >= ids.end => first + all[first..].partition_point(|id| *id < ids.end),
                    _ => all.len(),
                };
                (&all[first..end], first, 0..0, 0..0)
            }
        };
        let listed = listed.iter().zip(first as u32..).map(|(id, place)| (place, *id));
        // Everybody but `i` itself: those above it have one place less than their id.
        listed.chain(below.map(|id| (id, id))).chain(above.map(|id| (id - 1, id)))
    }

    /// Returns whether `i` hears `other`.
    #[must_use]
    pub fn hears(&self, i: u32, other: u32) -> bool {
        match self {
            Topology::Complete { n } => i < *n && other < *n && i != other,
            Topology::Graph(csr) => csr.neighbours(i).binary_search(&other).is_ok(),
            Topology::None { .. } | Topology::Outline { .. } => self.neighbours(i).any(|heard| heard == other),
        }
    }

    /// The round's random matching in pairs; `None` unless everybody hears everybody.
    #[must_use]
    pub fn matching(&self, seed: u64, round: u32) -> Option<Matching> {
        match self {
            Topology::Complete { n } => Some(Matching::new(*n, seed, round)),
            Topology::None { .. } | Topology::Graph(_) | Topology::Outline { .. } => None,
        }
    }
}

/// A topology that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", key.as_ref().map(|k| format!("{k}: ")).unwrap_or_default())]
pub struct TopologyError {
    /// The parameter it is about, relative to the topology.
    pub key: Option<String>,
    /// What is wrong, with the value, and what would be right.
    pub message: String,
}

impl TopologyError {
    fn at(key: &str, message: impl Into<String>) -> Self {
        TopologyError { key: Some(key.to_owned()), message: message.into() }
    }

    fn general(message: impl Into<String>) -> Self {
        TopologyError { key: None, message: message.into() }
    }

    fn range(key: &str, value: impl Display, allowed: impl Display) -> Self {
        TopologyError::at(key, format!("{value} is not possible; allowed: {allowed}"))
    }
}

/// Refuses more ties than any topology may have, or than there is memory for (`most`).
fn affordable(key: &str, ties: f64, most: f64, advice: &str) -> Result<(), TopologyError> {
    let limit = (MAX_ARCS / 2) as f64;
    let allowed = if ties > limit {
        format!("at most {limit:.3e} are allowed")
    } else if ties > most {
        format!("there is memory for only {most:.3e}")
    } else {
        return Ok(());
    };
    Err(TopologyError::at(key, format!("this would make about {ties:.3e} ties, but {allowed}; {advice}")))
}

/// Refuses a mean or a probability outside [0, most] (and NaN).
fn within(key: &str, value: f64, most: f64, why: &str) -> Result<(), TopologyError> {
    if (0.0..=most).contains(&value) {
        return Ok(());
    }
    Err(TopologyError::range(key, value, format!("0 to {most}{why}")))
}

/// No parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParameters {}

/// Writes the one list of kinds out as the enum, its names and its schemas.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:literal => $variant:ident($parameters:ty),)*) => {
        /// A topology as a scenario asks for it: a kind and its parameters.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum TopologySpec {
            $($(#[doc = $doc])* #[serde(rename = $kind)] $variant($parameters),)*
        }

        impl TopologySpec {
            /// The names of the kinds.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The name of its kind.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(TopologySpec::$variant(_) => $kind,)*
                }
            }
        }

        /// Every kind with the schema of its parameters.
        #[must_use]
        pub fn kinds() -> Vec<(&'static str, Schema)> {
            vec![$(($kind, schema_for!($parameters)),)*]
        }
    };
}

kinds! {
    /// Nobody hears anybody.
    "none" => None(NoParameters),
    /// Everybody hears everybody else.
    "complete" => Complete(NoParameters),
    /// A circle.
    "ring" => Ring(Ring),
    /// A rectangle or a torus.
    "grid" => Grid(Grid),
    /// Ties at random.
    "erdos-renyi" => ErdosRenyi(ErdosRenyi),
    /// A small world.
    "watts-strogatz" => WattsStrogatz(WattsStrogatz),
    /// Preferential attachment.
    "barabasi-albert" => BarabasiAlbert(BarabasiAlbert),
    /// Groups with more ties inside than between, or the reverse.
    "stochastic-block" => StochasticBlock(StochasticBlock),
    /// Groups by an attribute, with a stated share of ties inside.
    "homophily" => Homophily(Homophily),
    /// A number of ties for each agent, and nothing else.
    "configuration" => Configuration(Configuration),
    /// A few core users whom the others follow by topic.
    "core-ordinary" => CoreOrdinary(CoreOrdinary),
    /// Edges from a file.
    "file" => File(File),
}

/// Makes the topology of `n` agents. The same arguments always make the same graph; two topologies of one society need two
/// seeds. A [`TopologySpec::File`] is not generated: the driver reads its edges, and [`File::graph`] makes the graph.
///
/// ```
/// use polity_base::population::Population;
/// use polity_base::topology::{Ring, TopologySpec, generate};
///
/// let ring = generate(&TopologySpec::Ring(Ring { neighbours: 2 }), 5, &Population::empty(5), 1)?;
/// assert_eq!(ring.neighbours(0).collect::<Vec<_>>(), [1, 4]);
/// let error = generate(&TopologySpec::Ring(Ring { neighbours: 3 }), 5, &Population::empty(5), 1).unwrap_err();
/// assert_eq!(error.key.as_deref(), Some("neighbours"));
/// # Ok::<(), polity_base::topology::TopologyError>(())
/// ```
///
/// # Errors
/// A parameter out of its range (for so many agents, or for this population), or more ties than [`MAX_ARCS`] allows.
pub fn generate(spec: &TopologySpec, n: u32, population: &Population, seed: u64) -> Result<Topology, TopologyError> {
    plan(spec, n, population, seed, f64::INFINITY)?.make()
}

/// Checks a topology of `n` agents with at most `most` ties, and makes nothing yet.
///
/// # Errors
/// Those of [`generate`], except that there is no graph with these numbers of ties ([`Plan::make`] finds that); and more ties
/// than `most`.
pub fn plan<'a>(
    spec: &'a TopologySpec,
    n: u32,
    population: &'a Population,
    seed: u64,
    most: f64,
) -> Result<Plan<'a>, TopologyError> {
    match spec {
        TopologySpec::None(_) => Ok(Plan::ready(Topology::None { n })),
        TopologySpec::Complete(_) => Ok(Plan::ready(Topology::Complete { n })),
        TopologySpec::Ring(ring) => ring.plan(n, most),
        TopologySpec::Grid(grid) => grid.plan(n, most),
        TopologySpec::ErdosRenyi(parameters) => parameters.plan(n, seed, most),
        TopologySpec::WattsStrogatz(parameters) => parameters.plan(n, seed, most),
        TopologySpec::BarabasiAlbert(parameters) => parameters.plan(n, seed, most),
        TopologySpec::StochasticBlock(parameters) => parameters.plan(n, population, seed, most),
        TopologySpec::Homophily(parameters) => parameters.plan(n, population, seed, most),
        TopologySpec::Configuration(parameters) => parameters.plan(n, population, seed, most),
        TopologySpec::CoreOrdinary(parameters) => parameters.plan(n, seed, most),
        TopologySpec::File(file) => Err(TopologyError::at(
            "file",
            format!("`{}` is read from disk, not generated, and fits only one number of agents", file.file),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(kind: &str, parameters: serde_json::Value) -> serde_json::Result<TopologySpec> {
        serde_json::from_value(json!({kind: parameters}))
    }

    fn spec(kind: &str, parameters: serde_json::Value) -> TopologySpec {
        parse(kind, parameters).unwrap()
    }

    /// One working request for each kind that is generated.
    fn examples() -> Vec<TopologySpec> {
        vec![
            spec("none", json!({})),
            spec("complete", json!({})),
            spec("ring", json!({"neighbours": 4})),
            spec("grid", json!({"width": 20, "torus": true, "neighbourhood": "moore"})),
            spec("erdos-renyi", json!({"mean_degree": 6})),
            spec("watts-strogatz", json!({"neighbours": 6, "rewire": 0.2})),
            spec("barabasi-albert", json!({"links": 3})),
            spec("stochastic-block", json!({"shares": [0.3, 0.7], "within": 6, "between": 1})),
            spec("configuration", json!({"distribution": {"2": 0.5, "5": 0.4, "60": 0.1}})),
        ]
    }

    #[test]
    fn neighbours_in_a_range_keep_their_places() {
        let edges = [(0, 3), (0, 5), (1, 0), (2, 5), (4, 0), (5, 1)];
        let graph = Topology::Graph(Csr::from_edges(6, &edges, true).unwrap().into());
        for topology in [graph, Topology::Complete { n: 6 }, Topology::None { n: 6 }] {
            for i in 0..7 {
                let all: Vec<(u32, u32)> = (0..).zip(topology.neighbours(i)).collect();
                assert_eq!(all.len() as u32, topology.degree(i));
                for (start, end) in [(0, 6), (0, 0), (2, 4), (5, 6), (1, 6), (0, u32::MAX)] {
                    let within: Vec<(u32, u32)> = topology.neighbours_in(i, start..end).collect();
                    let expected: Vec<_> = all.iter().copied().filter(|(_, id)| (start..end).contains(id)).collect();
                    assert_eq!(within, expected, "{topology:?}, {i} in {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn every_kind_keeps_the_contract() {
        let population = Population::empty(400);
        for spec in examples() {
            let topology = generate(&spec, 400, &population, 3).unwrap();
            assert_eq!(topology, generate(&spec, 400, &population, 3).unwrap(), "{} is not repeatable", spec.kind());
            assert_eq!(topology.n(), 400);
            let lists: Vec<Vec<u32>> = (0..400).map(|i| topology.neighbours(i).collect()).collect();
            let mut arcs = 0;
            for (i, list) in lists.iter().enumerate() {
                let i = i as u32;
                assert!(list.is_sorted_by(|a, b| a < b), "{} {i}: {list:?}", spec.kind());
                assert!(
                    list.iter().all(|j| *j != i && lists[*j as usize].contains(&i)),
                    "{} {i}: {list:?}",
                    spec.kind()
                );
                assert_eq!(topology.degree(i) as usize, list.len());
                arcs += list.len() as u64;
            }
            assert_eq!(topology.arcs(), arcs);
            assert_eq!(topology.degree(400), 0);
            assert_eq!(topology.neighbours(400).count(), 0);
        }
    }

    #[test]
    fn an_outline_has_about_as_many_arcs_and_no_ties() {
        let column = crate::population::Column::Number((0..400).map(|i| f64::from(i % 3)).collect());
        let table = crate::population::Table::new(vec![("group".into(), column)]).unwrap();
        let population = Population::from_table(Arc::new(table));
        let more = [
            spec("grid", json!({"width": 20, "neighbourhood": "moore"})),
            spec("grid", json!({"width": 25})),
            spec("homophily", json!({"by": "group", "mean_degree": 8, "same": 0.7})),
            spec("stochastic-block", json!({"by": "group", "within": 4, "between": 2})),
            spec("configuration", json!({"by": "group"})),
            spec("core-ordinary", json!({"core": 90})),
        ];
        for spec in examples().into_iter().chain(more) {
            let guesses = Guesses::default();
            let planned = || plan(&spec, 400, &population, 3, f64::INFINITY).unwrap();
            let (whole, outline) = (planned().make().unwrap(), planned().outline(&guesses));
            assert_eq!(outline.n(), 400);
            let (expected, made) = (outline.arcs() as f64, whole.arcs() as f64);
            assert!((expected - made).abs() <= 4.0 * made.sqrt(), "{}: {expected} for {made}", spec.kind());
            let exact = ["none", "complete", "ring", "grid", "watts-strogatz", "barabasi-albert"];
            assert!(expected == made || !exact.contains(&spec.kind()), "{}: {expected} for {made}", spec.kind());
            assert!(!guesses.any(), "{}", spec.kind());
            let has = outline.neighbours(0).count() as u32 + outline.degree(0);
            assert!(
                guesses.any() == matches!(outline, Topology::Outline { .. })
                    && (guesses.any() || has == 2 * whole.degree(0))
            );
        }
    }

    #[test]
    fn random_kinds_differ_by_seed() {
        let population = Population::empty(400);
        for spec in examples().into_iter().skip(4) {
            let [a, b] = [1, 2].map(|seed| generate(&spec, 400, &population, seed).unwrap());
            assert_ne!(a, b, "{}", spec.kind());
        }
    }

    #[test]
    fn no_agents_or_one() {
        for n in [0, 1] {
            for (kind, parameters) in [
                ("none", json!({})),
                ("complete", json!({})),
                ("erdos-renyi", json!({"probability": 0.5})),
                ("stochastic-block", json!({"shares": [1, 1], "within": 0, "between": 0})),
            ] {
                let topology = generate(&spec(kind, parameters), n, &Population::empty(n), 0).unwrap();
                assert_eq!((topology.n(), topology.arcs()), (n, 0), "{kind}");
            }
        }
    }

    #[test]
    fn only_the_complete_topology_is_matched() {
        assert!(Topology::Complete { n: 5 }.matching(1, 1).is_some());
        assert!(Topology::None { n: 5 }.matching(1, 1).is_none());
    }

    #[test]
    fn specs_are_strict_and_go_round() {
        let error = |kind: &str, parameters| parse(kind, parameters).unwrap_err().to_string();
        assert!(
            error("rings", json!({}))
                .starts_with("unknown variant `rings`, expected one of `none`, `complete`, `ring`")
        );
        for (kind, _) in kinds() {
            assert!(error(kind, json!({"zzz": 1})).starts_with("unknown field `zzz`"), "{kind}");
        }
        for spec in examples() {
            let text = serde_json::to_value(&spec).unwrap();
            assert_eq!(text.as_object().unwrap().keys().collect::<Vec<_>>(), [spec.kind()]);
            assert_eq!(serde_json::from_value::<TopologySpec>(text).unwrap(), spec);
        }
        assert_eq!(kinds().iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), TopologySpec::KINDS);
    }

    #[test]
    fn a_file_is_not_generated() {
        let file = spec("file", json!({"file": "ties.csv"}));
        let error = generate(&file, 10, &Population::empty(10), 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "file: `ties.csv` is read from disk, not generated, and fits only one number of agents"
        );
    }
}
