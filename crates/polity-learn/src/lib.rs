//! Learners, pure: tabular decision processes and Markov games, mixtures, filters, values as functions of a state.

pub mod aggregation;
pub mod approximation;
pub mod concerns;
pub mod conservative;
pub mod convex;
pub mod filter;
pub mod gating;
pub mod gaussian;
pub mod improper;
pub mod incremental;
pub mod joint;
pub mod learner;
pub mod linear;
pub mod mixture;
pub mod mountain_car;
pub mod multilevel;
pub mod pacing;
pub mod process;
pub mod process_library;
pub mod spectral;
pub mod steering;
pub mod teacher;
pub mod trajectories;
pub mod value_mapping;
