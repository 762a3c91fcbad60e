//! Games and their theory: games in normal and extensive form from files, equilibria, learners without regret, and strategies of
//! repeated games. Everything here is pure.

pub mod iterated;
pub mod normal;
