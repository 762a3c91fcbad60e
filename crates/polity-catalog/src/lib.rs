//! The catalogue: worlds, environments, policies, methods, metrics and toolkits, one crate per kind and one folder per leaf. Leaves do not name
//! each other; scenarios compose them.

pub use polity_environments::environments;
pub use polity_methods::methods;
pub use polity_metrics::metrics;
pub use polity_policies::policies;
pub use polity_toolkits::toolkits;
pub use polity_worlds::worlds;

/// Adds every leaf of the catalogue.
pub fn register_all(registry: &mut polity_kernel::registry::Registry) {
    polity_worlds::register_all(registry);
    polity_environments::register_all(registry);
    polity_policies::register_all(registry);
    polity_methods::register_all(registry);
    polity_metrics::register_all(registry);
    polity_toolkits::register_all(registry);
}
