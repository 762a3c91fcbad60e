//! Spaces that several worlds share: a grid on a torus with one agent per cell, and a continuous torus with a cell list.

pub mod grid;
pub mod plane;
