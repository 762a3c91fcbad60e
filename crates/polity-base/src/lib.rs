//! The ground that everything stands on: random numbers, digests, trees that remember where they were written, populations and topologies.
//!
//! Plain data and functions of it. Nothing here knows of rounds, agents' policies or models.

pub mod digest;
pub mod distance;
pub mod expression;
pub mod formula;
pub mod outline;
pub mod points;
pub mod population;
pub mod rng;
pub mod topology;
pub mod tree;

pub use tree::Invalid;

/// Up to here every whole number is a floating-point number of its own.
pub const EXACT: f64 = 9_007_199_254_740_992.0;
