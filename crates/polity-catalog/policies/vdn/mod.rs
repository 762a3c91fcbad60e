//! Value decomposition networks. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::Learning;
use crate::learning::mixed::{Kind, Mixing, Sum};
use polity_kernel::registry::{LeafFiles, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Mixing<Vdn>>>(files);
}

/// The value of what a team does is the sum of the values of what its members do.
pub struct Vdn;

impl Kind for Vdn {
    const NAME: &'static str = "vdn";
    const SUMMARY: &'static str = "Learns values of choices whose sum is that of the team's (Sunehag et al. 2018)";
    type Keys = Sum;
}
