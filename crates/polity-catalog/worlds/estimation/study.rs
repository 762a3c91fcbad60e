//! What an agent of this world does: a study.

use polity_kernel::rng::Draws;
use polity_learn::filter::{Grid, Particles};
use polity_learn::incremental::Mixture;
use serde::{Deserialize, Serialize};

/// A number that a study reports of each agent.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// The slope of a figure over another one, both in logarithms of their means, over all rounds.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Place of the figure on the axis.
    pub over: usize,
    /// Place of the figure that grows or falls.
    pub of: usize,
}

/// What an agent keeps between rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Memory {
    /// Nothing: every round is a run of its own.
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

/// A study: every agent does the same, with its own random numbers.
pub trait Study: Send + Sync {
    /// Returns the reported numbers.
    fn figures(&self) -> &'static [Figure];
    /// Returns slopes of figures.
    fn slopes(&self) -> &'static [Slope] {
        &[]
    }
    /// Returns the number of rounds.
    fn rounds(&self) -> u32;
    /// Returns what an agent begins with.
    fn begin(&self, draws: &mut Draws) -> Memory;
    /// Does a round, numbered from 0, and writes the figures.
    fn step(&self, memory: &mut Memory, round: u32, draws: &mut Draws, figures: &mut [f64]);
    /// Returns the bytes of memory of an agent, about.
    fn bytes(&self) -> usize;
}
