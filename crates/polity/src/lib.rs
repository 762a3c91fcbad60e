//! Polity: societies of agents, from three models that debate to a million citizens, on one deterministic engine.
//!
//! This crate joins the kernel, the catalogue and the driver, and holds the command line.

/// Rounds take and give back the same blocks of memory again and again; the allocators of glibc and musl hand them to the system
/// in between.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod arena;
pub mod cli;
pub mod conformance;
mod own;
pub mod report;

/// The kernel, whose traits a leaf of your own implements: [`kernel::world::SplitWorld`], [`kernel::policy::Policy`],
/// [`kernel::method::Method`], [`kernel::metric::Metric`].
pub use polity_kernel as kernel;

use polity_kernel::registry::Registry;

/// Every leaf of the catalogue.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    polity_catalog::register_all(&mut registry);
    registry
}
