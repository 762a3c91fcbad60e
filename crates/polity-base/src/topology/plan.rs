//! Topologies whose parameters fit, before their ties are made.

use super::{Csr, Topology, TopologyError};
use crate::outline::Guesses;
use std::sync::Arc;

type Ties<'a> = Box<dyn FnOnce() -> Result<Csr, TopologyError> + 'a>;

/// A topology that has been checked and not been made.
pub struct Plan<'a>(Stage<'a>);

enum Stage<'a> {
    /// One that takes no making.
    Ready(Topology),
    Ties {
        n: u32,
        arcs: f64,
        make: Ties<'a>,
    },
}

impl<'a> Plan<'a> {
    pub(super) fn ready(topology: Topology) -> Self {
        Plan(Stage::Ready(topology))
    }

    /// `arcs`: how many are expected.
    pub(super) fn of(n: u32, arcs: f64, make: impl FnOnce() -> Csr + 'a) -> Self {
        Plan::that_may_fail(n, arcs, || Ok(make()))
    }

    /// One of which only the making tells whether there is such a graph.
    pub(super) fn that_may_fail(n: u32, arcs: f64, make: impl FnOnce() -> Result<Csr, TopologyError> + 'a) -> Self {
        Plan(Stage::Ties { n, arcs, make: Box::new(make) })
    }

    /// Makes the ties.
    ///
    /// # Errors
    /// There is no such graph.
    pub fn make(self) -> Result<Topology, TopologyError> {
        match self.0 {
            Stage::Ready(topology) => Ok(topology),
            Stage::Ties { make, .. } => Ok(Topology::Graph(Arc::new(make()?))),
        }
    }

    /// The topology without its ties.
    #[must_use]
    pub fn outline(self, guesses: &Guesses) -> Topology {
        match self.0 {
            Stage::Ready(topology) => topology,
            Stage::Ties { n, arcs, .. } => Topology::Outline { n, arcs: arcs.round() as u64, guesses: guesses.clone() },
        }
    }

    /// The graph, for tests.
    #[cfg(test)]
    pub(super) fn csr(self) -> Result<Csr, TopologyError> {
        match self.0 {
            Stage::Ready(topology) => Csr::from_edges(topology.n(), &[], false),
            Stage::Ties { make, .. } => make(),
        }
    }
}
