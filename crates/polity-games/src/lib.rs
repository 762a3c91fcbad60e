//! Games and their theory: games in normal and extensive form from files, equilibria, learners without regret, and strategies of
//! repeated games. Everything here is pure.

pub mod backward;
pub mod best_response;
pub mod cfr;
pub mod extensive;
pub mod learn;
pub mod normal;
