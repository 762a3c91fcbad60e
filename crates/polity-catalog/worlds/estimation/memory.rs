//! What an agent keeps from one round to the next.

use polity_learn::filter::{Grid, Particles};
use polity_learn::incremental::Mixture;
use serde::{Deserialize, Serialize};

/// Why a trial fails that meets the memory of another study.
pub(super) const OTHER: &str = "the memory is that of another study";

/// What an agent keeps from one round to the next; it depends on the study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Memory {
    /// Nothing: every round is a run of its own.
    #[default]
    Nothing,
    /// A mixture that learns.
    Mixture(Mixture),
    /// A hidden state, two filters and a reference.
    Tracking {
        /// The hidden state.
        hidden: f64,
        /// The filter with the model's own kernel.
        plain: Particles,
        /// The filter with the fitted proposal.
        fitted: Particles,
        /// The filter on a grid.
        grid: Option<Grid>,
        /// Sums over steps so far.
        sums: Vec<f64>,
    },
    /// A vehicle on its way.
    Vehicle {
        /// Its state.
        state: Vec<f64>,
        /// The component whose controls it follows.
        component: u32,
        /// Its first state, standardised by that component.
        first: Vec<f64>,
        /// Sum of its squared controls.
        spent: f64,
    },
}
