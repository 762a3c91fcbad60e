//! Q-learning of teams with a monotonic mixer. See README.md.

#[cfg(test)]
mod tests;

use crate::learning::Learning;
use crate::learning::mixed::{Kind, Mixing, Monotonic};
use polity_kernel::registry::{LeafFiles, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Mixing<Qmix>>>(files);
}

/// The value of what a team does grows with the value of what each member does.
pub struct Qmix;

impl Kind for Qmix {
    const NAME: &'static str = "qmix";
    const SUMMARY: &'static str =
        "Learns values of choices that a monotonic network mixes into the team's (Rashid et al. 2018)";
    type Keys = Monotonic;
}
