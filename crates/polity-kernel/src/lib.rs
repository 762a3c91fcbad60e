//! polity-kernel
pub mod rng;
pub mod tree;
