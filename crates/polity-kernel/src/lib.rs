//! polity-kernel
pub mod rng;
