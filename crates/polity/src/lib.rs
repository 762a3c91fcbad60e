//! Polity: societies of agents, from three models that debate to a million citizens, on one deterministic engine.
//!
//! This crate joins the kernel, the catalogue and the driver, and holds the command line.

pub mod cli;
pub mod conformance;
pub mod report;

use polity_kernel::registry::Registry;

/// Every leaf of the catalogue.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    polity_catalog::register_all(&mut registry);
    registry
}
