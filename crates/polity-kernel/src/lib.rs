//! polity-kernel
pub mod journal;
pub mod rng;
