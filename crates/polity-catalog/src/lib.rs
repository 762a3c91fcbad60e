//! The catalogue: worlds, policies, methods and metrics, one folder each. No leaf names another; scenarios compose them.
//!
//! What several leaves need that is no leaf itself stands beside them in `src`: [`minds`] for policies that ask, [`team`] for methods, [`recall`]
//! for whoever looks something up in what was said.
//!
//! The list of leaves is collected from the folders by `build.rs`.

pub mod minds;
pub mod recall;
pub mod team;

include!(concat!(env!("OUT_DIR"), "/leaves.rs"));
