//! Replicates of a statistical study: every agent gets its own samples of a stated model, and learns from them. See README.md.

mod memory;
mod params;
mod studies;
#[cfg(test)]
mod tests;

pub use memory::Memory;
pub use params::{Kind, Params};

use crate::trials::{Experiment, Setting, Trials};
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::world::WorldSetup;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<Trials<Params>>(files);
}

impl Setting for Params {
    const NAME: &'static str = "estimation";
    const SUMMARY: &'static str =
        "Replicates of a statistical study, each with its own samples: mixtures, filters, steering";
    type Memory = Memory;

    fn open(self, setup: &WorldSetup<'_>) -> Result<Box<dyn Experiment<Memory>>, Invalid> {
        studies::open(self.study, setup)
    }
}
