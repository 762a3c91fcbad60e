//! Proximal policy optimisation with a critic that sees a whole team. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::clipped::{Clipped, Kind};
use crate::learning::{Learning, Together};
use polity_kernel::registry::{LeafFiles, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Clipped<Mappo>>>(files);
}

/// The critic sees what all agents of an episode see.
pub struct Mappo;

impl Kind for Mappo {
    const NAME: &'static str = "mappo";
    const SUMMARY: &'static str =
        "Learns by proximal policy optimisation, with a critic that sees all agents of an episode (Yu et al. 2022)";
    const CRITIC: Together = Together::Episode;
}
