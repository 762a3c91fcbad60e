//! Proximal policy optimisation. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::clipped::{Clipped, Kind};
use crate::learning::{Learning, Together};
use polity_kernel::registry::{LeafFiles, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Clipped<Ppo>>>(files);
}

/// Each agent learns from what it sees itself.
pub struct Ppo;

impl Kind for Ppo {
    const NAME: &'static str = "ppo";
    const SUMMARY: &'static str =
        "Learns by proximal policy optimisation; a cohort shares one network (Schulman et al. 2017)";
    const CRITIC: Together = Together::Alone;
}
