//! Q-learning of teams with a concave mixer. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::Learning;
use crate::learning::mixed::{Concave, Kind, Mixing};
use polity_kernel::registry::{LeafFiles, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Mixing<ConcaveQ>>>(files);
}

/// The value of what a team does is a concave function of the values of what its members do.
pub struct ConcaveQ;

impl Kind for ConcaveQ {
    const NAME: &'static str = "concaveq";
    const SUMMARY: &'static str =
        "Learns values that a concave network mixes into the team's, and policies from them (Li et al. 2024)";
    type Keys = Concave;
}
