//! polity-kernel
pub mod population;
pub mod rng;
pub mod topology;
