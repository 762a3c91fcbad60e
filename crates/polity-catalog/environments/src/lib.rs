//! Environments of the catalogue, one folder each. Leaves do not name each other; scenarios compose them.
//!
//! `leaves.rs` beside it collects the folders, so there is no list to maintain. The tests of a leaf are in its folder.

#[cfg(test)]
#[path = "../../src/testing.rs"]
mod testing;

pub mod grid;
pub mod particles;

#[cfg(test)]
mod tape;

include!(concat!(env!("OUT_DIR"), "/leaves.rs"));

/// Adds the leaves of the other kinds, for scenarios of the tests.
#[cfg(test)]
fn register_others(registry: &mut polity_kernel::registry::Registry) {
    polity_worlds::register_all(registry);
    polity_policies::register_all(registry);
    polity_methods::register_all(registry);
    polity_metrics::register_all(registry);
}
