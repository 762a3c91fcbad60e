//! The catalogue: worlds, policies, methods and metrics, one folder each. No leaf names another; scenarios compose them.
//!
//! The list of leaves is collected from the folders by `build.rs`.

include!(concat!(env!("OUT_DIR"), "/leaves.rs"));
