//! Exact learners without neural networks: tabular decision processes and Markov games, mixtures, filters. Everything here is pure.

pub mod pacing;
