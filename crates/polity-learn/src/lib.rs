//! Exact learners without neural networks: tabular decision processes and Markov games, mixtures, filters. Everything here is pure.

pub mod convex;
pub mod filter;
pub mod gating;
pub mod incremental;
pub mod linear;
pub mod spectral;
pub mod steering;
pub mod trajectories;
